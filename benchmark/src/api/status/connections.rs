//! Connections made while measuring.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::latencies::Latencies;

/// Connections made while measuring. Neither they nor the time without them are errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionsResult {
    /// Connections that became ready.
    pub made: u64,
    /// Connections closed at the end of their lifetime. The last ones may not be made again before the load ends.
    pub closed: u64,
    /// Connections made per second, over the measured time.
    pub made_per_second: u64,
    /// From the begin of a connection until it was ready, TLS handshake and first commands (AUTH, HELLO, SELECT) included.
    pub connect_time: Latencies,
    /// TLS handshakes alone. Only with TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_handshake_time: Option<Latencies>,
}
