//! Runs that have the machine to themselves as far as these tests control it, and disturbances.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redisbench_testkit::servers::{PATIENCE, RedisServer};
use redisbench_wire::plan::{Bound, TrialPlan};
use redisbench_wire::snapshot::Snapshot;
use tokio::sync::{Mutex, MutexGuard};

use crate::harness::{Bench, MILLISECOND, open_loop, plan, standalone};

static MACHINE: Mutex<()> = Mutex::const_new(());

/// Waits until no other test uses the machine.
pub async fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().await
}

/// A closed loop that saturates one worker.
pub fn saturating() -> TrialPlan {
    TrialPlan { connections: 16, pipeline: 16, ..lasting(plan(), 500) }
}

/// A load that needs almost no processor time.
pub fn easy() -> TrialPlan {
    TrialPlan { load: open_loop(500), ..lasting(plan(), 500) }
}

pub fn lasting(plan: TrialPlan, milliseconds: u64) -> TrialPlan {
    TrialPlan { bound: Bound::Duration { nanoseconds: milliseconds * MILLISECOND }, ..plan }
}

/// A worker with all connections made.
pub async fn ready(plan: TrialPlan, server: &RedisServer) -> Bench {
    Bench::connected(plan, standalone(server), 1).await
}

/// Waits for the first answer of the measurement.
pub async fn measuring(bench: &Bench) {
    while bench.live().await.total.succeeded == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await; // between two looks: an engine tells only when asked
    }
}

/// Repeats `plan` until `is_silent` accepts a run, because other processes may disturb the machine for a while.
pub async fn until_silent(plan: TrialPlan, is_silent: impl Fn(&Snapshot) -> bool) -> Snapshot {
    let server = RedisServer::start(&[]);
    let mut bench = ready(plan, &server).await;
    let begin = Instant::now();
    for attempt in 1.. {
        bench.start(attempt);
        let snapshot = bench.finished(attempt).await;
        if is_silent(&snapshot) {
            return snapshot;
        }
        assert!(begin.elapsed() < PATIENCE, "no run was quiet, the last one says {:?}", snapshot.generator);
    }
    unreachable!("attempts do not end")
}

/// The first processor that this process may use.
pub fn processor() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    allowed.trim().split(['-', ',']).next().unwrap().to_owned()
}

/// Pins the workers of this process to one processor.
pub fn pin_workers(processor: &str) {
    let mut pinned = 0;
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path();
        if fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("worker-")) {
            let thread = path.file_name().unwrap().to_str().unwrap().to_owned();
            let mut taskset = Command::new("taskset");
            taskset.args(["-p", "-c", processor, &thread]).stdout(Stdio::null());
            assert!(taskset.status().unwrap().success());
            pinned += 1;
        }
    }
    assert!(pinned > 0, "no worker to pin");
}

/// A busy loop in a process.
pub struct Spinner(Child);

impl Spinner {
    pub fn on(processor: &str) -> Self {
        let mut taskset = Command::new("taskset");
        Self(taskset.args(["-c", processor, "sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
