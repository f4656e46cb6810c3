//! A server that is gone for a while and comes back: attempts to connect stay within the bound of all shards, and the load goes on.

use std::slice::from_mut;

use redisbench_loadgen::engine::{EngineEvent, monotonic_nanoseconds};
use redisbench_testkit::servers::{RedisServer, calls, wait_until};
use redisbench_wire::plan::{Bound, TrialPlan};

use crate::churn::accepted;
use crate::harness::{Bench, MILLISECOND, SECOND, plan, standalone};

/// The benchmark has this many shards. The first ones run.
const SHARDS: u32 = 1_000;
const RUNNING: u32 = 4;
const CONNECTIONS: u32 = 40;

fn of_many_shards() -> TrialPlan {
    let mut plan = TrialPlan { shards: SHARDS, connections: SHARDS * CONNECTIONS, ..plan() };
    plan.bound = Bound::Duration { nanoseconds: 500 * SECOND };
    (plan.timeouts.connect_nanoseconds, plan.timeouts.request_nanoseconds) = (500 * MILLISECOND, 500 * MILLISECOND);
    plan
}

fn gets(connection: &mut redis::Connection) -> u64 {
    let info: String = redis::cmd("INFO").arg("commandstats").query(connection).unwrap();
    calls(&info).get("get").copied().unwrap_or(0)
}

/// The most attempts of the running shards in `nanoseconds`: a thousandth of 5,000 per second each, a scout every 0.8 s, and one more of
/// both at each end of the time. Turns may be late by 50 ms.
fn bound(nanoseconds: u64) -> u64 {
    let turns = |interval: u64| (nanoseconds + 50 * MILLISECOND) / interval + 2;
    u64::from(RUNNING) * (turns(200 * MILLISECOND) + turns(800 * MILLISECOND))
}

async fn start(server: &RedisServer) -> Vec<Bench> {
    let mut benches = Vec::new();
    for shard in 0..RUNNING {
        benches.push(Bench::started(of_many_shards().of_shard(shard), standalone(server), 1).await);
    }
    wait_until("the load runs", || server.calls("get") > 100);
    benches
}

/// The load goes on, and has made no more connections than it may since `gone`, before which the server had accepted `before`.
fn assert_returns(watch: &mut redis::Connection, before: u64, gone: u64) {
    let executed = gets(watch);
    wait_until("the load goes on", || gets(watch) > executed + 100);
    let made = accepted(from_mut(watch)) - before;
    let bound = bound(monotonic_nanoseconds() - gone);
    assert!(made <= bound, "{made} connections, and the bound is {bound}");
}

/// The kernel accepts connections for a stopped server, which count when it continues. Without a handshake each is used, and times out.
#[tokio::test]
async fn a_stopped_server_that_continues_gets_no_storm() {
    let server = RedisServer::start(&[]);
    let benches = start(&server).await;
    let mut watch = server.connection();
    let (before, gone) = (accepted(from_mut(&mut watch)), monotonic_nanoseconds());
    server.pause();
    // The requests on the first connections time out, and some on those after.
    for bench in &benches {
        while bench.live().await.total.errors < u64::from(CONNECTIONS) + 3 {}
    }
    server.resume();
    assert_returns(&mut watch, before, gone);
}

#[tokio::test]
async fn a_killed_server_that_is_back_gets_no_storm() {
    let mut server = RedisServer::start(&[]);
    let mut benches = start(&server).await;
    let gone = monotonic_nanoseconds();
    server.kill();
    for bench in &mut benches {
        bench.until(|event| matches!(event, EngineEvent::ConnectFailed { .. })).await;
    }
    server.restart();
    // It counts from 0 again.
    assert_returns(&mut server.connection(), 0, gone);
}
