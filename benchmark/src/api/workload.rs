//! `spec.workload` and `spec.preload`. The doc comments are the text of `kubectl explain`.

use redisbench_wire::limits;
use redisbench_wire::plan::{Lines, Recorded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::caching::CachingSpec;
use super::fields::default_one;
use super::file::ShardFile;
use super::keys::{KeysSpec, OperationKeysSpec};
use super::patterns::NAME_PATTERN;
use super::preload::PreloadDataSpec;
use super::script::ScriptSpec;
use super::trace::TraceSpec;
use super::transaction::{TransactionSpec, WaitSpec};
use super::values::ValuesSpec;

/// Commands, keys and values that the load sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// Tests of redis-benchmark by name: `ping_mbulk`, `set`, `get`, `incr`, `lpush`, `rpush`, `lpop`, `rpop`, `sadd`, `hset`, `spop`,
    /// `zadd`, `zpopmin`, `lrange_100`, `lrange_300`, `lrange_500`, `lrange_600`, `mset`, `xadd`. Each is a trial with its own keys:
    /// `keys.prefix` and the trial's number. Trials run in this order. Data that a test needs is written first: the keys of `get`, and an
    /// element per request of `lpop`, `rpop`, `spop` and `zpopmin`. Generated numbers are below `keys.count`, as with `redis-benchmark -r`.
    /// Exactly one of `preset`, `operations` and `trace` is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 32)), extend("x-kubernetes-list-type" = "set"))]
    pub preset: Vec<String>,
    /// Weighted mix of commands, up to 64. The operation of a request follows from the seed and the request's number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::OPERATIONS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub operations: Vec<OperationSpec>,
    /// Recorded commands to replay. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSpec>,
    /// Keys that commands use.
    #[serde(default)]
    pub keys: KeysSpec,
    /// Values that commands write.
    #[serde(default)]
    pub values: ValuesSpec,
    /// The order of weighted operations. `Random` draws each request's operation, so a mix of 1 and 10 has runs and gaps, like real users.
    /// `Ratio` repeats an exact sequence: as many requests of each operation in turn as its weight, like `memtier_benchmark --ratio`; each
    /// operation then walks `Sequential` keys separately. Default `Random`.
    #[serde(default)]
    pub mix: Mix,
    /// Lua scripts that commands call with EVALSHA `__script:NAME__`, up to 8. Not set by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scripts: Vec<ScriptSpec>,
    /// Function libraries that commands call with FCALL, up to 8. They replace libraries of the same name. Not set by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub functions: Vec<ScriptSpec>,
    /// Transactions. Default: none.
    #[serde(default)]
    pub transaction: TransactionSpec,
    /// Waiting for replicas with WAIT. Default: none.
    #[serde(default)]
    pub wait: WaitSpec,
    /// Action after a GET that finds no value. `Fill` writes the key with a value of the workload, and with an expiry from `values.ttl` if
    /// set, like a cache in front of a database. This write is not a request: it is counted separately (`fills`) and in no latency.
    /// `Ignore` does nothing. Default `Ignore`.
    #[serde(default)]
    pub on_miss: OnMiss,
    /// Client-side caches of reads. Not set by default: every read is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caching: Option<CachingSpec>,
    /// Seed for the operation, key and value of every request, 0 to 9007199254740991. Runs with the same seed send the same requests.
    /// Default 1.
    #[serde(default = "default_seed")]
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub seed: u64,
}

/// Entry of the mix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationSpec {
    /// Name of the operation in results and metrics: lower-case letters, digits and `-`, at most 32.
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub name: String,
    /// Weight of the operation, 1 to 1000000. Its share of the requests is this over the sum of all weights. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub weight: u32,
    /// Exact requests per second of this operation in an open loop, 1 to 1000000000. It is not in the mix then, but comes on top: rates of
    /// `load` and of a search are those of the other operations. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub rate: Option<u64>,
    /// Command with its arguments, at most 4096 characters. Quote arguments with spaces: `"` with the escapes \" \\ \n \r \t, or `'`
    /// without escapes. Placeholders work in quotes too: `__key__`, the request's key; `__key:2__` to `__key:100__`, further keys, each the
    /// same throughout the command, which in a Cluster must share a slot, for example by a hash tag in `keys.prefix`; `__data__`, the
    /// value; `__integer:1:1000__`, a random number from the first to the last, drawn for each occurrence, or padded to four digits with
    /// `__integer:0001:1000__`; `__sequence__`, the request's unique number; `__score__`, a random number from 0 to 1 with nine decimals;
    /// `__ttl__`, seconds in the range of `values.ttl`; `__script:NAME__`, the SHA-1 of an entry of `scripts`.
    #[schemars(length(min = 1, max = 4096))]
    pub command: String,
    /// Keys of this operation. Unset fields default to `workload.keys`. The preload does not write these keys; `cleanup` deletes them too.
    /// Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<OperationKeysSpec>,
}

/// The order of weighted operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mix {
    /// Draws each request's operation.
    #[default]
    Random,
    /// Repeats an exact sequence.
    Ratio,
}

/// Action after a GET that finds no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnMiss {
    /// Does nothing.
    #[default]
    Ignore,
    /// Writes the key.
    Fill,
}

/// Keys written before the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreloadSpec {
    /// `None` writes nothing. `Always` sets every key of the keyspace. `FillMissing` sets only missing keys. Default `None`.
    #[serde(default)]
    pub mode: PreloadMode,
    /// Maximum keys per second that the whole benchmark writes, 1 to 1000000000. Not set by default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub rate: Option<u64>,
    /// Maximum commands in flight per connection, 1 to 10000. Not set by default: `load.pipeline`, but at least 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub pipeline: Option<u32>,
    /// Keys of other types, or of single operations, up to 8 entries. Not set by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub data: Vec<PreloadDataSpec>,
}

/// Keys written before the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PreloadMode {
    /// None.
    #[default]
    None,
    /// Every key.
    Always,
    /// Every missing key.
    FillMissing,
}

impl WorkloadSpec {
    /// The files that shards read.
    pub fn files(&self) -> impl Iterator<Item = ShardFile<'_>> {
        let values = self.values.content.file.as_ref().map(|file| &file.config_map_ref);
        let keys = self.keys.file.as_ref().map(|file| &file.config_map_ref);
        let trace = self.trace.as_ref().map(|trace| &trace.config_map_ref);
        let files = [
            (Lines::VALUES_FILE, "spec.workload.values.content.file.configMapRef", values),
            (Lines::KEYS_FILE, "spec.workload.keys.file.configMapRef", keys),
            (Recorded::FILE, "spec.workload.trace.configMapRef", trace),
        ];
        files.into_iter().filter_map(|(name, field, source)| Some(ShardFile { name, field, source: source? }))
    }
}

fn default_seed() -> u64 {
    1
}
