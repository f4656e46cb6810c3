//! Sets of requests, merged over shards.

use hdrhistogram::Histogram;
use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::{Cache, Churn, NodeTally, Tally};

/// Name for everything beyond the bound of nodes or error kinds.
pub(crate) const OTHER: &str = "Other";

/// One set of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub tally: Tally,
    /// Requests that lost shards would have sent after their last snapshot; not in the tally. 0 for parts of the total.
    pub unknown: u64,
    /// Of succeeded requests.
    pub response: Histogram<u64>,
    /// Of succeeded requests; none in a closed loop.
    pub service: Option<Histogram<u64>>,
    /// Response time of requests that were answered with an error.
    pub error_replies: Option<Histogram<u64>>,
}

impl Default for Measured {
    fn default() -> Self {
        let response = Kind::Request.empty();
        Self { tally: Tally::default(), unknown: 0, response, service: None, error_replies: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct OperationMeasured {
    pub name: String,
    pub measured: Measured,
    /// Replies that were nil.
    pub nil_replies: u64,
}

/// One Redis node's answers.
pub type NodeMeasured = NodeTally<Histogram<u64>>;

/// Client-side caches of all shards.
pub type MergedCache = Cache<Histogram<u64>>;

/// Connections that all shards made while measuring.
pub type MergedChurn = Churn<Histogram<u64>>;
