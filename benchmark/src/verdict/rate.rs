//! Judges whether an open loop's rate was met, and whether its backlog grew.

use std::ops::Range;
use std::time::Duration;

use redisbench_statistics::backlog::{self, Growth};
use redisbench_wire::plan::{Arrival, Load};
use redisbench_wire::rate::CumulativeRate;

use super::plateau::{self, Plateau};
use super::reason::reason;
use super::thresholds::{RATE_MET, WHOLE};
use crate::api::Validated;
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::human;
use crate::measurement::Outcome;
use crate::measurement::latencies;
use crate::measurement::measured::Measured;
use crate::measurement::merge::{Completions, Merged, completed_window, completions};

const SECOND: u64 = 1_000_000_000;

/// Returns whether nearly all due requests succeeded, and completed as fast as they were due. Both are needed: requests that wait in the
/// connections at the end of the load still succeed, and requests that fail may fail fast.
///
/// Poisson arrivals miss their mean by chance: a deficit within 5 standard deviations is not a miss. One deviation is the square root of
/// the expected number.
pub(crate) fn is_met(spec: &Validated, merged: &Merged) -> bool {
    let Some(due) = merged.throughput.due else { return false };
    have_succeeded(&merged.total) && reaches(merged.throughput.completed, due, chance(spec, due))
}

/// True if a recording asked for no more than there was. Its rate is unknown, but nearly all requests were sent at their due times and
/// succeeded. By Little's law, a mean response time of 1 % of the window means that 1 % of them were in flight on average, so no queue in
/// the connections hides that they were answered more slowly than they were due.
pub(super) fn has_kept_pace(spec: &Validated, outcome: &Outcome, merged: &Merged) -> bool {
    let tally = &merged.total.tally;
    let response = u128::from(latencies::round(merged.total.response.mean()));
    let in_flight =
        response * u128::from(WHOLE) <= u128::from(merged.throughput.window_nanoseconds) * u128::from(WHOLE - RATE_MET);
    matches!(spec.plan.load, Load::Recorded { .. })
        && outcome.lost().next().is_none()
        && have_succeeded(&merged.total)
        && reaches(tally.scheduled.saturating_sub(tally.late), tally.scheduled, 1)
        && in_flight
}

/// Returns whether nearly all of these due requests succeeded.
pub(crate) fn have_succeeded(requests: &Measured) -> bool {
    let tally = &requests.tally;
    let asked = tally.scheduled.saturating_sub(tally.in_flight).saturating_add(requests.unknown);
    reaches(tally.succeeded, asked, 1)
}

/// The number of `due` requests that may be missing by chance.
fn chance(spec: &Validated, due: u64) -> u64 {
    match spec.plan.load {
        Load::OpenLoop { arrival: Arrival::Poisson, .. } => (5 * due.isqrt()).max(1),
        _ => 1,
    }
}

/// Returns whether `part` is at least 99 % of `whole`. A deficit of up to `chance` requests never counts.
fn reaches(part: u64, whole: u64, chance: u64) -> bool {
    let nearly = u128::from(part) * u128::from(WHOLE) >= u128::from(whole) * u128::from(RATE_MET);
    part > 0 && (nearly || whole.saturating_sub(part) <= chance)
}

pub(super) fn missed(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let target = merged.throughput.target?;
    if is_met(spec, merged) {
        return None;
    }
    let growth = fastest(spec, outcome, merged).map_or_else(String::new, |(plateau, growth)| {
        let within = plateau.stage.map_or_else(String::new, |stage| format!(" in {stage}"));
        format!(", and the backlog grew by {:.1} requests per second{within}", growth.per_second)
    });
    let message = format!(
        "achieved {} of the {} requested{growth}; lower the rate, or find what limits the target or the shards",
        human::rate(merged.throughput.mean),
        human::rate(target)
    );
    Some(reason(ReasonKind::RateMissed, VerdictValue::Degraded, &message))
}

/// If the rate was missed or a backlog grew, the seconds in which fewer than 99 % of the requests were completed that were due then, and
/// a mean response time earlier, in order and in nanoseconds after the start. Empty otherwise, or without a whole second.
pub(super) fn behind(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Vec<Range<u64>> {
    let fell = || !is_met(spec, merged) || backlog_growth(spec, outcome, merged).is_some();
    let Some(rate) = CumulativeRate::of(&spec.plan).filter(|_| fell()) else { return Vec::new() };
    let response = latencies::round(merged.total.response.mean());
    let (interval, points) = completions(outcome);
    let each = whole(SECOND, interval).max(1);
    let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    let length = interval.saturating_mul(each as u64);
    let Some(from) = completed_window(outcome).start.checked_next_multiple_of(interval) else { return Vec::new() };
    let begins = (0..).map(|second: u64| from.saturating_add(second.saturating_mul(length)));
    let seconds = begins.map(|begin| begin..begin.saturating_add(length));
    let is_behind = |(completed, second): &(&[u64], Range<u64>)| {
        let due = |earlier: u64| {
            let [before, end] = [second.start, second.end].map(|at| rate.count_before(at.saturating_sub(earlier)));
            end.saturating_sub(before)
        };
        // A queue from before a stage of a lower rate is no deficit of its seconds.
        let due = due(0).min(due(response));
        due > 0
            && !reaches(completed.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)), due, chance(spec, due))
    };
    points.chunks_exact(each).zip(seconds).filter(is_behind).map(|(_, second)| second).collect()
}

/// The total length of `seconds`, in nanoseconds.
pub(super) fn length(seconds: &[Range<u64>]) -> u64 {
    seconds.iter().fold(0, |sum: u64, second| sum.saturating_add(second.end.saturating_sub(second.start)))
}

/// Where the backlog grew at a constant rate. With random arrivals the number due at a time is unknown, and with a lost shard the number
/// completed.
fn grown(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Vec<(Plateau, Growth)> {
    let constant = matches!(spec.plan.load, Load::OpenLoop { arrival: Arrival::Constant, .. });
    // With caches, the part of the rate that is sent changes as they fill.
    if !constant || outcome.lost().next().is_some() || merged.cache.is_some() {
        return Vec::new();
    }
    let tally = &merged.total.tally;
    // Requests still waiting at the end of the load are the backlog itself, not failures.
    let failed = tally.errors.saturating_add(tally.unsent.saturating_sub(tally.unsent_at_end));
    let completions = Completions::of(outcome);
    let growth = |plateau: Plateau| {
        let points = completions.within(&plateau.within);
        let growth = backlog::growth(plateau.rate? as f64, completions.interval(), points, failed)?;
        Some((plateau, growth))
    };
    plateau::all(spec, outcome).into_iter().filter_map(growth).collect()
}

/// The number of whole intervals in `length` nanoseconds.
fn whole(length: u64, interval: Duration) -> usize {
    let intervals = u128::from(length).checked_div(interval.as_nanos()).unwrap_or_default();
    usize::try_from(intervals).unwrap_or(usize::MAX)
}

/// Where the backlog grew the most, as a share of the rate.
fn fastest(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<(Plateau, Growth)> {
    grown(spec, outcome, merged).into_iter().max_by(|(_, one), (_, other)| one.share.total_cmp(&other.share))
}

/// Growth of the backlog at a constant rate, of several stages the fastest.
pub(crate) fn backlog_growth(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<Growth> {
    fastest(spec, outcome, merged).map(|(_, growth)| growth)
}

/// Only if the rate was met: otherwise the missed rate already reports it.
pub(super) fn backlog(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let (plateau, growth) = fastest(spec, outcome, merged).filter(|_| is_met(spec, merged))?;
    let (lasts, field) = match plateau.stage {
        None if !spec.plan.workload.has_mix() => ("load", "workload.operations[].rate"),
        None => ("load", "load.openLoop.rate"),
        Some(_) => ("stage", "load.stages"),
    };
    let message = format!(
        "the backlog grew by {:.1} requests per second, {:.2} % of the rate, throughout {}: it grows as long as the {lasts} \
         lasts, and response times with it; lower the rate ({field})",
        growth.per_second,
        100.0 * growth.share,
        plateau.name()
    );
    Some(reason(ReasonKind::Backlog, VerdictValue::Degraded, &message))
}

/// Unsent requests that the reason of [`backlog`] explains: those of the queue at the end of a load whose backlog grew until then.
pub(super) fn left_by_backlog(spec: &Validated, outcome: &Outcome, merged: &Merged) -> u64 {
    let left = merged.total.tally.unsent_at_end;
    let until_the_end = |(plateau, _): &(Plateau, Growth)| plateau.is_last;
    let explained = left > 0 && is_met(spec, merged) && grown(spec, outcome, merged).iter().any(until_the_end);
    if explained { left } else { 0 }
}

#[cfg(test)]
mod tests;
