//! What is checked of the target's answers: their types, and whether values are what was written. Without input or
//! output; `docs/load.md` defines what counts as what.
//!
//! Nothing here runs unless the plan asks for it.
#![forbid(unsafe_code)]
#![allow(clippy::cast_possible_truncation, reason = "keys, arguments and findings are bounded by the plan's check")]

mod counted;
mod expect;
mod own;
mod reply;
mod stamp;
mod verifier;
mod written;

pub use own::own_workload;
pub use reply::Seen;
pub use verifier::{Begin, Moment, Verifier};

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// As it should be.
    Fine,
    /// Nobody can say.
    Indeterminate,
    /// Acknowledged writes are gone.
    Lost {
        /// How many.
        writes: u64,
    },
    /// The key is gone.
    LostKey,
    /// Nobody wrote this.
    Corrupt,
    /// A count that is too high.
    TooHigh,
}
