//! Times without answers, by the clock of the day, as servers' logs have it.

use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::topology::SlotRange;

use crate::support::log::now;

/// How far a window may be off what the servers' logs say, in milliseconds.
pub const TOLERANCE: u64 = 100;

/// A time without answers, in milliseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub struct Window {
    pub slots: SlotRange,
    pub node: String,
    pub from: u64,
    pub until: u64,
}

/// What the snapshot of a shard on this machine has of them.
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

/// The window of a slot that began at about this time.
pub fn window(windows: &[Window], slot: usize, from: u64) -> Window {
    let slot = u16::try_from(slot).unwrap();
    let found = windows.iter().find(|window| {
        window.slots.first <= slot && slot <= window.slots.last && window.from.abs_diff(from) <= TOLERANCE
    });
    found.unwrap_or_else(|| panic!("no window of slot {slot} from {from} on in {windows:#?}")).clone()
}

pub fn assert_near(what: &str, told: u64, logged: u64) {
    println!("{what}: {} ms off", told.cast_signed() - logged.cast_signed());
    assert!(told.abs_diff(logged) <= TOLERANCE, "{what}: told {told}, logged {logged}");
}
