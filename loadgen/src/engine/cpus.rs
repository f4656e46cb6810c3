//! The processors that this process may use.

use crate::selfcheck::quota_millionths;

/// The number of workers that use this process's processors and no more: its affinity mask, cut to the CPU limit of its
/// cgroup (version 2 or 1), at least 1. A limit of 2.5 processors makes 2 workers: a third would have the kernel hold
/// all of them back in every period, which shows as latency.
pub fn available_workers() -> usize {
    // The standard library reads the mask and the limits of the cgroup and its ancestors, and rounds down.
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What each of `workers` may use of a processor, in millionths: less than a whole one where the cgroup's limit does not go round.
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
