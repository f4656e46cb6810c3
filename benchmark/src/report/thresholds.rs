//! Thresholds in their form for the status.

use std::time::Duration;

use super::conditions::{Truth, reason};
use crate::api::status::{ThresholdOutcome, ThresholdStatus};
use crate::human;
use crate::measurement::judged::{Judged, Observed, ThresholdState, Worst};
use crate::measurement::latencies::{Censored, Interval};
use crate::measurement::merge::Merged;
use crate::measurement::threshold::Observation;

/// Maximum bytes of a message.
const MESSAGE_BYTES: usize = 512;

/// Judges the whole measurement. A threshold that stopped the load keeps its standing from that time, because requests in flight finished
/// later.
pub fn finished(judged: &[Judged], merged: &Merged, trial: Option<u32>) -> Vec<ThresholdStatus> {
    if judged.is_empty() {
        return Vec::new();
    }
    let observation = Observation::whole(merged);
    let finish = |judged: &Judged| {
        let stopped = judged.threshold.abort_on_fail && judged.standing.holds() == Some(false);
        let standing =
            judged.threshold.judge(&observation).filter(|_| !stopped).unwrap_or_else(|| judged.standing.clone());
        let outcome = match standing.holds() {
            Some(true) => ThresholdOutcome::Passed,
            Some(false) => ThresholdOutcome::Failed,
            None => ThresholdOutcome::NotJudged,
        };
        status(&Judged { threshold: judged.threshold.clone(), standing }, outcome, trial)
    };
    judged.iter().map(finish).collect()
}

/// Standings while the load runs.
pub fn running(judged: &[Judged], trial: Option<u32>) -> Vec<ThresholdStatus> {
    let stands = |judged: &Judged| {
        let failed = judged.standing.holds() == Some(false);
        status(judged, if failed { ThresholdOutcome::Failed } else { ThresholdOutcome::Pending }, trial)
    };
    judged.iter().map(stands).collect()
}

/// The worse standing of each threshold over two trials. At most one list is empty.
pub fn worse(former: &[ThresholdStatus], new: &[ThresholdStatus]) -> Vec<ThresholdStatus> {
    let worse = |new: &ThresholdStatus| {
        let former = former.iter().find(|former| former.name == new.name && former.trial < new.trial);
        match former.filter(|former| !is_worse(new, former)) {
            Some(former) => former.clone(),
            None => new.clone(),
        }
    };
    if new.is_empty() { former.to_vec() } else { new.iter().map(worse).collect() }
}

fn is_worse(one: &ThresholdStatus, other: &ThresholdStatus) -> bool {
    match (standing(one).worst, standing(other).worst) {
        (Some(this), Some(that)) if one.outcome == other.outcome => this.is_worse_than(&that),
        _ => one.outcome > other.outcome,
    }
}

/// Restores a standing from the status, to continue from it.
pub fn standing(status: &ThresholdStatus) -> ThresholdState {
    let latency =
        status.observed_nanoseconds.map(Censored::Known).or(status.more_than_nanoseconds.map(Censored::MoreThan));
    let errors = status.failed_requests.zip(status.of_requests);
    let observed = latency
        .map(Observed::Latency)
        .or(errors.map(|(failed, of)| Observed::Errors { failed, of }))
        .or(status.observed_per_second.map(Observed::PerSecond));
    ThresholdState {
        worst: observed.map(|observed| Worst {
            observed,
            interval: status.low_nanoseconds.map(|low| Interval { low, high: status.high_nanoseconds }),
            holds: status.outcome != ThresholdOutcome::Failed,
            node: status.node.clone(),
            at: status.at_milliseconds.map(Duration::from_millis),
        }),
        windows: status.windows,
        failed_windows: status.failed_windows,
    }
}

fn status(judged: &Judged, outcome: ThresholdOutcome, trial: Option<u32>) -> ThresholdStatus {
    let Judged { threshold, standing } = judged;
    let worst = standing.worst.as_ref();
    let interval = worst.and_then(|worst| worst.interval);
    let (mut nanoseconds, mut more_than, mut errors, mut per_second) = (None, None, None, None);
    match worst.map(|worst| worst.observed) {
        Some(Observed::Latency(Censored::Known(known))) => nanoseconds = Some(known),
        Some(Observed::Latency(Censored::MoreThan(bound))) => more_than = Some(bound),
        Some(Observed::Errors { failed, of }) => errors = Some((failed, of)),
        Some(Observed::PerSecond(rate)) => per_second = Some(rate),
        None => {}
    }
    let message = match (worst, outcome) {
        (None, ThresholdOutcome::Pending) => format!("{} must be {}", threshold.subject(), threshold.allowed()),
        _ => threshold.describe(standing),
    };
    ThresholdStatus {
        name: threshold.name.clone(),
        outcome,
        observed_nanoseconds: nanoseconds,
        low_nanoseconds: interval.map(|interval| interval.low),
        high_nanoseconds: interval.and_then(|interval| interval.high),
        more_than_nanoseconds: more_than,
        failed_requests: errors.map(|(failed, _)| failed),
        of_requests: errors.map(|(_, of)| of),
        observed_per_second: per_second,
        node: worst.and_then(|worst| worst.node.as_ref()).map(|node| node.chars().take(262).collect()),
        at_milliseconds: worst.and_then(|worst| worst.at).map(|at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX)),
        windows: standing.windows,
        failed_windows: standing.failed_windows,
        trial,
        message: human::shorten(&message, MESSAGE_BYTES).into_owned(),
    }
}

/// The condition `ThresholdsMet` of a finished run; none without thresholds.
pub(super) fn condition(thresholds: &[ThresholdStatus]) -> Option<(Truth, &'static str, String)> {
    let of = |outcome: ThresholdOutcome| -> Vec<&ThresholdStatus> {
        thresholds.iter().filter(|threshold| threshold.outcome == outcome).collect()
    };
    let say = |which: &[&ThresholdStatus]| {
        let said: Vec<String> = which.iter().map(|one| format!("{}: {}", one.name, one.message)).collect();
        said.join("; ")
    };
    let (failed, passed) = (of(ThresholdOutcome::Failed), of(ThresholdOutcome::Passed));
    let count = thresholds.len();
    Some(match (count, failed.len(), passed.len()) {
        (0, ..) => return None,
        (_, 0, passed) if passed == count => {
            let all =
                if count == 1 { "the threshold holds".to_owned() } else { format!("all {count} thresholds hold") };
            (Truth::True, reason::THRESHOLDS_MET, all)
        }
        (_, 0, _) => {
            let rest: Vec<_> = thresholds.iter().filter(|one| one.outcome != ThresholdOutcome::Passed).collect();
            (Truth::Unknown, reason::THRESHOLDS_NOT_JUDGED, say(&rest))
        }
        (_, broken, _) => (
            Truth::False,
            reason::THRESHOLD_FAILED,
            format!("{broken} of {} failed: {}", human::counted(count as u64, "threshold"), say(&failed)),
        ),
    })
}

#[cfg(test)]
mod tests;
