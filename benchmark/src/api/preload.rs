//! `preload.data`. The doc comments are the text of `kubectl explain`.

use redisbench_wire::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::default_one;
use super::values::TtlSpec;

/// Keys of one type. Before every trial they are deleted, then written with all their elements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreloadDataSpec {
    /// Type of the keys. `Hash` has fields `field:0` and so on, `Set` and `SortedSet` members `element:0` and so on, with these numbers as
    /// scores. Values of fields, of a `List`, a `String`, and of field `data` in a `Stream` are those of the workload.
    #[serde(rename = "type")]
    pub kind: DataType,
    /// Operation whose keys are written, as its command has them: of `GET user:__key__`, `user:` and its keys. Not set by default: the keys
    /// of `workload.keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub operation: Option<String>,
    /// Number of elements of each key, 1 to 1000. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = limits::ELEMENTS))]
    pub elements: u32,
    /// Range of the time to live. Not set by default: keys do not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<TtlSpec>,
}

/// Type of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DataType {
    /// A value.
    String,
    /// Fields with values.
    Hash,
    /// A list of values.
    List,
    /// Members.
    Set,
    /// Members with scores.
    SortedSet,
    /// Entries with a value each.
    Stream,
}
