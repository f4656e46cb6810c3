//! A recording to send instead of a mix.

use serde::{Deserialize, Serialize};

use super::recorded::Recorded;

/// A recording to replay. Request k is command k modulo their number. A key's commands share a shard, a worker and a connection, so they
/// keep their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// True if the recording begins again after its last command, until the load ends. Otherwise the load ends with it.
    pub repeats: bool,
    /// The recording. No plan carries it: a shard reads it when it gets the plan.
    #[serde(skip)]
    pub recorded: Option<Recorded>,
}
