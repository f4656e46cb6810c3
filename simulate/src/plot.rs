//! What one seed draws before it begins: the benchmark, the temper of the network, and the faults with their times.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

/// The benchmark's name and namespace.
pub const NAME: &str = "cart";
pub const NAMESPACE: &str = "perf";

/// A run and what happens to it.
#[derive(Clone, Debug)]
pub struct Plot {
    pub shards: u32,
    pub rate: u64,
    pub warmup_seconds: u64,
    pub seconds: u64,
    pub on_lost: &'static str,
    pub preload: bool,
    pub prepare_seconds: u64,
    pub collect_seconds: u64,
    pub network: Network,
    pub api: ApiTemper,
    /// How likely a shard is to be slow to prepare, and to lose a connection while armed.
    pub slow_shards: f64,
    pub flapping: f64,
    /// In time's order.
    pub faults: Vec<(Duration, Fault)>,
}

#[derive(Clone, Debug)]
pub struct Network {
    /// The longest usual latency of one way, in milliseconds.
    pub latency: u64,
    pub spike: f64,
    pub lost: f64,
    pub repeated: f64,
}

#[derive(Clone, Debug)]
pub struct ApiTemper {
    /// The answer is lost after the deed.
    pub answer_lost: f64,
    pub failing: f64,
    /// Another hand changes the benchmark just before a write.
    pub conflicts: f64,
    /// How long watches lag behind, in milliseconds.
    pub lag: u64,
}

#[derive(Clone, Debug)]
pub enum Fault {
    /// The leader is gone, and another leads after this time.
    KillOperator {
        successor_after: Duration,
    },
    /// The leader gives up its Lease, and another leads at once.
    Upgrade,
    /// The leader stands still; another leads after some time; the old one goes on, and leads too, until it notices.
    PauseOperator {
        time: Duration,
        successor_after: Duration,
        both: Duration,
    },
    KillShard {
        shard: u32,
    },
    EvictShard {
        shard: u32,
    },
    DeletePod {
        shard: u32,
    },
    /// Nothing reaches the shard for a time.
    CutShard {
        shard: u32,
        time: Duration,
    },
    /// Its machine is cut off for good, and its pod is given up and replaced while it runs.
    LoseNode {
        shard: u32,
    },
    ApiAway {
        time: Duration,
    },
    Abort,
    Suspend {
        time: Duration,
    },
    DeleteBenchmark,
    DeleteJob,
}

fn pick<T: Copy>(dice: &mut StdRng, of: &[T]) -> T {
    of[dice.random_range(0..of.len())]
}

impl Plot {
    pub fn draw(dice: &mut StdRng) -> Self {
        let shards = dice.random_range(1..=4);
        let mut plot = Self {
            shards,
            rate: pick(dice, &[100, 333, 1_000]),
            warmup_seconds: dice.random_range(0..=2),
            seconds: dice.random_range(2..=10),
            on_lost: pick(dice, &["Invalidate", "Abort", "Restart"]),
            preload: dice.random_bool(0.3),
            prepare_seconds: pick(dice, &[30, 60]),
            collect_seconds: pick(dice, &[5, 15]),
            network: Network {
                latency: pick(dice, &[1, 4, 8]),
                spike: pick(dice, &[0.0, 0.0, 0.01, 0.05]),
                lost: pick(dice, &[0.0, 0.0, 0.005, 0.02]),
                repeated: pick(dice, &[0.0, 0.02, 0.2]),
            },
            api: ApiTemper {
                answer_lost: pick(dice, &[0.0, 0.0, 0.02]),
                failing: pick(dice, &[0.0, 0.0, 0.02]),
                conflicts: pick(dice, &[0.0, 0.02, 0.1]),
                lag: pick(dice, &[20, 200, 2_000]),
            },
            slow_shards: pick(dice, &[0.0, 0.2]),
            flapping: pick(dice, &[0.0, 0.2]),
            faults: Vec::new(),
        };
        // Most of what is of interest happens until the trial is over.
        let horizon = 12_000 + (plot.warmup_seconds + plot.seconds) * 1_000;
        for _ in 0..pick(dice, &[0, 1, 2, 2, 3, 5]) {
            let at = Duration::from_millis(dice.random_range(200..horizon));
            plot.faults.push((at, Fault::draw(dice, shards)));
        }
        plot.faults.sort_by_key(|(at, _)| *at);
        plot
    }

    /// The benchmark as its user applies it.
    pub fn benchmark(&self) -> Value {
        json!({
            "apiVersion": "redisbench.dev/v1alpha1",
            "kind": "RedisBenchmark",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "generation": 1},
            "spec": {
                "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
                "workload": {
                    "operations": [{"name": "get", "weight": 1, "command": "GET __key__"}],
                    "keys": {"count": 1_000},
                },
                "preload": {"mode": if self.preload { "Always" } else { "None" }},
                "load": {
                    "type": "OpenLoop",
                    "openLoop": {"rate": self.rate},
                    "connections": 8,
                    "duration": format!("{}s", self.seconds),
                    "warmup": format!("{}s", self.warmup_seconds),
                },
                "shards": {
                    "count": self.shards,
                    "onLost": self.on_lost,
                    "prepareTimeout": format!("{}s", self.prepare_seconds),
                    "collectTimeout": format!("{}s", self.collect_seconds),
                },
            },
        })
    }

    /// When the last fault is over.
    pub fn calm_at(&self) -> Duration {
        self.faults.iter().map(|(at, fault)| *at + fault.lasts()).max().unwrap_or_default()
    }

    /// From calm to a terminal phase at the latest: each of three missed starts and two restarts prepares anew.
    pub fn patience(&self) -> Duration {
        let once = self.prepare_seconds + self.warmup_seconds + self.seconds + self.collect_seconds + 40;
        Duration::from_secs(once * 6)
    }
}

impl Fault {
    fn draw(dice: &mut StdRng, shards: u32) -> Self {
        let shard = dice.random_range(0..shards);
        let mut time = |from: u64, to: u64| Duration::from_millis(dice.random_range(from..to));
        let (short, long, both) = (time(100, 6_000), time(1_000, 40_000), time(0, 25_000));
        match dice.random_range(0..34) {
            0..6 => Self::KillOperator { successor_after: short },
            6 => Self::KillOperator { successor_after: long },
            7..9 => Self::Upgrade,
            9..14 => Self::PauseOperator { time: long, successor_after: short, both },
            14..17 => Self::KillShard { shard },
            17..19 => Self::EvictShard { shard },
            19 => Self::DeletePod { shard },
            20..24 => Self::CutShard { shard, time: long },
            24..26 => Self::LoseNode { shard },
            26..30 => Self::ApiAway { time: long },
            30 => Self::Abort,
            31 => Self::Suspend { time: long },
            32 => Self::DeleteBenchmark,
            _ => Self::DeleteJob,
        }
    }

    fn lasts(&self) -> Duration {
        match self {
            Self::KillOperator { successor_after } => *successor_after,
            Self::PauseOperator { time, successor_after, both } => *time + *successor_after + *both,
            Self::CutShard { time, .. } | Self::ApiAway { time } | Self::Suspend { time } => *time,
            _ => Duration::ZERO,
        }
    }
}
