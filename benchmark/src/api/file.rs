//! Files of lines, as values or keys. The doc comments are the text of `kubectl explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::patterns::{OBJECT_NAME_PATTERN, SECRET_KEY_PATTERN};

/// A file of lines, without the `\n` or `\r\n` at their ends: at most 1 MiB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSpec {
    /// ConfigMap with the file. Shards mount it; the operator never reads it.
    pub config_map_ref: ConfigMapKeyRef,
}

/// A key of a ConfigMap in the benchmark's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKeyRef {
    /// Name of the ConfigMap, in the benchmark's namespace.
    #[schemars(length(min = 1, max = 253), pattern(OBJECT_NAME_PATTERN))]
    pub name: String,
    /// Key whose value is the file.
    #[schemars(length(min = 1, max = 253), pattern(SECRET_KEY_PATTERN))]
    pub key: String,
}

/// A file that shards read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardFile<'a> {
    /// Its name for a shard.
    pub name: &'static str,
    /// The field that refers to it.
    pub field: &'static str,
    /// Its source.
    pub source: &'a ConfigMapKeyRef,
}
