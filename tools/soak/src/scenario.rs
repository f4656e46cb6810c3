//! The random parameters of a run, drawn before it begins: the benchmark, the source of Redis, and the faults with their times.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::fault::{Fault, Surroundings};
use crate::servers::{PASSWORD, Redis};

#[derive(Clone, Debug)]
pub struct Scenario {
    pub run: u64,
    pub shards: u32,
    pub redis: Redis,
    pub password: bool,
    pub load: Load,
    pub bound: Bound,
    pub warmup: Duration,
    pub connections: u32,
    pub pipeline: u32,
    pub commands: Vec<&'static str>,
    pub keys: u64,
    pub pattern: &'static str,
    pub value_bytes: u64,
    pub preload: &'static str,
    pub verify: &'static str,
    pub on_lost: &'static str,
    pub request_timeout: Duration,
    pub prepare: Duration,
    pub collect: Duration,
    /// The lead of each shard's monotonic clock over the conductor's, in seconds. Empty without time namespaces.
    pub clocks: Vec<u64>,
    /// True if the output for the result is a full disk.
    pub full_disk: bool,
    /// The size of the disk for temporary files, in KiB. None if it is large enough.
    pub small_disk: Option<u64>,
    /// Sorted by time since the program's start.
    pub faults: Vec<(Duration, Fault)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Open loop, with this number of requests per second.
    Open(u64),
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Seconds(u64),
    Requests { count: u64, at_most: Duration },
}

#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// The network can be cut, and disks can be mounted.
    pub network: bool,
    /// Shards can have their own clocks.
    pub clocks: bool,
}

fn pick<T: Copy>(rng: &mut StdRng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())]
}

/// Slows down a closed loop: the server sleeps after every other request.
pub const REST: &str = "DEBUG SLEEP 0.001";

impl Scenario {
    /// Draws run number `run` of `seed`. The result depends only on these and `means`.
    pub fn draw(seed: u64, run: u64, means: Means) -> Self {
        let rng = &mut StdRng::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ run);
        let shards = rng.random_range(1..=4);
        let redis = pick(
            rng,
            &[
                Redis::Standalone,
                Redis::Standalone,
                Redis::Standalone,
                Redis::Cluster,
                Redis::Cluster,
                Redis::Throwaway,
                Redis::ThrowawayCluster,
            ],
        );
        let open = rng.random_bool(0.7);
        let rate = pick(rng, &[50, 333, 1_000, 2_000, 4_000]);
        let seconds = rng.random_range(2..=9);
        let at_most = Duration::from_secs(seconds + rng.random_range(2..10));
        let bound = match (open, rng.random_bool(0.3)) {
            (_, false) if open || redis.is_own() => Bound::Seconds(seconds),
            (true, _) => Bound::Requests { count: rate * seconds, at_most },
            (false, _) => Bound::Requests { count: 500 * seconds + rng.random_range(0..97), at_most },
        };
        let mut commands = vec!["GET __key__", "SET __key__ __data__"];
        commands.extend(["STRLEN __key__", "EXISTS __key__"].iter().filter(|_| rng.random_bool(0.3)));
        // Servers started by `--with-redis` refuse DEBUG.
        if !open && redis.is_own() {
            commands = vec![commands[rng.random_range(0..commands.len())], REST];
        }
        let mut scenario = Self {
            run,
            shards,
            redis,
            password: rng.random_bool(0.3),
            load: if open { Load::Open(rate) } else { Load::Closed },
            bound,
            warmup: pick(rng, &[Duration::ZERO, Duration::from_millis(500), Duration::from_secs(2)]),
            connections: shards * pick(rng, &[1, 2, 5]),
            pipeline: pick(rng, &[1, 1, 4, 16]),
            commands,
            keys: pick(rng, &[1, 100, 3_000]),
            pattern: pick(rng, &["Uniform", "Sequential", "Partitioned"]),
            value_bytes: pick(rng, &[1, 100, 1_000, 20_000]),
            preload: pick(rng, &["None", "Always", "FillMissing"]),
            verify: "None",
            on_lost: pick(rng, &["Invalidate", "Invalidate", "Abort", "Restart"]),
            request_timeout: Duration::from_millis(pick(rng, &[500, 1_000, 3_000])),
            prepare: Duration::from_secs(pick(rng, &[10, 15])),
            collect: Duration::from_secs(pick(rng, &[5, 8])),
            clocks: Vec::new(),
            full_disk: rng.random_bool(0.03),
            small_disk: None,
            faults: Vec::new(),
        };
        scenario.keys = scenario.keys.max(shards.into());
        // Values need space for a stamp, and can only be tracked through these commands.
        let follows = scenario.value_bytes >= 24 && !scenario.commands.contains(&REST);
        scenario.verify = pick(rng, &["Replies", "Values", "Values", "None"]);
        if scenario.verify == "Values" && !follows {
            scenario.verify = "None";
        }
        if means.clocks && rng.random_bool(0.5) {
            scenario.clocks = (0..shards).map(|_| rng.random_range(0..10_000_000)).collect();
        }
        if means.network && scenario.redis.is_own() && rng.random_bool(0.05) {
            scenario.small_disk = Some(rng.random_range(4..120));
        }
        // Approximately the time until the start, the load, and the collection.
        let horizon = Duration::from_secs(4) + scenario.planned();
        let surroundings = Surroundings {
            redis,
            // The DEBUG of this fault would be counted among the load's.
            may_sleep: redis.is_own() && !scenario.commands.contains(&REST),
            network: means.network,
            shards,
        };
        for _ in 0..pick(rng, &[0, 1, 1, 1, 2, 2, 3]) {
            let at = rng.random_range(Duration::from_millis(50)..horizon);
            scenario.faults.push((at, Fault::draw(rng, surroundings)));
        }
        scenario.faults.sort_by_key(|(at, _)| *at);
        scenario
    }

    /// The planned time of warm-up and measurement, at most.
    pub fn planned(&self) -> Duration {
        self.warmup
            + match self.bound {
                Bound::Seconds(seconds) => Duration::from_secs(seconds),
                Bound::Requests { at_most, .. } => at_most,
            }
    }

    /// The planned number of measured requests. None if it depends on the target.
    pub fn requests(&self) -> Option<u64> {
        match (self.bound, self.load) {
            (Bound::Requests { count, .. }, _) => Some(count),
            (Bound::Seconds(seconds), Load::Open(rate)) => Some(rate * seconds),
            (Bound::Seconds(_), Load::Closed) => None,
        }
    }

    /// The longest that the program may take in any case: includes three missed starts, each with a new preparation.
    pub fn patience(&self) -> Duration {
        let undo: Duration = self.faults.iter().map(|(_, fault)| fault.time).sum();
        let unsent = Duration::from_secs(10);
        (self.prepare + Duration::from_secs(8)) * 3
            + self.planned()
            + unsent
            + self.request_timeout
            + self.collect
            + Duration::from_secs(40)
            + undo
    }

    /// Command names in the server's statistics, including that of the preload.
    pub fn command_names(&self) -> BTreeSet<String> {
        self.commands.iter().map(|command| name(command)).chain(["set".to_owned()]).collect()
    }

    /// Returns whether a probe may follow the load: in every fourth run whose load ends by time. In the others, the servers' counts must
    /// match the load's exactly.
    pub fn may_be_probed(&self) -> bool {
        matches!(self.bound, Bound::Seconds(_)) && self.run.is_multiple_of(4)
    }

    /// The manifest for servers at `endpoints`.
    pub fn manifest(&self, endpoints: &[String]) -> String {
        let operations: Vec<Value> = (self.commands.iter().zip([3, 2, 1, 1]))
            .map(|(command, weight)| json!({"name": name(command), "weight": weight, "command": command}))
            .collect();
        let seconds = |time: Duration| format!("{}ms", time.as_millis());
        let mut load = json!({
            "connections": self.connections,
            "pipeline": self.pipeline,
            "warmup": seconds(self.warmup),
            "timeouts": {"request": seconds(self.request_timeout), "connect": "1s"},
        });
        match self.load {
            Load::Open(rate) => {
                load["type"] = json!("OpenLoop");
                load["openLoop"] = json!({"rate": rate});
            }
            Load::Closed => load["type"] = json!("ClosedLoop"),
        }
        match self.bound {
            Bound::Seconds(length) => load["duration"] = json!(format!("{length}s")),
            Bound::Requests { count, at_most } => {
                load["requests"] = json!(count);
                load["maxDuration"] = json!(seconds(at_most));
            }
        }
        let mut target = json!({
            "name": "redis",
            "type": if self.redis.is_cluster() { "Cluster" } else { "Standalone" },
            "endpoints": if endpoints.is_empty() { vec!["redis:6379".to_owned()] } else { endpoints.to_vec() },
        });
        if self.password {
            target["auth"] = json!({"secretRef": {"name": "login"}});
        }
        let benchmark = json!({
            "apiVersion": "redisbench.dev/v1alpha1",
            "kind": "RedisBenchmark",
            "metadata": {"name": format!("soak-{}", self.run)},
            "spec": {
                "targets": [target],
                "workload": {
                    "operations": operations,
                    "keys": {"count": self.keys, "pattern": {"type": self.pattern}},
                    "values": {"size": {"type": "Fixed", "fixed": {"bytes": self.value_bytes}}},
                    "seed": self.run,
                },
                "preload": {"mode": self.preload},
                "verify": {"mode": self.verify},
                "load": load,
                "measurement": {"probe": self.may_be_probed()},
                "safety": {"allowDestructive": self.commands.contains(&REST)},
                "shards": {
                    "count": self.shards,
                    "onLost": self.on_lost,
                    // High, because the machine may be busy.
                    "maxStartSkew": "500ms",
                    "prepareTimeout": seconds(self.prepare),
                    "collectTimeout": seconds(self.collect),
                },
            },
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": PASSWORD},
        });
        if self.password { format!("{benchmark}\n---\n{secret}\n") } else { format!("{benchmark}\n") }
    }

    pub fn describe(&self) -> String {
        let load = match self.load {
            Load::Open(rate) => format!("{rate}/s"),
            Load::Closed => format!("closed {}x{}", self.connections, self.pipeline),
        };
        let bound = match self.bound {
            Bound::Seconds(seconds) => format!("{seconds} s"),
            Bound::Requests { count, .. } => format!("{count} requests"),
        };
        let extras = [
            (self.verify == "Replies", ", replies verified"),
            (self.verify == "Values", ", values verified"),
            (self.password, ", password"),
            (!self.clocks.is_empty(), ", clocks"),
            (self.full_disk, ", full disk"),
            (self.small_disk.is_some(), ", small disk"),
        ];
        let extras: String = extras.iter().filter(|(on, _)| *on).map(|(_, text)| *text).collect();
        format!("{:?} x{}, {load} for {bound}, {}{extras}", self.redis, self.shards, self.on_lost)
    }
}

fn name(command: &str) -> String {
    command.split(' ').next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use redisbench_testkit::counts::variant;

    use super::*;
    use crate::fault::Kind;

    const ALL: Means = Means { network: true, clocks: true };

    #[test]
    fn a_run_is_a_function_of_seed_and_number() {
        for run in 0..50 {
            assert_eq!(format!("{:?}", Scenario::draw(7, run, ALL)), format!("{:?}", Scenario::draw(7, run, ALL)));
        }
        assert_ne!(format!("{:?}", Scenario::draw(7, 1, ALL)), format!("{:?}", Scenario::draw(8, 1, ALL)));
    }

    #[test]
    fn runs_are_light_and_every_kind_of_fault_comes_up() {
        let scenarios: Vec<_> = (0..2_000).map(|run| Scenario::draw(1, run, ALL)).collect();
        assert!(scenarios.iter().all(|scenario| !matches!(scenario.load, Load::Open(rate) if rate > 4_000)));
        assert!(scenarios.iter().all(|scenario| scenario.planned() <= Duration::from_secs(25)));
        for verify in ["None", "Replies", "Values"] {
            let verified = scenarios.iter().filter(|scenario| scenario.verify == verify);
            let kinds = verified.flat_map(|scenario| &scenario.faults).map(|(_, fault)| variant(&fault.kind));
            let kinds: BTreeSet<_> = kinds.map(|name| name.split(' ').next().unwrap().to_owned()).collect();
            assert_eq!(kinds.len(), crate::fault::KINDS, "{verify}: {kinds:?}");
        }
    }

    #[test]
    fn without_means_no_fault_needs_them() {
        let none = Means { network: false, clocks: false };
        for run in 0..500 {
            let scenario = Scenario::draw(1, run, none);
            let needs = |(_, fault): &(Duration, Fault)| {
                matches!(fault.kind, Kind::CutShard(_) | Kind::CutServer(_) | Kind::LosePackets(_))
            };
            assert!(scenario.clocks.is_empty() && !scenario.faults.iter().any(needs));
        }
    }
}
