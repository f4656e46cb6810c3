//! The ends of a shard.

use redisbench_wire::FailureReason;
use redisbench_wire::exit::{ABANDONED, INTERNAL, REFUSED, RELEASED, STOPPED};

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
