use std::time::Duration;

use redisbench_wire::plan;

use super::limit::Threshold;
use super::spec::{OnLost, Placement};
use super::target::TargetSecrets;
use super::template::ShardTemplate;
use crate::quantile::Quantile;

/// A spec that was checked: whatever is built from it, building cannot fail. Only [`super::validate`] makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Validated {
    /// The Redis under test.
    pub target: plan::Target,
    /// Where the secrets are that it wants to see.
    pub secrets: TargetSecrets,
    /// Where those are that its sentinels want to see of their own.
    pub sentinel_secrets: TargetSecrets,
    /// What is asked of it.
    pub workload: plan::Workload,
    /// What is written before.
    pub preload: plan::Preload,
    /// How fast.
    pub preload_pace: plan::PreloadPace,
    /// What is checked of the answers.
    pub verify: plan::Verify,
    /// Whether the keys are deleted when the load is over.
    pub cleanup: bool,
    /// How requests come about.
    pub load: plan::Load,
    /// The names of its stages, in their order.
    pub stage_names: Vec<Option<String>>,
    /// Connections of the whole benchmark: at least one for each shard.
    pub connections: u32,
    /// How many connections the whole benchmark begins in a second at most.
    pub connect_rate: Option<u32>,
    /// The most requests in flight per connection.
    pub pipeline: u32,
    /// How a connection of a closed loop goes on after a reply.
    pub pipeline_mode: plan::PipelineMode,
    /// Callers that share the connections of the whole benchmark: at least one for each shard, and no more than the
    /// connections hold.
    pub concurrency: Option<u32>,
    /// Length of the warm-up.
    pub warmup: Duration,
    /// The warm-up may end before, once the throughput has settled.
    pub settle: bool,
    /// What ends the measurement of the whole benchmark.
    pub bound: Bound,
    /// Time limits of single steps.
    pub timeouts: plan::Timeouts,
    /// What the measurement must keep to.
    pub thresholds: Vec<Threshold>,
    /// What is measured beside the total.
    pub breakdown: plan::Breakdown,
    /// The percentiles of latencies that are reported, the lowest first.
    pub percentiles: Vec<Quantile>,
    /// What is looked at beside the requests.
    pub measurement: plan::Measurement,
    /// The pods.
    pub shards: Shards,
    /// When the finished benchmark is deleted, if ever.
    pub ttl_after_finished: Option<Duration>,
}

/// What ends the measurement of the whole benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A time after the warm-up.
    Duration(Duration),
    /// A number of requests after the warm-up.
    Requests {
        /// How many: at least one for each shard.
        count: u64,
        /// The longest that they may take.
        at_most: Duration,
    },
}

impl Bound {
    /// The longest that the measurement can be.
    pub fn longest(self) -> Duration {
        match self {
            Self::Duration(longest) | Self::Requests { at_most: longest, .. } => longest,
        }
    }
}

/// The pods that make the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Shards {
    /// How many, at least 1.
    pub count: u32,
    /// What happens when one is lost.
    pub on_lost: OnLost,
    /// Where they go.
    pub placement: Placement,
    /// How far apart they may start.
    pub max_start_skew: Duration,
    /// How long they may take until all are ready.
    pub prepare_timeout: Duration,
    /// How long after the end their results are waited for.
    pub collect_timeout: Duration,
    /// What is said about the pods.
    pub template: ShardTemplate,
}
