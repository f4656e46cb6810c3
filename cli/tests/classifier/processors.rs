//! Shards that are short of CPU time.

use std::num::NonZero;
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

/// A shard whose requests go through fred, on one thread. For a GET, this thread computes longer than the server.
pub fn a_busy_client() -> Given {
    let server = RedisServer::start(&[]);
    let mut first = vec![Group::first(server.pid())];
    let load = format!("{CLOSED}, clients: [{{name: fred, type: Fred}}]");
    let manifest = Manifest { load, ..Manifest::new(&server.endpoint()) };
    run(&manifest, |run: &Run| first.extend(run.children().into_iter().map(Group::first)))
}

/// A hundred shards at 20 requests per second each, on two processors that something else takes for 20 ms in every 100. A fifth of the
/// requests become due meanwhile. Each shard waits for a processor for 4 % of the time, and all together for 400 %.
pub fn many_shards_on_two_processors() -> Given {
    let server = RedisServer::start(&[]);
    let load = "type: OpenLoop, openLoop: {rate: 2000}, connections: 200, duration: 4s, warmup: 2s";
    let manifest = Manifest { load: load.into(), shards: 100, ..Manifest::new(&server.endpoint()) };
    // The shards inherit this.
    pin(std::process::id(), "0,1");
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let mut hog = None;
    run(&manifest, |_| {
        hog.get_or_insert_with(|| Hog::start(processors, Duration::from_millis(20)));
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

/// Occupies the first processors for a part of every 100 ms, all at the same time, with priority over everything else: processes that are
/// ready meanwhile wait.
pub struct Hog {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hog {
    pub fn start(processors: usize, busy: Duration) -> Self {
        let (over, begin) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let threads = (0..processors).map(|processor| {
            let over = Arc::clone(&over);
            thread::spawn(move || occupy(processor, begin, busy, &over))
        });
        Self { threads: threads.collect(), over }
    }
}

/// Occupies one processor from `begin` on, until it is over.
fn occupy(processor: usize, mut begin: Instant, busy: Duration, over: &AtomicBool) {
    // SAFETY: the type is plain bits, for which all zeros are valid.
    let mut only = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    // SAFETY: `only` is valid for both calls, and the second affects only the calling thread.
    let pinned = unsafe {
        libc::CPU_SET(processor, &mut only);
        libc::sched_setaffinity(0, size_of_val(&only), &raw const only)
    };
    assert_eq!(pinned, 0);
    go_first();
    while !over.load(Ordering::Relaxed) {
        let until = begin + busy;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        begin += Duration::from_millis(100);
        pass(begin.saturating_duration_since(Instant::now()));
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
