//! Identifies what limited the throughput. Inconclusive evidence gives `Unknown`.

use super::thresholds::{ERRORS_INVALID, MAIN_THREAD_NEAR, RATE_MET, WHOLE};
use super::{generator, network, probe, rate, servers, steadiness};
use crate::api::Validated;
use crate::api::status::LimitedBy;
use crate::measurement::Outcome;
use crate::measurement::merge::Merged;

const SECOND: u128 = 1_000_000_000;

/// The limiting factor, and its component.
pub(super) fn limited_by(spec: &Validated, outcome: &Outcome, merged: &Merged) -> (LimitedBy, Option<String>) {
    if met_its_rate(spec, outcome, merged) {
        return (LimitedBy::Rate, None);
    }
    at_its_end(spec, outcome, merged)
}

/// A rate with a growing backlog will be missed if the load lasts longer.
fn met_its_rate(spec: &Validated, outcome: &Outcome, merged: &Merged) -> bool {
    let met = rate::is_met(spec, merged) && rate::backlog_growth(spec, outcome, merged).is_none();
    met || rate::has_kept_pace(spec, outcome, merged)
}

/// Returns whether the measurement does not reveal the limiting factor, and a probe could.
pub(crate) fn needs_probe(spec: &Validated, outcome: &Outcome, merged: &Merged) -> bool {
    let behind = rate::behind(spec, outcome, merged);
    let told = met_its_rate(spec, outcome, merged)
        || servers::full(merged, &behind).is_some()
        || network::full(spec, outcome).is_some()
        || generator::is_limit(outcome, &behind)
        || generator::stood_still(outcome, merged);
    // After a load that drifted, a probe cannot be compared with the load's mean.
    let steady = steadiness::unsteady(spec, outcome, merged).is_none();
    !told && steady && merged.throughput.mean > 0 && !failures_explain(merged)
}

/// Returns whether the target had failures that a probe would worsen and not explain: an outage, more failed requests than a valid result
/// may have, or enough of them to explain the missed rate. Requests of an open loop that found every connection full do not count as
/// failures here: the probe is to find out why they were full.
fn failures_explain(merged: &Merged) -> bool {
    let tally = &merged.total.tally;
    let failed = tally.errors.saturating_add(tally.unsent_not_connected);
    let wanted = |target: u64| u128::from(target) * u128::from(merged.throughput.window_nanoseconds) / SECOND;
    let ended = u128::from(tally.succeeded.saturating_add(failed));
    !merged.topology.outages.is_empty()
        || u128::from(failed) * u128::from(WHOLE) > u128::from(tally.scheduled) * u128::from(ERRORS_INVALID)
        || merged
            .throughput
            .target
            .is_some_and(|target| failed > 0 && ended * u128::from(WHOLE) >= wanted(target) * u128::from(RATE_MET))
}

/// Returns whether a server had no processor time left.
pub(crate) fn server_is_full(spec: &Validated, outcome: &Outcome, merged: &Merged) -> bool {
    servers::full(merged, &rate::behind(spec, outcome, merged)).is_some()
}

/// Processor time of the busiest server, in hundredths of a per cent of the window.
pub(crate) fn busiest_server(merged: &Merged) -> Option<u32> {
    servers::busiest(merged, 0).map(|(_, share)| share)
}

/// The server that was near saturation, if nothing else that is measured can have delayed requests: no link, outage, failed request or
/// fork. Returns its component, and its share of processor time in hundredths of a per cent. Findings about the load generator are in the
/// verdict's reasons.
pub(crate) fn near_its_end(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<(String, u32)> {
    let server = servers::busiest(merged, MAIN_THREAD_NEAR)?;
    let tally = &merged.total.tally;
    let undisturbed = merged.topology.outages.is_empty()
        && tally.errors == 0
        && tally.unsent == 0
        && servers::forked(merged).is_none()
        && steadiness::unsteady(spec, outcome, merged).is_none();
    (undisturbed && network::has_room(spec, outcome)).then_some(server)
}

/// The saturated part, whether or not the rate was met: a server near saturation answers late before it answers less.
pub(crate) fn at_its_end(spec: &Validated, outcome: &Outcome, merged: &Merged) -> (LimitedBy, Option<String>) {
    let behind = rate::behind(spec, outcome, merged);
    let target = servers::full(merged, &behind);
    let network = network::full(spec, outcome);
    match (target, network) {
        // If both are saturated, removing one limit would meet the other.
        (Some(_), Some(_)) => (LimitedBy::Unknown, None),
        (Some(_), None) if generator::is_busy(outcome, &behind) => (LimitedBy::Unknown, None),
        // A saturated server answers no faster, whatever the load generator gets.
        (Some(component), None) => (LimitedBy::Target, Some(component)),
        (None, Some(_)) if generator::is_limit(outcome, &behind) => (LimitedBy::Unknown, None),
        // A full link carries no more, even if the load generator gets more processor time.
        (None, Some(direction)) => (LimitedBy::GeneratorNetwork, Some(direction.to_owned())),
        (None, None) if generator::is_limit(outcome, &behind) => (LimitedBy::GeneratorCPU, None),
        // Requests may have queued before the shards as well as before the target.
        (None, None) if generator::stood_still(outcome, merged) => (LimitedBy::Unknown, None),
        (None, None) => match probe::judged(outcome, merged) {
            // If a reply mostly waits for a processor of the load generator, throughput falls with the connections too.
            Some((LimitedBy::Connections, _)) if generator::is_short(outcome) => (LimitedBy::Unknown, None),
            // Without a server known to be saturated, a queue before a link or a processor of the load generator looks the same.
            Some((LimitedBy::Target, component))
                if component.as_deref().is_none_or(|component| component == probe::PATH)
                    && (generator::is_short(outcome) || !network::is_ruled_out(spec, outcome)) =>
            {
                (LimitedBy::Unknown, component)
            }
            judged => judged.unwrap_or((LimitedBy::Unknown, None)),
        },
    }
}
