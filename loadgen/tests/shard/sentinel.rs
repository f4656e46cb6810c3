//! A primary named by real sentinels: their queries, and failovers under load.

use redisbench_testkit::log::{TOLERANCE, assert_begins, assert_ends, is_timed, now};
use redisbench_testkit::sentinel::{Group, Sentinel};
use redisbench_testkit::servers::{RedisServer, wait_until};
use redisbench_wire::FailureReason;
use redisbench_wire::plan::{Topology, TrialPlan};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::topology::ChangeKind;

use crate::client::{Shard, eventually};
use crate::load::assert_sent;
use crate::plans::{SECOND, plan, steady};
use crate::refusals::assert_refused;
use crate::windows::{window, windows};

const RATE: u64 = 2000;
const SECONDS: u64 = 8;

/// The plan for the primary `name` of the sentinel at `endpoint`.
pub fn watched(endpoint: &str, name: &str) -> TrialPlan {
    let mut plan = plan(endpoint);
    plan.target.topology = Topology::Sentinel;
    plan.target.master_name = Some(name.into());
    plan
}

fn plan_of(group: &Group) -> TrialPlan {
    let mut plan = steady(watched("", "mymaster"), RATE, SECONDS);
    plan.target.endpoints = group.sentinels.iter().map(Sentinel::endpoint).collect();
    plan.timeouts.request_nanoseconds = SECOND;
    plan
}

/// Starts the load, breaks something once the primary has received a part of it, and waits for the end.
async fn run_and_break(group: &mut Group, breaking: impl FnOnce(&mut Group)) -> Snapshot {
    let shard = Shard::armed(&plan_of(group)).await;
    let before = group.primary.calls("get");
    shard.begin(1).await;
    eventually("the primary is loaded", async || (group.primary.calls("get") > before + 1000).then_some(())).await;
    breaking(group);
    shard.finished().await
}

/// Every request is accounted for, and both servers received some.
fn assert_followed(group: &Group, snapshot: &Snapshot) {
    let total = snapshot.total;
    assert_eq!(total.scheduled, RATE * SECONDS);
    assert!(total.balances() && total.in_flight == 0, "{total:?}");
    assert_sent(&total);
    // At most the requests in flight on broken connections failed; later ones waited.
    assert!(total.errors < total.scheduled / 10, "{total:?} {:?}", snapshot.errors);
    let labels: Vec<_> = snapshot.nodes.iter().map(|node| node.address.as_str()).collect();
    assert_eq!(labels, [group.primary.endpoint(), group.replica.endpoint()]);
    assert!(snapshot.nodes.iter().all(|node| node.requests > node.errors), "{:?}", snapshot.nodes);
    // The replica also executed replicated writes, but its reads come from the load. Some may have timed out.
    let reads = group.replica.calls("get");
    assert!(reads > 0 && reads <= snapshot.nodes[1].requests, "{reads} reads, {:?}", snapshot.nodes[1]);
    assert!(group.replica.ask::<String>(&["INFO", "replication"]).contains("role:master"));
}

#[tokio::test]
async fn a_primary_that_dies_is_followed() {
    let mut group = Group::start();
    let mut killed = 0;
    let snapshot = run_and_break(&mut group, |group| {
        killed = now();
        group.primary.kill();
    })
    .await;
    assert_followed(&group, &snapshot);
    // Sentinels name the replica from then on. The leader of the failover is the first.
    let promoted =
        group.sentinels.iter().flat_map(|sentinel| sentinel.log().times_of("+promoted-slave")).min().unwrap();
    let own = window(&windows(&snapshot), 0, killed);
    assert_begins("the kill", own.from, killed);
    assert_ends("the promotion", own.until, promoted);
    assert_eq!(own.node, group.primary.endpoint());
    let changes: Vec<_> = snapshot.topology.changes.iter().map(|change| (change.what, change.node.clone())).collect();
    for expected in
        [(ChangeKind::BecamePrimary, group.replica.endpoint()), (ChangeKind::Gone, group.primary.endpoint())]
    {
        assert!(changes.contains(&expected), "{expected:?} in {changes:?}");
    }
    assert_eq!((snapshot.topology.primaries, snapshot.topology.replicas), (1, 0));
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_is_followed() {
    let mut group = Group::start();
    let failover = |group: &mut Group| {
        group.sentinels[0].ask(&["SENTINEL", "FAILOVER", "mymaster"]).unwrap();
    };
    let snapshot = run_and_break(&mut group, failover).await;
    assert_followed(&group, &snapshot);
    // The old primary serves until the new one does.
    let short = windows(&snapshot).iter().all(|window| window.until - window.from <= TOLERANCE);
    assert!(!is_timed() || short, "{:?}", snapshot.topology);
}

#[tokio::test]
async fn what_is_no_sentinel_or_knows_no_such_primary_is_told() {
    let redis = RedisServer::start(&[]);
    let sentinel = Sentinel::start(&redis);
    wait_until("the sentinel answers", || sentinel.ask(&["PING"]).is_ok());
    for (plan, parts) in [
        (watched(&redis.endpoint(), "mymaster"), ["is not a sentinel", "spec.targets[0].type: Standalone"]),
        (watched(&sentinel.endpoint(), "other"), ["has no master \"other\"", "that it has: mymaster"]),
        (plan(&sentinel.endpoint()), ["is a sentinel", "spec.targets[0].type: Sentinel"]),
    ] {
        assert_refused(&plan, FailureReason::WrongTopology, &parts).await;
    }
}
