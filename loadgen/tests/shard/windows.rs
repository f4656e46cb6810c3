//! Outages in wall-clock time, as in servers' logs.

use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_testkit::log::now;
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::topology::SlotRange;

/// An outage, in milliseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub struct Window {
    pub slots: SlotRange,
    pub node: String,
    pub from: u64,
    pub until: u64,
}

/// The outages in the snapshot of a shard on this machine.
pub fn windows(snapshot: &Snapshot) -> Vec<Window> {
    let ago = |instant: u64| (monotonic_nanoseconds() - instant) / 1_000_000;
    let outages = snapshot.topology.outages.iter().map(|outage| Window {
        slots: outage.slots,
        node: outage.node.clone(),
        from: now() - ago(outage.from_nanoseconds),
        until: now() - ago(outage.until_nanoseconds),
    });
    outages.collect()
}

/// The first outage of a slot that lasted beyond this time.
pub fn window(windows: &[Window], slot: usize, at: u64) -> Window {
    let slot = u16::try_from(slot).unwrap();
    let of_slot = windows.iter().filter(|window| window.slots.first <= slot && slot <= window.slots.last);
    let found = of_slot.filter(|window| window.until > at).min_by_key(|window| window.from);
    found.unwrap_or_else(|| panic!("no window of slot {slot} lasts beyond {at} in {windows:#?}")).clone()
}
