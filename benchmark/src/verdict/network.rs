//! Whether a shard's network was full, against what somebody said that it carries.

use redisbench_wire::snapshot::{Interface, Snapshot};

use super::thresholds::LINK_FULL;
use crate::api::Validated;
use crate::conductor::Outcome;

/// What Linux calls the interface of what stays within a machine.
const LOOPBACK: &str = "lo";

/// The direction that was full in half of the shards or more, the fuller one if both were. None without a stated capacity:
/// nothing else tells a link from a target that answers slowly.
pub(super) fn full(spec: &Validated, outcome: &Outcome) -> Option<&'static str> {
    let capacity = spec.measurement.link_bytes_per_second?;
    let interfaces = || {
        let snapshots = outcome.shards.iter().filter_map(|shard| shard.snapshot.as_ref());
        snapshots.filter_map(|snapshot| snapshot.generator.interface.as_ref())
    };
    let full = |of: fn(&Interface) -> u64| {
        let full = |rate: &u64| u128::from(*rate) * 100 >= u128::from(capacity) * u128::from(LINK_FULL);
        let rates: Vec<u64> = interfaces().map(of).filter(full).collect();
        (2 * rates.len() >= outcome.shards.len().max(1)).then(|| rates.into_iter().max().unwrap_or_default())
    };
    let up = full(|interface| interface.sustained_sent_bytes_per_second);
    let down = full(|interface| interface.sustained_received_bytes_per_second);
    match (up, down) {
        (None, None) => None,
        (up, down) if up >= down => Some("Uplink"),
        _ => Some("Downlink"),
    }
}

/// Whether no shard's link can have been full, where none is known to have been: somebody said what it carries, or nothing
/// went over one.
pub(super) fn is_ruled_out(spec: &Validated, outcome: &Outcome) -> bool {
    let within_machine =
        |snapshot: &Snapshot| snapshot.generator.interface.as_ref().is_some_and(|interface| interface.name == LOOPBACK);
    spec.measurement.link_bytes_per_second.is_some()
        || outcome.shards.iter().all(|shard| shard.snapshot.as_ref().is_some_and(within_machine))
}
