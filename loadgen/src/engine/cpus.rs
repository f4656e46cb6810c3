//! How many workers this process should run: what its cgroup's quota and its affinity mask leave it.

use std::path::Path;

/// The number of workers that keep all of this process's processors busy and no more: its affinity mask, cut to the
/// CPU limit of its cgroup (version 2 or 1), at least 1. A limit of 1.5 processors is rounded up to 2.
pub fn available_workers() -> usize {
    let affinity = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let quota = quota_processors(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"));
    quota.map_or(affinity, |quota| affinity.min(quota)).max(1)
}

/// Time for which this process's cgroup was held back by its quota so far, in nanoseconds.
pub(super) fn throttled_nanoseconds() -> u64 {
    let throttled = |path: &str, field: &str, unit: u64| {
        let text = std::fs::read_to_string(path).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.trim().parse::<u64>().ok())?;
        Some(value * unit)
    };
    // In a container the mount shows our own group.
    throttled("/sys/fs/cgroup/cpu.stat", "throttled_usec ", 1000)
        .or_else(|| throttled("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time ", 1))
        .unwrap_or_default()
}

/// The smallest CPU limit between this process's cgroup and the root, in whole processors rounded up.
fn quota_processors(membership: &Path, mount: &Path) -> Option<usize> {
    let membership = std::fs::read_to_string(membership).ok()?;
    membership.lines().filter_map(|line| group_quota(line, mount)).min()
}

fn group_quota(line: &str, mount: &Path) -> Option<usize> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (root, version_2) = if controllers.is_empty() {
        (mount.to_owned(), true)
    } else if controllers.split(',').any(|name| name == "cpu") {
        (mount.join("cpu"), false)
    } else {
        return None;
    };
    // In a container the path may be the host's while the mount shows only our own group: then its root is ours.
    let own = root.join(path.trim_start_matches('/'));
    let start = if own.is_dir() { own } else { root.clone() };
    start
        .ancestors()
        .take_while(|directory| directory.starts_with(&root))
        .filter_map(|directory| if version_2 { limit_v2(directory) } else { limit_v1(directory) })
        .min()
}

fn limit_v2(directory: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(directory.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    processors(quota.parse().ok()?, period.parse().ok()?)
}

fn limit_v1(directory: &Path) -> Option<usize> {
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).ok()?.trim().parse::<i64>().ok();
    // A quota of -1 is no limit.
    let quota = u64::try_from(read("cpu.cfs_quota_us")?).ok()?;
    processors(quota, u64::try_from(read("cpu.cfs_period_us")?).ok()?)
}

fn processors(quota: u64, period: u64) -> Option<usize> {
    if quota == 0 || period == 0 {
        return None;
    }
    usize::try_from(quota.div_ceil(period)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        directory
    }

    fn quota(files: &[(&str, &str)]) -> Option<usize> {
        let directory = tree(files);
        quota_processors(&directory.path().join("membership"), &directory.path().join("mount"))
    }

    #[test]
    fn version_2_takes_the_smallest_limit_up_to_the_root() {
        assert_eq!(
            quota(&[
                ("membership", "0::/pods/one\n"),
                ("mount/pods/one/cpu.max", "max 100000\n"),
                ("mount/pods/cpu.max", "150000 100000\n"),
            ]),
            Some(2)
        );
    }

    #[test]
    fn version_2_inside_a_container() {
        let files = [("membership", "0::/host/path\n"), ("mount/cpu.max", "400000 100000\n")];
        assert_eq!(quota(&files), Some(4));
    }

    #[test]
    fn version_1() {
        let files = |quota| {
            [
                ("membership", "5:cpu,cpuacct:/a\n3:memory:/a\n"),
                ("mount/cpu/a/cpu.cfs_quota_us", quota),
                ("mount/cpu/a/cpu.cfs_period_us", "100000\n"),
            ]
        };
        assert_eq!(quota(&files("300000\n")), Some(3));
        assert_eq!(quota(&files("-1\n")), None);
    }

    #[test]
    fn no_limit() {
        assert_eq!(quota(&[("membership", "0::/\n"), ("mount/cpu.max", "max 100000\n")]), None);
        assert_eq!(quota(&[]), None);
        assert!(available_workers() >= 1);
    }
}
