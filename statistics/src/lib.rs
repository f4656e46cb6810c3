//! Statistics of trials: the summary of repeats, the comparison of targets, the search for the highest rate, drift of throughput and
//! latency, backlog growth, and confidence intervals of quantiles and shares. Everything is a pure function of numbers: no clock, no I/O, and
//! randomness only from a seed.

pub mod backlog;
pub mod comparison;
#[cfg(test)]
mod noise;
pub mod ranks;
pub mod search;
pub mod share;
pub mod steady;
pub mod student;
pub mod summary;

pub use student::Confidence;
pub use summary::{Direction, Interval, Summary, summarize};
