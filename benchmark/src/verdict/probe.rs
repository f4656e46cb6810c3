//! Judges the probe with half of the connections. In the trial all connections were full, so throughput equals connections over latency,
//! and nothing in the trial itself distinguishes too few connections from a saturated target. The same holds for an open loop that missed
//! its rate: its backlog keeps all connections full. If half of the connections keep the rate, they were not full, and the two loads cannot
//! be compared.

use redisbench_wire::Probe;
use redisbench_wire::snapshot::ServerNode;

use super::thresholds::{FALLEN, IDLE, MAIN_THREAD, PROBE_LEAST, RATE_MET, SAME, SHORTER, WHOLE};
use crate::api::status::LimitedBy;
use crate::measurement::Outcome;
use crate::measurement::merge::{Merged, per_second};
use crate::{human, measurement::latencies};

/// The component for the path to the servers.
pub(super) const PATH: &str = "Path";

/// Judges the probes of all shards together; none if they are inconclusive, or a shard has none.
pub(super) fn judged(outcome: &Outcome, merged: &Merged) -> Option<(LimitedBy, Option<String>)> {
    let probes = Some(&outcome.probes).filter(|probes| !probes.is_empty() && probes.len() == outcome.shards.len())?;
    let sum = |of: fn(&Probe) -> u64| probes.iter().map(|probe| u128::from(of(probe))).sum::<u128>();
    let (succeeded, all) = (sum(|probe| probe.succeeded), sum(|probe| probe.tally.scheduled));
    // A probe with failures, or one that kept more than 60 % of the room, changed more than the number of connections. In an open loop,
    // requests that find all connections full stay unsent.
    let failed = sum(|probe| probe.tally.errors.saturating_add(probe.tally.unsent_not_connected));
    if succeeded < PROBE_LEAST || failed * 100 > all || sum(|probe| probe.room) * 10 > sum(|probe| probe.of_room) * 6 {
        return None;
    }
    let rate: u128 = probes.iter().map(|probe| u128::from(per_second(probe.succeeded, probe.nanoseconds))).sum();
    let latency =
        probes.iter().map(|probe| u128::from(probe.mean_nanoseconds) * u128::from(probe.succeeded)).sum::<u128>()
            / succeeded.max(1);
    let target = u128::from(merged.throughput.target.unwrap_or(u64::MAX));
    if rate * u128::from(WHOLE) >= target * u128::from(RATE_MET) {
        return None;
    }
    // Requests of an open loop also wait for a connection; the probe's latencies are measured from the send.
    let before = merged.total.service.as_ref().unwrap_or(&merged.total.response);
    let before = u128::from(latencies::round(before.mean()));
    let throughput = rate * 100 / u128::from(merged.throughput.mean.max(1));
    let latency = latency * 100 / before.max(1);
    if throughput <= FALLEN && latency > SHORTER {
        return Some((LimitedBy::Connections, None));
    }
    (throughput >= SAME && latency <= SHORTER).then(|| (LimitedBy::Target, component(merged)))
}

/// The limiting part of a saturated target, as far as servers report it. If a server's event loop hardly ever slept, although its main
/// thread computed less, the server waited for something of its own: a disk, or a processor. If every server had time for twice the load,
/// it is the path, as far as they can measure.
fn component(merged: &Merged) -> Option<String> {
    let nodes = &merged.servers.as_ref().filter(|servers| !servers.nodes.is_empty())?.nodes;
    let event_loop = |node: &ServerNode| node.cpu?.event_loop_basis_points;
    let held = nodes.iter().max_by_key(|node| event_loop(node)).filter(|node| event_loop(node) >= Some(MAIN_THREAD));
    if let Some(node) = held {
        return Some(human::cut(&node.id, 256).to_owned());
    }
    let idle = |node: &ServerNode| {
        let (Some(cpu), Some(commands), Some(before), Some(after)) = (node.cpu, node.commands, node.before, node.after)
        else {
            return false;
        };
        let wall = after.taken_nanoseconds.saturating_sub(before.taken_nanoseconds).max(1);
        // Commands may sleep, which is not processor time.
        let executing = u128::from(commands.microseconds) * 1_000 * 10_000 / u128::from(wall);
        let awake = cpu.mean_basis_points.max(cpu.event_loop_basis_points.unwrap_or_default());
        awake < IDLE && executing < u128::from(IDLE)
    };
    nodes.iter().all(idle).then(|| PATH.to_owned())
}
