//! A cluster that changes under an open loop: the run continues, and every request has one outcome.

use std::process::Command;

use redisbench_testkit::log::{assert_begins, assert_ends, is_timed, now};
use redisbench_testkit::servers::{RedisCluster, wait_until};
use redisbench_wire::plan::{Bound, TrialPlan};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::topology::{Change, ChangeKind};

use crate::client::{Shard, eventually};
use crate::load::{assert_balanced, assert_sent};
use crate::plans::{SECOND, clustered, steady};
use crate::windows::{window, windows};

const RATE: u64 = 2000;
const LENGTH: u64 = 10;

/// Long enough for a failover with its timeout of half a second.
fn plan_of(cluster: &RedisCluster) -> TrialPlan {
    // The only endpoint is the node that tests kill.
    let mut plan = steady(clustered(&cluster.nodes[0].endpoint()), RATE, LENGTH);
    plan.warmup_nanoseconds = 0;
    plan.connections = 12;
    plan.timeouts.request_nanoseconds = 2 * SECOND;
    plan
}

/// Runs an open loop with `change` in the middle of it.
async fn under_load(what: &str, cluster: &mut RedisCluster, change: impl FnOnce(&mut RedisCluster)) -> Snapshot {
    let plan = plan_of(cluster);
    planned_load(what, cluster, &plan, change).await
}

async fn planned_load(
    what: &str,
    cluster: &mut RedisCluster,
    plan: &TrialPlan,
    change: impl FnOnce(&mut RedisCluster),
) -> Snapshot {
    let shard = Shard::armed(plan).await;
    shard.begin(1).await;
    eventually("the load runs", async || (cluster.nodes[0].calls("get") > 0).then_some(())).await;
    tokio::task::block_in_place(|| change(cluster));
    let snapshot = shard.finished().await;
    assert_balanced(&snapshot);
    let total = &snapshot.total;
    let kinds: Vec<_> = snapshot.errors.iter().map(|error| format!("{} {}", error.count, error.kind)).collect();
    println!(
        "| {what} | {} | {} | {} | {} | {} | {} |",
        total.scheduled,
        total.succeeded,
        if kinds.is_empty() { "-".to_owned() } else { kinds.join(", ") },
        total.unsent,
        total.redirected,
        total.deferral_hops,
    );
    assert_eq!((total.scheduled, total.in_flight), (RATE * length_of(plan), 0));
    assert_eq!(total.scheduled, total.succeeded + total.errors + total.unsent);
    assert_eq!(snapshot.errors.iter().map(|error| error.count).sum::<u64>(), total.errors);
    snapshot
}

fn length_of(plan: &TrialPlan) -> u64 {
    match plan.bound {
        Bound::Duration { nanoseconds } => nanoseconds / SECOND,
        Bound::Requests { .. } => unreachable!("it ends by time"),
    }
}

/// At the end of the series the change has finished: requests succeed, and on a timed machine at nearly the full rate.
fn assert_recovered(snapshot: &Snapshot) {
    let per_second = 1_000_000_000 / snapshot.series.interval_nanoseconds;
    let length = (snapshot.window.measure_to_nanoseconds - snapshot.window.measure_from_nanoseconds) / SECOND;
    let last = (length - 1) * per_second..length * per_second;
    let completed: u64 = last.filter_map(|point| snapshot.series.completed.get(usize::try_from(point).ok()?)).sum();
    let wanted = if is_timed() { RATE * 9 / 10 } else { 1 };
    assert!(completed >= wanted, "{completed} of {RATE} in the last second: {:?}", snapshot.series.completed);
}

/// Every request followed its slot.
fn assert_all_followed(snapshot: &Snapshot) {
    assert_eq!(snapshot.total.errors, 0, "{:?}", snapshot.errors);
    assert_sent(&snapshot.total);
    assert!(snapshot.total.redirected > 0);
    assert_recovered(snapshot);
    // A server without a processor for a fifth of a second causes an outage.
    assert!(!is_timed() || snapshot.topology.outages.is_empty(), "{:?}", snapshot.topology.outages);
}

/// The series shows the seconds in which some requests failed.
fn assert_dip(snapshot: &Snapshot) {
    let per_second = usize::try_from(1_000_000_000 / snapshot.series.interval_nanoseconds).unwrap();
    let seconds: Vec<u64> = snapshot.series.completed.chunks(per_second).map(|second| second.iter().sum()).collect();
    assert!(seconds.iter().any(|second| *second < RATE * 9 / 10), "{seconds:?}");
}

/// The number of slots that moved from one node to another, over all changes.
fn moved(snapshot: &Snapshot, from: &str, to: &str) -> u64 {
    let changes = snapshot.topology.changes.iter();
    let moved = |change: &&Change| change.node == to && change.from.as_deref() == Some(from);
    changes.filter(moved).flat_map(|change| &change.slots).map(|range| range.count()).sum()
}

fn has(snapshot: &Snapshot, what: ChangeKind, node: &str, slots: u64) -> bool {
    let owned = |change: &Change| change.slots.iter().map(|range| range.count()).sum::<u64>();
    snapshot
        .topology
        .changes
        .iter()
        .any(|change| (change.what, change.node.as_str(), owned(change)) == (what, node, slots))
}

pub fn manage(arguments: &[&str]) {
    let output = Command::new("redis-cli").arg("--cluster").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

pub fn id(cluster: &RedisCluster, node: usize) -> String {
    cluster.nodes[node].ask(&["CLUSTER", "MYID"])
}

/// Deletes the keys of a slot, which then changes its owner at once.
pub fn hand_over(cluster: &RedisCluster, slot: usize, from: usize, to: usize) {
    let slot = u16::try_from(slot).unwrap();
    let keys: Vec<String> = cluster.nodes[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "100"]);
    for key in keys {
        cluster.nodes[from].ask::<()>(&["DEL", &key]);
    }
    // The new owner first, and all others, so that none takes it back.
    for node in (to..cluster.nodes.len()).chain(0..to) {
        cluster.set_slot(node, slot, "NODE", to);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_is_killed_and_its_replica_takes_over() {
    let mut cluster = RedisCluster::start(3);
    cluster.add_replica(0);
    let mut killed = 0;
    let snapshot = under_load("a primary is killed, its replica takes over", &mut cluster, |cluster| {
        killed = now();
        cluster.nodes[0].kill();
        wait_until("the replica is under load", || cluster.nodes[3].calls("get") > 0);
    })
    .await;
    assert_recovered(&snapshot);
    let kinds = ["ConnectionReset", "ConnectionClosed", "Timeout", "CLUSTERDOWN"];
    assert!(snapshot.errors.iter().all(|error| kinds.contains(&error.kind.as_str())), "{:?}", snapshot.errors);
    let heir = snapshot.nodes.iter().find(|node| node.id == id(&cluster, 3)).unwrap();
    assert!(heir.requests > 0 && heir.slots > 0);

    let windows = windows(&snapshot);
    let own = window(&windows, cluster.slots(0).start, killed);
    let won = cluster.nodes[3].log().times_of("Failover election won");
    assert_begins("the kill", own.from, killed);
    assert_ends("the failover", own.until, won[0]);
    assert_eq!(own.node, cluster.nodes[0].endpoint());
    // While some slots have no owner, the cluster serves none.
    for node in [1, 2] {
        let log = cluster.nodes[node].log();
        let down = log.times_of("Cluster state changed: fail").into_iter().find(|time| *time > killed);
        let Some(down) = down else { continue };
        let up = log.times_of("Cluster state changed: ok").into_iter().find(|time| *time > down).unwrap();
        let theirs = window(&windows, cluster.slots(node).start, down);
        assert_begins("the cluster is down", theirs.from, down);
        assert_ends("the cluster is up", theirs.until, up);
    }
    let [dead, heir] = [0, 3].map(|node| cluster.nodes[node].endpoint());
    let slots = cluster.slots(0).len() as u64;
    assert!(has(&snapshot, ChangeKind::BecamePrimary, &heir, slots), "{:?}", snapshot.topology.changes);
    assert!(has(&snapshot, ChangeKind::Gone, &dead, slots), "{:?}", snapshot.topology.changes);
    assert_eq!(moved(&snapshot, &dead, &heir), slots);
    assert_eq!((snapshot.topology.primaries, snapshot.topology.replicas), (3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_restarted() {
    let mut cluster = RedisCluster::steady(3);
    let mut killed = 0;
    let snapshot = under_load("a node is restarted", &mut cluster, |cluster| {
        killed = now();
        cluster.nodes[0].restart();
        wait_until("it is under load again", || cluster.nodes[0].calls("get") > 0);
    })
    .await;
    assert_recovered(&snapshot);
    let kinds = ["ConnectionReset", "ConnectionClosed", "CLUSTERDOWN"];
    assert!(snapshot.errors.iter().all(|error| kinds.contains(&error.kind.as_str())), "{:?}", snapshot.errors);
    assert_dip(&snapshot);
    // The node accepts connections at once, but serves only when it is sure to own its slots.
    let up =
        cluster.nodes[0].log().times_of("Cluster state changed: ok").into_iter().find(|time| *time > killed).unwrap();
    let own = window(&windows(&snapshot), cluster.slots(0).start, killed);
    assert_begins("the kill", own.from, killed);
    assert_ends("the node is back", own.until, up);
    let slots = cluster.slots(0);
    assert_eq!((usize::from(own.slots.first), usize::from(own.slots.last)), (slots.start, slots.end - 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_slots_move_to_another_primary() {
    let mut cluster = RedisCluster::steady(3);
    let snapshot = under_load("1,000 slots move to another primary", &mut cluster, |cluster| {
        let (from, to) = (id(cluster, 0), id(cluster, 1));
        let words = ["--cluster-from", &from, "--cluster-to", &to, "--cluster-slots", "1000", "--cluster-yes"];
        manage(&[["reshard", &cluster.nodes[0].endpoint()].as_slice(), &words].concat());
    })
    .await;
    assert_all_followed(&snapshot);
    let slots = |node| snapshot.nodes.iter().find(|known| known.id == id(&cluster, node)).unwrap().slots;
    assert_eq!((slots(0), slots(1)), (4461, 6461));
    let [from, to] = [0, 1].map(|node| cluster.nodes[node].endpoint());
    assert_eq!(moved(&snapshot, &from, &to), 1000, "{:?}", snapshot.topology.changes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fourth_primary_gets_a_part_of_the_slots() {
    // redis-cli takes a third from each node, one rounded up and two rounded down: 201 + 200 + 200.
    const SLOTS: u32 = 601;
    let mut cluster = RedisCluster::steady(3);
    let mut plan = plan_of(&cluster);
    // Few keys: most slots get no requests, so no redirect reports their move.
    plan.workload_mut().keys.count = 64;
    // A busy machine needs time to move this many slots, by several commands each.
    plan.bound = Bound::Duration { nanoseconds: 3 * LENGTH * SECOND };
    let snapshot = planned_load("a fourth primary is added and gets its part", &mut cluster, &plan, |cluster| {
        cluster.add_primary();
        let (to, slots) = (id(cluster, 3), SLOTS.to_string());
        let words = ["--cluster-from", "all", "--cluster-to", &to, "--cluster-slots", &slots, "--cluster-yes"];
        manage(&[["reshard", &cluster.nodes[0].endpoint()].as_slice(), &words].concat());
    })
    .await;
    assert_all_followed(&snapshot);
    let added = snapshot.nodes.iter().find(|node| node.id == id(&cluster, 3)).unwrap();
    assert!(added.requests > 0 && added.slots == SLOTS, "{added:?}");
    let added = cluster.nodes[3].endpoint();
    let appeared = |change: &Change| (change.what, &change.node) == (ChangeKind::Appeared, &added);
    assert!(snapshot.topology.changes.iter().any(appeared), "{:?}", snapshot.topology.changes);
    let moved: u64 = (0..3).map(|node| moved(&snapshot, &cluster.nodes[node].endpoint(), &added)).sum();
    assert_eq!(moved, u64::from(SLOTS), "{:?}", snapshot.topology.changes);
    assert_eq!(snapshot.topology.primaries, 4);
}
