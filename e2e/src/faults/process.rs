//! A container's process, as visible on this machine.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use redisbench_testkit::processes::{SIGCONT, SIGSTOP, run, signal};

/// Timeout for a stop to take effect.
const STOPPED_WITHIN: Duration = Duration::from_secs(5);

/// A process that can be signalled. Its start time distinguishes it from a later process with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    born: u64,
}

impl Process {
    /// The first process of the pod's first container.
    pub fn of(pod: &Pod) -> Result<Self> {
        let name = pod.name_any();
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        let container = statuses.and_then(|all| all.first()?.container_id.as_deref());
        let container = container.with_context(|| format!("pod {name} has no container yet"))?;
        let id = container.rsplit('/').next().unwrap_or(container);
        let first = in_cgroup(id)?.into_iter().min_by_key(|process| process.born);
        first.with_context(|| {
            format!("no process of pod {name} on this machine: fault tests need the cluster of `make test-faults`")
        })
    }

    /// Any process of the pod, even if it is only the one that holds its network namespace.
    pub fn any_of(pod: &Pod) -> Result<Self> {
        let uid = pod.uid().context("a pod without a UID")?;
        let found = in_cgroup(&uid)?.into_iter().min_by_key(|process| process.born);
        found.with_context(|| format!("no process of pod {} on this machine", pod.name_any()))
    }

    pub fn send(&self, number: i32) -> Result<()> {
        ensure!(self.is_alive(), "process {} has ended", self.pid);
        ensure!(signal(self.pid.cast_signed(), number), "failed to send signal {number} to process {}", self.pid);
        Ok(())
    }

    /// Stops it until the guard is dropped.
    pub async fn stop(&self) -> Result<Stopped> {
        self.send(SIGSTOP)?;
        let guard = Stopped(self.clone());
        let stopped = async {
            while self.state() != Some('T') {
                tokio::time::sleep(Duration::from_millis(2)).await; // the pause of a poll: a stop tells nobody
            }
        };
        tokio::time::timeout(STOPPED_WITHIN, stopped)
            .await
            .with_context(|| format!("process {} did not stop", self.pid))?;
        Ok(guard)
    }

    pub fn is_alive(&self) -> bool {
        read(self.pid).is_some_and(|(_, born)| born == self.born) && self.state() != Some('Z')
    }

    fn state(&self) -> Option<char> {
        read(self.pid).map(|(state, _)| state)
    }
}

/// A stopped process. Continues on drop.
#[derive(Debug)]
pub struct Stopped(Process);

impl Stopped {
    pub fn go_on(self) {
        drop(self);
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Fails if it was killed meanwhile.
        let _ = self.0.send(SIGCONT);
    }
}

/// The processes in cgroups with `part` in their path: a container's id, or a pod's UID.
fn in_cgroup(part: &str) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("failed to list processes")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // Skip processes that have ended meanwhile.
        let Ok(cgroups) = fs::read_to_string(format!("/proc/{pid}/cgroup")) else { continue };
        if cgroups.contains(part)
            && let Some((state, born)) = read(pid)
            && state != 'Z'
            // A process of runc, which becomes a container, is not in its network yet.
            && !fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("runc"))
        {
            found.push(Process { pid, born });
        }
    }
    Ok(found)
}

/// State and start time. They follow the name, which may contain any characters.
fn read(pid: u32) -> Option<(char, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(&stat)
}

fn parse(stat: &str) -> Option<(char, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Runs a program to its end, with `input` as its standard input. Prints its standard error.
pub(super) fn command(program: &str, arguments: &[&str], input: &str) -> Result<()> {
    eprint!("{}", run(program, arguments, input)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use redisbench_testkit::processes::SIGKILL;

    use super::*;

    #[test]
    fn state_and_start_time_are_read_after_any_name() {
        let stat = "7 (a) b) T 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 4242 10 20";
        assert_eq!(parse(stat), Some(('T', 4242)));
    }

    #[tokio::test]
    async fn a_stopped_process_goes_on_when_its_guard_is_dropped() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (_, born) = read(child.id()).unwrap();
        let process = Process { pid: child.id(), born };
        let guard = process.stop().await.unwrap();
        assert_eq!(process.state(), Some('T'));
        drop(guard);
        assert_ne!(process.state(), Some('T'));
        process.send(SIGKILL).unwrap();
        child.wait().unwrap();
        assert!(process.send(SIGKILL).is_err());
    }
}
