//! Cgroups, versions 1 and 2.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const PROCESSES: &str = "cgroup.procs";

/// A limit: the controllers in version 2 and version 1, and file and value in each.
struct Limit {
    controllers: [&'static str; 2],
    second: (&'static str, String),
    first: (&'static str, String),
}

/// A cgroup. Removed on drop.
pub struct Group(PathBuf);

impl Group {
    /// Limits all these processes together to `percent` hundredths of a processor.
    pub fn of_processor(processes: &[u32], percent: u32) -> Self {
        let quota = 1_000 * percent;
        Self::with(processes, &cpu(("cpu.max", format!("{quota} 100000")), ("cpu.cfs_quota_us", quota.to_string())))
            .unwrap()
    }

    /// Gives this process priority over all others. Needs root. Real-time priority would do less: it leaves a twentieth of the time to
    /// others.
    pub fn first(process: u32) -> Option<Self> {
        Self::with(&[process], &cpu(("cpu.weight", "10000".into()), ("cpu.shares", "262144".into()))).ok()
    }

    /// Limits the memory of processes that [enter](Self::entrance).
    pub fn of_memory(bytes: u64) -> Self {
        let limit = Limit {
            controllers: ["memory", "memory"],
            second: ("memory.max", bytes.to_string()),
            first: ("memory.limit_in_bytes", bytes.to_string()),
        };
        Self::with(&[], &limit).unwrap()
    }

    /// Limits what this process writes to a device (`MAJOR:MINOR`) per second.
    pub fn of_writes(process: u32, device: &str, writes: Writes) -> Self {
        let (second, first, number) = match writes {
            Writes::Times(number) => ("wiops", "blkio.throttle.write_iops_device", number),
            Writes::Bytes(number) => ("wbps", "blkio.throttle.write_bps_device", number),
        };
        let limit = Limit {
            controllers: ["io", "blkio"],
            second: ("io.max", format!("{device} {second}={number}")),
            first: (first, format!("{device} {number}")),
        };
        Self::with(&[process], &limit).unwrap()
    }

    /// A process enters by writing its id to this file.
    pub fn entrance(&self) -> PathBuf {
        self.0.join(PROCESSES)
    }

    fn with(processes: &[u32], limit: &Limit) -> io::Result<Self> {
        let is_second = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        let [second, first] = limit.controllers;
        let root = Path::new("/sys/fs/cgroup");
        let mount = if is_second { root.to_owned() } else { root.join(first) };
        if is_second {
            fs::write(mount.join("cgroup.subtree_control"), format!("+{second}"))?;
        }
        let whose = processes.first().copied().unwrap_or_else(std::process::id);
        let made = Self(mount.join(format!("redisbench-classifier-{whose}")));
        fs::create_dir(&made.0)?;
        let (file, value) = if is_second { &limit.second } else { &limit.first };
        fs::write(made.0.join(file), value)?;
        for process in processes {
            fs::write(made.entrance(), process.to_string())?;
        }
        Ok(made)
    }
}

/// The unit of a write limit per second.
#[derive(Clone, Copy)]
pub enum Writes {
    Times(u32),
    Bytes(u32),
}

fn cpu(second: (&'static str, String), first: (&'static str, String)) -> Limit {
    Limit { controllers: ["cpu", "cpu"], second, first }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can be removed once its last process has ended or moved.
        let mount = self.0.parent().unwrap();
        for process in fs::read_to_string(self.entrance()).unwrap_or_default().lines() {
            let _ = fs::write(mount.join(PROCESSES), process);
        }
        let _ = fs::remove_dir(&self.0);
    }
}
