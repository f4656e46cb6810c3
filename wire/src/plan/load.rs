//! The generation of requests, and the end of the load.

use serde::{Deserialize, Serialize};

/// The refill of a connection's pipeline in a closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PipelineMode {
    /// Sends the next request after each reply.
    #[default]
    Window,
    /// Sends the next `pipeline` requests once all previous ones were answered.
    Batch,
}

/// The time after which a connection is closed and made again while a load runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifetime {
    /// The length of a connection's life.
    pub limit: LifetimeLimit,
    /// The distribution of the ends of the first lives.
    pub spread: LifetimeSpread,
}

/// The length of a connection's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum LifetimeLimit {
    /// A number of requests.
    Requests {
        /// At least 1.
        count: u32,
    },
    /// A time.
    Duration {
        /// At least 1.
        nanoseconds: u64,
    },
}

/// The distribution of the ends of connections' lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LifetimeSpread {
    /// The first life of each connection has another length, so that a shard's connections end evenly over a lifetime.
    #[default]
    Even,
    /// All first lives have the full length, and end together.
    Together,
}

/// The generation of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Load {
    /// Each connection keeps `pipeline` requests in flight.
    ClosedLoop,
    /// Requests have due times that do not depend on earlier replies. Worker w of W in shard i of N takes the local numbers j with j mod W
    /// = w, each of which is request k = j*N + i. [`crate::rate`] computes its due time. So does each of several
    /// [streams](super::TrialPlan::streams).
    OpenLoop {
        /// Requests per second of the whole benchmark, without operations that have rates of their own. 0 if all have. With stages, the
        /// rate of the warm-up.
        rate_per_second: u64,
        /// This rate after the warm-up, one stage after the other.
        stages: Vec<RateStage>,
        /// The distribution of requests in time.
        arrival: Arrival,
        /// Due times are rounded up to this grid; 0 is exact.
        pacing_grid_nanoseconds: u64,
        /// A request that could not be sent within this time after its due time counts as unsent.
        unsent_after_nanoseconds: u64,
    },
    /// An open loop with the due times of the plan's recording.
    Recorded {
        /// Its speed in millionths of the recorded one, at least 1.
        pace_millionths: u32,
        /// As in an open loop at a rate.
        pacing_grid_nanoseconds: u64,
        /// As in an open loop at a rate.
        unsent_after_nanoseconds: u64,
    },
}

/// A part of the measurement in which the rate changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateStage {
    /// Its length.
    pub nanoseconds: u64,
    /// Requests per second of the whole benchmark at its beginning.
    pub from_per_second: u64,
    /// Requests per second of the whole benchmark at its end.
    pub to_per_second: u64,
}

/// Distribution of due times in an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Arrival {
    /// Evenly.
    #[default]
    Constant,
    /// Like independent clients: each worker has a Poisson process of its own, at its share of the rate.
    Poisson,
}

/// The end of the measurement.
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
        /// Their number, at least one for each shard.
        count: u64,
        /// The longest time that this may take. Requests not sent by then are not scheduled.
        max_nanoseconds: u64,
    },
}

impl Bound {
    /// The longest measurement.
    pub fn longest_nanoseconds(self) -> u64 {
        match self {
            Self::Duration { nanoseconds: longest } | Self::Requests { max_nanoseconds: longest, .. } => longest,
        }
    }
}
