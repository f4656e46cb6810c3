//! The result of one generator's run.

use super::drain::Drain;
use super::generators::{Generator, Reported};

#[derive(Debug)]
pub struct Run {
    pub generator: Generator,
    pub version: String,
    pub reported: Reported,
    /// The server's count.
    pub requests: u64,
    /// None if it has no rate.
    pub drain: Option<Drain>,
}
