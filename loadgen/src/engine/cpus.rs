//! The processors that this process may use.

use crate::selfcheck::quota_millionths;

/// The number of workers that fit this process's processors: its affinity mask, limited by its cgroup's CPU quota (version 2 or 1), at
/// least 1. A quota of 2.5 processors gives 2 workers: with a third, the kernel would throttle all of them in every period, which shows
/// as latency.
pub fn available_workers() -> usize {
    // The standard library reads the mask and the quotas of the cgroup and its ancestors, and rounds down.
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Each worker's share of a processor, in millionths. Less than a whole one where the cgroup's quota is smaller than `workers`.
pub(super) fn share_of_processor(workers: usize) -> u64 {
    let quota = quota_millionths().unwrap_or(u64::MAX);
    (quota / (workers as u64).max(1)).min(1_000_000)
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_always_one() {
        assert!(super::available_workers() >= 1);
    }
}
