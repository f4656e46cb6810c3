//! Whether an open loop's rate was met, and whether its backlog grew.

use redisbench_statistics::backlog::{self, Growth};
use redisbench_wire::plan::{Arrival, Load};

use super::thresholds::RATE_MET;
use super::{WHOLE, reason};
use crate::api::Validated;
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::conductor::Outcome;
use crate::merge::{Merged, completions};
use crate::people;

/// Whether nearly all requests that were due succeeded, and did so as fast as they were due. Neither alone would do: requests
/// that wait in the connections when the load ends succeed in the end, and what fails may fail fast.
///
/// Poisson arrivals miss their mean by chance: what 5 standard deviations explain, which are as many roots of the number
/// expected, is not missed.
pub(crate) fn is_met(spec: &Validated, merged: &Merged) -> bool {
    let Some(due) = merged.pace.due else { return false };
    let tally = &merged.total.tally;
    let asked = tally.scheduled.saturating_sub(tally.in_flight).saturating_add(merged.total.unknown);
    let chance = match spec.load {
        Load::OpenLoop { arrival: Arrival::Poisson, .. } => 5 * due.isqrt(),
        _ => 0,
    };
    reaches(tally.succeeded, asked, 1) && reaches(merged.pace.completed, due, chance.max(1))
}

/// Whether `part` is 99 % of `whole`. Where that is less than `chance` requests away from the whole, these decide nothing.
fn reaches(part: u64, whole: u64, chance: u64) -> bool {
    let nearly = u128::from(part) * u128::from(WHOLE) >= u128::from(whole) * u128::from(RATE_MET);
    part > 0 && (nearly || whole.saturating_sub(part) <= chance)
}

pub(super) fn missed(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let target = merged.pace.target?;
    if is_met(spec, merged) {
        return None;
    }
    let growth = backlog_growth(spec, outcome, merged).map_or_else(String::new, |growth| {
        format!(", and the backlog grew by {:.1} requests each second", growth.per_second)
    });
    let message = format!(
        "{} of the {} asked for were achieved{growth}; ask for less, or find what limits the target or the shards",
        people::rate(merged.pace.mean),
        people::rate(target)
    );
    Some(reason(ReasonKind::RateMissed, VerdictValue::Degraded, &message))
}

/// How the backlog of a constant rate grew. Of random arrivals nobody here knows how many were due by when, and of a lost
/// shard nobody knows what ended.
pub(crate) fn backlog_growth(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<Growth> {
    let rate = match &spec.load {
        Load::OpenLoop { rate_per_second, stages, arrival: Arrival::Constant, .. } if stages.is_empty() => {
            *rate_per_second
        }
        Load::OpenLoop { .. } | Load::ClosedLoop => return None,
    };
    if outcome.lost().next().is_some() {
        return None;
    }
    let tally = &merged.total.tally;
    // What still waited when the load ended is the backlog itself.
    let failed = tally.errors.saturating_add(tally.unsent.saturating_sub(tally.unsent_at_end));
    let (interval, points) = completions(outcome);
    backlog::growth(rate as f64, interval, &points, failed)
}

/// A rate that is missed says as much already.
pub(super) fn backlog(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let growth = backlog_growth(spec, outcome, merged).filter(|_| is_met(spec, merged))?;
    let message = format!(
        "each second {:.1} more requests were due than ended, {:.2} % of the rate, from the beginning of the measurement to its \
         end: the queue grows as long as the load lasts, and response times with it; ask for less (load.openLoop.rate)",
        growth.per_second,
        100.0 * growth.share
    );
    Some(reason(ReasonKind::Backlog, VerdictValue::Degraded, &message))
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
