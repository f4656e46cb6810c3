//! What several trials together say. Everything here is a pure function of numbers: no clock, no input or output.

pub mod student;
pub mod summary;

pub use student::Confidence;
pub use summary::{Direction, Interval, Summary, summarize};
