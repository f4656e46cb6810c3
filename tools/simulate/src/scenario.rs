//! The random parameters of a seed, drawn before it begins: the benchmark, the network's behaviour, and the faults with their times.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::search::Search;

pub const NAME: &str = "cart";
pub const NAMESPACE: &str = "perf";

#[derive(Clone, Debug)]
pub struct Scenario {
    pub shards: u32,
    pub rate: u64,
    /// In a closed loop the target sets the pace.
    pub closed: bool,
    pub warmup_seconds: u64,
    pub seconds: u64,
    /// The number of trials; for a search an estimate.
    pub trials: u32,
    /// The kind of the trials, if there are several.
    pub several: Several,
    /// The interval between two trials.
    pub interval_seconds: u64,
    /// The number of requests that ends the measurement, instead of the time.
    pub requests: Option<u64>,
    pub on_lost: &'static str,
    pub preload: bool,
    pub prepare_seconds: u64,
    pub collect_seconds: u64,
    /// The time for which a shard under load waits for a call.
    pub unattended_seconds: u64,
    pub network: Network,
    pub api: ApiTemper,
    /// The probabilities that a shard prepares slowly, and that it loses a connection while armed.
    pub slow_shards: f64,
    pub flapping: f64,
    /// The longest time until objects without an owner are deleted, in milliseconds.
    pub garbage: u64,
    /// Sorted by time.
    pub faults: Vec<(Duration, Fault)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Several {
    Presets,
    Repeats,
    /// A sweep over the number of shards.
    Shards(Vec<u32>),
    Search(Search),
}

#[derive(Clone, Debug)]
pub struct Network {
    /// The longest usual one-way latency, in milliseconds.
    pub latency: u64,
    pub spike: f64,
    pub lost: f64,
    pub repeated: f64,
}

#[derive(Clone, Debug)]
pub struct ApiTemper {
    /// The answer is lost after the write.
    pub answer_lost: f64,
    pub failing: f64,
    /// Another client changes the benchmark just before a write.
    pub conflicts: f64,
    /// The delay of watches, in milliseconds.
    pub lag: u64,
}

/// Numbers are indices of shards, and times are how long a fault lasts.
#[derive(Clone, Debug)]
pub enum Fault {
    HaltOperator(Halt),
    /// A bug in the leader ends the conducting of the run.
    Panic,
    /// The leader releases its Lease, and another leads at once.
    Upgrade,
    KillShard(u32),
    EvictShard(u32),
    DeletePod(u32),
    /// The shard is unreachable for a time.
    CutShard(u32, Duration),
    /// The shard's machine is cut off permanently. Its pod is replaced while it still runs.
    LoseNode(u32),
    ApiAway(Duration),
    Abort,
    Suspend(Duration),
    DeleteBenchmark,
    DeleteJob,
    /// The benchmark is deleted and created again after this time, while objects of the old one may still exist.
    Recreate(Duration),
    /// Another owner has an object with the name that a result needs.
    TakeName(Duration),
    /// Watches break, and start again from a list.
    BreakWatches(Duration),
    /// The leader's conductor is halted after recording a start and before its calls, or after this number of them.
    HaltAtStart(Halt, u32),
    /// A start is missed, because the call or its answer is lost for one shard. Some runs suspend the benchmark at that moment.
    MissStart {
        shard: u32,
        way: Way,
        suspend: Option<(Duration, Duration)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The call does not reach the shard.
    There,
    /// The shard executes the call, and the answer is lost.
    Back,
}

#[derive(Clone, Debug)]
pub enum Halt {
    /// It is killed, and another leads after this time.
    Killed(Duration),
    /// It is frozen, and another leads after some time. Then the old one continues, and leads too until it notices.
    Paused { time: Duration, successor_after: Duration, both: Duration },
    /// It is frozen for less than its Lease.
    Stalled(Duration),
}

impl Halt {
    fn lasts(&self) -> Duration {
        match self {
            Self::Killed(time) | Self::Stalled(time) => *time,
            Self::Paused { time, successor_after, both } => *time + *successor_after + *both,
        }
    }
}

/// The time for which a trigger waits for its moment.
pub const WATCHFUL: Duration = Duration::from_secs(15);

fn pick<T: Copy>(rng: &mut StdRng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())]
}

impl Scenario {
    pub fn draw(rng: &mut StdRng) -> Self {
        let shards = rng.random_range(1..=4);
        let mut scenario = Self {
            shards,
            rate: pick(rng, &[100, 333, 1_000]),
            closed: rng.random_bool(0.2),
            warmup_seconds: rng.random_range(0..=2),
            seconds: rng.random_range(2..=10),
            trials: 1,
            several: Several::Presets,
            interval_seconds: 0,
            requests: None,
            on_lost: pick(rng, &["Invalidate", "Abort", "Restart"]),
            preload: rng.random_bool(0.3),
            prepare_seconds: pick(rng, &[30, 60]),
            collect_seconds: pick(rng, &[5, 15]),
            unattended_seconds: 300,
            network: Network {
                latency: pick(rng, &[1, 4, 8]),
                spike: pick(rng, &[0.0, 0.0, 0.01, 0.05]),
                lost: pick(rng, &[0.0, 0.0, 0.005, 0.02]),
                repeated: pick(rng, &[0.0, 0.02, 0.2]),
            },
            api: ApiTemper {
                answer_lost: pick(rng, &[0.0, 0.0, 0.02]),
                failing: pick(rng, &[0.0, 0.0, 0.02]),
                conflicts: pick(rng, &[0.0, 0.02, 0.1]),
                lag: pick(rng, &[20, 200, 2_000]),
            },
            slow_shards: pick(rng, &[0.0, 0.2]),
            flapping: pick(rng, &[0.0, 0.2]),
            garbage: pick(rng, &[1_000, 1_000, 20_000]),
            faults: Vec::new(),
        };
        if rng.random_bool(0.2) {
            // A given rate must be able to send them in time; a target that sets the pace may be too slow.
            let most = if scenario.closed { 800 } else { scenario.rate } * scenario.seconds;
            scenario.requests = Some(rng.random_range(most / 10..=most).max(u64::from(shards)));
        }
        // Most interesting faults happen before the end of the trial.
        let horizon = 12_000 + (scenario.warmup_seconds + scenario.seconds) * 1_000;
        let mut at = Duration::ZERO;
        for _ in 0..pick(rng, &[0, 1, 2, 2, 3, 5]) {
            // Some faults follow another one immediately.
            at = if at > Duration::ZERO && rng.random_bool(0.25) {
                at + Duration::from_millis(rng.random_range(0..1_500))
            } else {
                Duration::from_millis(rng.random_range(200..horizon))
            };
            let fault = Fault::draw(rng, shards);
            if fault.replaces_shard() && rng.random_bool(0.25) {
                let time = Duration::from_millis(rng.random_range(2_000..15_000));
                scenario.faults.push((at.saturating_sub(Duration::from_millis(100)), Fault::BreakWatches(time)));
            }
            scenario.faults.push((at, fault));
        }
        scenario.faults.sort_by_key(|(at, _)| *at);
        scenario
    }

    /// Gives two of five worlds several trials, with faults at any time of any trial. Uses its own random numbers, so that the worlds of
    /// all other seeds stay the same.
    pub fn draw_trials(&mut self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x7472_6961_6c73);
        if !rng.random_bool(0.4) {
            return;
        }
        self.trials = rng.random_range(2..=3);
        self.seconds = self.seconds.min(5);
        self.requests = self.requests.map(|requests| requests.min(100 * self.seconds / 2).max(u64::from(self.shards)));
        let length = Duration::from_millis(6_000 + (self.warmup_seconds + self.seconds) * 1_000);
        for (at, _) in &mut self.faults {
            *at += length * rng.random_range(0..self.trials);
        }
        self.faults.sort_by_key(|(at, _)| *at);
        self.draw_experiment(seed);
    }

    /// Turns one of thirty worlds into a search. Uses its own random numbers, so that the worlds of all other seeds stay the same. A search
    /// takes minutes, over which the faults are spread.
    pub fn draw_search(&mut self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x0073_6561_7263_6821);
        if !rng.random_bool(1.0 / 30.0) {
            return;
        }
        self.several = Several::Search(Search::draw(&mut rng));
        (self.closed, self.requests, self.warmup_seconds, self.seconds) = (false, None, 2, 10);
        self.interval_seconds = [0, 0, 5][rng.random_range(0..3)];
        // The usual number of steps with these limits.
        self.trials = 9;
        for (at, _) in &mut self.faults {
            *at += Duration::from_secs(18) * rng.random_range(0..self.trials);
        }
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// Lets no call reach shards under load for longer than they wait, in some of the worlds with one trial. Uses its own random numbers, so
    /// that the worlds of all other seeds stay the same.
    pub fn draw_absence(&mut self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x0061_6273_656e_6365);
        if self.trials > 1 || self.requests.is_some() || !rng.random_bool(0.04) {
            return;
        }
        (self.seconds, self.rate, self.unattended_seconds) = (150, self.rate.min(100), 60);
        let time = Duration::from_secs(rng.random_range(62..250));
        let fault = match rng.random_range(0..2) {
            0 => Fault::HaltOperator(Halt::Killed(time)),
            _ => Fault::CutShard(rng.random_range(0..self.shards), time),
        };
        self.faults.push((Duration::from_secs(rng.random_range(15..60)), fault));
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// Lets conductors panic once or twice in some of the worlds. Uses its own random numbers, so that the worlds of all other seeds stay the
    /// same.
    pub fn draw_panics(&mut self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x0070_616e_6963);
        if !rng.random_bool(0.06) {
            return;
        }
        let length = 6_000 + (self.warmup_seconds + self.seconds) * 1_000;
        for _ in 0..rng.random_range(1..=2) {
            let at = Duration::from_millis(rng.random_range(200..length));
            self.faults.push((at, Fault::Panic));
        }
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// Makes some of the worlds with several trials repeat one, and some sweep over the number of shards. Uses its own random numbers, so
    /// that the worlds of all other seeds stay the same.
    fn draw_experiment(&mut self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x0065_7870_6572_696d);
        match rng.random_range(0..6) {
            0..2 => self.several = Several::Repeats,
            2..4 if self.shards > 1 => {
                // One trial has the most shards; the others have fewer.
                let mut values: Vec<u32> = (1..self.shards).collect();
                while values.len() >= self.trials as usize {
                    values.remove(rng.random_range(0..values.len()));
                }
                values.insert(rng.random_range(0..=values.len()), self.shards);
                self.trials = u32::try_from(values.len()).unwrap_or(u32::MAX);
                self.several = Several::Shards(values);
                // Longer than a shard waits without contact.
                if self.requests.is_none() && rng.random_bool(0.15) {
                    self.seconds = 800;
                    self.rate = self.rate.min(100);
                }
            }
            _ => return,
        }
        // The longest one also exceeds the time that a shard waits without contact.
        self.interval_seconds = pick(&mut rng, &[0, 0, 5, 5, 700]);
    }

    pub fn shards_of(&self, trial: u32) -> u32 {
        match &self.several {
            Several::Shards(values) => values.get(trial as usize).copied().unwrap_or(self.shards),
            Several::Presets | Several::Repeats | Several::Search(_) => self.shards,
        }
    }

    /// Returns whether the target sustains the rate of a trial.
    pub fn holds(&self, trial: u32, rate: u64) -> bool {
        match &self.several {
            Several::Search(search) => search.holds(trial, rate),
            Several::Presets | Several::Repeats | Several::Shards(_) => true,
        }
    }

    fn workload(&self) -> Value {
        let keys = json!({"count": 1_000});
        if self.trials == 1 || self.several != Several::Presets {
            return json!({"operations": [{"name": "get", "weight": 1, "command": "GET __key__"}], "keys": keys});
        }
        let presets: Vec<_> = ["set", "get", "incr"].into_iter().take(self.trials as usize).collect();
        json!({"preset": presets, "keys": keys})
    }

    /// The benchmark as its user applies it.
    pub fn benchmark(&self) -> Value {
        let mut load = json!({
            "type": if self.closed { "ClosedLoop" } else { "OpenLoop" },
            "connections": 8,
            "warmup": format!("{}s", self.warmup_seconds),
        });
        if !self.closed && !matches!(self.several, Several::Search(_)) {
            load["openLoop"] = json!({"rate": self.rate});
        }
        let seconds = json!(format!("{}s", self.seconds));
        match self.requests {
            Some(requests) => {
                load["requests"] = json!(requests);
                load["maxDuration"] = seconds;
            }
            None => load["duration"] = seconds,
        }
        let mut repeats = json!({"interval": format!("{}s", self.interval_seconds)});
        let mut sweep = json!([]);
        let mut search = Value::Null;
        match &self.several {
            Several::Presets => {}
            Several::Repeats => repeats["count"] = json!(self.trials),
            Several::Shards(values) => sweep = json!([{"field": "shards.count", "values": values}]),
            Several::Search(wanted) => search = wanted.spec(),
        }
        json!({
            "apiVersion": "redisbench.dev/v1alpha1",
            "kind": "RedisBenchmark",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "generation": 1},
            "spec": {
                "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
                "workload": self.workload(),
                "preload": {"mode": if self.preload && self.trials == 1 { "Always" } else { "None" }},
                // Not drawn, because another draw would change the world of every seed.
                "cleanup": {"keys": if self.preload { "DeletePrefix" } else { "Keep" }},
                "verify": {"mode": if self.verifies() { "Replies" } else { "None" }},
                "load": load,
                "safety": {"unattended": format!("{}s", self.unattended_seconds)},
                "repeats": repeats,
                "sweep": sweep,
                "search": search,
                "sweepOrder": "Listed",
                "shards": {
                    "count": self.shards,
                    "onLost": self.on_lost,
                    "prepareTimeout": format!("{}s", self.prepare_seconds),
                    "collectTimeout": format!("{}s", self.collect_seconds),
                },
            },
        })
    }

    pub fn verifies(&self) -> bool {
        self.shards.is_multiple_of(2)
    }

    /// The end of the last fault.
    pub fn calm_at(&self) -> Duration {
        self.faults.iter().map(|(at, fault)| *at + fault.lasts()).max().unwrap_or_default()
    }

    /// The longest time from then to a terminal phase: includes three missed starts and two restarts, each with a new preparation.
    pub fn patience(&self) -> Duration {
        let once = self.prepare_seconds + self.warmup_seconds + self.seconds + self.collect_seconds + 40;
        // Some searches take more steps than usual.
        let trials = if matches!(self.several, Several::Search(_)) { 4 * self.trials } else { self.trials };
        Duration::from_secs((once * 6 + self.interval_seconds * 2) * u64::from(trials))
    }
}

impl Fault {
    fn draw(rng: &mut StdRng, shards: u32) -> Self {
        let shard = rng.random_range(0..shards);
        let mut time = |from: u64, to: u64| Duration::from_millis(rng.random_range(from..to));
        let (short, long, both) = (time(100, 6_000), time(1_000, 40_000), time(0, 25_000));
        let (stall, after, taken) = (time(200, 12_000), time(50, 6_000), time(5_000, 100_000));
        let missed = (time(1_300, 2_800), long);
        let calls = rng.random_range(0..shards);
        let way = pick(rng, &[Way::There, Way::Back]);
        let suspend = rng.random_bool(0.5).then_some(missed);
        let halt = match rng.random_range(0..3) {
            0 => Halt::Killed(short),
            1 => Halt::Paused { time: long, successor_after: short, both },
            _ => Halt::Stalled(stall),
        };
        match rng.random_range(0..47) {
            0..6 => Self::HaltOperator(Halt::Killed(short)),
            6 => Self::HaltOperator(Halt::Killed(long)),
            7..9 => Self::Upgrade,
            9..14 => Self::HaltOperator(Halt::Paused { time: long, successor_after: short, both }),
            14..17 => Self::KillShard(shard),
            17..19 => Self::EvictShard(shard),
            19 => Self::DeletePod(shard),
            20..24 => Self::CutShard(shard, long),
            24..26 => Self::LoseNode(shard),
            26..30 => Self::ApiAway(long),
            30 => Self::Abort,
            31 => Self::Suspend(long),
            32 => Self::DeleteBenchmark,
            33 => Self::DeleteJob,
            34..36 => Self::Recreate(after),
            36..38 => Self::BreakWatches(stall),
            38 => Self::HaltOperator(Halt::Stalled(stall)),
            39..43 => Self::HaltAtStart(halt, calls),
            43 => Self::TakeName(taken),
            _ => Self::MissStart { shard, way, suspend },
        }
    }

    /// Returns whether another pod replaces the shard's.
    fn replaces_shard(&self) -> bool {
        matches!(self, Self::KillShard(_) | Self::EvictShard(_) | Self::DeletePod(_) | Self::LoseNode(_))
    }

    fn lasts(&self) -> Duration {
        match self {
            Self::HaltOperator(halt) => halt.lasts(),
            Self::CutShard(_, time)
            | Self::ApiAway(time)
            | Self::Suspend(time)
            | Self::Recreate(time)
            | Self::TakeName(time)
            | Self::BreakWatches(time) => *time,
            Self::HaltAtStart(halt, _) => WATCHFUL + halt.lasts(),
            Self::MissStart { suspend, .. } => {
                WATCHFUL + suspend.map_or(Duration::from_secs(3), |(delay, time)| delay + time)
            }
            _ => Duration::ZERO,
        }
    }
}
