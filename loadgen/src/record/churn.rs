//! Counts of connections that were made and closed while measuring.

use redisbench_wire::histogram::{EncodedHistogram, HistogramError};
use redisbench_wire::snapshot::Churn;

use super::counts::{RequestCounts, add_optional};

/// Counts of connections that were made and closed while measuring.
#[derive(Clone, Debug)]
pub struct ChurnCounts {
    made: u64,
    closed: u64,
    connect: RequestCounts,
    tls_handshake: Option<RequestCounts>,
}

impl Default for ChurnCounts {
    fn default() -> Self {
        Self { made: 0, closed: 0, connect: RequestCounts::new(), tls_handshake: None }
    }
}

impl ChurnCounts {
    /// Counts a connection that is ready after `connect` nanoseconds, `tls_handshake` of them for a TLS handshake.
    pub fn made(&mut self, connect: u64, tls_handshake: Option<u64>) {
        self.made += 1;
        self.connect.record(connect, 1);
        if let Some(handshake) = tls_handshake {
            self.tls_handshake.get_or_insert_with(RequestCounts::new).record(handshake, 1);
        }
    }

    /// Counts a connection that was closed at the end of its lifetime.
    pub fn closed(&mut self) {
        self.closed += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.made += other.made;
        self.closed += other.closed;
        self.connect.add(&other.connect);
        add_optional(&mut self.tls_handshake, other.tls_handshake.as_ref());
    }

    pub(super) fn encode(&self) -> Result<Churn, HistogramError> {
        let encode = |counts: &RequestCounts| EncodedHistogram::encode(&counts.histogram());
        Ok(Churn {
            made: self.made,
            closed: self.closed,
            connect: encode(&self.connect)?,
            tls_handshake: self.tls_handshake.as_ref().map(encode).transpose()?,
        })
    }
}
