//! How requests come about, and when no more do.

use serde::{Deserialize, Serialize};

/// How a connection of a closed loop goes on after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PipelineMode {
    /// With the next request.
    Window,
    /// With the next `pipeline` requests, when as many were answered.
    Batch,
}

/// How requests come about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Load {
    /// Each connection keeps `pipeline` requests in flight.
    ClosedLoop,
    /// Requests have due times, whether or not earlier ones were answered. Worker w of W in shard i of N takes the
    /// local j with j mod W = w, which is request k = j*N + i. When it is due, [`crate::rate`] says.
    OpenLoop {
        /// Requests per second of the whole benchmark: throughout, or with stages during the warm-up.
        rate_per_second: u64,
        /// The rate from the end of the warm-up on, a stage after the other.
        stages: Vec<RateStage>,
        /// How requests are spread at that rate.
        arrival: Arrival,
        /// Due times are rounded up to this grid; 0 is exact.
        pacing_grid_nanoseconds: u64,
        /// A request that could not be sent this long after its due time is counted as unsent.
        unsent_after_nanoseconds: u64,
    },
}

/// A part of the measurement in which the rate goes from one to another in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateStage {
    /// Its length.
    pub nanoseconds: u64,
    /// Requests per second of the whole benchmark at its beginning.
    pub from_per_second: u64,
    /// The same at its end.
    pub to_per_second: u64,
}

/// How the requests of an open loop are spread in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrival {
    /// Evenly.
    Constant,
    /// As those of independent callers: each worker has a Poisson process of its own, of its part of the rate.
    Poisson,
}

/// What ends the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Bound {
    /// A time after the warm-up.
    Duration {
        /// Its length.
        nanoseconds: u64,
    },
    /// A number of requests after the warm-up.
    Requests {
        /// This shard's share.
        count: u64,
        /// The longest that this may take; what is not sent by then is not scheduled.
        max_nanoseconds: u64,
    },
}
