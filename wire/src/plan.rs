//! What one shard shall do in one trial. A pure function of the benchmark's spec, its seed and the plan version; made
//! by `benchmark`, checked there, and run here without further questions.

mod load;
mod options;
mod reads;
mod target;
mod verify;
mod workload;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use load::{Arrival, Bound, Load, PipelineMode, RateStage};
pub use options::{Fill, Script, Transaction, Wait, WorkloadOptions};
pub use reads::{READS, only_reads};
pub use target::{AddressMapping, Protocol, ReadFrom, Sentinels, Target, Tls, TlsVersion, Topology, Transport, Trust};
pub use verify::{Followed, Role, Verify};
pub use workload::{
    HotKeys, KeyPattern, Keys, Operation, Part, ValueContent, ValueSize, Values, WeightedSize, Workload,
};

/// The plan of shard `shard` of `shards` for one trial. Everything that must be split is split already, except the
/// schedule of an open loop, of which each shard takes its requests by index (see [`Load::OpenLoop`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardPlan {
    /// The run's identity.
    pub run: String,
    /// The trial, from 0.
    pub trial: u32,
    /// This shard's index, from 0.
    pub shard: u32,
    /// How many shards take part.
    pub shards: u32,
    /// The Redis under test.
    pub target: Target,
    /// What is asked of it.
    pub workload: Workload,
    /// What is written before the trial.
    pub preload: Preload,
    /// The checks of the answers.
    #[serde(default)]
    pub verify: Verify,
    /// How fast and over how many connections.
    pub load: Load,
    /// Connections of this shard, at least 1.
    pub connections: u32,
    /// How many connections the whole benchmark begins in a second at most, at least 1; none without a limit. Each worker
    /// begins its own evenly, at its part of the rate.
    pub connect_rate: Option<u32>,
    /// How fast the preload is.
    #[serde(default)]
    pub preload_pace: PreloadPace,
    /// The most requests in flight per connection, at least 1.
    pub pipeline: u32,
    /// How a connection of a closed loop goes on after a reply.
    pub pipeline_mode: PipelineMode,
    /// Callers of this shard that share the connections of a closed loop: the most requests in flight over all of them,
    /// at least 1. None if it is what the connections hold.
    pub concurrency: Option<u32>,
    /// Length of the warm-up, which counts apart.
    pub warmup_nanoseconds: u64,
    /// The warm-up may end before, once the throughput of all shards together has settled.
    #[serde(default)]
    pub settle: bool,
    /// What ends the measurement.
    pub bound: Bound,
    /// Time limits of single steps.
    pub timeouts: Timeouts,
    /// Which breakdowns are measured beside the total.
    pub breakdown: Breakdown,
    /// Nodes are counted by the second, too: for thresholds on each node that are judged while the load runs.
    #[serde(default)]
    pub node_seconds: bool,
    /// What is looked at beside the requests.
    #[serde(default)]
    pub measurement: Measurement,
    /// Limits that the shard enforces by its own clock.
    pub limits: Limits,
}

impl ShardPlan {
    /// How many commands all shards together write before the trial.
    pub fn preload_commands(&self) -> u64 {
        match &self.preload {
            Preload::None => 0,
            Preload::Always | Preload::FillMissing => self.workload.keys.count,
            Preload::Elements { count, .. } => *count,
        }
    }

    /// SHA-256 over the plan's JSON, in hexadecimal. Two plans with one hash are the same plan.
    pub fn hash(&self) -> String {
        // A plan is plain data with string keys: serialising it into memory cannot fail.
        let json = serde_json::to_vec(self).unwrap_or_default();
        Sha256::digest(&json).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What is written before the trial. Shard i of N writes keys `count*i/N .. count*(i+1)/N`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Preload {
    /// Nothing.
    None,
    /// `SET` for every key.
    Always,
    /// `SET .. NX` for every key.
    FillMissing,
    /// A command so many times, of which the k-th is as request k would be: elements of a few keys.
    Elements {
        /// How many, over all shards.
        count: u64,
        /// The command's arguments, as an operation has them.
        arguments: Vec<Vec<Part>>,
    },
}

/// How fast the preload is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreloadPace {
    /// Keys per second of the whole benchmark, at least 1; none without a limit. Each worker keeps its part of it.
    pub rate_per_second: Option<u64>,
    /// Commands in flight per connection, at least 1; none for the trial's own, but at least 16.
    pub pipeline: Option<u32>,
}

/// Time limits of single steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// From the start of a connection until it is ready.
    pub connect_nanoseconds: u64,
    /// From the send of a request until its reply.
    pub request_nanoseconds: u64,
}

/// Which breakdowns are measured beside the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Breakdown {
    /// Per operation.
    pub operation: bool,
    /// Per Redis node.
    pub node: bool,
}

/// What is looked at beside the requests, to say what the numbers are worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Measurement {
    /// Shard 0 asks the servers for INFO.
    pub server_stats: bool,
    /// What a shard's link carries in each direction, if somebody said so.
    pub link_bytes_per_second: Option<u64>,
    /// For how long a probe measures, should the conductor want one once the trial is over; 0: none is allowed.
    pub probe_nanoseconds: u64,
}

/// Limits that the shard enforces by its own clock: past one the load stops, the counters go to the log, and the
/// shard exits with 75.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// From the start instant until Finished.
    pub trial_nanoseconds: u64,
    /// In phase Armed without a start.
    pub armed_nanoseconds: u64,
    /// In phase Finished or Failed without contact. The clock starts when the phase does.
    pub finished_nanoseconds: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan() -> ShardPlan {
        ShardPlan {
            run: "r".into(),
            trial: 0,
            shard: 1,
            shards: 2,
            target: Target {
                name: "redis".into(),
                topology: Topology::Standalone,
                endpoints: vec!["redis:6379".into()],
                database: 0,
                address_map: Vec::new(),
                master_name: None,
                sentinels: None,
                read_from: ReadFrom::Primary,
                authenticate: false,
                protocol: Protocol::Resp2,
                tls: None,
            },
            workload: Workload {
                operations: vec![Operation {
                    name: "get".into(),
                    weight: 1,
                    arguments: vec![vec![Part::Literal("GET".into())], vec![Part::Key]],
                    keys: None,
                }],
                keys: Keys { prefix: "rb:".into(), start: 0, count: 10, width: 0, pattern: KeyPattern::Uniform },
                values: Values::fixed(100),
                seed: 1,
                options: WorkloadOptions::default(),
            },
            preload: Preload::Always,
            verify: Verify::Replies,
            load: Load::OpenLoop {
                rate_per_second: 1000,
                stages: vec![RateStage { nanoseconds: 1, from_per_second: 2, to_per_second: 3 }],
                arrival: Arrival::Poisson,
                pacing_grid_nanoseconds: 0,
                unsent_after_nanoseconds: 1,
            },
            connections: 1,
            pipeline: 1,
            connect_rate: None,
            preload_pace: PreloadPace::default(),
            pipeline_mode: PipelineMode::Window,
            concurrency: None,
            warmup_nanoseconds: 0,
            settle: false,
            bound: Bound::Requests { count: 5, max_nanoseconds: 7 },
            timeouts: Timeouts { connect_nanoseconds: 1, request_nanoseconds: 1 },
            breakdown: Breakdown { operation: true, node: false },
            node_seconds: false,
            measurement: Measurement { server_stats: true, link_bytes_per_second: Some(5), probe_nanoseconds: 7 },
            limits: Limits { trial_nanoseconds: 1, armed_nanoseconds: 1, finished_nanoseconds: 1 },
        }
    }

    #[test]
    fn json_round_trip_keeps_the_hash() {
        let plan = plan();
        let json = serde_json::to_string(&plan).unwrap();
        let back: ShardPlan = serde_json::from_str(&json).unwrap();
        assert_eq!(back, plan);
        assert_eq!(back.hash(), plan.hash());
        assert_eq!(plan.hash().len(), 64);
    }

    #[test]
    fn another_plan_has_another_hash() {
        let mut other = plan();
        other.shard = 0;
        assert_ne!(other.hash(), plan().hash());
    }
}
