//! What one shard shall do in one trial. A pure function of the benchmark's spec, its seed and the plan version; made
//! by `benchmark`, checked there, and run here without further questions.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

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
    /// How fast and over how many connections.
    pub load: Load,
    /// Connections of this shard, at least 1.
    pub connections: u32,
    /// How many connections the whole benchmark begins in a second at most, at least 1; none without a limit. Each worker
    /// begins its own evenly, at its part of the rate.
    pub connect_rate: Option<u32>,
    /// The most requests in flight per connection, at least 1.
    pub pipeline: u32,
    /// How a connection of a closed loop goes on after a reply.
    pub pipeline_mode: PipelineMode,
    /// Callers of this shard that share the connections of a closed loop: the most requests in flight over all of them,
    /// at least 1. None if it is what the connections hold.
    pub concurrency: Option<u32>,
    /// Length of the warm-up, which counts apart.
    pub warmup_nanoseconds: u64,
    /// What ends the measurement.
    pub bound: Bound,
    /// Time limits of single steps.
    pub timeouts: Timeouts,
    /// Which breakdowns are measured beside the total.
    pub breakdown: Breakdown,
    /// Limits that the shard enforces by its own clock.
    pub limits: Limits,
}

impl ShardPlan {
    /// SHA-256 over the plan's JSON, in hexadecimal. Two plans with one hash are the same plan.
    pub fn hash(&self) -> String {
        // A plan is plain data with string keys: serialising it into memory cannot fail.
        let json = serde_json::to_vec(self).unwrap_or_default();
        Sha256::digest(&json).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The Redis under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The name in the benchmark's spec.
    pub name: String,
    /// What it must be.
    pub topology: Topology,
    /// `host:port`, at least one. Of a standalone server the first is used; of a cluster or of sentinels, any that
    /// answers.
    pub endpoints: Vec<String>,
    /// Addresses that nodes of a cluster announce, and where they can be reached instead.
    pub address_map: Vec<AddressMapping>,
    /// By what name sentinels know the primary; none without sentinels.
    pub master_name: Option<String>,
    /// The language that the load speaks.
    pub protocol: Protocol,
    /// The database to select; 0 for a cluster.
    pub database: u32,
    /// Whether to authenticate, with the credentials mounted beside the shard. They are never in the plan.
    pub authenticate: bool,
    /// How to speak TLS to every server; none is in the clear.
    pub tls: Option<Tls>,
}

/// Where a node of a cluster is reached that announces an address which cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressMapping {
    /// `host:port` as the cluster has it.
    pub announced: String,
    /// `host:port` to connect to.
    pub reachable: String,
}

impl Target {
    /// Where to connect to instead of what a cluster announces, if anywhere.
    pub fn reachable(&self, announced: &str) -> Option<&str> {
        let mapping = self.address_map.iter().find(|mapping| mapping.announced == announced)?;
        Some(&mapping.reachable)
    }
}

/// A version of Redis's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// What every server speaks at first.
    Resp2,
    /// From Redis 6 on: agreed on with HELLO.
    Resp3,
}

/// TLS to the target. What is secret of it is mounted beside the shard, and never in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Whose certificates are good.
    pub trust: Trust,
    /// Whether servers are shown a certificate of our own, which is mounted.
    pub client_certificate: bool,
    /// The name that is asked for (SNI), and that a server's certificate must have. None: the host in the server's
    /// own endpoint.
    pub server_name: Option<String>,
    /// The oldest version to agree to.
    pub minimum_version: TlsVersion,
}

/// Whose word is taken for a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// The authorities that the shard's system trusts.
    System,
    /// Those that are mounted, and no others.
    Mounted,
    /// Nobody's: any certificate is good, whoever shows it.
    Anyone,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// 1.2, of 2008.
    Tls12,
    /// 1.3, of 2018.
    Tls13,
}

/// What a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Topology {
    /// One server.
    Standalone,
    /// Redis Cluster.
    Cluster,
    /// The server that sentinels say is the primary, as long as they say so.
    Sentinel,
}

/// What is asked of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// The weighted mix, at least one, weights above 0.
    pub operations: Vec<Operation>,
    /// The keys.
    pub keys: Keys,
    /// The values.
    pub values: Values,
    /// Operation, key and value of request k are a function of (seed, k).
    pub seed: u64,
}

/// One entry of the mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Unique in the mix.
    pub name: String,
    /// Its share is weight over the sum of all weights.
    pub weight: u32,
    /// The command's arguments, the first being its name; each the concatenation of its parts.
    pub arguments: Vec<Vec<Part>>,
    /// Keys of its own, in place of the workload's.
    pub keys: Option<Keys>,
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Part {
    /// As it stands.
    Literal(String),
    /// The request's key, prefix and all.
    Key,
    /// Another key of the request: the second, the third and so on, from 2.
    NthKey(u32),
    /// The request's value.
    Data,
    /// A random number, another one wherever it stands.
    Integer {
        /// The lowest.
        least: i64,
        /// The highest, no lower than the lowest.
        most: i64,
        /// Digits that it is padded to with zeros; 0 writes it as it is. Only where none is below 0.
        width: u32,
    },
    /// The request's number, k.
    Sequence,
    /// A random number from 0 to 1, with nine decimals.
    Score,
}

/// The values that commands write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Values {
    /// How long they are.
    pub size: ValueSize,
    /// What is in them.
    pub content: ValueContent,
}

impl Values {
    /// Random values of so many bytes.
    pub fn fixed(bytes: u32) -> Self {
        Self { size: ValueSize::Fixed { bytes }, content: ValueContent::Random { compressibility_percent: 0 } }
    }
}

/// How long values are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum ValueSize {
    /// All alike.
    Fixed {
        /// The length.
        bytes: u32,
    },
    /// Each length with the same probability.
    Range {
        /// The shortest.
        least_bytes: u32,
        /// The longest, no shorter than the shortest.
        most_bytes: u32,
    },
    /// Each of these with a probability in proportion to its weight, which is above 0.
    Weighted(Vec<WeightedSize>),
}

/// One length of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WeightedSize {
    /// The length.
    pub bytes: u32,
    /// Its share is weight over the sum of all weights.
    pub weight: u32,
}

impl ValueSize {
    /// The most bytes that a value has.
    pub fn longest(&self) -> u32 {
        match self {
            Self::Fixed { bytes } => *bytes,
            Self::Range { most_bytes, .. } => *most_bytes,
            Self::Weighted(sizes) => sizes.iter().map(|size| size.bytes).max().unwrap_or(0),
        }
    }

    /// The mean number of bytes, rounded down.
    pub fn mean(&self) -> u64 {
        match self {
            Self::Fixed { bytes } => (*bytes).into(),
            Self::Range { least_bytes, most_bytes } => u64::midpoint((*least_bytes).into(), (*most_bytes).into()),
            Self::Weighted(sizes) => {
                let weights: u128 = sizes.iter().map(|size| u128::from(size.weight)).sum();
                let bytes: u128 = sizes.iter().map(|size| u128::from(size.bytes) * u128::from(size.weight)).sum();
                u64::try_from(bytes / weights.max(1)).unwrap_or(u64::MAX)
            }
        }
    }
}

/// What is in values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum ValueContent {
    /// Random bytes.
    Random {
        /// The share of them that is zeros, which a compressor makes nothing of.
        compressibility_percent: u32,
    },
    /// Zeros.
    Zero,
}

/// The key space: `prefix` followed by a decimal number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Keys {
    /// Before the number. A hash tag in it is honoured.
    pub prefix: String,
    /// The first number.
    pub start: u64,
    /// How many keys, at least 1.
    pub count: u64,
    /// Digits that the number is padded to with zeros; 0 pads to the digits of the largest number, so that all keys
    /// have one length.
    pub width: u32,
    /// Which key a request takes.
    pub pattern: KeyPattern,
}

/// Which key request k takes, out of keys 0..count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum KeyPattern {
    /// Each with the same probability, by hash of (seed, k).
    Uniform,
    /// k mod count, so that all shards together walk the keys in order.
    Sequential,
    /// Shard i of N walks keys `count*i/N .. count*(i+1)/N` in order: together each key once, then again.
    Partitioned,
    /// By the normal distribution, drawn again where it leads beyond the first or the last key.
    Gaussian {
        /// The key in its middle: below the count.
        mean: u64,
        /// In keys, 1 to the count.
        standard_deviation: u64,
    },
    /// The key of rank r, from 1, with a probability in proportion to r^-exponent.
    Zipf {
        /// The exponent in millionths: above 0 and below 100 million.
        exponent_millionths: u32,
        /// Which key has which rank.
        hot_keys: HotKeys,
    },
    /// The first ranks share most of the requests evenly, and the others the rest.
    HotSet {
        /// How many they are, 1 to the count.
        keys: u64,
        /// Their share of the requests, in millionths of a percent.
        percent_millionths: u32,
        /// Which key has which rank.
        hot_keys: HotKeys,
    },
}

/// Which keys are asked for most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HotKeys {
    /// Every first n ranks are spread evenly over the key space.
    Scattered,
    /// Rank r is key r - 1.
    First,
}

/// What is written before the trial. Shard i of N writes keys `count*i/N .. count*(i+1)/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Preload {
    /// Nothing.
    None,
    /// `SET` for every key.
    Always,
    /// `SET .. NX` for every key.
    FillMissing,
}

/// How a connection of a closed loop goes on after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PipelineMode {
    /// With the next request.
    Window,
    /// With the next `pipeline` requests, when as many were answered.
    Batch,
}

/// How requests come about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Load {
    /// Each connection keeps `pipeline` requests in flight.
    ClosedLoop,
    /// Requests have due times, whether or not earlier ones were answered. Worker w of W in shard i of N takes the
    /// local j with j mod W = w, which is request k = j*N + i. When it is due, [`crate::rate`] says.
    OpenLoop {
        /// Requests per second of the whole benchmark: throughout, or with stages during the warm-up.
        rate_per_second: u64,
        /// The rate from the end of the warm-up on, a stage after the other.
        stages: Vec<RateStage>,
        /// How requests are spread at that rate.
        arrival: Arrival,
        /// Due times are rounded up to this grid; 0 is exact.
        pacing_grid_nanoseconds: u64,
        /// A request that could not be sent this long after its due time is counted as unsent.
        unsent_after_nanoseconds: u64,
    },
}

/// A part of the measurement in which the rate goes from one to another in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateStage {
    /// Its length.
    pub nanoseconds: u64,
    /// Requests per second of the whole benchmark at its beginning.
    pub from_per_second: u64,
    /// The same at its end.
    pub to_per_second: u64,
}

/// How the requests of an open loop are spread in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrival {
    /// Evenly.
    Constant,
    /// As those of independent callers: each worker has a Poisson process of its own, of its part of the rate.
    Poisson,
}

/// What ends the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Bound {
    /// A time after the warm-up.
    Duration {
        /// Its length.
        nanoseconds: u64,
    },
    /// A number of requests after the warm-up.
    Requests {
        /// This shard's share.
        count: u64,
        /// The longest that this may take; what is not sent by then is not scheduled.
        max_nanoseconds: u64,
    },
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Breakdown {
    /// Per operation.
    pub operation: bool,
    /// Per Redis node.
    pub node: bool,
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
    /// In phase Finished without contact.
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
            },
            preload: Preload::Always,
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
            pipeline_mode: PipelineMode::Window,
            concurrency: None,
            warmup_nanoseconds: 0,
            bound: Bound::Requests { count: 5, max_nanoseconds: 7 },
            timeouts: Timeouts { connect_nanoseconds: 1, request_nanoseconds: 1 },
            breakdown: Breakdown { operation: true, node: false },
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
