//! What kept the throughput from being higher. Where the evidence does not decide, nothing is named.

use super::thresholds::{ERRORS_INVALID, MAIN_THREAD_NEAR, RATE_MET};
use super::{WHOLE, generator, network, probe, rate, servers, steadiness};
use crate::api::Validated;
use crate::api::status::LimitedBy;
use crate::measurement::Outcome;
use crate::measurement::merge::Merged;

const SECOND: u128 = 1_000_000_000;

/// The limit, and which part of it.
pub(super) fn limited_by(spec: &Validated, outcome: &Outcome, merged: &Merged) -> (LimitedBy, Option<String>) {
    if met_its_rate(spec, outcome, merged) {
        return (LimitedBy::Rate, None);
    }
    at_its_end(spec, outcome, merged)
}

/// A queue that grows will miss the rate, and only had not yet.
fn met_its_rate(spec: &Validated, outcome: &Outcome, merged: &Merged) -> bool {
    rate::is_met(spec, merged) && rate::backlog_growth(spec, outcome, merged).is_none()
}

/// Whether nothing that was measured tells the limit, and a probe could.
pub(crate) fn needs_probe(spec: &Validated, outcome: &Outcome, merged: &Merged) -> bool {
    let told = met_its_rate(spec, outcome, merged)
        || servers::full(merged).is_some()
        || network::full(spec, outcome).is_some()
        || generator::is_limit(outcome)
        || generator::stood_still(outcome, merged);
    // What comes after a load that drifted cannot be compared with its mean.
    let steady = steadiness::unsteady(spec, outcome, merged).is_none();
    !told && steady && merged.pace.mean > 0 && !failures_explain(merged)
}

/// Whether the target was in trouble, so that more load would harm it and explain nothing: an outage, more failed requests than a
/// result may have, or so many that the rate would have been met without them. Requests of an open loop that found every
/// connection full are no failures here: why they were full is what the probe finds out.
fn failures_explain(merged: &Merged) -> bool {
    let tally = &merged.total.tally;
    let failed = tally.errors.saturating_add(tally.unsent_not_connected);
    let wanted = |target: u64| u128::from(target) * u128::from(merged.pace.window_nanoseconds) / SECOND;
    let ended = u128::from(tally.succeeded.saturating_add(failed));
    !merged.topology.outages.is_empty()
        || u128::from(failed) * u128::from(WHOLE) > u128::from(tally.scheduled) * u128::from(ERRORS_INVALID)
        || merged
            .pace
            .target
            .is_some_and(|target| failed > 0 && ended * u128::from(WHOLE) >= wanted(target) * u128::from(RATE_MET))
}

/// Whether a server had no processor time left.
pub(crate) fn server_is_full(merged: &Merged) -> bool {
    servers::full(merged).is_some()
}

/// The server that was near its end, if nothing else that is measured can have made requests wait: no link, no outage, no failed
/// request and no fork. What the load generator found of itself is in the verdict's reasons.
pub(crate) fn near_its_end(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<String> {
    let (component, _) = servers::busiest(merged, MAIN_THREAD_NEAR)?;
    let tally = &merged.total.tally;
    let undisturbed = merged.topology.outages.is_empty()
        && tally.errors == 0
        && tally.unsent == 0
        && servers::forked(merged).is_none()
        && steadiness::unsteady(spec, outcome, merged).is_none();
    (undisturbed && network::has_room(spec, outcome)).then_some(component)
}

/// What was at its end, whether or not the rate was met: near its end a server answers late before it answers less.
pub(crate) fn at_its_end(spec: &Validated, outcome: &Outcome, merged: &Merged) -> (LimitedBy, Option<String>) {
    let target = servers::full(merged);
    let network = network::full(spec, outcome);
    match (target, network) {
        // With both at their end, more of the one would meet the other.
        (Some(_), Some(_)) => (LimitedBy::Unknown, None),
        (Some(_), None) if generator::is_busy(outcome) => (LimitedBy::Unknown, None),
        // A server with no time left answers no faster, whatever the load generator gets.
        (Some(component), None) => (LimitedBy::Target, Some(component)),
        (None, Some(_)) if generator::is_limit(outcome) => (LimitedBy::Unknown, None),
        // A link that is full carries no more, however soon the load generator gets a processor.
        (None, Some(direction)) => (LimitedBy::GeneratorNetwork, Some(direction.to_owned())),
        (None, None) if generator::is_limit(outcome) => (LimitedBy::GeneratorCPU, None),
        // Requests may queue before them as well as before the target.
        (None, None) if generator::stood_still(outcome, merged) => (LimitedBy::Unknown, None),
        (None, None) => match probe::judged(outcome, merged) {
            // No server says that it was at its end, and a queue before a link of the load generator looks the same.
            Some((LimitedBy::Target, component))
                if component.as_deref().is_none_or(|component| component == probe::PATH)
                    && !network::is_ruled_out(spec, outcome) =>
            {
                (LimitedBy::Unknown, component)
            }
            judged => judged.unwrap_or((LimitedBy::Unknown, None)),
        },
    }
}
