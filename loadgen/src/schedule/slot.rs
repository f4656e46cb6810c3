//! One slot of the schedule.

/// One slot of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The request.
    pub k: u64,
    /// Its due time, on the clock of the start.
    pub due: u64,
}
