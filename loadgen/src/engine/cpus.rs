//! The processors that this process may use.

/// The number of workers that use this process's processors and no more: its affinity mask, cut to the CPU limit of its
/// cgroup (version 2 or 1), at least 1. A limit of 2.5 processors makes 2 workers: a third would have the kernel hold
/// all of them back in every period, which shows as latency.
pub fn available_workers() -> usize {
    // The standard library reads the mask and the limits of the cgroup and its ancestors, and rounds down.
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Time for which this process's cgroup was held back by its quota so far, in nanoseconds; 0 where there is none.
pub(super) fn throttled_nanoseconds() -> u64 {
    // In a container these are our own group's.
    ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"]
        .iter()
        .find_map(|path| throttled(&std::fs::read_to_string(path).ok()?))
        .unwrap_or_default()
}

/// Version 2 counts microseconds, version 1 nanoseconds.
fn throttled(statistics: &str) -> Option<u64> {
    statistics.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", value) => value.parse::<u64>().ok()?.checked_mul(1000),
        ("throttled_time", value) => value.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        assert_eq!(throttled("usage_usec 5\nnr_throttled 1\nthrottled_usec 12\n"), Some(12_000));
        assert_eq!(throttled("nr_periods 3\nnr_throttled 1\nthrottled_time 12345\n"), Some(12_345));
        assert_eq!(throttled("usage_usec 5\n"), None);
        assert!(available_workers() >= 1);
    }
}
