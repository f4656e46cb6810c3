//! Tracing of single requests.

use serde::{Deserialize, Serialize};

/// Sends spans of some requests to an OpenTelemetry collector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tracing {
    /// The collector's base URL, `http://host:port`. Spans go to `/v1/traces` below it.
    pub endpoint: String,
    /// One request in this many is traced, at least 1. Its number decides which.
    pub one_in: u64,
}
