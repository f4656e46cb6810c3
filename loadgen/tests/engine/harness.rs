//! Runs a plan from connecting to the full snapshot.

use redisbench_loadgen::cluster::{NodeAddress, Topology};
use redisbench_loadgen::engine::{Access, ConnectFailure, Engine, EngineConfig, EngineEvent, monotonic_nanoseconds};
use redisbench_testkit::servers::{PATIENCE, RedisCluster, RedisServer};
use redisbench_wire::Detail;
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::{Bound, Operation, ShardPlan, TrialPlan};
use redisbench_wire::snapshot::{Snapshot, Stage};
use redisbench_wire::timeline::Outcomes;
use tokio::sync::mpsc;
use tokio::time::timeout;

pub use crate::open_loop::open_loop;

pub const MILLISECOND: u64 = 1_000_000;
pub const SECOND: u64 = 1000 * MILLISECOND;

/// `GET` and `SET` in equal parts, closed loop, two connections, 200 ms without warm-up.
pub fn plan() -> TrialPlan {
    let mut plan = TrialPlan {
        connections: 2,
        bound: Bound::Duration { nanoseconds: 200 * MILLISECOND },
        ..TrialPlan::basic("127.0.0.1:6379")
    };
    plan.workload_mut().operations =
        vec![operation("get", 1, "GET __key__"), operation("set", 1, "SET __key__ __data__")];
    plan.workload_mut().keys.prefix = "key:".into();
    (plan.workload_mut().keys.count, plan.workload_mut().seed) = (1000, 7);
    plan
}

pub fn operation(name: &str, weight: u32, command: &str) -> Operation {
    Operation::of(name, weight, command)
}

pub fn standalone(server: &RedisServer) -> Topology {
    Topology::of(&[server.address()])
}

pub fn topology(cluster: &RedisCluster) -> Topology {
    let node = |(id, server): (&String, &RedisServer)| NodeAddress {
        id: id.clone(),
        address: server.address(),
        label: server.address().to_string(),
    };
    let mut slots = Box::new([0; 16384]);
    for index in 0..cluster.nodes.len() {
        slots[cluster.slots(index)].fill(index as u16);
    }
    Topology {
        nodes: cluster.ids().iter().zip(&cluster.nodes).map(node).collect(),
        slots: Some(slots),
        ..Topology::default()
    }
}

/// An engine and its events.
pub struct Bench {
    pub engine: Engine,
    events: mpsc::Receiver<EngineEvent>,
    seen: Vec<EngineEvent>,
}

impl Bench {
    pub fn new(plan: impl Into<ShardPlan>, topology: Topology, workers: usize) -> Self {
        Self::with(plan, topology, workers, Access::default())
    }

    pub fn with(plan: impl Into<ShardPlan>, topology: Topology, workers: usize, access: Access) -> Self {
        let (sender, events) = mpsc::channel(64);
        let config = EngineConfig { access, ..EngineConfig::new(plan, workers, topology) };
        Self { engine: Engine::spawn(config, sender).unwrap(), events, seen: Vec::new() }
    }

    /// A connected engine.
    pub async fn connected(plan: impl Into<ShardPlan>, topology: Topology, workers: usize) -> Self {
        let mut bench = Self::new(plan, topology, workers);
        bench.connect().await;
        bench
    }

    /// A connected engine with its first attempt started.
    pub async fn started(plan: impl Into<ShardPlan>, topology: Topology, workers: usize) -> Self {
        let bench = Self::connected(plan, topology, workers).await;
        bench.start(1);
        bench
    }

    pub async fn until(&mut self, wanted: impl Fn(&EngineEvent) -> bool) -> EngineEvent {
        loop {
            let event = timeout(PATIENCE, self.events.recv()).await;
            let event =
                event.unwrap_or_else(|_| panic!("no such event, but {:?}", self.seen)).expect("the engine runs");
            self.seen.push(event.clone());
            if wanted(&event) {
                return event;
            }
        }
    }

    /// Returns whether an earlier wait received such an event.
    pub fn saw(&self, wanted: impl Fn(&EngineEvent) -> bool) -> bool {
        self.seen.iter().any(wanted)
    }

    pub async fn connect(&mut self) {
        self.engine.connect().unwrap();
        self.until(|event| matches!(event, EngineEvent::Connected { ready, wanted } if ready == wanted)).await;
    }

    /// Connects, which must fail.
    pub async fn refused(&mut self) -> (ConnectFailure, String) {
        self.engine.connect().unwrap();
        match self.until(|event| matches!(event, EngineEvent::ConnectFailed { .. })).await {
            EngineEvent::ConnectFailed { reason, message } => (reason, message),
            other => panic!("{other:?}"),
        }
    }

    pub async fn preload(&mut self) -> u64 {
        self.engine.preload().unwrap();
        let end =
            |event: &EngineEvent| matches!(event, EngineEvent::Preloaded { .. } | EngineEvent::PreloadFailed { .. });
        match self.until(end).await {
            EngineEvent::Preloaded { keys } => keys,
            other => panic!("{other:?}"),
        }
    }

    /// Starts an attempt in 20 ms and does not wait for its end.
    pub fn start(&self, attempt: u32) {
        self.engine.start(monotonic_nanoseconds() + 20 * MILLISECOND, attempt).unwrap();
    }

    pub async fn finished(&mut self, wanted: u32) -> Snapshot {
        self.until(|event| matches!(event, EngineEvent::Finished { attempt, .. } if *attempt == wanted)).await;
        self.snapshot().await
    }

    /// The same for an attempt that nothing ends early.
    pub async fn completed(&mut self, attempt: u32) -> Snapshot {
        let snapshot = self.finished(attempt).await;
        assert_complete(&snapshot);
        snapshot
    }

    pub async fn snapshot(&self) -> Snapshot {
        self.taken(Detail::Full).await
    }

    pub async fn live(&self) -> Snapshot {
        self.taken(Detail::Live).await
    }

    /// A snapshot that passes the conductor's check.
    async fn taken(&self, detail: Detail) -> Snapshot {
        let snapshot = timeout(PATIENCE, self.engine.snapshot(detail)).await.unwrap().unwrap();
        assert_eq!(snapshot.check(), Ok(()));
        assert!(!snapshot.timeline.spans.is_empty() || snapshot.total.succeeded + snapshot.warmup.succeeded == 0);
        for (index, operation) in snapshot.operations.iter().enumerate() {
            let seconds = snapshot.timeline.spans.iter().filter_map(|span| span.parts.get(index));
            let mut sum = Outcomes::default();
            seconds.for_each(|part| sum.add(&part.counts));
            assert_eq!(sum, Outcomes::of(&operation.tally), "{}", operation.name);
        }
        snapshot
    }

    /// Connects, preloads and runs the trial, and checks the invariants of a complete trial.
    pub async fn run(&mut self) -> Snapshot {
        self.connect().await;
        self.preload().await;
        self.start(1);
        self.completed(1).await
    }
}

/// Runs `plan` from connecting to the end.
pub async fn run(plan: impl Into<ShardPlan>, topology: Topology, workers: usize) -> Snapshot {
    Bench::new(plan, topology, workers).run().await
}

/// Every request has exactly one outcome, and the parts add up to the total.
pub fn assert_complete(snapshot: &Snapshot) {
    let total = snapshot.total;
    assert_eq!((snapshot.stage, snapshot.aborted), (Stage::Done, false));
    for tally in snapshot.operations.iter().map(|operation| operation.tally).chain([total, snapshot.warmup]) {
        assert!(tally.balances(), "{tally:?}");
        assert_eq!(tally.in_flight, 0, "{tally:?}");
    }
    let sum = |of: fn(&redisbench_wire::snapshot::Tally) -> u64| -> u64 {
        snapshot.operations.iter().map(|operation| of(&operation.tally)).sum()
    };
    assert_eq!(sum(|tally| tally.scheduled), total.scheduled);
    assert_eq!(sum(|tally| tally.succeeded), total.succeeded);
    assert_eq!(sum(|tally| tally.errors), total.errors);
    assert_eq!(count(&snapshot.latency.response, Kind::Request) + total.overflow, total.succeeded);
    if let Some(service) = &snapshot.latency.service {
        assert_eq!(count(service, Kind::Request), total.succeeded);
    }
    let nodes = &snapshot.nodes;
    assert_eq!(nodes.iter().map(|node| node.requests).sum::<u64>(), total.succeeded + total.errors);
    assert_eq!(nodes.iter().map(|node| node.errors).sum::<u64>(), total.errors);
    assert_eq!(nodes.iter().map(|node| count(&node.service, Kind::Node)).sum::<u64>(), total.succeeded);
    assert_eq!(snapshot.errors.iter().map(|error| error.count).sum::<u64>(), total.errors);
    assert_eq!(snapshot.series.completed.iter().sum::<u64>(), total.succeeded + snapshot.warmup.succeeded);
    let window = snapshot.window;
    // A busy machine may give no processor to a load of some milliseconds before it has ended.
    let sent = window.first_send_nanoseconds > 0;
    assert!(sent || total.scheduled == 0, "{window:?}");
    assert!(!sent || window.first_send_nanoseconds >= window.start_nanoseconds, "{window:?}");
    assert!(window.drained_nanoseconds >= window.first_send_nanoseconds, "{window:?}");
}

pub fn count(histogram: &EncodedHistogram, kind: Kind) -> u64 {
    histogram.count(kind).unwrap()
}
