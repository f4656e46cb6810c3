//! Servers that temporarily refuse a request get it again after a pause.

use redisbench_loadgen::cluster::slot_of;
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::plan::{Bound, Load, Preload, TrialPlan};
use redisbench_wire::snapshot::Snapshot;

use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, operation, plan, run, standalone, topology};

const REQUESTS: u64 = 400;

fn patient(load: &Load) -> TrialPlan {
    let mut plan = plan();
    plan.load = load.clone();
    plan.pipeline = 4;
    plan.bound = Bound::Requests { count: REQUESTS, max_nanoseconds: 30 * SECOND };
    plan.timeouts.request_nanoseconds = 20 * SECOND;
    plan
}

fn assert_all_succeeded(snapshot: &Snapshot) {
    assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (REQUESTS, REQUESTS), "{:?}", snapshot.errors);
    assert!(snapshot.total.deferral_hops > 0);
    assert_eq!((snapshot.total.redirected, snapshot.total.redirect_hops), (0, 0));
}

/// A restarted server that accepts connections while it loads a data file.
fn loading() -> RedisServer {
    let mut server = RedisServer::start(&["--enable-debug-command", "local"]);
    server.ask::<()>(&["DEBUG", "POPULATE", "2000", "other", "100"]);
    server.ask::<()>(&["SAVE"]);
    // It replies after each kilobyte and takes 500 us per key: a second in total.
    server.restart_loading(&["--loading-process-events-interval-bytes", "1024", "--key-load-delay", "500"]);
    server
}

#[tokio::test]
async fn a_server_that_loads_its_keys_is_waited_for() {
    for load in [Load::ClosedLoop, open_loop(2000)] {
        let server = loading();
        let snapshot = run(patient(&load), standalone(&server), 1).await;
        assert_all_succeeded(&snapshot);
        // Deferred requests kept their places; no others were sent instead.
        let rejected = ["get", "set"].map(|command| server.command_statistic(command, "rejected_calls"));
        assert_eq!(rejected.iter().sum::<u64>(), snapshot.total.deferral_hops);
        if load == Load::ClosedLoop {
            let windows = 2 * 4;
            let pauses = snapshot.total.deferral_hops / windows;
            assert!(pauses < 12, "{pauses} pauses, each twice as long as the one before");
        }
    }
}

/// As after a failover that sentinels report.
#[tokio::test]
async fn a_server_that_took_over_and_loads_its_keys_is_waited_for() {
    let before = RedisServer::start(&[]);
    let mut bench = Bench::connected(patient(&Load::ClosedLoop), standalone(&before), 1).await;
    let server = loading();
    bench.engine.update_topology(&standalone(&server).into()).unwrap();
    bench.start(1);
    let snapshot = bench.completed(1).await;
    assert_all_succeeded(&snapshot);
    assert_eq!(before.calls("get") + before.calls("set"), 0);
}

#[tokio::test]
async fn a_cluster_that_is_down_is_waited_for() {
    let cluster = RedisCluster::start(3);
    let slot = "7";
    for load in [Load::ClosedLoop, open_loop(2000)] {
        let mut plan = patient(&load);
        plan.connections = 6;
        let mut bench = Bench::connected(plan, topology(&cluster), 1).await;
        // A primary refuses all requests while a slot has no owner.
        cluster.nodes[0].ask::<()>(&["CLUSTER", "DELSLOTS", slot]);
        let down = || cluster.nodes[0].ask::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:fail");
        wait_until("the cluster is down", down);
        bench.start(1);
        while bench.live().await.total.deferral_hops == 0 {}
        cluster.nodes[0].ask::<()>(&["CLUSTER", "ADDSLOTS", slot]);
        let snapshot = bench.completed(1).await;
        assert_all_succeeded(&snapshot);
        wait_until("the cluster is up", || !down());
    }
}

#[tokio::test]
async fn a_node_that_is_up_again_ends_no_pause_of_another() {
    let cluster = RedisCluster::steady(3);
    // Each node's first slot, without which it refuses all requests.
    let slots = [0, 5461].map(|slot: u16| (cluster.owner(slot), slot.to_string()));
    let change = |node: usize, command: &str| {
        let (owner, slot) = &slots[node];
        cluster.nodes[*owner].ask::<()>(&["CLUSTER", command, slot]);
    };
    let mut plan = patient(&open_loop(2000));
    plan.bound = Bound::Requests { count: 12_000, max_nanoseconds: 30 * SECOND };
    plan.connections = 6;
    let mut bench = Bench::connected(plan, topology(&cluster), 1).await;
    change(0, "DELSLOTS");
    bench.start(1);
    let other = &cluster.nodes[slots[1].0];
    // More often than one request may be deferred.
    for _ in 0..12 {
        let refused = other.command_statistic("get", "rejected_calls");
        change(1, "DELSLOTS");
        wait_until("a request was refused twice", || other.command_statistic("get", "rejected_calls") > refused + 20);
        let served = other.calls("get");
        change(1, "ADDSLOTS");
        wait_until("it serves again", || other.calls("get") > served);
    }
    assert_eq!(bench.live().await.total.errors, 0);
    change(0, "ADDSLOTS");
    let snapshot = bench.completed(1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (12_000, 0), "{:?}", snapshot.errors);
}

#[tokio::test]
async fn keys_on_their_way_are_waited_for() {
    let cluster = RedisCluster::steady(3);
    let mut plan = patient(&Load::ClosedLoop);
    plan.workload_mut().operations = vec![operation("mget", 1, "MGET {moving}:a {moving}:b")];
    let slot = slot_of(b"moving");
    let source = cluster.owner(slot);
    let target = (source + 1) % 3;
    // Only one of the two keys exists.
    cluster.nodes[source].ask::<()>(&["SET", "{moving}:a", "1"]);
    cluster.set_slot(target, slot, "IMPORTING", source);
    cluster.set_slot(source, slot, "MIGRATING", target);
    let mut bench = Bench::started(plan, topology(&cluster), 1).await;
    while bench.live().await.total.deferral_hops == 0 {}
    cluster.nodes[source].ask::<()>(&["CLUSTER", "SETSLOT", &slot.to_string(), "STABLE"]);
    let snapshot = bench.completed(1).await;
    assert_all_succeeded(&snapshot);
    assert_eq!(cluster.nodes[source].calls("mget"), REQUESTS);
}

#[tokio::test]
async fn what_would_be_waited_for_too_long_is_an_error_of_its_kind() {
    let cluster = RedisCluster::steady(3);
    cluster.nodes[0].ask::<()>(&["CLUSTER", "DELSLOTS", "7"]);
    let down = || cluster.nodes[0].ask::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:fail");
    wait_until("the cluster is down", down);
    let mut plan = patient(&open_loop(2000));
    // All keys in a slot of the node that is down.
    let tag = (0..1000_u32).find(|number| cluster.owner(slot_of(number.to_string().as_bytes())) == 0).unwrap();
    plan.workload_mut().keys.prefix = format!("{{{tag}}}:");
    plan.timeouts.request_nanoseconds = 100 * MILLISECOND;
    let snapshot = run(plan, topology(&cluster), 1).await;
    assert_eq!((snapshot.total.errors, snapshot.total.unanswered), (REQUESTS, 0));
    let error = &snapshot.errors[0];
    assert_eq!((error.kind.as_str(), error.count), ("CLUSTERDOWN", REQUESTS));
    // Pauses of 10, 20 and 40 ms; another would exceed 100 ms.
    assert_eq!(snapshot.total.deferral_hops, 4 * REQUESTS);
}

/// As after the restart of a primary, which refuses everything for two seconds. The time to prepare bounds the preload instead.
#[tokio::test]
async fn a_preload_outlasts_refusals_that_are_longer_than_the_request_timeout() {
    let cluster = RedisCluster::steady(3);
    let down = |state: &str| cluster.nodes[0].ask::<String>(&["CLUSTER", "INFO"]).contains(state);
    cluster.nodes[0].ask::<()>(&["CLUSTER", "DELSLOTS", "7"]);
    wait_until("the cluster is down", || down("cluster_state:fail"));
    let mut plan = patient(&Load::ClosedLoop);
    (plan.preload, plan.timeouts.request_nanoseconds) = (Preload::Always, 100 * MILLISECOND);
    let keys = 30;
    plan.workload_mut().keys.count = keys;
    let mut bench = Bench::connected(plan, topology(&cluster), 1).await;
    let recovery = async {
        // A request has pauses of 10, 20 and 40 ms; another would exceed 100 ms.
        let refused = || cluster.nodes[0].command_statistic("set", "rejected_calls") > 4 * keys;
        while !refused() {
            tokio::task::yield_now().await;
        }
        cluster.nodes[0].ask::<()>(&["CLUSTER", "ADDSLOTS", "7"]);
    };
    let (preloaded, ()) = tokio::join!(bench.preload(), recovery);
    assert_eq!(preloaded, keys);
}
