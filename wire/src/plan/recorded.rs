//! Recorded commands.

use std::fmt;
use std::sync::Arc;

use super::workload::Operation;

const SECOND: u64 = 1_000_000_000;

/// The commands of a recording, at least one. A clone shares them.
#[derive(Clone, PartialEq, Eq)]
pub struct Recorded {
    commands: Arc<[RecordedCommand]>,
    operations: Arc<[Operation]>,
    left_out: u64,
}

/// One command of a recording.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordedCommand {
    /// The time of its execution, counted from the first command.
    pub after_nanoseconds: u64,
    /// Its index in [`Recorded::operations`].
    pub operation: u16,
    /// Name and arguments.
    pub arguments: Vec<Vec<u8>>,
}

impl Recorded {
    /// The shard's name of the file.
    pub const FILE: &str = "trace";

    /// The most bytes of a file: those of a ConfigMap.
    pub const BYTES: u32 = 1 << 20;

    pub(super) fn new(commands: Vec<RecordedCommand>, operations: Vec<Operation>, left_out: u64) -> Self {
        Self { commands: commands.into(), operations: operations.into(), left_out }
    }

    /// All commands in their order.
    pub fn commands(&self) -> &[RecordedCommand] {
        &self.commands
    }

    /// One operation for each name of a command. It has as many arguments as the first of these commands, but not their text.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The number of lines without a command to send.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The beginning of a repetition, counted from the first command: a mean interval after the last one. A second if all have one time.
    pub fn period_nanoseconds(&self) -> u64 {
        let span = self.commands.last().map_or(0, |last| last.after_nanoseconds);
        let intervals = self.commands.len().saturating_sub(1) as u64;
        span.saturating_add(if span == 0 { SECOND } else { span.div_ceil(intervals.max(1)) })
    }
}

/// A plan in a log does not show the recording.
impl fmt::Debug for Recorded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} recorded commands", self.commands.len())
    }
}

/// The arguments may be secret.
impl fmt::Debug for RecordedCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "command of {} arguments after {} ns", self.arguments.len(), self.after_nanoseconds)
    }
}
