//! Processor time that shards do not get.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::group::Group;
use crate::servers::RedisServer;
use crate::situation::{Expected, Manifest, alone, as_others, go_first, judge, pass};
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
        groups.push(Group::of_processor(&run.children(), 10));
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

/// A shard as one that the machine, or its memory, stops again and again: it is neither busy nor does it wait for a processor.
#[test]
fn a_shard_that_stands_still() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let load = "type: ClosedLoop, connections: 16, duration: 2s, warmup: 500ms";
    let manifest = Manifest { load: load.into(), ..Manifest::new(&server.endpoint()) };
    let expected = Expected {
        value: "Degraded",
        limited_by: "Unknown",
        reasons: &["ReceiveLate"],
        ..Expected::clean("a shard that stands still for 50 ms in every 100")
    };
    judge_stopping(&expected, &manifest);
    let expected = Expected {
        value: "Degraded",
        reasons: &["SendLate"],
        ..Expected::clean("a shard that stands still as long, at a rate that it can make")
    };
    let load = "type: OpenLoop, openLoop: {rate: 400}, connections: 4, duration: 2s, warmup: 500ms";
    judge_stopping(&expected, &Manifest { load: load.into(), ..Manifest::new(&server.endpoint()) });
}

fn judge_stopping(expected: &Expected, manifest: &Manifest) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        judge(expected, manifest, |run: &Run| {
            let shard = run.children()[0].cast_signed();
            let over = &over;
            scope.spawn(move || stop_and_go(shard, over));
        });
        over.store(true, Ordering::Relaxed);
    });
}

/// Until the process has ended.
fn stop_and_go(process: i32, over: &AtomicBool) {
    // SAFETY: takes numbers and touches no memory. A process that has ended is looked for no longer than a moment later.
    let send = |signal: libc::c_int| unsafe { libc::kill(process, signal) } == 0;
    while !over.load(Ordering::Relaxed) && send(libc::SIGSTOP) {
        pass(Duration::from_millis(50));
        if !send(libc::SIGCONT) {
            return;
        }
        pass(Duration::from_millis(50));
    }
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
