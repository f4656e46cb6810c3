//! Requests by outcome.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::fields::is_zero;

/// Requests by outcome: scheduled = succeeded + errors + unsent (+ inFlight + unknown).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// Requests whose slot in the schedule came.
    pub scheduled: u64,
    /// Requests answered without an error.
    pub succeeded: u64,
    /// Requests that ended in an error of any kind.
    pub errors: u64,
    /// Requests that were never sent, such as those that waited longer than `unsentAfter` for room in a pipeline.
    pub unsent: u64,
    /// Unsent requests that waited longer than `unsentAfter` for a connection to their server.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent_not_connected: u64,
    /// Unsent requests that had waited for less than `unsentAfter` at the end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent_at_end: u64,
    /// Requests without a reply at an abort, or at the last contact with a lost shard.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: u64,
    /// Requests that a lost shard would have sent after the last contact.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Errors without a reply: timeouts and broken connections.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Requests sent more than 1 ms after their due time.
    pub late: u64,
    /// Requests that the cluster redirected at least once.
    pub redirected: u64,
    /// Redirects received: commands that one node refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redirect_hops: u64,
    /// TRYAGAIN, CLUSTERDOWN and LOADING replies, each followed by a pause and a resend until the request's timeout.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deferral_hops: u64,
    /// CLUSTERDOWN replies in `deferralHops`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cluster_down_hops: u64,
    /// LOADING replies in `deferralHops`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loading_hops: u64,
    /// Commands in successful transactions, without MULTI, EXEC and WAIT.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commands: u64,
    /// Successes with fewer replicas than `workload.wait.replicas`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub under_replicated: u64,
    /// Keys written after a read missed them, beside requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fills: u64,
    /// Failed writes of keys that a read missed, beside requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fill_errors: u64,
    /// Successes after more than 600 s, which no histogram holds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overflow: u64,
}

/// Requests of a trial by outcome. Its artifact has details.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialRequests {
    /// Requests whose slot in the schedule came.
    pub scheduled: u64,
    /// Requests answered without an error.
    pub succeeded: u64,
    /// Requests that ended in an error of any kind.
    pub errors: u64,
    /// Requests that were never sent.
    pub unsent: u64,
    /// Requests without a reply at an abort, or at the last contact with a lost shard.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: u64,
    /// Requests that a lost shard would have sent after the last contact.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
}

impl From<&Requests> for TrialRequests {
    fn from(all: &Requests) -> Self {
        let Requests { scheduled, succeeded, errors, unsent, in_flight, unknown, .. } = *all;
        Self { scheduled, succeeded, errors, unsent, in_flight, unknown }
    }
}
