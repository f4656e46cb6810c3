//! A client as a shard drives it.

use std::sync::Arc;
use std::time::Duration;

use redisbench_clients::drivers::Drivers;
use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::control::driver::Driver;
use redisbench_loadgen::engine::{EngineConfig, EngineEvent, monotonic_nanoseconds};
use redisbench_loadgen::record::Traced;
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::Detail;
use redisbench_wire::plan::{Arrival, Bound, Client, Library, Load, Pool, Runtime, ShardPlan, TrialPlan};
use redisbench_wire::snapshot::Snapshot;
use tokio::sync::mpsc;
use tokio::time::timeout;

pub const SECOND: u64 = 1_000_000_000;

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn client(library: Library, pool: Pool) -> Client {
    Client { name: "subject".into(), library, pool, threads: 2, runtime: Runtime::CurrentThread, retries: 0 }
}

/// A closed loop of 2,000 requests from eight callers over four connections.
pub fn plan(client: Client) -> TrialPlan {
    TrialPlan {
        client: Some(client),
        connections: 4,
        concurrency: Some(8),
        bound: Bound::Requests { count: 2_000, max_nanoseconds: 60 * SECOND },
        ..TrialPlan::basic("redis:6379")
    }
}

/// An open loop whose requests are sent however late.
pub fn constant(rate_per_second: u64) -> Load {
    Load::OpenLoop {
        rate_per_second,
        stages: Vec::new(),
        arrival: Arrival::Constant,
        pacing_grid_nanoseconds: 0,
        unsent_after_nanoseconds: 60 * SECOND,
    }
}

pub struct Bench {
    pub driver: Arc<dyn Driver>,
    events: mpsc::Receiver<EngineEvent>,
    /// The traced requests that have arrived.
    pub traced: Vec<Traced>,
}

impl Bench {
    pub async fn start(plan: ShardPlan, server: &RedisServer) -> Self {
        let bench = Self::connected(plan, server).await;
        bench.driver.start(monotonic_nanoseconds() + SECOND / 20, 1).unwrap();
        bench
    }

    pub async fn connected(plan: ShardPlan, server: &RedisServer) -> Self {
        Self::of(EngineConfig::new(plan, 1, Topology::of(&[server.address()]))).await
    }

    pub async fn of(config: EngineConfig) -> Self {
        let has_preload = config.plan.has_preload();
        let mut bench = Self::spawned(config, &Drivers::default());
        bench.ready().await;
        if has_preload {
            bench.driver.preload().unwrap();
            bench.until(|event| matches!(event, EngineEvent::Preloaded { .. })).await;
        }
        bench
    }

    /// Of a client that may be one of `drivers`.
    pub fn connecting(plan: ShardPlan, server: &RedisServer, drivers: &Drivers) -> Self {
        Self::spawned(EngineConfig::new(plan, 1, Topology::of(&[server.address()])), drivers)
    }

    fn spawned(config: EngineConfig, drivers: &Drivers) -> Self {
        let (sender, events) = mpsc::channel(256);
        let driver = redisbench_clients::spawn(config, drivers, sender).unwrap();
        driver.connect().unwrap();
        Self { driver, events, traced: Vec::new() }
    }

    pub async fn ready(&mut self) {
        self.until(|event| matches!(event, EngineEvent::Connected { ready, wanted } if ready == wanted)).await;
    }

    /// Why the trial fails.
    pub async fn failure(&mut self) -> String {
        let found = async {
            loop {
                if let EngineEvent::WorkerFailed { message } = self.events.recv().await.unwrap() {
                    return message;
                }
            }
        };
        timeout(PATIENCE, found).await.unwrap()
    }

    pub async fn until(&mut self, wanted: impl Fn(&EngineEvent) -> bool) {
        let found = async {
            while let Some(event) = self.events.recv().await {
                assert!(!matches!(event, EngineEvent::WorkerFailed { .. }), "{event:?}");
                let is_wanted = wanted(&event);
                if let EngineEvent::Traced(traced) = event {
                    self.traced.push(traced);
                }
                if is_wanted {
                    return;
                }
            }
            panic!("the driver ended");
        };
        timeout(PATIENCE, found).await.unwrap();
    }

    /// Waits for the end, and returns everything that was measured.
    pub async fn finish(mut self) -> Snapshot {
        self.until(|event| matches!(event, EngineEvent::Finished { aborted: false, .. })).await;
        self.end().await
    }

    pub async fn end(self) -> Snapshot {
        let snapshot = self.driver.snapshot_since(Detail::Full, 0).await.unwrap();
        snapshot.check().unwrap();
        tokio::task::spawn_blocking(move || drop(self.driver)).await.unwrap();
        snapshot
    }
}
