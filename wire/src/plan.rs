//! The plan of one trial, and each shard's part of it. A pure function of the benchmark's spec, its seed and the plan version. `benchmark`
//! makes and checks it; every shard receives the same plan and derives its own part.

mod argument;
mod basic;
mod caching;
mod client;
mod lines;
mod load;
mod monitor;
mod options;
mod part;
mod reads;
mod recorded;
pub mod refused;
mod target;
mod trace;
mod tracing;
mod verify;
mod workload;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use argument::Part;
pub use caching::{CacheScope, Caching, CachingMode};
pub use client::{Client, Library, Pool, RedisRsConnection, Runtime};
pub use lines::{KeyFile, Lines};
pub use load::{Arrival, Bound, Lifetime, LifetimeLimit, LifetimeSpread, Load, PipelineMode, RateStage};
pub use options::{Fill, OperationRate, Script, Transaction, Wait, WorkloadOptions};
pub use part::ShardPlan;
pub use reads::{READS, only_reads};
pub use recorded::{Recorded, RecordedCommand};
pub use target::{
    AddressMapping, Distribution, Protocol, ReadFrom, Sentinels, Target, Tls, TlsVersion, Topology, Transport, Trust,
};
pub use trace::Trace;
pub use tracing::Tracing;
pub use verify::{Followed, Role, Verify};
pub use workload::{
    HotKeys, HotTags, KeyPattern, Keys, Operation, Tags, ValueContent, ValueSize, Values, WeightedSize, Workload,
};

/// The plan of one trial, the same for all shards. Its numbers are those of the whole benchmark; [`Self::part`] splits them. Each shard
/// selects the requests of an open loop by index (see [`Load::OpenLoop`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialPlan {
    /// The number of shards, at least 1.
    pub shards: u32,
    /// The Redis under test.
    pub target: Target,
    /// The commands to send. A clone shares them; see [`Self::workload_mut`].
    pub workload: Arc<Workload>,
    /// The recording to send instead. The workload then has no operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The data to write before the trial.
    pub preload: Preload,
    /// Commands to send after it, one step after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preload_steps: Vec<PreloadStep>,
    /// The checks of replies.
    #[serde(default)]
    pub verify: Verify,
    /// Closed loop, or open loop with its rate.
    pub load: Load,
    /// The client library that sends the requests. None is the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// Connections of all shards, at least one for each.
    pub connections: u32,
    /// The number of a cluster's primaries that each shard loads. None loads all. Shards x this number is a multiple of the primaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_per_shard: Option<u32>,
    /// The most new connections per second of all shards, at least 1. None is unlimited. Each worker opens its connections evenly, at its
    /// share of the rate.
    pub connect_rate: Option<u32>,
    /// The time after which connections are closed and made again. None keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_lifetime: Option<Lifetime>,
    /// The speed of the preload.
    #[serde(default)]
    pub preload_pace: PreloadPace,
    /// The most requests in flight per connection, at least 1.
    pub pipeline: u32,
    /// The refill of a closed loop's pipeline after a reply.
    pub pipeline_mode: PipelineMode,
    /// Callers that share the connections of a closed loop: the most requests in flight over the connections of all shards, at least one
    /// for each shard. None limits them by connections and pipeline depth only.
    pub concurrency: Option<u32>,
    /// Length of the warm-up, which is counted separately.
    pub warmup_nanoseconds: u64,
    /// True if the warm-up ends early once the throughput of all shards together has settled.
    #[serde(default)]
    pub settle: bool,
    /// The end of the measurement.
    pub bound: Bound,
    /// Timeouts of single steps.
    pub timeouts: Timeouts,
    /// The breakdowns to measure in addition to the total.
    pub breakdown: Breakdown,
    /// True if nodes are counted by the second too: for thresholds per node that are judged while the load runs.
    #[serde(default)]
    pub node_seconds: bool,
    /// Additional measurements besides the requests.
    #[serde(default)]
    pub measurement: MeasurementOptions,
    /// Spans of single requests. None traces no request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<Tracing>,
    /// Time limits that the shard enforces by its own clock.
    pub limits: Limits,
}

impl TrialPlan {
    /// Returns whether data is written before the trial.
    pub fn has_preload(&self) -> bool {
        self.preload != Preload::None || !self.preload_steps.is_empty()
    }

    /// Returns whether some requests are traced.
    pub fn has_traces(&self) -> bool {
        self.tracing.is_some()
    }

    /// The number of streams of requests of an open loop, each with a mix or a rate of its own; at least one. Request n of stream s is
    /// request k = n * streams + s. The stages' mixes come first, then the operations with rates. Stages number their requests together.
    pub fn streams(&self) -> u64 {
        self.mix_streams() + self.workload.options.rates.len() as u64
    }

    /// The number of these that are of the mix: 0 if each operation has a rate of its own.
    pub fn mix_streams(&self) -> u64 {
        if self.workload.has_mix() { (self.workload.options.mixes.len() as u64).max(1) } else { 0 }
    }

    /// The number of commands that the preload of all shards sends before its steps.
    pub fn preload_commands(&self) -> u64 {
        match &self.preload {
            Preload::None => 0,
            Preload::Always | Preload::FillMissing => self.workload.keys.count,
            Preload::Elements { count, .. } => *count,
        }
    }

    /// The keys whose values are tracked; see [`Workload::followed`].
    pub fn followed(&self) -> Option<Followed> {
        self.workload.followed(self.verify)
    }

    /// The names of the operations that requests are counted by. All commands of a recording are one: their names are not part of the plan.
    pub fn operation_names(&self) -> Vec<&str> {
        match self.trace {
            None => self.workload.operations.iter().map(|operation| operation.name.as_str()).collect(),
            Some(_) => vec!["trace"],
        }
    }

    /// The commands to send, to change them in this plan alone: copies them if other plans share them.
    pub fn workload_mut(&mut self) -> &mut Workload {
        Arc::make_mut(&mut self.workload)
    }

    /// Adds what a shard has read to a plan with a trace.
    pub fn replay(&mut self, recorded: Recorded) {
        self.workload_mut().operations = recorded.operations().to_vec();
        if let Some(trace) = &mut self.trace {
            trace.recorded = Some(recorded);
        }
    }

    /// The longest time for which written keys are read back after the load.
    pub fn last_read_nanoseconds(&self) -> u64 {
        if self.followed().is_some() { Verify::LAST_READ_NANOSECONDS } else { 0 }
    }

    /// SHA-256 of the plan as that of trial `trial` of run `run`, in hexadecimal. Covers the trial, because repeats have equal plans.
    pub fn hash(&self, run: &str, trial: u32) -> String {
        // Serialising plain data with string keys into memory cannot fail.
        let json = serde_json::to_vec(&(run, trial, self)).unwrap_or_default();
        Sha256::digest(&json).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The data to write before the trial. Shard i of N writes keys `count*i/N .. count*(i+1)/N`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Preload {
    /// Nothing.
    None,
    /// `SET` for every key.
    Always,
    /// `SET .. NX` for every key.
    FillMissing,
    /// A command repeated `count` times, the k-th generated as request k would be: elements of a few keys.
    Elements {
        /// The number of commands over all shards.
        count: u64,
        /// The command's arguments, as in an operation.
        arguments: Vec<Vec<Part>>,
    },
}

/// A command for every key of a key space. Each shard and worker has the same keys in all steps of a key space, and begins a step when its
/// part of the one before is complete. So a key's commands are in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreloadStep {
    /// The keys, which are walked in order.
    pub keys: Keys,
    /// The command's arguments, as in an operation.
    pub arguments: Vec<Vec<Part>>,
    /// The number of times that it is sent for each key, at least 1.
    pub rounds: u32,
    /// True if its keys count as written: once, although they take several steps.
    pub writes: bool,
}

/// The speed of the preload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreloadPace {
    /// Keys per second of the whole benchmark, at least 1. None is unlimited. Each worker gets its share.
    pub rate_per_second: Option<u64>,
    /// Commands in flight per connection, at least 1. None uses the trial's pipeline depth, but at least 16.
    pub pipeline: Option<u32>,
}

/// Timeouts of single steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeouts {
    /// From opening a connection until it is ready.
    pub connect_nanoseconds: u64,
    /// From sending a request until its reply.
    pub request_nanoseconds: u64,
}

/// The breakdowns to measure in addition to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Breakdown {
    /// Per operation.
    pub operation: bool,
    /// Per Redis node.
    pub node: bool,
}

/// Additional measurements, to judge how far the numbers can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MeasurementOptions {
    /// True if shard 0 polls the servers' INFO.
    pub server_stats: bool,
    /// The bandwidth of a shard's link in each direction, if specified.
    pub link_bytes_per_second: Option<u64>,
    /// The measured time of a probe, if the conductor asks for one after the trial. 0 allows none.
    pub probe_nanoseconds: u64,
}

/// Time limits that the shard enforces by its own clock. Beyond one, it stops the load, writes the counters to its log, and exits with 75,
/// unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// From the start instant until Finished.
    pub trial_nanoseconds: u64,
    /// In phase Armed without a start or contact.
    pub armed_nanoseconds: u64,
    /// In phase Finished or Failed without contact. The clock starts when the phase does.
    pub finished_nanoseconds: u64,
    /// In phase Running without contact. Then the load stops and its result is kept. 0 sets no limit.
    #[serde(default)]
    pub unattended_nanoseconds: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan() -> TrialPlan {
        TrialPlan {
            shards: 2,
            connections: 3,
            preload: Preload::Always,
            verify: Verify::Replies,
            load: Load::OpenLoop {
                rate_per_second: 1000,
                stages: vec![RateStage { nanoseconds: 1, from_per_second: 2, to_per_second: 3 }],
                arrival: Arrival::Poisson,
                pacing_grid_nanoseconds: 0,
                unsent_after_nanoseconds: 1,
            },
            bound: Bound::Requests { count: 5, max_nanoseconds: 7 },
            breakdown: Breakdown { operation: true, node: false },
            measurement: MeasurementOptions {
                server_stats: true,
                link_bytes_per_second: Some(5),
                probe_nanoseconds: 7,
            },
            ..TrialPlan::basic("redis:6379")
        }
    }

    #[test]
    fn json_round_trip_keeps_the_hash() {
        let plan = plan();
        let json = serde_json::to_string(&plan).unwrap();
        let back: TrialPlan = serde_json::from_str(&json).unwrap();
        assert_eq!(back, plan);
        assert_eq!(back.hash("run", 0), plan.hash("run", 0));
        assert_eq!(plan.hash("run", 0).len(), 64);
    }

    #[test]
    fn a_shared_workload_is_written_as_its_content() {
        let plan = plan();
        let content = serde_json::to_string(plan.workload.as_ref()).unwrap();
        let json = serde_json::to_string(&plan).unwrap();
        assert!(json.contains(&format!("\"workload\":{content},\"preload\":")), "{json}");
    }

    #[test]
    fn clones_share_a_workload_until_one_changes() {
        let plan = plan();
        let mut other = plan.clone();
        assert!(Arc::ptr_eq(&plan.workload, &other.workload));
        other.workload_mut().seed += 1;
        assert_eq!(other.workload.seed, plan.workload.seed + 1);
        let alone = Arc::as_ptr(&other.workload);
        other.workload_mut().seed += 1;
        assert_eq!(Arc::as_ptr(&other.workload), alone, "what no other plan shares is not copied");
    }

    #[test]
    fn another_plan_run_or_trial_has_another_hash() {
        let other = TrialPlan { shards: 3, ..plan() };
        for hash in [other.hash("run", 0), plan().hash("other", 0), plan().hash("run", 1)] {
            assert_ne!(hash, plan().hash("run", 0));
        }
    }
}
