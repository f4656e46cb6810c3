//! `spec.workload` and `spec.preload`: what is asked of the target, and what is written before. The doc comments are the
//! text of `kubectl explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keys::{KeysSpec, OperationKeysSpec};
use super::script::ScriptSpec;
use super::spec::NAME_PATTERN;
use super::transaction::{TransactionSpec, WaitSpec};
use super::values::ValuesSpec;

/// What is asked of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// Tests of redis-benchmark by their names: `ping_mbulk`, `set`, `get`, `incr`, `lpush`, `rpush`, `lpop`, `rpop`,
    /// `sadd`, `hset`, `spop`, `zadd`, `zpopmin`, `lrange_100`, `lrange_300`, `lrange_500`, `lrange_600`, `mset`, `xadd`. Each
    /// is a trial, in this order, one after the other, on keys of its own: `keys.prefix` with the trial's number. What a
    /// test needs to find is written before it: the keys of `get`, and an element for each request of `lpop`, `rpop`, `spop`
    /// and `zpopmin`. Numbers that a command makes are below `keys.count`, as with `redis-benchmark -r`. Exactly one of
    /// `preset` and `operations` is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 32)), extend("x-kubernetes-list-type" = "set"))]
    pub preset: Vec<String>,
    /// The weighted mix of commands, up to 64 of them. Which one a request is follows from the seed and its number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub operations: Vec<OperationSpec>,
    /// The keys that commands use.
    #[serde(default)]
    pub keys: KeysSpec,
    /// The values that commands write.
    #[serde(default)]
    pub values: ValuesSpec,
    /// How the mix is made of the weights. `Random` draws each request's operation, so a mix of 1 and 10 has runs and gaps,
    /// as users have. `Ratio` is an exact sequence over and over: as many requests of the first operation as its weight
    /// says, then of the second, as `memtier_benchmark --ratio` sends them; `Sequential` keys are then walked by each
    /// operation for itself. Default `Random`.
    #[serde(default)]
    pub mix: Mix,
    /// Lua scripts that commands call by EVALSHA `__script:NAME__`, up to 8. Not set by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scripts: Vec<ScriptSpec>,
    /// Libraries of functions that commands call by FCALL, up to 8. They take the place of libraries of the same name. Not
    /// set by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub functions: Vec<ScriptSpec>,
    /// Transactions. Default: none.
    #[serde(default)]
    pub transaction: TransactionSpec,
    /// Waiting for replicas. Default: nobody waits.
    #[serde(default)]
    pub wait: WaitSpec,
    /// What follows a GET that finds nothing. `Fill` writes its key with a value of the workload, and with the expiry of
    /// `values.ttl` if that is set, as a cache in front of a database does. The write is no request: it is counted apart
    /// (`fills`), and in no latency. Default `Ignore`: nothing.
    #[serde(default)]
    pub on_miss: OnMiss,
    /// Operation, key and value of every request follow from this number, 0 to 9007199254740991, so a second run asks
    /// the same. Default 1.
    #[serde(default = "default_seed")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub seed: u64,
}

/// One entry of the mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationSpec {
    /// Names the operation in results and metrics: lower-case letters, digits and `-`, at most 32.
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub name: String,
    /// Its share of the requests is this over the sum of all weights; 1 to 1000000. Default 1.
    #[serde(default = "default_weight")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub weight: u32,
    /// The command with its arguments, at most 4096 characters. Arguments with spaces go in quotes: `"` with \" \\ \n \r \t,
    /// or `'` where all stands for itself but placeholders. Those are: `__key__`, the request's key; `__key:2__` to
    /// `__key:100__`, further keys of it, each the same wherever it stands, which in a Cluster must share a slot, as with
    /// a hash tag in `keys.prefix`; `__data__`, its value; `__integer:1:1000__`, a random number from the first to the last,
    /// another one wherever it stands, and with `__integer:0001:1000__` of four digits; `__sequence__`, the request's number, which no other has; `__score__`, a random number
    /// from 0 to 1 with nine decimals; `__ttl__`, seconds of the range of `values.ttl`; `__script:NAME__`, the SHA-1 of that
    /// one of `scripts`.
    #[schemars(length(min = 1, max = 4096))]
    pub command: String,
    /// Keys of its own. What is not set is as in `workload.keys`. The preload does not write them; `cleanup` deletes them
    /// too. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<OperationKeysSpec>,
}

/// How the mix is made of the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mix {
    /// Each request's operation is drawn.
    #[default]
    Random,
    /// In turns.
    Ratio,
}

/// What follows a GET that finds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnMiss {
    /// Nothing.
    #[default]
    Ignore,
    /// The key is written.
    Fill,
}

/// What is written before the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreloadSpec {
    /// `None` writes nothing. `Always` sets every key of the key space. `FillMissing` sets those that do not exist.
    /// Default `None`.
    #[serde(default)]
    pub mode: PreloadMode,
    /// How many keys the whole benchmark writes in a second at most, 1 to 1000000000. Not set by default: as fast as its
    /// connections can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub rate: Option<u64>,
    /// The most commands in flight per connection, 1 to 10000. Not set by default: `load.pipeline`, but at least 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub pipeline: Option<u32>,
}

/// What is written before the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PreloadMode {
    /// Nothing.
    #[default]
    None,
    /// Every key.
    Always,
    /// Every key that does not exist.
    FillMissing,
}

fn default_seed() -> u64 {
    1
}

fn default_weight() -> u32 {
    1
}
