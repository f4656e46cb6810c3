//! Processor time that shards do not get.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::servers::RedisServer;
use crate::situation::{Expected, Manifest, as_others, go_first, judge, pass};
use crate::support::Run;

const CLOSED: &str = "type: ClosedLoop, connections: 16, pipeline: 16, duration: 3s, warmup: 1s";

fn starved(name: &'static str) -> Expected {
    Expected {
        value: "Degraded",
        limited_by: "GeneratorCPU",
        reasons: &["GeneratorCPU"],
        besides: &["Unsteady"],
        ..Expected::clean(name)
    }
}

#[test]
#[ignore = "makes a cgroup, which needs root: make test-selfcheck"]
fn a_shard_with_a_tenth_of_a_processor() {
    let _machine = as_others();
    let server = RedisServer::start(&[]);
    let manifest = Manifest { load: CLOSED.into(), ..Manifest::new(&server.endpoint()) };
    let mut groups = Vec::new();
    judge(&starved("a shard whose CPU limit is a tenth of a processor"), &manifest, |run: &Run| {
        groups.push(Group::of_a_tenth(&run.children()));
    });
}

#[test]
fn a_shard_beside_others_on_its_processor() {
    let _machine = as_others();
    let server = RedisServer::start(&[]);
    let manifest = Manifest { load: CLOSED.into(), ..Manifest::new(&server.endpoint()) };
    // The server keeps a processor for itself as far as there are two.
    pin(server.pid(), "1");
    let mut spinners = Vec::new();
    judge(&starved("a shard beside three busy processes on its processor"), &manifest, |run: &Run| {
        for child in run.children() {
            pin(child, "0");
        }
        spinners.extend((0..3).map(|_| Spinner::on("0")));
    });
}

/// Keeps a process on one processor.
pub fn pin(process: u32, processor: &str) {
    // On a machine of one processor all of them share it anyway.
    let _ = Command::new("taskset").args(["-a", "-p", "-c", processor, &process.to_string()]).output();
}

/// A process that takes all it can get.
struct Spinner(Child);

impl Spinner {
    fn on(processor: &str) -> Self {
        let mut command = Command::new("taskset");
        Self(command.args(["-c", processor, "sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes the first processor for 40 ms in every 100, before everything else there: whoever is ready meanwhile waits.
pub struct Hog {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hog {
    pub fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let take = move || {
            // SAFETY: plain bits, all of them 0.
            let mut first = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
            // SAFETY: `first` is valid for both calls, and the second is about the calling thread.
            let pinned = unsafe {
                libc::CPU_SET(0, &mut first);
                libc::sched_setaffinity(0, size_of_val(&first), &raw const first)
            };
            assert_eq!(pinned, 0);
            go_first();
            while !ended.load(Ordering::Relaxed) {
                let until = Instant::now() + Duration::from_millis(40);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                pass(Duration::from_millis(60));
            }
        };
        Self { over, thread: Some(thread::spawn(take)) }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A cgroup for as long as this lives.
pub struct Group(PathBuf);

impl Group {
    /// A tenth of a processor, for all of these processes.
    fn of_a_tenth(processes: &[u32]) -> Self {
        Self::with(processes, ("cpu.max", "10000 100000"), ("cpu.cfs_quota_us", "10000")).unwrap()
    }

    /// This process goes before all others, if we may ask for that: root may. Real-time priority would do less: it leaves a
    /// twentieth of the time to others.
    pub fn first(process: u32) -> Option<Self> {
        Self::with(&[process], ("cpu.weight", "10000"), ("cpu.shares", "262144")).ok()
    }

    fn with(processes: &[u32], second: (&str, &str), first: (&str, &str)) -> io::Result<Self> {
        let is_second = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        let mount = Path::new(if is_second { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/cpu" });
        if is_second {
            fs::write(mount.join("cgroup.subtree_control"), "+cpu")?;
        }
        let group = mount.join(format!("redisbench-classifier-{}", processes[0]));
        fs::create_dir(&group)?;
        let made = Self(group);
        let (file, value) = if is_second { second } else { first };
        fs::write(made.0.join(file), value)?;
        for process in processes {
            fs::write(made.0.join("cgroup.procs"), process.to_string())?;
        }
        Ok(made)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can go when its last process has gone, or has another.
        let (mount, name) = (self.0.parent().unwrap(), "cgroup.procs");
        for process in fs::read_to_string(self.0.join(name)).unwrap_or_default().lines() {
            let _ = fs::write(mount.join(name), process);
        }
        let _ = fs::remove_dir(&self.0);
    }
}
