//! What several trials together say: the summary of repeats, the comparison of targets, the search for the highest rate, whether
//! a throughput or a latency is steady, and whether a backlog grows. And of one: how far a quantile can be trusted. Everything here is a pure
//! function of numbers: no clock, no input or output, and chance only
//! from a seed.

pub mod backlog;
pub mod comparison;
#[cfg(test)]
mod noise;
pub mod ranks;
pub mod search;
pub mod steady;
pub mod student;
pub mod summary;

pub use student::Confidence;
pub use summary::{Direction, Interval, Summary, summarize};
