//! Verifies the target's replies: their types, and whether values are those that were written. Performs no I/O; `docs/load.md` defines the
//! categories.
//!
//! Runs only if the plan asks for it.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// As expected.
    Fine,
    /// Cannot be decided.
    Indeterminate,
    /// Acknowledged writes are lost.
    Lost { writes: u64 },
    /// The key is missing.
    LostKey,
    /// A value that no client wrote.
    Corrupt,
    /// A counter that is too high.
    TooHigh,
}
