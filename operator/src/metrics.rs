//! Prometheus metrics: their names, their values for the operator itself and for a trial, and the forms of a scrape.
//!
//! Counters of a benchmark have the label `trial`, so a new trial begins new series, and `rate()` never takes its first requests for a
//! counter that was reset. They stay at their last value after the trial.

pub mod buckets;
pub mod catalogue;
#[cfg(test)]
mod documents;
pub mod format;
mod operator;
pub mod page;
mod protobuf;
mod records;
mod text;
pub mod trial;

pub use operator::OperatorMetrics;
pub use records::Records;
pub use trial::{Setting, TrialSample, error_kinds};
