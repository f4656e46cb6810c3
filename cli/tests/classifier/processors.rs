//! Shards that are short of CPU time.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redisbench_testkit::machine::pass;
use redisbench_testkit::servers::RedisServer;

use crate::group::Group;
use crate::situation::{Given, Manifest, go_first, run};
use crate::support::Run;

const CLOSED: &str = "type: ClosedLoop, connections: 16, pipeline: 16, duration: 3s, warmup: 1s";

pub fn a_shard_with_a_tenth_of_a_processor() -> Given {
    let server = RedisServer::start(&[]);
    let manifest = Manifest { load: CLOSED.into(), ..Manifest::new(&server.endpoint()) };
    let mut groups = Vec::new();
    run(&manifest, |run: &Run| groups.push(Group::of_processor(&run.children(), 10)))
}

pub fn a_shard_beside_others_on_its_processor() -> Given {
    let server = RedisServer::start(&[]);
    let manifest = Manifest { load: CLOSED.into(), ..Manifest::new(&server.endpoint()) };
    // The server gets a processor of its own if there are at least two.
    pin(server.pid(), "1");
    // Seven, because with three the server was nearly saturated.
    let mut spinners = Vec::new();
    run(&manifest, |run: &Run| {
        for child in run.children() {
            pin(child, "0");
        }
        spinners.extend((0..7).map(|_| Spinner::on("0")));
    })
}

pub fn a_shard_that_stands_still() -> Given {
    standing_still("type: ClosedLoop, connections: 16, duration: 2s, warmup: 500ms")
}

pub fn a_shard_that_stands_still_at_a_rate() -> Given {
    standing_still("type: OpenLoop, openLoop: {rate: 400}, connections: 4, duration: 3s, warmup: 500ms")
}

/// A shard that is stopped again and again, as by its machine or memory: it is neither busy nor waiting for a processor.
fn standing_still(load: &str) -> Given {
    let server = RedisServer::start(&[]);
    let manifest = Manifest { load: load.into(), ..Manifest::new(&server.endpoint()) };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let given = run(&manifest, |run: &Run| {
            let shard = run.children()[0].cast_signed();
            let over = &over;
            scope.spawn(move || stop_and_go(shard, over));
        });
        over.store(true, Ordering::Relaxed);
        given
    })
}

/// Returns when the process has ended.
fn stop_and_go(process: i32, over: &AtomicBool) {
    // SAFETY: takes numbers and touches no memory. The loop ends shortly after the process does, so the id is not reused yet.
    let send = |signal: libc::c_int| unsafe { libc::kill(process, signal) } == 0;
    while !over.load(Ordering::Relaxed) && send(libc::SIGSTOP) {
        pass(Duration::from_millis(50));
        if !send(libc::SIGCONT) {
            return;
        }
        pass(Duration::from_millis(50));
    }
}

/// Pins a process to one processor.
pub fn pin(process: u32, processor: &str) {
    // On a machine with one processor, all of them share it anyway.
    let _ = Command::new("taskset").args(["-a", "-p", "-c", processor, &process.to_string()]).output();
}

/// A process that uses as much CPU time as it can get.
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

/// Occupies the first processor for 40 ms of every 100, with priority over everything else: processes that are ready meanwhile wait.
pub struct Hog {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hog {
    pub fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let take = move || {
            // SAFETY: the type is plain bits, for which all zeros are valid.
            let mut first = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
            // SAFETY: `first` is valid for both calls, and the second affects only the calling thread.
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
