//! The connections as a load sees them.

use redisbench_wire::snapshot::Sending;

/// The view that a load has of the connections that carry its requests.
pub(super) trait Links {
    /// Connections to servers of the target.
    fn usable(&self) -> usize;

    /// Ready connections times nanoseconds, up to `now`.
    fn ready_time(&self, now: u64) -> u128;

    /// Limits on sending over the last `elapsed` nanoseconds, from the sampled connections.
    fn sending(&self, elapsed: u64) -> Sending;
}
