//! The cost of a client library.

use serde::{Deserialize, Serialize};

use crate::bounded;

/// Usage of a shard's process for the load of a client library, from the start to the last outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientUsage {
    /// The library and its version.
    #[serde(deserialize_with = "bounded::name")]
    pub version: String,
    /// Connections.
    pub connections: u32,
    /// The most calls in progress.
    pub callers: u32,
    /// Processor time in its own code.
    pub user_nanoseconds: u64,
    /// Processor time in the kernel.
    pub system_nanoseconds: u64,
    /// Voluntary and involuntary.
    pub context_switches: u64,
    /// The most resident memory of the process.
    pub peak_bytes: u64,
}

impl ClientUsage {
    /// Adds another shard's.
    pub fn add(&mut self, other: &Self) {
        if self.version.is_empty() {
            self.version.clone_from(&other.version);
        }
        self.connections = self.connections.saturating_add(other.connections);
        self.callers = self.callers.saturating_add(other.callers);
        self.user_nanoseconds = self.user_nanoseconds.saturating_add(other.user_nanoseconds);
        self.system_nanoseconds = self.system_nanoseconds.saturating_add(other.system_nanoseconds);
        self.context_switches = self.context_switches.saturating_add(other.context_switches);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}
