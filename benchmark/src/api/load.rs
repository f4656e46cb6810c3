//! `spec.load`: rate, connections and length of the load. The doc comments are the text of `kubectl explain`.

use std::collections::BTreeMap;

use redisbench_wire::limits;
use redisbench_wire::plan::{Arrival, PipelineMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::ClientSpec;
use super::duration::GoDuration;
use super::fields::default_one;
use super::lifetime::ConnectionLifetimeSpec;
use super::patterns::NAME_PATTERN;

/// Rate, connections and length of the load. At most one of `duration`, `requests`, `requestsPerConnection` and `stages` can be set.
/// Without any, the load runs until it is aborted, for at most 48h.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadSpec {
    /// `OpenLoop` sends at a fixed rate, even if earlier requests have no reply yet, like independent users. `ClosedLoop` keeps
    /// `connections` x `pipeline` requests in flight, or `closedLoop.concurrency`, so the target sets the pace.
    #[serde(rename = "type")]
    pub kind: LoadType,
    /// Settings for type `OpenLoop`. Required for it, unless `stages` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoopSpec>,
    /// Settings for type `ClosedLoop`. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<ClosedLoopSpec>,
    /// Ramps: successive parts of an open loop with changing rates, up to 64. They replace `openLoop.rate` and `duration`: together they
    /// are the length of the measurement, 1s to 48h. The warm-up runs at the initial rate of the first stage. Each stage has its own rates
    /// and latencies in `status.result.stages`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::STAGES))]
    pub stages: Vec<StageSpec>,
    /// Connections of the whole benchmark, split evenly over the shards: at least one per shard, at most 1000000. Default 50.
    #[serde(default = "default_connections")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: u32,
    /// Primaries of a Cluster that each shard connects to and loads, 1 to 1024. `shards.count` times this must be a multiple of the
    /// cluster's primaries. Requires `Uniform` keys. Not set by default: every shard loads all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub nodes_per_shard: Option<u32>,
    /// Clients that send the requests, 1 to 8. Two or more are compared as set in `comparison`. Not set by default: the engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 8),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub clients: Vec<ClientSpec>,
    /// Maximum new connections per second of the whole benchmark, 1 to 1000000, for servers that limit it, such as managed ones. Reconnects
    /// count too. Not set by default: no rate limit, but at most 64 at a time per worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connect_rate: Option<u32>,
    /// Lifetime of connections, which are then closed and made again. Not set by default: connections are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_lifetime: Option<ConnectionLifetimeSpec>,
    /// Maximum requests in flight per connection, 1 to 10000. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 10_000))]
    pub pipeline: u32,
    /// The refill of a connection's pipeline in a closed loop. `Window` sends the next request after each reply. `Batch` sends `pipeline`
    /// requests, then waits for all replies, like `redis-benchmark -P`. `Batch` is not available for a Cluster or with
    /// `closedLoop.concurrency`. Default `Window`.
    #[serde(default)]
    pub pipeline_mode: PipelineMode,
    /// Length of the measurement after the warm-up, 1s to 48h. If neither this nor `requests`, `requestsPerConnection` or `stages` is set,
    /// the load runs until it is aborted, for at most 48h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<GoDuration>,
    /// Number of measured requests of the whole benchmark, after the warm-up: at least one per shard, at most 1000000000000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub requests: Option<u64>,
    /// Like `requests`, per connection, 1 to 1000000: the total is this times `connections`, as with `memtier_benchmark -n`. Connections
    /// share the total, so a slow one does not delay the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_connection: Option<u64>,
    /// Time limit for `requests` or `requestsPerConnection`, and only valid with one of them: 1s to 48h. The load then ends, even if
    /// requests remain. Default 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duration: Option<GoDuration>,
    /// Length of the load before the measurement, which is counted separately: 0s to 1h. Default 5s.
    #[serde(default = "default_warmup")]
    pub warmup: GoDuration,
    /// End of the warm-up. `ByTime`: after `warmup`. `WhenSettled`: once the throughput has had no drift for ten seconds, and no later than
    /// `warmup`, which must be at least 16s, and longer with more than 200 shards; the verdict reports if it had not settled by then.
    /// `WhenSettled` requires `duration`. Default `ByTime`.
    #[serde(default)]
    pub warmup_ends: WarmupEnds,
    /// Timeouts of connections and requests.
    #[serde(default)]
    pub timeouts: TimeoutsSpec,
}

/// End of a warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WarmupEnds {
    /// After its full length.
    #[default]
    ByTime,
    /// As soon as the throughput has settled.
    WhenSettled,
}

/// Open or closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LoadType {
    /// Sends at a fixed rate.
    OpenLoop,
    /// Sends the next request after a reply.
    ClosedLoop,
}

/// Load by callers that wait for replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClosedLoopSpec {
    /// Number of callers that share the connections, and so of requests in flight in the whole benchmark. Each caller has one request at a
    /// time, on the next connection with room. At least one per shard, at most `connections` x `pipeline`, which is also the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub concurrency: Option<u32>,
}

/// Load at a rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenLoopSpec {
    /// Requests per second of the whole benchmark, 1 to 1000000000. Required, unless `stages` is set or each operation has a `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub rate: Option<u64>,
    /// Distribution of due times. `Constant` spaces requests evenly. `Poisson` spaces them at random by the seed with this mean rate, like
    /// many independent callers. Default `Constant`.
    #[serde(default)]
    pub arrival: Arrival,
    /// Grid to which due times are rounded up, 0s to 100ms. A coarser grid causes fewer wake-ups, but sends requests in bursts. On a grid,
    /// workers do not wake up early, so requests leave tens of microseconds late. Default 0s: exact due times.
    #[serde(default = "default_pacing_grid")]
    pub pacing_grid: GoDuration,
    /// Time after its due time at which a request that could not be sent is counted as unsent, 1ms to 10m. Default 10s.
    #[serde(default = "default_unsent_after")]
    pub unsent_after: GoDuration,
}

/// Part of the measurement in which the rate changes linearly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageSpec {
    /// Name of the stage in the result: lower-case letters, digits and `-`, at most 32, unique among the stages. Not set by default:
    /// results name the stage by its position, such as `stages[0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub name: Option<String>,
    /// Length of the stage, 1ms to 48h. A stage has its own result if it contains a whole second of the load.
    pub duration: GoDuration,
    /// Rates at the start and end of the stage.
    pub rate: RampSpec,
    /// Mix of the stage: weights, 1 to 1000000, by names of operations, such as `{get: 95, set: 5}`. Others are not sent in it. The warm-up
    /// has the mix of the first stage. Default: the weights of the operations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub mix: BTreeMap<String, u32>,
}

/// Rate that changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RampSpec {
    /// Requests per second of the whole benchmark at the start, 1 to 1000000000.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub from: u64,
    /// Requests per second of the whole benchmark at the end, 1 to 1000000000. The rate is constant if this equals `from`.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub to: u64,
}

/// Timeouts of connections and requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutsSpec {
    /// Timeout from the start of a connection until it is ready, 1ms to 10m. Default 5s.
    #[serde(default = "default_connect_timeout")]
    pub connect: GoDuration,
    /// Timeout from sending a request to its reply, 1ms to 10m. Default 1s.
    #[serde(default = "default_request_timeout")]
    pub request: GoDuration,
}

impl LoadSpec {
    pub(super) fn concurrency(&self) -> Option<u32> {
        self.closed_loop.and_then(|closed| closed.concurrency)
    }

    /// Number of requests to measure, if the load is bounded by one.
    pub fn requests_in_all(&self) -> Option<u64> {
        let by_connection = self.requests_per_connection.map(|each| each.saturating_mul(self.connections.into()));
        self.requests.or(by_connection)
    }
}

impl Default for OpenLoopSpec {
    fn default() -> Self {
        Self {
            rate: None,
            arrival: Arrival::default(),
            pacing_grid: default_pacing_grid(),
            unsent_after: default_unsent_after(),
        }
    }
}

impl Default for TimeoutsSpec {
    fn default() -> Self {
        Self { connect: default_connect_timeout(), request: default_request_timeout() }
    }
}

fn default_connections() -> u32 {
    50
}

fn default_warmup() -> GoDuration {
    GoDuration::new("5s")
}

fn default_pacing_grid() -> GoDuration {
    GoDuration::new("0s")
}

fn default_unsent_after() -> GoDuration {
    GoDuration::new("10s")
}

fn default_connect_timeout() -> GoDuration {
    GoDuration::new("5s")
}

fn default_request_timeout() -> GoDuration {
    GoDuration::new("1s")
}
