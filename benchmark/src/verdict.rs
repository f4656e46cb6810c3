//! Whether a result can be trusted, and what limited it. Pure.

use std::time::Duration;

use redisbench_wire::plan::Load;

use crate::api::Validated;
use crate::api::status::{LimitedBy, ReasonKind, Verdict, VerdictReason, VerdictValue};
use crate::conductor::Outcome;
use crate::merge::Merged;
use crate::people;

/// In hundredths of a per cent: a target rate counts as met from here on.
const RATE_MET: u64 = 9_900;
/// Below this the rate was missed by so much that the latencies are of another load.
const RATE_LOST: u64 = 9_000;
/// In hundredths of a per cent: more failed requests than this make a result doubtful.
const ERRORS_DOUBTFUL: u64 = 10;
/// More than this make it useless.
const ERRORS_INVALID: u64 = 1_000;
const WHOLE: u64 = 10_000;

/// Judges what `merged` came to.
pub fn verdict(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Verdict {
    let reasons: Vec<VerdictReason> = [
        shard_lost(outcome),
        start_skew(spec, outcome),
        clock_uncertain(spec, outcome),
        rate_missed(spec, merged),
        errors(merged),
        overflow(merged),
    ]
    .into_iter()
    .flatten()
    .collect();
    let value = reasons.iter().map(|reason| reason.severity).max().unwrap_or(VerdictValue::Valid);
    Verdict { value, limited_by: limited_by(spec, merged), reasons }
}

fn reason(reason: ReasonKind, severity: VerdictValue, message: &str) -> VerdictReason {
    VerdictReason { reason, severity, message: message.chars().take(1024).collect() }
}

fn shard_lost(outcome: &Outcome) -> Option<VerdictReason> {
    let lost: Vec<_> = outcome.lost().collect();
    let first = lost.first()?;
    let why = first.lost.as_deref().unwrap_or_default();
    let message = format!(
        "{} of {} shards are lost, and what they would have measured with them; shard {}: {why}",
        lost.len(),
        outcome.shards.len(),
        first.shard
    );
    Some(reason(ReasonKind::ShardLost, VerdictValue::Invalid, &message))
}

fn start_skew(spec: &Validated, outcome: &Outcome) -> Option<VerdictReason> {
    let bound = spec.shards.max_start_skew;
    let skew = outcome.start_skew.filter(|skew| *skew > bound)?;
    let message = format!("shards started {} apart; spec.shards.maxStartSkew allows {}", time(skew), time(bound));
    Some(reason(ReasonKind::StartSkew, VerdictValue::Degraded, &message))
}

fn clock_uncertain(spec: &Validated, outcome: &Outcome) -> Option<VerdictReason> {
    let bound = spec.shards.max_start_skew / 2;
    let uncertainty = outcome.clock_uncertainty.filter(|uncertainty| *uncertainty > bound)?;
    let message = format!(
        "the shards' clocks are known to {} only; half of spec.shards.maxStartSkew is {}",
        time(uncertainty),
        time(bound)
    );
    Some(reason(ReasonKind::ClockUncertain, VerdictValue::Degraded, &message))
}

fn rate_missed(spec: &Validated, merged: &Merged) -> Option<VerdictReason> {
    let Load::OpenLoop { rate_per_second, .. } = spec.load else { return None };
    let achieved = merged.pace.mean;
    if share_met(achieved, rate_per_second) >= RATE_MET {
        return None;
    }
    let lost = share_met(achieved, rate_per_second) < RATE_LOST;
    let severity = if lost { VerdictValue::Invalid } else { VerdictValue::Degraded };
    let message = format!(
        "{} of the {} asked for were achieved; ask for less, or find what limits the target or the shards",
        people::rate(achieved),
        people::rate(rate_per_second)
    );
    Some(reason(ReasonKind::RateMissed, severity, &message))
}

fn errors(merged: &Merged) -> Option<VerdictReason> {
    let tally = &merged.total.tally;
    let failed = tally.errors + tally.unsent;
    let share = share_met(failed, tally.scheduled);
    if failed == 0 || share < ERRORS_DOUBTFUL {
        return None;
    }
    let severity = if share >= ERRORS_INVALID { VerdictValue::Invalid } else { VerdictValue::Degraded };
    let first = merged.errors.first().map(|error| format!("; most often {}: {}", error.kind, error.first_message));
    let message = format!(
        "{} of {} requests failed or were not sent{}",
        people::share(failed, tally.scheduled),
        people::count(tally.scheduled),
        first.unwrap_or_default()
    );
    Some(reason(ReasonKind::Errors, severity, &message))
}

fn overflow(merged: &Merged) -> Option<VerdictReason> {
    let tally = &merged.total.tally;
    if tally.overflow == 0 {
        return None;
    }
    let message = format!(
        "{} requests took longer than a histogram holds, the longest {}",
        people::count(tally.overflow),
        people::latency(tally.overflow_max_nanoseconds)
    );
    Some(reason(ReasonKind::Overflow, VerdictValue::Degraded, &message))
}

/// The target rate, if it was met. For anything else the evidence of more than the counters is needed.
fn limited_by(spec: &Validated, merged: &Merged) -> LimitedBy {
    match spec.load {
        Load::OpenLoop { rate_per_second, .. } if share_met(merged.pace.mean, rate_per_second) >= RATE_MET => {
            LimitedBy::Rate
        }
        Load::OpenLoop { .. } | Load::ClosedLoop => LimitedBy::Unknown,
    }
}

/// `part` of `whole` in hundredths of a per cent.
fn share_met(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * u128::from(WHOLE) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn time(duration: Duration) -> String {
    people::latency(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
