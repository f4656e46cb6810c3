//! The time in which a target counts as unavailable: from the first request without an answer to the next success, with and without
//! verification.

use redisbench_loadgen::cluster::slot_of;
use redisbench_loadgen::engine::EngineEvent;
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::plan::{Bound, KeyPattern, Load, Preload, TrialPlan, Verify};

use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, operation, plan, standalone, topology};
use crate::peer::{Peer, Received, VALUE};

/// Reads over one connection, one at a time, in the order of their keys.
fn one_at_a_time() -> TrialPlan {
    let mut plan = plan();
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    plan.workload_mut().keys.count = 100_000;
    plan.workload_mut().keys.pattern = KeyPattern::Sequential;
    plan.connections = 1;
    plan.load = open_loop(200);
    plan.bound = Bound::Duration { nanoseconds: 3 * SECOND };
    plan
}

fn key(received: &Received) -> &str {
    &received.arguments[1]
}

/// With one request in flight, the order of requests shows the effect of the first success.
#[tokio::test]
async fn the_first_success_ends_an_outage_and_the_pauses() {
    for verify in [Verify::None, Verify::Replies] {
        let peer = Peer::start();
        let mut bench = Bench::connected(TrialPlan { verify, ..one_at_a_time() }, peer.topology(), 1).await;
        peer.reply_with(b"-LOADING Redis is loading the dataset in memory\r\n");
        bench.start(1);
        // The next pause would be 160 ms.
        let of_first = |received: &[Received]| received.iter().filter(|one| key(one) == key(&received[0])).count();
        peer.wait_for("the first request five times", |received| !received.is_empty() && of_first(received) >= 5);
        let refused = peer.reply_with(VALUE);
        let first = key(&peer.received()[0]).to_owned();
        let snapshot = bench.completed(1).await;
        assert_eq!(snapshot.total.errors, 0, "{:?}", snapshot.errors);
        let received = peer.received();
        let served: Vec<&str> = received[refused..].iter().map(key).take(2).collect();
        assert!(served.contains(&first.as_str()), "{verify:?}: {served:?} come first, and {first} has paused longest");
        let [outage] = snapshot.topology.outages.as_slice() else { panic!("{verify:?}: {:?}", snapshot.topology) };
        assert!(!outage.lasting && outage.until_nanoseconds < snapshot.window.measure_to_nanoseconds, "{outage:?}");
    }
}

/// Closing connections under a verified load loses no data.
#[tokio::test]
async fn cut_connections_cause_an_outage_that_ends_under_verification() {
    for (verify, load) in [
        (Verify::Replies, Load::ClosedLoop),
        (Verify::Replies, open_loop(2_000)),
        (Verify::Values, Load::ClosedLoop),
        (Verify::Values, open_loop(2_000)),
    ] {
        let redis = RedisServer::start(&[]);
        let mut plan = plan();
        (plan.verify, plan.load, plan.preload) = (verify, load, Preload::Always);
        plan.workload_mut().keys.count = 200;
        plan.bound = Bound::Duration { nanoseconds: 4 * SECOND };
        let mut bench = Bench::connected(plan, standalone(&redis), 1).await;
        bench.preload().await;
        bench.start(1);
        let gets = || redis.calls("get");
        wait_until("the load runs", || gets() > 100);
        redis.ask::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
        bench.until(|event| matches!(event, EngineEvent::ConnectionLost { .. })).await;
        let before = gets();
        wait_until("the load goes on", || gets() > before + 100);
        let snapshot = bench.completed(1).await;
        let outages = &snapshot.topology.outages;
        assert!(outages.iter().all(|outage| !outage.lasting), "{verify:?}: {outages:?}");
        let found = snapshot.verification.as_ref().unwrap().counts;
        assert_eq!((found.lost_keys, found.lost_writes, found.corrupt, found.mismatched), (0, 0, 0, 0), "{found:?}");
    }
}

/// A server that restarts without its data has lost all keys, but is unavailable only while it is down.
#[tokio::test]
async fn a_restarted_server_has_lost_its_keys_and_is_available_again() {
    let mut redis = RedisServer::start(&[]);
    let mut plan = plan();
    (plan.verify, plan.preload) = (Verify::Values, Preload::Always);
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    plan.workload_mut().keys.count = 200;
    plan.load = open_loop(1_000);
    plan.bound = Bound::Duration { nanoseconds: 3 * SECOND };
    let mut bench = Bench::connected(plan, standalone(&redis), 1).await;
    bench.preload().await;
    bench.start(1);
    wait_until("the load runs", || redis.calls("get") > 100);
    redis.restart();
    let snapshot = bench.completed(1).await;
    assert!(redis.calls("get") > 0, "nothing was read after the restart: {:?}", snapshot.total);
    let outages = &snapshot.topology.outages;
    assert!(!outages.is_empty() && outages.iter().all(|outage| !outage.lasting), "{outages:?}");
    let found = snapshot.verification.as_ref().unwrap().counts;
    assert_eq!((found.lost_keys, found.lost_writes, found.corrupt), (200, 0, 0), "{found:?}");
}

/// Servers with `timeout` and load balancers close idle connections. With one caller and two connections, one is always idle.
#[tokio::test]
async fn an_idle_connection_that_closes_is_no_outage() {
    let peer = Peer::start();
    let plan = TrialPlan { connections: 2, concurrency: Some(1), load: Load::ClosedLoop, ..one_at_a_time() };
    let mut bench = Bench::started(plan, peer.topology(), 1).await;
    peer.wait_for("both connections", |received| received.iter().any(|one| one.connection == 1));
    peer.hold();
    wait_until("the caller waits", || peer.unanswered() == 1);
    let used = peer.received().last().unwrap().connection;
    peer.close_connection(1 - used);
    bench.until(|event| matches!(event, EngineEvent::ConnectionLost { .. })).await;
    // The pause before reconnecting is longer than the shortest outage that is counted.
    bench.until(|event| matches!(event, EngineEvent::Connected { ready: 2, .. })).await;
    peer.release();
    let snapshot = bench.completed(1).await;
    assert_eq!((snapshot.total.errors, snapshot.generator.reconnects), (0, 1));
    assert_eq!(snapshot.topology.outages, []);
}

#[tokio::test]
async fn a_dead_node_that_gets_no_requests_is_no_outage() {
    let mut cluster = RedisCluster::steady(2);
    let mut plan = plan();
    let tag = (0..1000_u32).find(|number| cluster.owner(slot_of(number.to_string().as_bytes())) == 0).unwrap();
    plan.workload_mut().keys.prefix = format!("{{{tag}}}:");
    plan.load = open_loop(1_000);
    plan.bound = Bound::Duration { nanoseconds: 3 * SECOND };
    let mut bench = Bench::started(plan, topology(&cluster), 1).await;
    wait_until("the load runs", || cluster.nodes[0].calls("get") > 100);
    cluster.nodes[1].kill();
    bench.until(|event| matches!(event, EngineEvent::ConnectFailed { .. })).await;
    let snapshot = bench.completed(1).await;
    assert_eq!(snapshot.total.errors, 0, "{:?}", snapshot.errors);
    assert_eq!(snapshot.topology.outages, []);
}

/// After the failover of a virtual address all connections are dead without a reset. One caller times out on one connection; the other is
/// idle, so no request would detect that it is dead.
#[tokio::test]
async fn a_timeout_has_the_connections_at_rest_tested() {
    let peer = Peer::start();
    let mut plan = TrialPlan { connections: 2, concurrency: Some(1), load: Load::ClosedLoop, ..one_at_a_time() };
    plan.timeouts.request_nanoseconds = 200 * MILLISECOND;
    plan.bound = Bound::Duration { nanoseconds: 100 * SECOND };
    let mut bench = Bench::started(plan, peer.topology(), 1).await;
    peer.wait_for("both connections", |received| received.iter().any(|one| one.connection == 1));
    let before = peer.pings();
    peer.hold();
    // Under load, idle connections are pinged only after a timeout.
    wait_until("the other connection is tested", || peer.pings() > before);
    bench.engine.abort().unwrap();
    bench.finished(1).await;
}
