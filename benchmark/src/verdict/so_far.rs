//! Reasons that the counts of a running measurement already give. The others need the whole measurement.

use std::time::Duration;

use redisbench_wire::snapshot::Tally;
use redisbench_wire::topology::Outage;

use super::thresholds::{BUSY, WAITING};
use super::{errors, reason, servers, start_skew};
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::human;
use crate::measurement::topology::MergedTopology;

/// Requests before shares of processor time are judged: until then, the start of a worker decides them.
const REQUIRED: u64 = 1_000;

/// What a running measurement has counted.
#[derive(Debug)]
pub(crate) struct SoFar<'a> {
    pub tally: &'a Tally,
    /// The kind of the most frequent errors.
    pub most_frequent: Option<&'a str>,
    pub topology: &'a MergedTopology,
    /// Shards of the trial.
    pub shards: usize,
    pub lost: usize,
    pub start_skew: Option<Duration>,
    pub max_start_skew: Duration,
    /// CPU time of the busiest worker and run-queue wait of the longest waiting one, of each shard, in millionths of the wall time.
    pub processors: Vec<(u32, u32)>,
}

/// In the order of [`super::verdict`].
pub(crate) fn so_far(counted: &SoFar) -> Vec<VerdictReason> {
    let reasons = [
        lost(counted),
        start_skew(counted.max_start_skew, counted.start_skew, counted.topology),
        errors(counted.tally, 0, counted.most_frequent.map(str::to_owned)),
        unavailable(counted.topology),
        servers::topology_changed(counted.topology, u64::MAX),
        processors(counted),
    ];
    reasons.into_iter().flatten().collect()
}

fn lost(counted: &SoFar) -> Option<VerdictReason> {
    let message = format!("{} of {} shards are lost, with their measurements", counted.lost, counted.shards);
    (counted.lost > 0).then(|| reason(ReasonKind::ShardLost, VerdictValue::Invalid, &message))
}

fn unavailable(topology: &MergedTopology) -> Option<VerdictReason> {
    let longest = topology.outages_within(u64::MAX).max_by_key(Outage::nanoseconds)?;
    let message =
        format!("no replies for {} from {}; see status.topology", human::latency(longest.nanoseconds()), longest.node);
    Some(reason(ReasonKind::Unavailable, VerdictValue::Degraded, &message))
}

fn processors(counted: &SoFar) -> Option<VerdictReason> {
    let lacking = |(busy, waiting): &&(u32, u32)| u64::from(*busy) >= BUSY || u64::from(*waiting) > WAITING;
    let lacking: Vec<_> = counted.processors.iter().filter(lacking).collect();
    if lacking.is_empty() || counted.tally.scheduled < REQUIRED {
        return None;
    }
    let percent = |share: fn(&(u32, u32)) -> u32| lacking.iter().map(|shard| share(shard)).max().unwrap_or(0) / 10_000;
    let message = format!(
        "{} of {} shards lack processor time so far: a worker ran for up to {} % of the time, and waited for a processor \
         for up to {} %",
        lacking.len(),
        counted.shards,
        percent(|(busy, _)| *busy),
        percent(|(_, waiting)| *waiting)
    );
    Some(reason(ReasonKind::GeneratorCPU, VerdictValue::Degraded, &message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reasons of 100,000 requests on two shards, `failed` of which failed, with these shares of processor time of one shard.
    fn reasons(scheduled: u64, failed: u64, lost: usize, skew: u64, processors: (u32, u32)) -> Vec<ReasonKind> {
        let tally = Tally { scheduled, succeeded: scheduled - failed, errors: failed, ..Tally::default() };
        let counted = SoFar {
            tally: &tally,
            most_frequent: Some("Timeout"),
            topology: &MergedTopology::default(),
            shards: 2,
            lost,
            start_skew: Some(Duration::from_millis(skew)),
            max_start_skew: Duration::from_millis(10),
            processors: vec![(500_000, 0), processors],
        };
        so_far(&counted).into_iter().map(|reason| reason.reason).collect()
    }

    #[test]
    fn a_run_gives_no_reason_until_there_is_one() {
        assert_eq!(reasons(100_000, 0, 0, 1, (900_000, 100_000)), []);
        assert_eq!(reasons(100_000, 0, 1, 1, (0, 0)), [ReasonKind::ShardLost]);
        assert_eq!(reasons(100_000, 0, 0, 1_000, (0, 0)), [ReasonKind::StartSkew]);
        assert_eq!(reasons(100_000, 11, 0, 1, (0, 0)), [ReasonKind::Errors]);
        assert_eq!(reasons(100_000, 0, 0, 1, (960_000, 0)), [ReasonKind::GeneratorCPU]);
        assert_eq!(reasons(100_000, 0, 0, 1, (0, 300_000)), [ReasonKind::GeneratorCPU]);
        assert_eq!(reasons(999, 0, 0, 1, (1_000_000, 0)), [], "the start of a worker decides its share");
    }
}
