//! Counts of requests by outcome.

use serde::{Deserialize, Serialize};

/// Counts of requests by outcome. `scheduled = succeeded + errors + unsent + in_flight`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Requests whose due time has come.
    pub scheduled: u64,
    /// Answered without an error.
    pub succeeded: u64,
    /// Ended in an error of any kind.
    pub errors: u64,
    /// Never sent. The rest beyond the next two counts missed the deadline for lack of room in a connection's pipeline.
    pub unsent: u64,
    /// Unsent requests that missed the deadline while there was no connection to their server.
    pub unsent_not_connected: u64,
    /// Unsent requests whose deadline had not passed when the load ended.
    pub unsent_at_end: u64,
    /// Waiting to be sent or for a reply. 0 once Done, unless aborted.
    pub in_flight: u64,
    /// Errors without a reply: timeouts and broken connections. Their latency is unknown.
    pub unanswered: u64,
    /// Sent more than a millisecond after the due time.
    pub late: u64,
    /// Redirected at least once.
    pub redirected: u64,
    /// Redirects received: each is a command that a server rejected.
    pub redirect_hops: u64,
    /// TRYAGAIN, CLUSTERDOWN and LOADING replies received.
    pub deferral_hops: u64,
    /// CLUSTERDOWN replies among these.
    #[serde(default)]
    pub cluster_down_hops: u64,
    /// LOADING replies among these.
    #[serde(default)]
    pub loading_hops: u64,
    /// Succeeded, but at the end of WAIT fewer replicas than requested had acknowledged.
    #[serde(default)]
    pub under_replicated: u64,
    /// Keys written after a read missed them. Not counted as requests.
    #[serde(default)]
    pub fills: u64,
    /// Failed writes of such keys. Not counted as requests.
    #[serde(default)]
    pub fill_errors: u64,
    /// Succeeded, but longer than the histogram's highest value.
    pub overflow: u64,
    /// The longest overflow, in nanoseconds.
    pub overflow_max_nanoseconds: u64,
    /// Bytes written to sockets.
    pub sent_bytes: u64,
    /// Bytes read from sockets.
    pub received_bytes: u64,
}

impl Tally {
    /// Adds `other`, count by count. Saturates: shards' counts are untrusted.
    pub fn add(&mut self, other: &Self) {
        for (sum, part) in [
            (&mut self.scheduled, other.scheduled),
            (&mut self.succeeded, other.succeeded),
            (&mut self.errors, other.errors),
            (&mut self.unsent, other.unsent),
            (&mut self.unsent_not_connected, other.unsent_not_connected),
            (&mut self.unsent_at_end, other.unsent_at_end),
            (&mut self.in_flight, other.in_flight),
            (&mut self.unanswered, other.unanswered),
            (&mut self.late, other.late),
            (&mut self.redirected, other.redirected),
            (&mut self.redirect_hops, other.redirect_hops),
            (&mut self.deferral_hops, other.deferral_hops),
            (&mut self.cluster_down_hops, other.cluster_down_hops),
            (&mut self.loading_hops, other.loading_hops),
            (&mut self.under_replicated, other.under_replicated),
            (&mut self.fills, other.fills),
            (&mut self.fill_errors, other.fill_errors),
            (&mut self.overflow, other.overflow),
            (&mut self.sent_bytes, other.sent_bytes),
            (&mut self.received_bytes, other.received_bytes),
        ] {
            *sum = sum.saturating_add(part);
        }
        self.overflow_max_nanoseconds = self.overflow_max_nanoseconds.max(other.overflow_max_nanoseconds);
    }

    /// True if every scheduled request has exactly one outcome or is in flight.
    pub fn balances(&self) -> bool {
        [self.succeeded, self.errors, self.unsent, self.in_flight]
            .into_iter()
            .try_fold(0_u64, u64::checked_add)
            .is_some_and(|outcomes| outcomes == self.scheduled)
    }
}
