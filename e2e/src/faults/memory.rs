//! Makes a process run out of memory.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use redisbench_testkit::processes::{SIGKILL, signal};

use super::process::Process;
use crate::wait;

const ENDED_WITHIN: Duration = Duration::from_secs(30);

/// Lowers the memory limit of the process' cgroup to its usage, and starts another process in that cgroup that allocates more, until the
/// kernel has killed the first.
pub async fn take_away(process: &Process) -> Result<()> {
    let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", process.pid))?;
    let cgroup = Cgroup::among(&cgroups).with_context(|| format!("no memory cgroup in {cgroups}"))?;
    // The kernel's choice of a victim is not under test.
    fs::write(format!("/proc/{}/oom_score_adj", process.pid), "1000").context("failed to raise oom_score_adj")?;
    cgroup.lower_limit()?;
    let _eater = cgroup.eat()?;
    wait::answer("killed for lack of memory", ENDED_WITHIN, || async { Ok((!process.is_alive()).then_some(())) }).await
}

#[derive(Debug, PartialEq, Eq)]
struct Cgroup {
    folder: PathBuf,
    usage: &'static str,
    limit: &'static str,
}

impl Cgroup {
    /// Version 1 has a hierarchy for memory, version 2 one for all controllers.
    fn among(cgroups: &str) -> Option<Self> {
        let mut lines = cgroups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?.trim_start_matches('/')))
        });
        let first = lines.clone().find(|(controllers, _)| controllers.split(',').any(|name| name == "memory"));
        if let Some((_, path)) = first {
            let folder = Path::new("/sys/fs/cgroup/memory").join(path);
            return Some(Self { folder, usage: "memory.usage_in_bytes", limit: "memory.limit_in_bytes" });
        }
        let (_, path) = lines.find(|(controllers, _)| controllers.is_empty())?;
        let folder = Path::new("/sys/fs/cgroup").join(path);
        Some(Self { folder, usage: "memory.current", limit: "memory.max" })
    }

    /// Sets the limit to the current usage, because version 1 refuses less.
    fn lower_limit(&self) -> Result<()> {
        let used = fs::read_to_string(self.folder.join(self.usage)).context("failed to read the memory in use")?;
        fs::write(self.folder.join(self.limit), used.trim()).context("failed to lower the memory limit")
    }

    /// Allocates at most half a GiB, in case there is no limit.
    fn eat(&self) -> Result<Eater> {
        let eat = "echo $$ >\"$0/cgroup.procs\" && head -c 512M /dev/zero | tail >/dev/null";
        let mut command = Command::new("sh");
        command.args(["-c", eat]).arg(&self.folder).process_group(0).stderr(Stdio::null());
        Ok(Eater(command.spawn().context("failed to start sh")?))
    }
}

/// Processes that allocate memory. Killed on drop, so that the cgroup can be removed.
struct Eater(Child);

impl Drop for Eater {
    fn drop(&mut self) {
        // The kernel may have killed them before.
        signal(-self.0.id().cast_signed(), SIGKILL);
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::Cgroup;

    #[test]
    fn both_versions_of_cgroups_are_understood() {
        let limit = |text: &str| {
            let cgroup = Cgroup::among(text).unwrap();
            cgroup.folder.join(cgroup.limit).display().to_string()
        };
        assert_eq!(
            limit("11:pids:/a\n9:hugetlb,memory:/a/b\n0::/c\n"),
            "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes"
        );
        assert_eq!(limit("0::/a/b\n"), "/sys/fs/cgroup/a/b/memory.max");
    }
}
