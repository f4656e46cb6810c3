//! The probe: a short second load with half of the connections, after a trial whose limiting factor is unclear. It never exceeds the
//! requested load, and its numbers are not part of the trial's.

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::snapshot::Tally;

/// The answer to `PUT /v1/trials/{t}/probe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeState {
    /// Its beginning, as in the accepted request.
    #[serde(deserialize_with = "bounded::instant")]
    pub after_nanoseconds: u64,
    /// True if the probe has finished.
    pub over: bool,
    /// Its outcome. None also if it could not run as planned.
    pub probe: Option<Probe>,
}

/// The outcome of the load with half of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// The most requests in flight that its connections have room for.
    pub room: u64,
    /// The same for the connections of the trial.
    pub of_room: u64,
    /// The measured time.
    pub nanoseconds: u64,
    /// Requests that succeeded in that time.
    pub succeeded: u64,
    /// Their mean service time, from send to reply.
    pub mean_nanoseconds: u64,
    /// All its requests, including its warm-up.
    pub tally: Tally,
}

impl Probe {
    /// The warm-up of a closed loop, which is counted separately. An open loop has none, because its measured requests would queue behind
    /// the warm-up's backlog.
    pub const WARMUP_NANOSECONDS: u64 = 500_000_000;
}
