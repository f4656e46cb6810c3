//! Notes on results that are measured correctly but may not be what the user intended.

use redisbench_wire::plan::{Operation, Part, Preload, PreloadStep, TrialPlan, only_reads};

use super::reason::reason;
use super::thresholds::{MISSES, UNDER_REPLICATED};
use crate::api::Validated;
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::human;
use crate::measurement::merge::Merged;

/// A WAIT that times out counts as success, and its timeout is the response time.
pub(super) fn under_replicated(merged: &Merged) -> Option<VerdictReason> {
    let tally = &merged.total.tally;
    if u128::from(tally.under_replicated) * 100 <= u128::from(tally.succeeded) * u128::from(UNDER_REPLICATED) {
        return None;
    }
    let message = format!(
        "WAIT timed out in {} of {}: too few replicas had the write, and the request took \
         workload.wait.timeout; connect more replicas, or lower workload.wait.replicas",
        human::share(tally.under_replicated, tally.succeeded),
        human::counted(tally.succeeded, "request")
    );
    Some(reason(ReasonKind::UnderReplicated, VerdictValue::Valid, &message))
}

/// Reads of an empty keyspace are fast, and rarely what a user wants to measure.
pub(super) fn misses(spec: &Validated, merged: &Merged) -> Option<VerdictReason> {
    if spec.plan.preload != Preload::None || !spec.plan.workload.options.fills.is_empty() {
        return None;
    }
    let reads = |name: &str| {
        let operation = spec.plan.workload.operations.iter().find(|operation| operation.name == name);
        operation
            .is_some_and(|operation| command(operation).is_some_and(only_reads) && !is_preloaded(&spec.plan, operation))
    };
    let missed = |nil: u64, succeeded: u64| u128::from(nil) * 100 > u128::from(succeeded) * u128::from(MISSES);
    let worst = merged
        .operations
        .iter()
        .filter(|part| reads(&part.name) && missed(part.nil_replies, part.measured.tally.succeeded))
        .max_by_key(|part| part.nil_replies)?;
    let succeeded = worst.measured.tally.succeeded;
    let message = format!(
        "{} of {} replies to operation {} were empty, and nothing was preloaded: misses are cheaper than hits; set \
         preload.mode, or use keys that exist (workload.keys)",
        human::share(worst.nil_replies, succeeded),
        human::count(succeeded),
        worst.name
    );
    Some(reason(ReasonKind::Misses, VerdictValue::Valid, &message))
}

/// Returns whether a step of the preload writes the keys of `operation`.
fn is_preloaded(plan: &TrialPlan, operation: &Operation) -> bool {
    let key = operation.arguments.iter().skip(1).find(|parts| parts.contains(&Part::Key));
    let writes = |step: &PreloadStep| {
        step.writes && step.arguments.get(1) == key && step.keys.same_names(plan.workload.keys_of(operation))
    };
    plan.preload_steps.iter().any(writes)
}

/// An operation's command, if it is always the same.
fn command(operation: &Operation) -> Option<&str> {
    match operation.arguments.first()?.as_slice() {
        [Part::Literal(name)] => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
