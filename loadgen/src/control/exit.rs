//! How a shard ends, and the exit codes that the Job's failure policy knows.

use redisbench_wire::FailureReason;

/// The result is safe with the conductor, or nobody wants it.
pub const RELEASED: u8 = 0;
/// Bad plan, credential or target: trying again without a change would fail again.
pub const REFUSED: u8 = 64;
/// A fault of the load generator itself.
pub const INTERNAL: u8 = 70;
/// Stopped before the result was collected: by a limit of the plan or by a signal. Another try may work.
pub const STOPPED: u8 = 75;

/// Why the process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The conductor released this shard.
    Released,
    /// The shard had failed; the conductor has read it, or had the time to.
    Failed(FailureReason),
    /// A limit was passed; the text says which.
    LimitPassed(&'static str),
    /// The process was asked to end by a signal.
    Terminated,
}

impl Exit {
    /// The process's exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Released => RELEASED,
            Self::Failed(FailureReason::Internal) => INTERNAL,
            Self::Failed(FailureReason::LimitPassed) | Self::LimitPassed(_) | Self::Terminated => STOPPED,
            Self::Failed(_) => REFUSED,
        }
    }

    /// Whether nobody has the counters but this process, so that they belong into the log.
    pub fn loses_counters(&self) -> bool {
        !matches!(self, Self::Released)
    }
}
