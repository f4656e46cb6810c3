//! State shared by the workers of one load.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// Shared by the workers of one load, to detect which one finishes last.
#[derive(Debug, Default)]
pub(super) struct Together {
    pub attempt: u32,
    /// Workers that have not finished.
    pub remaining: AtomicUsize,
    /// Keys that the preload wrote or found.
    pub keys: AtomicU64,
    /// Its commands that succeeded.
    pub commands: AtomicU64,
    /// One worker met an error that ends the load of all.
    pub failed: AtomicBool,
}
