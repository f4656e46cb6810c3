//! The ends of a shard, and the exit codes that the Job's failure policy matches.

use redisbench_wire::FailureReason;

/// The conductor has the result or does not need it.
pub const RELEASED: u8 = 0;
/// Bad plan, credential or target: a retry without a change would fail again.
pub const REFUSED: u8 = 64;
/// A fault of the load generator itself.
pub const INTERNAL: u8 = 70;
/// Stopped by a limit or a signal before the result was collected. A retry may succeed.
pub const STOPPED: u8 = 75;
/// Stopped by a limit after a start. A replacement could not take part in the started trial, and would only wait.
pub const ABANDONED: u8 = 76;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    Released,
    /// The trial failed, and the conductor has read the failure or had time to.
    Failed(FailureReason),
    /// A limit was exceeded before a start; the text names it.
    LimitPassed(&'static str),
    /// A limit was exceeded after a start; the text names it.
    Abandoned(&'static str),
    /// A signal ended the process.
    Terminated,
}

impl Exit {
    pub fn code(&self) -> u8 {
        match self {
            Self::Released => RELEASED,
            Self::Failed(FailureReason::Internal) => INTERNAL,
            Self::Failed(FailureReason::LimitPassed) | Self::LimitPassed(_) | Self::Terminated => STOPPED,
            Self::Abandoned(_) => ABANDONED,
            Self::Failed(_) => REFUSED,
        }
    }
}
