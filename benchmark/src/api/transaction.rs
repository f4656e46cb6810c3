//! `spec.workload.transaction` and `spec.workload.wait`: requests of several commands. The doc comments are the text of `kubectl explain`.

use redisbench_wire::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;

/// Turns every request into a transaction: MULTI, `size` commands of the request's operation, and EXEC. A transaction is one request with
/// one latency; an error of any of its commands is an error of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransactionSpec {
    /// Number of commands between MULTI and EXEC, at most 1000. Default 0: no transactions.
    #[serde(default)]
    #[schemars(range(min = 0, max = limits::TRANSACTION))]
    pub size: u32,
    /// Keys of the commands. In a Cluster all must be in one slot: with `Own`, by a hash tag in `keys.prefix`. Default `Own`.
    #[serde(default)]
    pub keys: TransactionKeys,
}

/// Keys of a transaction's commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TransactionKeys {
    /// A separate key for each command.
    #[default]
    Own,
    /// The same key for all commands.
    Shared,
}

/// Sends WAIT after every request of an operation that writes, as part of the request: its latency ends when the replicas have the write,
/// or after `timeout`. Requests that reached fewer replicas by then succeed and are counted as `underReplicated`. Requires
/// `load.pipeline` 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitSpec {
    /// Number of replicas that should have the write, at most 100. Default 0: no WAIT.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: u32,
    /// Time for which the server waits for the replicas, 1ms to less than `load.timeouts.request`. Default 500ms.
    #[serde(default = "default_timeout")]
    pub timeout: GoDuration,
}

impl Default for WaitSpec {
    fn default() -> Self {
        Self { replicas: 0, timeout: default_timeout() }
    }
}

fn default_timeout() -> GoDuration {
    GoDuration::new("500ms")
}
