//! A short second load with half of the connections, after a trial whose limiting factor is unclear. It never exceeds the load
//! that was asked for, and is in no number of the trial.

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::snapshot::Tally;

/// The body of `PUT /v1/trials/{t}/probe`. The first instant accepted for an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeRequest {
    /// The conductor's epoch.
    pub epoch: u64,
    /// The attempt that was measured, from 1.
    pub attempt: u32,
    /// When the probe begins, in nanoseconds after the start instant of that attempt: the same for all shards.
    pub after_nanoseconds: u64,
}

/// The answer to `PUT /v1/trials/{t}/probe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeState {
    /// When it begins or began, as in the request that was accepted.
    #[serde(deserialize_with = "bounded::instant")]
    pub after_nanoseconds: u64,
    /// Nothing more comes of it.
    pub over: bool,
    /// What came of it; none also if it could not be run as it should.
    pub probe: Option<Probe>,
}

/// What half of the connections made of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Requests that its connections held at most.
    pub room: u64,
    /// Requests that those of the trial did.
    pub of_room: u64,
    /// How long it measured.
    pub nanoseconds: u64,
    /// Requests that succeeded in that time.
    pub succeeded: u64,
    /// Their mean service time, from the send to the reply.
    pub mean_nanoseconds: u64,
    /// All its requests, those of its warm-up included.
    pub tally: Tally,
}

impl Probe {
    /// The warm-up of a closed loop, which counts apart. An open loop has none: its backlog of the warm-up would go before the
    /// measured requests.
    pub const WARMUP_NANOSECONDS: u64 = 500_000_000;
}
