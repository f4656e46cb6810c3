//! Connections made while measuring, of loads whose connections have a lifetime.

use serde::{Deserialize, Serialize};

use crate::histogram::EncodedHistogram;

/// Connections made while measuring. `H` is the form of the histograms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Churn<H = EncodedHistogram> {
    /// Connections that became ready.
    pub made: u64,
    /// Connections closed at the end of their lifetime.
    pub closed: u64,
    /// From the begin of a connection until it was ready, TLS and first commands included. Its count is `made`.
    pub connect: H,
    /// TLS handshakes, of connections that became ready. None without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_handshake: Option<H>,
}
