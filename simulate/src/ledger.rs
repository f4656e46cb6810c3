//! What truly happened, which nobody in the simulated world is told: the base of the invariants.

use std::collections::BTreeMap;

use redisbench_wire::snapshot::Tally;

/// A load that began.
#[derive(Clone, Debug)]
pub struct Started {
    pub incarnation: String,
    /// The epoch of the call that was accepted.
    pub epoch: u64,
    /// True times, in nanoseconds since the beginning.
    pub accepted_at: u64,
    pub start_at: u64,
    /// What it comes to if nothing stops it.
    pub whole: Tally,
    /// What it came to, once it had ended.
    pub ended: Option<Tally>,
}

/// The truth of one run.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By attempt and shard.
    pub started: BTreeMap<(u32, u32), Started>,
    /// The start instants that were written to status, by attempt.
    pub recorded: BTreeMap<u64, String>,
    /// The highest epoch in status.
    pub epoch: u64,
    /// The epoch under which shards were let go.
    pub released: Option<u64>,
    /// Writes to the API server that changed something, and events.
    pub writes: u64,
    /// Calls that shards answered.
    pub calls: u64,
}
