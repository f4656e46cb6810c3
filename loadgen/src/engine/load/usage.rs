//! The processor time of a load.

use crate::selfcheck::RunQueue;

/// Times of a thread, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub cpu: u64,
    /// Ready to run, without a processor.
    pub waited: u64,
}

impl Usage {
    pub(super) fn so_far(run_queue: &RunQueue) -> Self {
        Self { cpu: run_queue.ran_nanoseconds(), waited: run_queue.waited_nanoseconds() }
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self { cpu: self.cpu.saturating_sub(before.cpu), waited: self.waited.saturating_sub(before.waited) }
    }
}
