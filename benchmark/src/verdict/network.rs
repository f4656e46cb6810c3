//! Whether a shard's network was full, against what somebody said that it carries.

use redisbench_wire::snapshot::Interface;

use super::thresholds::LINK_FULL;
use crate::api::Validated;
use crate::conductor::Outcome;

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
