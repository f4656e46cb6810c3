//! Why a plan's workload cannot be run.

use super::digits::DIGITS;

/// Why a plan's workload cannot be run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// No operation has a weight.
    #[error("workload.operations has no operation with a weight above 0")]
    NoOperations,
    /// A command without a name.
    #[error("workload.operations {0:?} has an empty command")]
    EmptyCommand(String),
    /// No keys, or more keys than numbers.
    #[error("workload.keys: start {start} and count {count} must give 1 to 2^64 - 1 numbers")]
    Keys { start: u64, count: u64 },
    /// Too much padding.
    #[error("workload.keys.width is {0}, but may be at most {DIGITS}")]
    Width(u32),
    /// An invalid key distribution.
    #[error("workload.keys.pattern: {0}")]
    Pattern(&'static str),
    /// Invalid lengths of values.
    #[error("workload.values.size has no length with a weight above 0, or a range that ends before its start")]
    Sizes,
    /// No shard has read the file of values.
    #[error("workload.values.content is Lines, but the plan has no lines")]
    Lines,
    /// Fewer lines than keys, or none read.
    #[error("workload.keyFile: keys without tags need {needed} lines, and the plan has fewer")]
    KeyFile { needed: u64 },
    /// No shard has read the recording.
    #[error("the plan has a trace without recorded commands")]
    Trace,
    /// An invalid range of numbers.
    #[error("workload.operations: numbers from {least} to {most} are empty, more than 2^64, or wider than their width")]
    Integer { least: i64, most: i64 },
}
