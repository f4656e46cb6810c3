//! The load that each generator is asked for.

/// Requests per second.
pub const RATE: u64 = 20_000;

/// In seconds.
pub const LENGTH: u64 = 10;
