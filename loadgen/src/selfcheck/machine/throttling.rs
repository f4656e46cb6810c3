//! Time for which a CPU quota held this process's cgroup back.

use std::fs;
use std::path::Path;

/// Where version 2, alone or beside version 1, and version 1 are mounted.
const MOUNTS: [&str; 4] =
    ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// So far, in nanoseconds, over all threads of the group; 0 where there is no quota. A quota may be set on any ancestor,
/// so the group that was held back the longest counts.
pub(super) fn nanoseconds() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let read = |path: &Path| throttled(&fs::read_to_string(path.join("cpu.stat")).ok()?);
    let ancestors = |group: &str| {
        let groups = Path::new(group).ancestors().filter_map(|group| group.strip_prefix("/").ok());
        let candidates = groups.flat_map(|group| MOUNTS.map(|mount| Path::new(mount).join(group)));
        candidates.filter_map(|path| read(&path)).max()
    };
    // In a container the path may be that of the host, and the mount our own group's: the last ancestor is the mount.
    own(&groups).into_iter().chain(["/"]).filter_map(ancestors).max().unwrap_or_default()
}

/// The paths of the groups that may have a quota, of lines such as `1:cpu,cpuacct:/pod` and `0::/pod`.
fn own(groups: &str) -> Vec<&str> {
    let path = |line| -> Option<&str> {
        let mut fields = str::splitn(line, 3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let has_quota = controllers.is_empty() || controllers.split(',').any(|controller| controller == "cpu");
        has_quota.then_some(path)
    };
    groups.lines().filter_map(path).collect()
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
    }

    #[test]
    fn the_groups_of_both_versions_are_found() {
        assert_eq!(
            own("4:memory:/m\n2:cpu,cpuacct:/pod/a:b\n1:cpuset:/\n0::/unified/pod\n"),
            ["/pod/a:b", "/unified/pod"]
        );
        assert_eq!(own("nonsense\n"), Vec::<&str>::new());
    }
}
