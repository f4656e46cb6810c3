//! `workload.trace`. The doc comments are the text of `kubectl explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::ConfigMapKeyRef;
use super::patterns::DECIMAL_PATTERN;

/// Output of `redis-cli MONITOR`, at most 1 MiB. The commands of a key keep their order. Repeated until the end of `load.duration` or
/// `load.stages`, otherwise sent once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceSpec {
    /// ConfigMap with the recording. Shards mount it; the operator never reads it.
    pub config_map_ref: ConfigMapKeyRef,
    /// Speed of an open loop with the recorded times instead of a rate: a decimal number above 0 and below 100, such as "1" or "2.5", with
    /// at most 6 decimals. Not set by default: the load's rate or its closed loop sets the pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8), pattern(DECIMAL_PATTERN))]
    pub pace: Option<String>,
}
