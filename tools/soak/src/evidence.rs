//! The evidence from a finished run, for its judgement.

use std::time::Duration;

use serde_json::Value;

use crate::fault::Fault;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
    /// It exceeded its time limit, and was killed.
    #[default]
    Hung,
}

#[derive(Clone, Copy, Debug)]
pub struct Injection {
    pub fault: Fault,
    /// Time since the program's start.
    pub after: Duration,
    /// The time of day, in nanoseconds since the Unix epoch.
    pub at: u64,
    /// The time at which it was undone, in the same unit. None if it was not, or if there was nothing to undo.
    pub undone: Option<u64>,
    /// True if its target still existed.
    pub hit: bool,
}

/// The servers' counts of the load's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    pub at_least: u64,
    /// None if a server died with its count, or did not reply.
    pub at_most: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub ended: Ended,
    pub took: Duration,
    /// The program's standard output, if it is JSON.
    pub object: Option<Value>,
    pub stdout: String,
    pub stderr: String,
    pub logs: Vec<String>,
    /// None without the soak's own servers.
    pub calls: Option<Calls>,
    pub peak_kib: u64,
    pub left_processes: Vec<String>,
    pub left_files: Vec<String>,
    pub left_ports: Vec<u16>,
    pub injections: Vec<Injection>,
}

impl Evidence {
    /// Faults with an existing target.
    pub fn hits(&self) -> impl Iterator<Item = &Injection> + Clone {
        self.injections.iter().filter(|injection| injection.hit)
    }
}
