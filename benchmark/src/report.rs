//! Builds a status from a conductor's progress and outcome. Pure, and the same wherever the shards run.

pub mod comparison;
pub mod conditions;
mod ending;
mod extras;
mod finished;
pub mod historical;
mod live;
pub mod measurement;
pub mod repeats;
mod search;
mod size_budget;
mod spread;
mod stages;
pub mod thresholds;
mod trials;
mod verification;
mod why;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use crate::api::RedisBenchmarkSpec;
use crate::api::status::TrialStatus;
pub use finished::Finished;
pub use measurement::Measurement;
pub use trials::{doubtful, without_artifacts, worst};

/// Maximum bytes of a status, as JSON.
pub const STATUS_BYTES: usize = 64 << 10;

/// Input of a report besides the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub spec: &'a RedisBenchmarkSpec,
    /// Number of shards of the reported trial.
    pub shards: u32,
    pub generation: Option<i64>,
    pub now: Timestamp,
}

/// The trial at `index` of `of` in its form for the status, with the start instant in microseconds.
pub fn trial(index: u32, of: u32, attempt: u32, start_at_unix_nanoseconds: Option<u64>) -> TrialStatus {
    let start_at = start_at_unix_nanoseconds
        .and_then(|nanoseconds| Timestamp::from_microsecond(i64::try_from(nanoseconds / 1_000).ok()?).ok())
        .map(MicroTime);
    TrialStatus { index, of: of.max(1), attempt, start_at, setting: None }
}
