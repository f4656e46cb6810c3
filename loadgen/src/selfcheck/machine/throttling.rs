//! The CPU quota of the process's cgroup, and the time throttled by it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::kernel_file::read_start;

/// Mount points of cgroup version 2, alone or beside version 1, and of version 1.
const MOUNTS: [&str; 4] =
    ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// The statistics of this process's cgroups. The files stay open until the process moves to other cgroups.
#[derive(Debug, Default)]
pub(super) struct Throttling {
    membership: Option<File>,
    groups: String,
    statistics: Vec<File>,
}

impl Throttling {
    /// Nanoseconds throttled so far, over all threads of the cgroup; 0 without a quota. A quota may be set on any ancestor, so the cgroup
    /// throttled longest counts.
    pub(super) fn nanoseconds(&mut self) -> u64 {
        if self.membership.is_none() {
            self.membership = File::open(MEMBERSHIP).ok();
        }
        let moved = |groups: &str| groups != self.groups;
        if let Some(now) =
            self.membership.as_ref().and_then(|file| read_start(file, |text| moved(text).then(|| text.to_owned())))
        {
            self.statistics = groups(&now).iter().filter_map(|path| File::open(path.join("cpu.stat")).ok()).collect();
            self.groups = now;
        }
        self.statistics.iter().filter_map(|file| read_start(file, throttled)).max().unwrap_or_default()
    }
}

const MEMBERSHIP: &str = "/proc/self/cgroup";

/// The processors that the quotas allow, in millionths of one; `None` without a quota. The smallest quota of all ancestors counts.
pub fn quota_millionths() -> Option<u64> {
    let read = |path: &PathBuf, file| fs::read_to_string(path.join(file)).ok();
    let of = |path: &PathBuf| match read(path, "cpu.max") {
        Some(both) => both.split_once(' ').and_then(|(quota, period)| allowed(quota, period)),
        None => allowed(&read(path, "cpu.cfs_quota_us")?, &read(path, "cpu.cfs_period_us")?),
    };
    groups(&fs::read_to_string(MEMBERSHIP).unwrap_or_default()).iter().filter_map(of).min()
}

/// The directories of the cgroups that may have a quota for the process: its own, and their ancestors.
fn groups(groups: &str) -> Vec<PathBuf> {
    // In a container the path may be the host's, and the mount the process's own cgroup. The last ancestor is the mount.
    let ancestors = own(groups).into_iter().chain(["/"]).flat_map(|group| Path::new(group).ancestors());
    let relative = ancestors.filter_map(|group| group.strip_prefix("/").ok());
    relative.flat_map(|group| MOUNTS.map(|mount| Path::new(mount).join(group))).collect()
}

/// The paths of the cgroups that may have a quota, from lines such as `1:cpu,cpuacct:/pod` and `0::/pod`.
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

/// A quota per period, both in microseconds, as millionths of a processor. `None` for `max` and -1.
fn allowed(quota: &str, period: &str) -> Option<u64> {
    let (quota, period): (u64, u64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    quota.checked_mul(1_000_000)?.checked_div(period)
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
    fn quotas_are_parts_of_a_processor() {
        assert_eq!(allowed("25000", "100000\n"), Some(250_000));
        assert_eq!(allowed("300000\n", "100000\n"), Some(3_000_000));
        for none in [("max", "100000"), ("-1\n", "100000\n"), ("1", "0"), ("", "")] {
            assert_eq!(allowed(none.0, none.1), None);
        }
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
