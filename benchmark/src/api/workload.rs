//! `spec.workload` and `spec.preload`: what is asked of the target, and what is written before. The doc comments are the
//! text of `kubectl explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keys::{KeysSpec, OperationKeysSpec};
use super::spec::NAME_PATTERN;

/// What is asked of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// The weighted mix of commands, 1 to 64 of them. Which one a request is follows from the seed and its number.
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub operations: Vec<OperationSpec>,
    /// The keys that commands use.
    #[serde(default)]
    pub keys: KeysSpec,
    /// The values that commands write.
    #[serde(default)]
    pub values: ValuesSpec,
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
    /// The command with its arguments, at most 4096 characters. `__key__` becomes the request's key and `__data__` its
    /// value. Arguments with spaces go in quotes: `"` with \" \\ \n \r \t, or `'` where all stands for itself.
    #[schemars(length(min = 1, max = 4096))]
    pub command: String,
    /// Keys of its own. What is not set is as in `workload.keys`. The preload does not write them; `cleanup` deletes them
    /// too. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<OperationKeysSpec>,
}

/// The values that commands write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesSpec {
    /// How long they are.
    #[serde(default)]
    pub size: ValueSizeSpec,
}

/// How long values are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueSizeSpec {
    /// `Fixed` makes all values as long as `fixed` says. Default `Fixed`.
    #[serde(default, rename = "type")]
    pub kind: ValueSizeType,
    /// For type `Fixed`, and required then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<FixedSizeSpec>,
}

/// How the length of values is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValueSizeType {
    /// All values have one length.
    #[default]
    Fixed,
}

/// One length for all values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedSizeSpec {
    /// The length in bytes, 1 to 16777216 (16 MiB).
    #[schemars(range(min = 1, max = 16_777_216))]
    pub bytes: u32,
}

/// What is written before the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreloadSpec {
    /// `None` writes nothing. `Always` sets every key of the key space. `FillMissing` sets those that do not exist.
    /// Default `None`.
    #[serde(default)]
    pub mode: PreloadMode,
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

impl Default for ValueSizeSpec {
    fn default() -> Self {
        Self { kind: ValueSizeType::Fixed, fixed: Some(FixedSizeSpec { bytes: 100 }) }
    }
}

fn default_seed() -> u64 {
    1
}

fn default_weight() -> u32 {
    1
}
