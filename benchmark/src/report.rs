//! How a status is put together from what a conductor says. Pure, and the same wherever the shards run.

pub mod apart;
pub mod comparison;
pub mod conditions;
mod ending;
pub mod export;
mod finished;
mod live;
pub mod repeats;
mod room;
mod search;
mod spread;
mod stages;
pub mod thresholds;
mod trials;
mod verification;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use crate::api::RedisBenchmarkSpec;
use crate::api::status::TrialStatus;
pub use finished::Finished;
pub use trials::{without_artifacts, worst};

/// The most bytes of a status, as JSON.
pub const STATUS_BYTES: usize = 64 << 10;

/// What a status speaks of, and when.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What the user wants.
    pub spec: &'a RedisBenchmarkSpec,
    /// How many shards the trial has that it speaks of.
    pub shards: u32,
    /// The spec's generation.
    pub generation: Option<i64>,
    /// The time of the report.
    pub now: Timestamp,
}

/// The trial at `index` of `of` as a status has it: the start instant to the microsecond.
pub fn trial(index: u32, of: u32, attempt: u32, start_at_unix_nanoseconds: Option<u64>) -> TrialStatus {
    let start_at = start_at_unix_nanoseconds
        .and_then(|nanoseconds| Timestamp::from_microsecond(i64::try_from(nanoseconds / 1_000).ok()?).ok())
        .map(MicroTime);
    TrialStatus { index, of: of.max(1), attempt, start_at, setting: None }
}
