//! Requests of several commands against real servers, checked against the servers' own counts.

use redisbench_loadgen::cluster::slot_of;
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::plan::{Bound, Load, Topology, Transaction, TrialPlan, Wait};
use redisbench_wire::snapshot::Snapshot;

use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, operation, plan, run, standalone, topology};

const SIZE: u32 = 5;

/// SETs in transactions of five.
fn transactions(shared_keys: bool) -> TrialPlan {
    let mut plan = plan();
    plan.workload_mut().operations = vec![operation("set", 1, "SET __key__ __data__")];
    plan.workload_mut().options.transaction = Some(Transaction { size: SIZE, shared_keys });
    plan.pipeline = 4;
    plan.bound = Bound::Requests { count: 500, max_nanoseconds: 20 * SECOND };
    plan
}

fn clustered() -> TrialPlan {
    let mut plan = transactions(true);
    plan.target.topology = Topology::Cluster;
    plan.connections = 6;
    plan
}

fn kinds(snapshot: &Snapshot) -> Vec<(&str, u64)> {
    snapshot.errors.iter().map(|error| (error.kind.as_str(), error.count)).collect()
}

#[tokio::test]
async fn a_transaction_is_one_request() {
    for load in [Load::ClosedLoop, open_loop(5000)] {
        let server = RedisServer::start(&[]);
        let snapshot = run(TrialPlan { load, ..transactions(false) }, standalone(&server), 2).await;
        assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (500, 500), "{:?}", snapshot.errors);
        assert_eq!([server.calls("multi"), server.calls("exec")], [500, 500]);
        assert_eq!(server.calls("set"), 500 * u64::from(SIZE));
        // Each command has its own key: 2500 draws of 1000 keys hit more than 900.
        assert!(server.ask::<u64>(&["DBSIZE"]) > 850);
    }
}

#[tokio::test]
async fn commands_of_a_transaction_may_share_their_key() {
    let server = RedisServer::start(&[]);
    let mut plan = transactions(true);
    plan.bound = Bound::Requests { count: 10, max_nanoseconds: 20 * SECOND };
    plan.workload_mut().keys.count = 1_000_000;
    let snapshot = run(plan, standalone(&server), 1).await;
    assert_eq!((snapshot.total.succeeded, server.calls("set")), (10, 50));
    assert_eq!(server.ask::<u64>(&["DBSIZE"]), 10);
}

#[tokio::test]
async fn an_error_within_exec_fails_the_request() {
    let server = RedisServer::start(&[]);
    let mut plan = transactions(false);
    plan.workload_mut().operations =
        vec![operation("push", 1, "LPUSH string x"), operation("set", 1, "SET __key__ __data__")];
    server.ask::<()>(&["SET", "string", "a"]);
    let snapshot = run(plan, standalone(&server), 1).await;
    let [push, set] = snapshot.operations.as_slice() else { panic!("{:?}", snapshot.operations) };
    assert!(push.tally.errors > 0 && push.tally.succeeded == 0, "{:?}", push.tally);
    assert!(set.tally.errors == 0 && set.tally.succeeded > 0, "{:?}", set.tally);
    assert_eq!(kinds(&snapshot), [("WRONGTYPE", push.tally.errors)]);
    assert_eq!(server.calls("exec"), 500, "a request of an error is not sent again");
    assert_eq!(snapshot.total.unanswered, 0);
}

#[tokio::test]
async fn a_command_that_cannot_be_queued_aborts_the_transaction() {
    let server = RedisServer::start(&[]);
    let mut plan = transactions(false);
    plan.workload_mut().operations =
        vec![operation("get", 1, "GET __key__ more"), operation("set", 1, "SET __key__ __data__")];
    let snapshot = run(plan, standalone(&server), 1).await;
    let [get, set] = snapshot.operations.as_slice() else { panic!("{:?}", snapshot.operations) };
    assert_eq!(kinds(&snapshot), [("ERR", get.tally.errors)]);
    assert!(snapshot.errors[0].first_message.contains("wrong number of arguments"), "{:?}", snapshot.errors);
    assert_eq!(set.tally.errors, 0);
    assert_eq!(server.calls("set"), set.tally.succeeded * u64::from(SIZE));
}

#[tokio::test]
async fn a_transaction_goes_to_the_node_of_its_keys() {
    let cluster = RedisCluster::steady(3);
    let snapshot = run(clustered(), topology(&cluster), 2).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.redirect_hops), (500, 0), "{:?}", snapshot.errors);
    assert_eq!([cluster.calls("exec"), cluster.calls("set")], [500, 500 * u64::from(SIZE)]);
    assert!(cluster.nodes.iter().all(|node| node.calls("exec") > 0));
}

#[tokio::test]
async fn a_transaction_that_moved_is_sent_again_as_a_whole() {
    let cluster = RedisCluster::steady(3);
    let mut wrong = topology(&cluster);
    wrong.slots.as_mut().unwrap().fill(1);
    for load in [Load::ClosedLoop, open_loop(5000)] {
        cluster.reset_statistics();
        let snapshot = run(TrialPlan { load, ..clustered() }, wrong.clone(), 1).await;
        assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (500, 0), "{:?}", snapshot.errors);
        assert!(snapshot.total.redirected > 0 && snapshot.total.redirect_hops == snapshot.total.redirected);
        // A refused transaction executed none of its commands.
        assert_eq!(cluster.calls("set"), 500 * u64::from(SIZE));
        assert_eq!(cluster.calls("multi"), 500 + snapshot.total.redirect_hops);
    }
}

#[tokio::test]
async fn a_transaction_is_asked_for_where_its_slot_is_going() {
    let cluster = RedisCluster::steady(2);
    let slot = slot_of(b"tag");
    let (from, to) = if cluster.owner(slot) == 0 { (0, 1) } else { (1, 0) };
    cluster.set_slot(to, slot, "IMPORTING", from);
    cluster.set_slot(from, slot, "MIGRATING", to);
    let mut plan = clustered();
    plan.workload_mut().keys.prefix = "{tag}".into();
    plan.bound = Bound::Requests { count: 100, max_nanoseconds: 20 * SECOND };
    let snapshot = run(plan, topology(&cluster), 1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.redirect_hops), (100, 100), "{:?}", snapshot.errors);
    assert_eq!(cluster.nodes[to].calls("set"), 100 * u64::from(SIZE));
    assert_eq!(cluster.nodes[from].calls("set"), 0);
    assert_eq!(cluster.nodes[to].calls("asking"), 100);
}

/// SETs with a WAIT of 50 ms for a number of replicas, and GETs.
fn waiting(replicas: u32, timeout_milliseconds: u64) -> TrialPlan {
    let mut plan = plan();
    let wait = Wait { replicas, timeout_milliseconds, operations: vec![1] };
    plan.workload_mut().options.wait = Some(wait);
    plan.bound = Bound::Requests { count: 60, max_nanoseconds: 20 * SECOND };
    plan
}

#[tokio::test]
async fn a_write_waits_for_its_replicas() {
    let server = RedisServer::start(&[]);
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &server.address().port().to_string()]);
    let in_step = || replica.ask::<String>(&["INFO", "replication"]).contains("master_link_status:up");
    wait_until("the replica is in step", in_step);
    for (replicas, transaction) in [(1, false), (2, false), (2, true)] {
        server.reset_statistics();
        // Without a replica, WAIT times out after 50 ms; on a busy machine a replica that answers may take longer than that.
        let mut plan = waiting(replicas, if replicas == 1 { 10_000 } else { 50 });
        plan.workload_mut().options.transaction = transaction.then_some(Transaction { size: 2, shared_keys: false });
        let snapshot = run(plan, standalone(&server), 1).await;
        let [get, set] = snapshot.operations.as_slice() else { panic!("{:?}", snapshot.operations) };
        assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (60, 0), "{:?}", snapshot.errors);
        assert_eq!(server.calls("wait"), set.tally.succeeded, "reads do not wait");
        let under = if replicas == 1 { 0 } else { set.tally.succeeded };
        assert_eq!([set.tally.under_replicated, get.tally.under_replicated], [under, 0]);
        assert_eq!(snapshot.total.under_replicated, under);
        if replicas == 2 {
            let shortest = set.latency.response.decode(redisbench_wire::histogram::Kind::Request).unwrap().min();
            assert!(shortest > 45 * MILLISECOND, "the wait is part of the request: {shortest}");
        }
    }
}

#[tokio::test]
async fn a_write_that_moved_is_waited_for_where_it_was_written() {
    let cluster = RedisCluster::steady(3);
    let mut wrong = topology(&cluster);
    wrong.slots.as_mut().unwrap().fill(1);
    let mut plan = waiting(1, 50);
    plan.target.topology = Topology::Cluster;
    plan.connections = 3;
    let snapshot = run(plan, wrong, 1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (60, 0), "{:?}", snapshot.errors);
    assert_eq!(snapshot.operations[1].tally.under_replicated, snapshot.operations[1].tally.succeeded);
    assert_eq!(cluster.calls("set"), snapshot.operations[1].tally.succeeded);
}

#[tokio::test]
async fn a_load_that_was_aborted_leaves_clean_connections() {
    let server = RedisServer::start(&[]);
    let mut plan = transactions(false);
    plan.bound = Bound::Duration { nanoseconds: 10 * SECOND };
    let mut bench = Bench::connected(plan, standalone(&server), 1).await;
    bench.preload().await;
    bench.start(1);
    wait_until("the load runs", || server.calls("exec") > 100);
    bench.engine.abort().unwrap();
    let aborted = bench.finished(1).await;
    assert!(aborted.aborted && aborted.total.balances());
    bench.engine.rearm().unwrap();
    bench.start(2);
    wait_until("the load runs again", || server.calls("exec") > 2 * aborted.total.succeeded + 100);
    bench.engine.abort().unwrap();
    let again = bench.finished(2).await;
    assert_eq!((again.total.errors, again.generator.reconnects), (0, 0), "{:?}", again.errors);
}

#[tokio::test]
async fn a_connection_that_breaks_fails_its_transactions() {
    let server = RedisServer::start(&[]);
    let mut plan = transactions(false);
    plan.bound = Bound::Duration { nanoseconds: 3 * SECOND };
    let mut bench = Bench::started(plan, standalone(&server), 1).await;
    for killed in 1..=5 {
        wait_until("the load runs", || server.calls("exec") > 50 * killed);
        server.ask::<()>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }
    let snapshot = bench.completed(1).await;
    assert!(snapshot.total.succeeded > 0, "{:?}", snapshot.total);
    let broke = |kind: &str| ["ConnectionReset", "ConnectionClosed"].contains(&kind);
    assert!(kinds(&snapshot).iter().all(|(kind, _)| broke(kind)), "{:?}", snapshot.errors);
    // Executed transactions either succeeded or have an unknown outcome.
    let executed = server.calls("exec");
    assert!(
        (snapshot.total.succeeded..=snapshot.total.scheduled).contains(&executed),
        "{executed} {:?}",
        snapshot.total
    );
}
