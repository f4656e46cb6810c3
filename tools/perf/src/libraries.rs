//! Whether comparisons of client libraries can be trusted.

mod comparison;
mod itself;
mod local;
mod page;

pub use itself::{Options, against_itself};
