//! The hot path must not allocate: a load of many requests makes as many allocations as one of few. A separate binary, because it counts
//! the allocations of the whole process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests end at the first surprise")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::engine::{Engine, EngineConfig, EngineEvent, monotonic_nanoseconds};
use redisbench_testkit::processes::Running;
use redisbench_wire::Detail;
use redisbench_wire::plan::{
    Arrival, Bound, HotKeys, HotTags, KeyPattern, Keys, Load, Operation, Part, Recorded, Tags, Trace, TrialPlan,
    ValueContent, ValueSize, Values, WeightedSize, Workload,
};

const SECOND: u64 = 1_000_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts allocations, but not frees.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A null server in a separate process, so that its allocations are not counted.
struct NullServer {
    addresses: Vec<SocketAddr>,
    _process: Running,
}

impl NullServer {
    fn start(cluster: bool) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redisbench-loadgen"));
        let nodes = if cluster { "3" } else { "0" };
        command.args(["null-server", "--listen", "127.0.0.1:0", "--cluster", nodes]).stdout(Stdio::piped());
        let mut process = Running(command.spawn().unwrap());
        let lines = BufReader::new(process.0.stdout.take().unwrap()).lines().take(if cluster { 3 } else { 1 });
        let address = |line: String| line.strip_prefix("serving on ").unwrap().parse().unwrap();
        let addresses = lines.map(|line| address(line.unwrap())).collect();
        Self { addresses, _process: process }
    }
}

/// Three quarters GET and one quarter SET over 10 connections with pipeline 16, with every breakdown.
fn plan(load: Load, requests: u64) -> TrialPlan {
    let mut plan = TrialPlan {
        load,
        connections: 10,
        pipeline: 16,
        bound: Bound::Requests { count: requests, max_nanoseconds: 600 * SECOND },
        ..TrialPlan::basic("127.0.0.1:6379")
    };
    plan.workload_mut().operations =
        vec![Operation::of("get", 3, "GET __key__"), Operation::of("set", 1, "SET __key__ __data__")];
    plan.workload_mut().keys =
        Keys { prefix: "key:".into(), start: 0, count: 100_000, width: 12, pattern: KeyPattern::Uniform, tags: None };
    plan
}

/// Adds all random patterns that take more than a multiplication, and commands of varying length.
fn vary(workload: &mut Workload) {
    let text = |text: &str| vec![Part::Literal(text.into())];
    let number = |least, most| vec![Part::Integer { least, most, width: 0 }];
    let patterns = [
        KeyPattern::Sequential,
        KeyPattern::Partitioned,
        KeyPattern::Gaussian { mean: 50_000, standard_deviation: 1000 },
        KeyPattern::Zipf { exponent_millionths: 990_000, hot_keys: HotKeys::Scattered },
        KeyPattern::HotSet { keys: 10, percent_millionths: 90_000_000, hot_keys: HotKeys::First },
    ];
    let tags = |pattern: KeyPattern| {
        let hot = Some(HotTags { count: 1, percent_millionths: 80_000_000 });
        matches!(pattern, KeyPattern::Zipf { .. }).then_some(Tags { count: 100, hot })
    };
    let commands = [
        vec![text("SET"), vec![Part::Key], vec![Part::Data], text("EX"), number(1, 5000)],
        vec![text("MSET"), vec![Part::Key], vec![Part::Data], vec![Part::NthKey(2)], vec![Part::Sequence, Part::Score]],
    ];
    workload.operations = patterns
        .iter()
        .flat_map(|pattern| commands.iter().map(move |arguments| (*pattern, arguments.clone())))
        .enumerate()
        .map(|(index, (pattern, arguments))| Operation {
            name: format!("o{index}"),
            weight: 1,
            arguments,
            keys: Some(Keys { prefix: "own:".into(), pattern, tags: tags(pattern), ..workload.keys.clone() }),
        })
        .collect();
    let lengths = [(10, 9), (2000, 1)].map(|(bytes, weight)| WeightedSize { bytes, weight });
    workload.values = Values {
        size: ValueSize::Weighted(lengths.to_vec()),
        content: ValueContent::Random { compressibility_percent: 50 },
        lines: None,
    };
}

/// Replaces the operations by a recording that repeats.
fn replay(plan: &mut TrialPlan) {
    let line = |number: u64| format!("1.{number:06} [0 127.0.0.1:1] \"set\" \"key:{}\" \"value\"\n", number % 97);
    let text: String = (0..1_000).map(line).collect();
    plan.trace = Some(Trace { repeats: true, recorded: None });
    plan.replay(Recorded::of_monitor(text.as_bytes(), u64::MAX).unwrap());
}

/// The requests of a load.
#[derive(Clone, Copy, Debug)]
enum Requests {
    Plain,
    Varied,
    Replayed,
}

/// Allocations from the start to the end of the load.
fn allocations(cluster: bool, load: Load, kind: Requests, requests: u64) -> u64 {
    let mut plan = plan(load, requests);
    match kind {
        Requests::Plain => {}
        Requests::Varied => vary(plan.workload_mut()),
        Requests::Replayed => replay(&mut plan),
    }
    let server = NullServer::start(cluster);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (sender, mut events) = tokio::sync::mpsc::channel(64);
        let config = EngineConfig::new(plan, 1, Topology::of(&server.addresses));
        let engine = Engine::spawn(config, sender).unwrap();
        engine.connect().unwrap();
        let mut before = 0;
        loop {
            match tokio::time::timeout(PATIENCE, events.recv()).await.unwrap().unwrap() {
                EngineEvent::Connected { ready, wanted } if ready == wanted => {
                    before = ALLOCATIONS.load(Relaxed);
                    engine.start(monotonic_nanoseconds() + SECOND / 50, 1).unwrap();
                }
                EngineEvent::Finished { .. } => break,
                EngineEvent::Connected { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        let count = ALLOCATIONS.load(Relaxed) - before;
        let snapshot = engine.snapshot(Detail::Full).await.unwrap();
        assert_eq!(snapshot.total.succeeded, requests);
        // The end of each second stores every operation's latencies, which allocates.
        let by_second = snapshot.timeline.spans.len() * (6 * snapshot.operations.len() + 8);
        count.saturating_sub(by_second as u64)
    })
}

/// One test, so that no other allocates at the same time.
#[test]
fn requests_take_no_allocations() {
    let open = Load::OpenLoop {
        rate_per_second: 100_000,
        stages: Vec::new(),
        arrival: Arrival::Constant,
        pacing_grid_nanoseconds: 250_000,
        unsent_after_nanoseconds: 60 * SECOND,
    };
    let loads = [
        (false, Load::ClosedLoop, Requests::Plain),
        (false, open.clone(), Requests::Plain),
        (true, Load::ClosedLoop, Requests::Plain),
        (false, Load::ClosedLoop, Requests::Varied),
        (true, Load::ClosedLoop, Requests::Varied),
        (false, open, Requests::Replayed),
        (true, Load::ClosedLoop, Requests::Replayed),
    ];
    // A queue doubles until it holds the most that wait at once. How often depends on the schedule, so that some dozens of
    // allocations are chance: with half a million requests, one allocation in 10,000 is more than that.
    let (few, many) = (20_000, 520_000);
    for (cluster, load, kind) in loads {
        let [fewer, more] = [few, many].map(|requests| allocations(cluster, load.clone(), kind, requests));
        let found =
            format!("{load:?}, cluster {cluster}, {kind:?}: {fewer} allocations for {few} requests, {more} for {many}");
        println!("{found}");
        // Allocations per unit of time, such as waking the control thread, do not depend on requests.
        let per_request = (more as f64 - fewer as f64) / (many - few) as f64;
        assert!(per_request < 0.000_1, "{found}");
    }
}
