//! What was measured: how a trial ended, and what all of its shards counted, merged.

pub mod latencies;
pub mod merge;
mod outcome;
pub mod seconds;
pub mod threshold;
pub mod topology;

pub use outcome::{Cleanup, Ending, Failure, Outcome, ShardClock, ShardOutcome, reason};
