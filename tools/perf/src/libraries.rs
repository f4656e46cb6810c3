//! Measurements of comparisons of client libraries: their false differences, and their results.

mod compared;
mod itself;
mod page;
mod plain;

pub use compared::compare;
pub use itself::{Options, against_itself};
#[cfg(test)]
pub use page::PAGE;
