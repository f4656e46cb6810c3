//! The true events, which the simulated processes cannot see: the base of the invariants.

use std::collections::BTreeMap;

use redisbench_testkit::counts::Counts;
use redisbench_wire::snapshot::Tally;

/// A trial and the attempt at it, in ascending order.
pub type Try = (u32, u32);

/// A load that began.
#[derive(Clone, Debug)]
pub struct Started {
    pub incarnation: String,
    /// The epoch of the accepted call.
    pub epoch: u64,
    /// The rate of all shards together; 0 in a closed loop.
    pub rate: u64,
    /// True times, in nanoseconds since the beginning.
    pub accepted_at: u64,
    pub start_at: u64,
    /// Its requests if it is not stopped.
    pub whole: Tally,
    /// A signal to its process stopped it.
    pub terminated: bool,
    /// Its requests once it had ended.
    pub ended: Option<Tally>,
}

/// The true events of one run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// By try and shard.
    pub started: BTreeMap<(Try, u32), Started>,
    /// The start instants recorded in the status, by trial and attempt.
    pub recorded: BTreeMap<(u64, u64), String>,
    /// The highest finished trial in the status. None before the first.
    pub over: Option<u64>,
    /// The highest epoch in the status.
    pub epoch: u64,
    /// The last epoch in the status in each trial.
    pub epochs: BTreeMap<u64, u64>,
    /// The number of panics of its conductors.
    pub panics: u64,
    /// The epoch under which shards were released.
    pub released: Option<u64>,
}

/// The true events of a world.
#[derive(Debug, Default)]
pub struct GroundTruth {
    runs: BTreeMap<String, Run>,
    /// Writes to the API server that changed something, and events.
    pub writes: u64,
    pub calls: u64,
    /// The numbers of noteworthy events.
    pub events: Counts,
}

impl Run {
    /// Loads that began in `attempt`.
    pub fn of_try(&self, attempt: Try) -> impl Iterator<Item = &Started> {
        self.started.range((attempt, 0)..=(attempt, u32::MAX)).map(|(_, started)| started)
    }
}

impl GroundTruth {
    /// The run with this runId.
    pub fn run(&mut self, id: &str) -> &mut Run {
        self.runs.entry(id.to_owned()).or_default()
    }

    pub fn count(&mut self, event: impl Into<String>) {
        self.events.add(event, 1);
    }
}
