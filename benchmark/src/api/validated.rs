use std::time::Duration;

use redisbench_wire::plan;

use super::limit::Threshold;
use super::spec::{OnLost, Placement};
use super::target::TargetSecrets;
use super::template::ShardTemplate;
use crate::quantile::Quantile;

/// Validated spec: building objects from it cannot fail. Only [`super::validate`] creates one.
#[derive(Clone, Debug, PartialEq)]
pub struct Validated {
    /// The Redis under test.
    pub target: plan::Target,
    /// Secrets for the target's servers.
    pub secrets: TargetSecrets,
    /// Secrets that its sentinels do not share with the servers.
    pub sentinel_secrets: TargetSecrets,
    /// Commands, keys and values that the load sends.
    pub workload: plan::Workload,
    /// Keys written before the measurement.
    pub preload: plan::Preload,
    /// Rate and pipeline of the preload.
    pub preload_pace: plan::PreloadPace,
    /// Checks of the target's replies.
    pub verify: plan::Verify,
    /// Deletes the keys after the load.
    pub cleanup: bool,
    /// Open or closed loop.
    pub load: plan::Load,
    /// Names of the stages, in order.
    pub stage_names: Vec<Option<String>>,
    /// Connections of the whole benchmark: at least one per shard.
    pub connections: u32,
    /// Maximum new connections per second of the whole benchmark.
    pub connect_rate: Option<u32>,
    /// Maximum requests in flight per connection.
    pub pipeline: u32,
    /// How a connection of a closed loop keeps requests in flight.
    pub pipeline_mode: plan::PipelineMode,
    /// Callers that share the connections of the whole benchmark: at least one per shard, at most `connections` x `pipeline`.
    pub concurrency: Option<u32>,
    /// Length of the warm-up.
    pub warmup: Duration,
    /// The warm-up ends early once the throughput has settled.
    pub settle: bool,
    /// End of the measurement of the whole benchmark.
    pub bound: Bound,
    /// Timeouts of connections and requests.
    pub timeouts: plan::Timeouts,
    /// Limits that the measurement must meet.
    pub thresholds: Vec<Threshold>,
    /// Additional results per operation and per node.
    pub breakdown: plan::Breakdown,
    /// Reported percentiles of latencies, lowest first.
    pub percentiles: Vec<Quantile>,
    /// Evidence for the verdict.
    pub measurement: plan::Measurement,
    /// Pods that generate the load.
    pub shards: Shards,
    /// Time from the end until the benchmark is deleted, if ever.
    pub ttl_after_finished: Option<Duration>,
}

/// End of the measurement of the whole benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Time after the warm-up.
    Duration(Duration),
    /// Number of requests after the warm-up.
    Requests {
        /// Number of requests: at least one per shard.
        count: u64,
        /// Time limit.
        at_most: Duration,
    },
}

impl Bound {
    /// Maximum length of the measurement.
    pub fn longest(self) -> Duration {
        match self {
            Self::Duration(longest) | Self::Requests { at_most: longest, .. } => longest,
        }
    }
}

/// Pods that generate the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Shards {
    /// Number of pods, at least 1.
    pub count: u32,
    /// Reaction to the loss of a shard.
    pub on_lost: OnLost,
    /// Placement on nodes.
    pub placement: Placement,
    /// Maximum difference between start times.
    pub max_start_skew: Duration,
    /// Timeout until all are ready.
    pub prepare_timeout: Duration,
    /// Timeout for results after the end of the load.
    pub collect_timeout: Duration,
    /// Settings of the pods.
    pub template: ShardTemplate,
}
