//! Results of each stage of a load, from the merged seconds of all shards.

use redisbench_wire::plan::Load;
use redisbench_wire::rate::CumulativeRate;
use redisbench_wire::timeline;

use crate::api::Validated;
use crate::api::load::RampSpec;
use crate::api::status::{Latencies, StageResult, TrialRequests};
use crate::measurement::Outcome;
use crate::{measurement::latencies, measurement::merge, measurement::seconds};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// Results of all stages with a whole second in the common window; empty for fewer than two stages.
///
/// A span counts for a stage only if it overlaps no other: seconds with a border between two stages cannot be split. Requests of the
/// warm-up are counted separately in every span, and all measured requests after the end belong to the last stage.
pub(super) fn results(spec: &Validated, outcome: &Outcome) -> Vec<StageResult> {
    let Load::OpenLoop { stages, .. } = &spec.plan.load else { return Vec::new() };
    if stages.len() < 2 {
        return Vec::new();
    }
    let Some(rate) = CumulativeRate::of(&spec.plan) else { return Vec::new() };
    let window = merge::completed_window(outcome);
    let mut end = spec.plan.warmup_nanoseconds;
    let mut results = Vec::with_capacity(stages.len());
    for (index, (stage, name)) in (0..).zip(stages.iter().zip(&spec.stage_names)) {
        let begin = end;
        end = begin.saturating_add(stage.nanoseconds);
        let measured = begin.max(window.start)..end.min(window.end);
        let Some((whole, counted)) = merge::whole_seconds(&outcome.timeline, measured) else { continue };
        // Before the first stage, and after the one in which the load ended, there is no other stage.
        let from = if index == 0 { 0 } else { begin };
        let to = if end >= window.end { u64::MAX } else { end };
        let own = outcome.timeline.iter().filter(|span| {
            from <= u64::from(span.second) * SECOND && u64::from(span.end()).saturating_mul(SECOND) <= to
        });
        let all = seconds::measured(own.flat_map(|span| &span.parts));
        let succeeded = whole.iter().map(|span| span.counts().succeeded).fold(0, u64::saturating_add);
        let length = u64::from(counted.end - counted.start) * SECOND;
        let asked = spec.percentiles.as_slice();
        results.push(StageResult {
            index,
            name: name.clone(),
            from_milliseconds: begin / MILLISECOND,
            to_milliseconds: end / MILLISECOND,
            rate: RampSpec { from: stage.from_per_second, to: stage.to_per_second },
            seconds: counted.end - counted.start,
            target_per_second: rate.mean_per_second(u64::from(counted.start) * SECOND, u64::from(counted.end) * SECOND),
            achieved_per_second: merge::per_second(succeeded, length),
            requests: TrialRequests {
                scheduled: all.tally.scheduled,
                succeeded: all.tally.succeeded,
                errors: all.tally.errors,
                unsent: all.tally.unsent,
                in_flight: 0,
                unknown: 0,
            },
            response_time: lowered(latencies::response_time(&all, asked)),
            service_time: all.service.as_ref().map(|service| lowered(latencies::plain(service, asked))),
        });
    }
    results
}

/// Rounds the lower ends of intervals down to the beginning of their buckets: only upper ends may be rounded up.
fn lowered(mut latencies: Latencies) -> Latencies {
    for low in latencies.percentiles.iter_mut().filter_map(|percentile| percentile.low_nanoseconds.as_mut()) {
        *low = timeline::lowest_in(timeline::bucket(*low));
    }
    latencies
}

#[cfg(test)]
mod tests;
