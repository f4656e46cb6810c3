//! A worker's observations of itself.

use redisbench_wire::snapshot::Sending;

/// A worker's observations of itself while its load was sending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Requests in flight times nanoseconds, in a closed loop.
    pub in_flight: u128,
    /// Requests that its ready connections had room for, times nanoseconds.
    pub room: u128,
    /// Limits on sending, from the sampled connections.
    pub sending: Sending,
}
