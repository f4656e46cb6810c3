//! What kept the throughput from being higher. Where the evidence does not decide, nothing is named.

use super::{generator, network, probe, rate_is_met, servers};
use crate::api::Validated;
use crate::api::status::LimitedBy;
use crate::conductor::Outcome;
use crate::merge::Merged;

/// The limit, and which part of it.
pub(super) fn limited_by(spec: &Validated, outcome: &Outcome, merged: &Merged) -> (LimitedBy, Option<String>) {
    if merged.pace.target.is_some_and(|target| rate_is_met(spec, merged, target)) {
        return (LimitedBy::Rate, None);
    }
    at_its_end(spec, outcome, merged)
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
        (None, Some(_)) if generator::is_used_up(outcome) => (LimitedBy::Unknown, None),
        // A link that is full carries no more, however soon the load generator gets a processor.
        (None, Some(direction)) => (LimitedBy::GeneratorNetwork, Some(direction.to_owned())),
        (None, None) if generator::is_limit(outcome) => (LimitedBy::GeneratorCPU, None),
        (None, None) => probe::judged(spec, outcome, merged).unwrap_or((LimitedBy::Unknown, None)),
    }
}
