//! Results of a trial: how it ended, and the merged counts of all its shards.

pub mod judged;
pub mod latencies;
pub mod measured;
mod memory;
pub mod merge;
mod outcome;
pub mod parts;
pub mod seconds;
pub mod threshold;
pub mod topology;

pub use memory::{Kept, Reader, ResultMemory};
pub use outcome::{Cleanup, Ending, Failure, Outcome, ShardClock, ShardEvidence, reason};
