//! What is known of a run that is over: all that a judgement needs.

use std::time::Duration;

use serde_json::Value;

use crate::fault::Fault;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
    /// It had not ended when it had to, and was killed.
    Hung,
}

/// A fault that came to pass.
#[derive(Clone, Copy, Debug)]
pub struct Strike {
    pub fault: Fault,
    /// Since the program's start.
    pub after: Duration,
    /// The time of day, in nanoseconds since the Unix epoch.
    pub at: u64,
    /// The same, when it was undone; none if it was not, or needs no undoing.
    pub undone: Option<u64>,
    /// Whether there was still something to be struck.
    pub hit: bool,
}

/// How often the servers have executed the commands of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    pub at_least: u64,
    /// None if a server died with its count, or could not be asked.
    pub at_most: Option<u64>,
}

/// All that is known.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub ended: Ended,
    pub took: Duration,
    /// What it printed on standard output, if it is JSON.
    pub object: Option<Value>,
    pub stdout: String,
    pub stderr: String,
    /// Of the shards.
    pub logs: Vec<String>,
    /// None without servers of the soak's own.
    pub calls: Option<Calls>,
    pub peak_kib: u64,
    pub left_processes: Vec<String>,
    pub left_files: Vec<String>,
    pub left_ports: Vec<u16>,
    pub strikes: Vec<Strike>,
}

impl Evidence {
    /// Faults that hit something.
    pub fn hits(&self) -> impl Iterator<Item = &Strike> + Clone {
        self.strikes.iter().filter(|strike| strike.hit)
    }
}
