//! Connections with a lifetime: closed and made again while a load runs, without errors, as the server counts them.

use redisbench_loadgen::engine::{Access, EngineEvent, Handshake};
use redisbench_loadgen::resp::append_command;
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Bound, Lifetime, LifetimeLimit, LifetimeSpread, Load, TrialPlan};
use redisbench_wire::snapshot::{Churn, Snapshot};

use crate::harness::{Bench, MILLISECOND, SECOND, count, open_loop, plan, standalone, topology};

fn living(limit: LifetimeLimit, spread: LifetimeSpread) -> TrialPlan {
    let mut plan = plan();
    plan.connections = 4;
    plan.connection_lifetime = Some(Lifetime { limit, spread });
    plan
}

/// Connections that the servers have accepted so far, by a connection that is kept.
pub fn accepted(connections: &mut [redis::Connection]) -> u64 {
    let of = |connection: &mut redis::Connection| -> u64 {
        let info: String = redis::cmd("INFO").arg("stats").query(connection).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap();
        line.parse().unwrap()
    };
    connections.iter_mut().map(of).sum()
}

/// Nothing of the churn counts as an error, an outage or a reconnect, and the times are those of the connections made. If a time ends the
/// load, its last requests may become due too late to be sent on a busy machine.
fn assert_quiet(snapshot: &Snapshot) -> Churn {
    assert_eq!(
        (snapshot.total.errors, snapshot.total.unsent),
        (0, snapshot.total.unsent_at_end),
        "{:?}",
        snapshot.errors
    );
    assert_eq!(snapshot.generator.reconnects, 0);
    assert!(snapshot.topology.outages.is_empty(), "{:?}", snapshot.topology.outages);
    let churn = snapshot.churn.clone().unwrap();
    assert_eq!(count(&churn.connect, Kind::Request), churn.made);
    assert!(churn.made <= churn.closed && churn.closed <= churn.made + 8, "{churn:?}");
    churn
}

/// Runs a plan, and waits until all closed connections were made again. Returns what the servers accepted meanwhile.
async fn churned(mut bench: Bench, watch: &mut [redis::Connection]) -> (Snapshot, u64) {
    bench.connect().await;
    let before = accepted(watch);
    bench.start(1);
    let snapshot = bench.completed(1).await;
    assert!(
        !bench.saw(|event| matches!(event, EngineEvent::ConnectionLost { .. } | EngineEvent::ConnectFailed { .. }))
    );
    let closed = snapshot.churn.as_ref().unwrap().closed;
    wait_until("all connections were made again", || accepted(watch) >= before + closed);
    (snapshot, accepted(watch) - before)
}

#[tokio::test]
async fn each_connection_sends_its_number_of_requests() {
    for (load, pipeline, workers, each) in
        [(Load::ClosedLoop, 1, 1, 1), (Load::ClosedLoop, 8, 2, 10), (open_loop(2_000), 4, 2, 5)]
    {
        let server = RedisServer::start(&[]);
        let mut plan = living(LifetimeLimit::Requests { count: each }, LifetimeSpread::Together);
        (plan.load, plan.pipeline) = (load, pipeline);
        plan.bound = Bound::Requests { count: 1_000, max_nanoseconds: 60 * SECOND };
        let mut watch = [server.connection()];
        let (snapshot, accepted) = churned(Bench::new(plan, standalone(&server), workers), &mut watch).await;
        let churn = assert_quiet(&snapshot);
        assert_eq!(snapshot.total.succeeded, 1_000);
        assert_eq!(accepted, churn.closed, "{churn:?}");
        // 1,000 requests end at least this many lives; the last ones of each connection may not be full.
        let lives = 1_000 / u64::from(each);
        assert!(churn.closed <= lives && churn.closed + 4 >= lives, "{churn:?}");
        assert!(churn.tls_handshake.is_none());
        let calls = server.calls("get") + server.calls("set");
        assert_eq!(calls, 1_000);
    }
}

#[tokio::test]
async fn lives_end_by_time_in_open_and_closed_loops() {
    for (load, spread) in [(Load::ClosedLoop, LifetimeSpread::Even), (open_loop(1_000), LifetimeSpread::Together)] {
        let server = RedisServer::start(&[]);
        let mut plan = living(LifetimeLimit::Duration { nanoseconds: 50 * MILLISECOND }, spread);
        plan.load = load;
        plan.bound = Bound::Duration { nanoseconds: 2 * SECOND };
        let mut watch = [server.connection()];
        let (snapshot, accepted) = churned(Bench::new(plan, standalone(&server), 1), &mut watch).await;
        let churn = assert_quiet(&snapshot);
        // On a busy machine, lives that end just before the load are closed just after it, and count no more.
        assert!((churn.closed..=churn.closed + 4).contains(&accepted), "{accepted}: {churn:?}");
        // At most one end per connection and lifetime; a busy machine skips some.
        assert!((4..=160).contains(&churn.closed), "{churn:?}");
    }
}

#[tokio::test]
async fn first_commands_are_sent_on_every_connection() {
    let server = RedisServer::start(&["--requirepass", "secret"]);
    let mut plan = living(LifetimeLimit::Requests { count: 20 }, LifetimeSpread::Even);
    plan.bound = Bound::Requests { count: 1_000, max_nanoseconds: 60 * SECOND };
    let mut bytes = Vec::new();
    append_command(&mut bytes, &[b"AUTH", b"secret"]);
    let access = Access { handshake: Handshake::new(bytes, 1), ..Access::default() };
    let client = redis::Client::open(format!("redis://:secret@{}", server.address())).unwrap();
    let mut watch = [client.get_connection().unwrap()];
    let (snapshot, accepted) = churned(Bench::with(plan, standalone(&server), 1, access), &mut watch).await;
    assert_eq!(accepted, assert_quiet(&snapshot).closed);
}

#[tokio::test]
async fn a_cluster_loses_nothing_either() {
    let cluster = RedisCluster::steady(3);
    for load in [Load::ClosedLoop, open_loop(2_000)] {
        let mut plan = living(LifetimeLimit::Requests { count: 10 }, LifetimeSpread::Even);
        (plan.load, plan.connections, plan.pipeline) = (load, 6, 4);
        plan.bound = Bound::Requests { count: 1_000, max_nanoseconds: 60 * SECOND };
        let mut watch: Vec<_> = cluster.nodes.iter().map(RedisServer::connection).collect();
        let (snapshot, accepted) = churned(Bench::new(plan, topology(&cluster), 2), &mut watch).await;
        let churn = assert_quiet(&snapshot);
        assert_eq!((snapshot.total.succeeded, accepted), (1_000, churn.closed));
        assert!(churn.closed > 50, "{churn:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_still_an_outage() {
    let mut server = RedisServer::start(&[]);
    let mut plan = living(LifetimeLimit::Requests { count: 5 }, LifetimeSpread::Even);
    (plan.load, plan.bound) = (open_loop(1_000), Bound::Duration { nanoseconds: 600 * SECOND });
    let mut bench = Bench::started(plan, standalone(&server), 1).await;
    let mut churning = bench.live().await;
    while churning.churn.as_ref().is_none_or(|churn| churn.made == 0) {
        churning = bench.live().await;
    }
    server.kill();
    while bench.live().await.topology.outages.is_empty() {}
    bench.engine.abort().unwrap();
    let snapshot = bench.finished(1).await;
    assert!(snapshot.total.balances() && !snapshot.topology.outages.is_empty(), "{:?}", snapshot.total);
}
