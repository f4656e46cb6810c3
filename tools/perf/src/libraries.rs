//! Whether comparisons of client libraries can be trusted, and what they say.

mod compared;
mod comparison;
mod itself;
mod local;
mod page;
mod plain;

pub use compared::compare;
pub use itself::{Options, against_itself};
