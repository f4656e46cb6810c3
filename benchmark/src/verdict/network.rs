//! Judges whether a machine's network was full, based on the stated link capacity.

use std::collections::BTreeMap;

use redisbench_wire::snapshot::{Interface, Snapshot};

use super::thresholds::{LINK_FULL, LINK_ROOM};
use crate::api::Validated;
use crate::measurement::Outcome;

/// The direction that was full on the machines of at least half of the shards, the fuller one if both were. None without a stated capacity:
/// nothing else distinguishes a full link from a slow target.
pub(super) fn full(spec: &Validated, outcome: &Outcome) -> Option<&'static str> {
    let capacity = spec.plan.measurement.link_bytes_per_second?;
    let full = |of: fn(&Interface) -> u64| {
        let full = |rate: &u64| u128::from(*rate) * 100 >= u128::from(capacity) * u128::from(LINK_FULL);
        let rates: Vec<u64> = by_machine(outcome, of).into_iter().filter(full).collect();
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

/// Traffic of each shard's machine: the sum over the networks of its shards. Shards in one network read the same counters. A shard whose
/// machine or network is unknown counts alone.
fn by_machine(outcome: &Outcome, of: fn(&Interface) -> u64) -> Vec<u64> {
    let seen = || {
        outcome.shards.iter().filter_map(|shard| {
            let generator = &shard.snapshot.as_ref()?.generator;
            let interface = generator.interface.as_ref()?;
            let host = Some(generator.host.as_str()).filter(|host| !host.is_empty() && interface.network != 0);
            Some((host.ok_or(shard.shard), interface))
        })
    };
    let mut machines: BTreeMap<_, BTreeMap<u64, u64>> = BTreeMap::new();
    for (machine, interface) in seen() {
        let rate = machines.entry(machine).or_default().entry(interface.network).or_default();
        *rate = of(interface).max(*rate);
    }
    let sum = |machine| machines[&machine].values().fold(0, |sum: u64, rate| sum.saturating_add(*rate));
    seen().map(|(machine, _)| sum(machine)).collect()
}

/// Returns whether no shard's link can have been full, given that none is known to be full: the capacity is stated, or all traffic used the
/// loopback.
pub(super) fn is_ruled_out(spec: &Validated, outcome: &Outcome) -> bool {
    let within_machine = |snapshot: &Snapshot| {
        snapshot.generator.interface.as_ref().is_some_and(|interface| interface.name == Interface::LOOPBACK)
    };
    spec.plan.measurement.link_bytes_per_second.is_some()
        || outcome.shards.iter().all(|shard| shard.snapshot.as_ref().is_some_and(within_machine))
}

/// Returns whether every shard's link is known to have had room, so that no requests queued before it.
pub(super) fn has_room(spec: &Validated, outcome: &Outcome) -> bool {
    let Some(capacity) = spec.plan.measurement.link_bytes_per_second else { return is_ruled_out(spec, outcome) };
    let has_room = |of: fn(&Interface) -> u64| {
        let rates = by_machine(outcome, of);
        let room = |rate: &u64| u128::from(*rate) * 100 < u128::from(capacity) * u128::from(LINK_ROOM);
        rates.len() == outcome.shards.len() && rates.iter().all(room)
    };
    has_room(|interface| interface.sustained_sent_bytes_per_second)
        && has_room(|interface| interface.sustained_received_bytes_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SECOND, outcome, plan, snapshot, spec};

    #[test]
    fn shards_of_one_machine_share_its_link() {
        let judge = |placed: &[(&str, u64)]| {
            let mut spec = spec(1, &serde_json::json!({"type": "ClosedLoop", "duration": "10s"}));
            plan(&mut spec).measurement.link_bytes_per_second = Some(1_000);
            let of = |(index, (host, network)): (u32, &(&str, u64))| {
                let mut snapshot = snapshot(index, &vec![SECOND / 1000; 20_000]);
                snapshot.generator.host = (*host).into();
                snapshot.generator.interface = Some(Interface {
                    network: *network,
                    name: "eth0".into(),
                    sustained_received_bytes_per_second: 500,
                    ..Interface::default()
                });
                snapshot
            };
            let outcome = outcome((0..).zip(placed).map(of).collect());
            full(&spec, &outcome)
        };
        let downlink = Some("Downlink");
        assert_eq!(judge(&[("a", 1), ("a", 2), ("b", 1), ("b", 2)]), downlink, "two pods on each of two machines");
        assert_eq!(judge(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)]), None, "a machine each");
        assert_eq!(judge(&[("a", 1), ("a", 1), ("a", 1)]), None, "all read the same counters");
        assert_eq!(judge(&[("a", 0), ("a", 0), ("", 3), ("", 4)]), None, "unknown machines or networks");
        assert_eq!(
            judge(&[("a", 1), ("a", 2), ("b", 1), ("c", 1), ("d", 1)]),
            None,
            "on the machine of fewer than half"
        );
    }
}
