//! Sets of requests, merged over shards.

use hdrhistogram::Histogram;
use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::{CacheCounts, Tally};

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
#[derive(Clone, Debug, PartialEq)]
pub struct NodeMeasured {
    /// Its id in a cluster, otherwise its address.
    pub id: String,
    /// `host:port`.
    pub address: String,
    /// Slots that it owned at the end, or served reads for.
    pub slots: u32,
    /// Whether it was used only for reads, according to any shard.
    pub replica: bool,
    /// Requests whose last answer came from it.
    pub requests: u64,
    /// Failed ones among `requests`.
    pub errors: u64,
    /// Redirects that it replied.
    pub redirects: u64,
    /// Service time of successful requests.
    pub service: Histogram<u64>,
}

/// Client-side caches of all shards.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedCache {
    pub counts: CacheCounts,
    /// From the send of a write to the push that invalidated another connection's entry.
    pub invalidation: Histogram<u64>,
}

/// Connections that all shards made while measuring.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedChurn {
    pub made: u64,
    pub closed: u64,
    pub connect: Histogram<u64>,
    /// None without TLS.
    pub tls_handshake: Option<Histogram<u64>>,
}
