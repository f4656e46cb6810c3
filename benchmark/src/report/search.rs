//! A search: what each trial was as a step of it, and what it found.

use std::time::Duration;

use redisbench_statistics::search::{
    self, Answer, Ending, Failure, Judgement, Measured, Objective, Observed, Unusable,
};
use redisbench_wire::plan::{Arrival, Load};

use crate::api::status::{ReasonKind, SearchEnding, SearchResult, SearchStep, StepOutcome, Verdict, VerdictValue};
use crate::api::{GoDuration, Validated};
use crate::conductor::Outcome;
use crate::merge::{Merged, completions};
use crate::people;
use crate::plan::{SearchTrial, Why};
use crate::stats::{self, Censored};
use crate::verdict;

/// The most bytes of what a step says about why.
const WHY_BYTES: usize = 160;
/// The most bytes of what a search says of itself.
const MESSAGE_BYTES: usize = 512;
const WHOLE: f64 = 1_000_000.0;

/// What a trial came to as a step of a search.
pub(super) fn step(
    trial: &SearchTrial,
    spec: &Validated,
    outcome: &Outcome,
    merged: &Merged,
    judged: &Verdict,
) -> SearchStep {
    let step = |outcome, why: Option<String>| SearchStep {
        rate_per_second: trial.rate,
        confirmation: trial.confirmation,
        outcome,
        limited_by: why.is_some().then_some(judged.limited_by),
        why: why.map(|why| people::cut(&why, WHY_BYTES).to_owned()),
    };
    let lost = judged.reasons.iter().find(|reason| reason.reason == ReasonKind::ShardLost);
    if let Some(lost) = lost.filter(|lost| lost.severity == VerdictValue::Invalid) {
        return step(StepOutcome::Unusable, Some(lost.message.clone()));
    }
    match search::judge(trial.rate, &trial.objective, &measured(trial, spec, outcome, merged)) {
        Judgement::Passed => step(StepOutcome::Passed, None),
        Judgement::Failed(failure) => step(StepOutcome::Failed, Some(failed(&failure))),
        Judgement::Unusable(unusable) => step(StepOutcome::Unusable, Some(says_nothing(&unusable))),
    }
}

fn measured(trial: &SearchTrial, spec: &Validated, outcome: &Outcome, merged: &Merged) -> Measured {
    let (tally, pace) = (&merged.total.tally, &merged.pace);
    let failed = tally.errors.saturating_add(tally.unsent);
    let target = pace.target.unwrap_or(trial.rate);
    // One request at the window's edge, and the chance of Poisson arrivals, are nothing that was missed.
    let met = verdict::rate_is_met(spec, merged, target);
    let quantile = match trial.objective {
        Objective::Quantile { quantile, .. } => {
            stats::response_time_quantile(&merged.total, millionths(quantile)).map(|quantile| match quantile {
                Censored::Known(nanoseconds) => Observed::Nanoseconds(nanoseconds),
                Censored::MoreThan(_) => Observed::Beyond,
            })
        }
        Objective::ErrorRate { .. } | Objective::Achieved { .. } => None,
    };
    let poisson = matches!(spec.load, Load::OpenLoop { arrival: Arrival::Poisson, .. });
    let (interval, points) = completions(outcome);
    let errors = tally.errors as f64 / tally.scheduled.max(1) as f64;
    // Random arrivals are ahead of their mean and behind it for a while: what is due then, nobody here can say.
    let backlog = if poisson { Vec::new() } else { search::backlog(target as f64 * (1.0 - errors), interval, &points) };
    Measured {
        // Between two trials every connection is closed.
        in_flight_before: 0,
        discarded: spec.warmup,
        measured: Duration::from_nanos(pace.window_nanoseconds),
        scheduled: tally.scheduled,
        failed,
        scheduled_per_second: target as f64,
        achieved_per_second: if met { target.max(pace.mean) } else { pace.mean } as f64,
        quantile,
        backlog,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of at most 1")]
fn millionths(share: f64) -> u32 {
    (share * WHOLE).round() as u32
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn failed(failure: &Failure) -> String {
    match failure {
        Failure::Behind { achieved, min } => {
            format!("{} of the rate was achieved, {} must be", percent(*achieved), percent(*min))
        }
        Failure::Backlog { per_second } => format!("each second {per_second:.0} more requests were due than ended"),
        Failure::Latency { observed, max_nanoseconds } => {
            let observed = match observed {
                Observed::Nanoseconds(nanoseconds) => people::latency(*nanoseconds),
                Observed::Beyond => "longer than any that was answered".to_owned(),
            };
            format!("the quantile of response time was {observed}, {} is the most", people::latency(*max_nanoseconds))
        }
        Failure::Errors { share, max } => format!("{} of the requests failed, {} may", percent(*share), percent(*max)),
    }
}

fn says_nothing(unusable: &Unusable) -> String {
    match unusable {
        Unusable::NotDrained(count) => format!("{count} requests of the step before were in flight"),
        Unusable::DiscardedTooShort(length) => format!("only {} were discarded", GoDuration::from(*length)),
        Unusable::TooShort(length) => format!("it measured less than the {} it must", GoDuration::from(*length)),
        Unusable::TooFew(count) => format!("{count} requests are too few for the quantile"),
        Unusable::NoQuantile => "the quantile was not measured".to_owned(),
    }
}

/// What a search found, for the status.
pub(super) fn result(answer: &Answer<Why>, steps: usize) -> SearchResult {
    let bad = answer.first_bad.as_ref();
    let good = answer.last_good.map(people::rate).unwrap_or_default();
    let after = bad.map_or_else(String::new, |bad| format!("; at {} not: {}", people::rate(bad.rate), bad.why.message));
    let (ending, message) = match &answer.ending {
        Ending::Found => (SearchEnding::Found, format!("the objective holds up to {good}{after}")),
        Ending::MaxPassed => (
            SearchEnding::MaxPassed,
            format!("the objective holds at {good}, the highest rate of the search: raise it"),
        ),
        Ending::MinFailed => {
            (SearchEnding::MinFailed, format!("the objective does not hold at the lowest rate of the search{after}"))
        }
        Ending::NotConfirmed => (SearchEnding::Inconclusive, format!("no rate passed three trials in a row{after}")),
        Ending::Unusable(why) => {
            (SearchEnding::Inconclusive, format!("too many steps said nothing, the last because {}", why.message))
        }
        Ending::TooLong => (SearchEnding::Inconclusive, format!("{steps} steps did not decide it")),
        Ending::OtherSearch => (SearchEnding::Inconclusive, "the steps in the status are of another search".to_owned()),
    };
    SearchResult {
        ending,
        message: people::cut(&message, MESSAGE_BYTES).to_owned(),
        last_good_per_second: answer.last_good,
        first_bad_per_second: bad.map(|bad| bad.rate),
        why: bad.map(|bad| bad.why.message.clone()),
        limited_by: bad.and_then(|bad| bad.why.limited_by),
        contradicted: answer.contradicted,
    }
}

/// Whether the verdict on the whole search depends on a step: one that failed is what a search is made of.
pub(super) fn counts(step: Option<&SearchStep>) -> bool {
    step.is_none_or(|step| step.outcome == StepOutcome::Passed)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
