//! Limits of the number of servers, and of the time that they may take to start.

use std::time::Duration;

/// The most replicas of a primary.
pub const REPLICAS: u32 = 5;
/// The most servers of a pool.
pub const SERVERS: usize = 8;
/// Timeout for servers to answer and to form their cluster.
pub const PATIENCE: Duration = Duration::from_secs(30);
