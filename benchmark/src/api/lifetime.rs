//! `spec.load.connectionLifetime`: connections that are closed and made again. The doc comments are the text of `kubectl explain`.

use redisbench_wire::plan::LifetimeSpread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;

/// Closes each connection after a number of requests or a time and makes it again, like clients that come and go. A connection finishes its
/// requests first, so this causes no errors. Connects have their own latencies in `status.result.connections`. Exactly one of `requests`
/// and `duration` is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionLifetimeSpec {
    /// Number of requests after which a connection is closed, 1 to 1000000000: 1 is a connection for each request. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub requests: Option<u32>,
    /// Time after which a connection is closed, 10ms to 24h. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<GoDuration>,
    /// Distribution of the ends. `Even` shortens the first life of each connection, by a different amount, so that connections are closed
    /// evenly over time. `Together` gives all the full length: with `duration`, all connections are closed at the same time, again and
    /// again, a reconnect storm. Default `Even`.
    #[serde(default)]
    pub spread: LifetimeSpread,
}
