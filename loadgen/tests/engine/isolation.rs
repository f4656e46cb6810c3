//! A server or connection that does not reply must not delay others.

use std::collections::HashMap;

use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::engine::EngineEvent;
use redisbench_loadgen::workload::Workload;
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::plan::{Bound, KeyPattern, Load, TrialPlan};

use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, plan, run, standalone};
use crate::open_loop::OpenLoop;
use crate::peer::{Peer, Received};

fn numbered(rate: u64, count: u64, pipeline: u32) -> TrialPlan {
    let mut plan = plan();
    // Key k belongs to request k.
    plan.workload_mut().keys.pattern = KeyPattern::Sequential;
    plan.workload_mut().keys.count = 100_000;
    plan.load = open_loop(rate);
    plan.pipeline = pipeline;
    plan.timeouts.request_nanoseconds = 30 * SECOND;
    plan.bound = Bound::Requests { count, max_nanoseconds: 30 * SECOND };
    plan
}

fn numbers(received: &[Received]) -> Vec<u64> {
    received.iter().map(|received| received.arguments[1].strip_prefix("key:").unwrap().parse().unwrap()).collect()
}

/// Every connection received its requests in schedule order, and all together received `wanted`.
fn assert_in_order(received: &[Received], wanted: &[u64]) {
    let mut last = HashMap::new();
    for (received, k) in received.iter().zip(numbers(received)) {
        assert!(last.insert(received.connection, k).is_none_or(|before| before < k), "{k} on {}", received.connection);
    }
    let mut all = numbers(received);
    all.sort_unstable();
    assert_eq!(all, wanted);
}

#[tokio::test]
async fn a_stalled_connection_does_not_hold_up_the_others() {
    for pipeline in [1, 16] {
        let peer = Peer::start();
        let mut plan = numbered(2000, 600, pipeline);
        plan.connections = 4;
        peer.hold_first();
        let mut bench = Bench::started(plan, peer.topology(), 1).await;
        // All requests are sent, and all but those on the held connection are answered.
        peer.wait_for_commands(600);
        let held = peer.unanswered() as u64;
        assert!((1..=u64::from(pipeline)).contains(&held), "{held}");
        while bench.live().await.total.succeeded < 600 - held {}
        assert_in_order(&peer.received(), &(0..600).collect::<Vec<_>>());
        peer.release();
        let snapshot = bench.completed(1).await;
        assert_eq!((snapshot.total.succeeded, snapshot.total.unsent), (600, 0));
    }
}

#[tokio::test]
async fn a_backlog_goes_out_as_fast_as_replies_come() {
    let peer = Peer::start();
    let mut plan = numbered(1000, 100, 3);
    plan.connections = 1;
    peer.hold();
    let mut bench = Bench::started(plan, peer.topology(), 1).await;
    while bench.live().await.total.scheduled < 100 {}
    for answered in 0..97 {
        // Each reply makes room for exactly one request, at once.
        peer.wait_for_commands(answered + 3);
        assert_eq!(peer.received().len(), answered + 3);
        peer.answer(0, 1);
    }
    peer.wait_for_commands(100);
    peer.release();
    bench.completed(1).await;
    assert_in_order(&peer.received(), &(0..100).collect::<Vec<_>>());
}

/// Three servers with a third of the slots each.
fn cluster() -> ([Peer; 3], Topology) {
    let peers = [Peer::start(), Peer::start(), Peer::start()];
    let topology = Topology::of(&peers.each_ref().map(|peer| peer.node().address));
    (peers, topology)
}

fn by_node(plan: &TrialPlan, topology: &Topology, count: u64) -> [Vec<u64>; 3] {
    let workload = Workload::of_trial(plan).unwrap();
    let mut all = [const { Vec::new() }; 3];
    for k in 0..count {
        let slot = workload.slot(k, workload.operation(k));
        all[usize::from(topology.slots.as_ref().unwrap()[usize::from(slot)])].push(k);
    }
    all
}

#[tokio::test]
async fn a_stalled_node_changes_nothing_for_the_others() {
    for pipeline in [1, 16] {
        let (peers, topology) = cluster();
        let mut plan = numbered(3000, 900, pipeline);
        plan.connections = 6;
        let wanted = by_node(&plan, &topology, 900);
        peers[0].hold();
        let mut bench = Bench::started(plan, topology, 1).await;
        for (peer, wanted) in peers.iter().zip(&wanted).skip(1) {
            peer.wait_for_commands(wanted.len());
            assert_in_order(&peer.received(), wanted);
        }
        // Two full connections with the first of the node's requests.
        let held = 2 * pipeline as usize;
        peers[0].wait_for_commands(held);
        assert_in_order(&peers[0].received(), &wanted[0][..held]);
        peers[0].release();
        let snapshot = bench.completed(1).await;
        assert_eq!((snapshot.total.succeeded, snapshot.total.unsent), (900, 0));
        for (peer, wanted) in peers.iter().zip(&wanted) {
            assert_in_order(&peer.received(), wanted);
        }
    }
}

/// Requests are drawn before their node has room, but never more than will be sent.
#[tokio::test]
async fn a_closed_loop_of_a_cluster_sends_the_first_of_its_requests() {
    for (pipeline, concurrency) in [(1, None), (16, None), (16, Some(7))] {
        let (peers, topology) = cluster();
        let mut plan = numbered(1, 901, pipeline);
        (plan.connections, plan.load, plan.concurrency) = (6, Load::ClosedLoop, concurrency);
        let wanted = by_node(&plan, &topology, 901);
        let snapshot = run(plan, topology, 1).await;
        assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (901, 901));
        for (peer, wanted) in peers.iter().zip(&wanted) {
            let mut numbers = numbers(&peer.received());
            numbers.sort_unstable();
            assert_eq!(&numbers, wanted, "{pipeline} {concurrency:?}");
        }
    }
}

#[tokio::test]
async fn what_waits_too_long_for_a_node_is_unsent_and_no_other() {
    let (peers, topology) = cluster();
    let mut plan = numbered(3000, 900, 4);
    plan.connections = 3;
    plan.load = OpenLoop { unsent_after_nanoseconds: 5 * SECOND, ..OpenLoop::at(3000) }.load();
    let wanted = by_node(&plan, &topology, 900);
    peers[0].hold();
    let mut bench = Bench::started(plan, topology, 1).await;
    let given_up = wanted[0].len() as u64 - 4;
    while bench.live().await.total.unsent < given_up {}
    peers[0].release();
    let snapshot = bench.completed(1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.unsent), (900 - given_up, given_up));
    assert_eq!((snapshot.total.unsent_not_connected, snapshot.total.unsent_at_end), (0, 0));
    assert_in_order(&peers[0].received(), &wanted[0][..4]);
    for (peer, wanted) in peers.iter().zip(&wanted).skip(1) {
        assert_in_order(&peer.received(), wanted);
    }
}

#[tokio::test]
async fn what_has_no_connection_is_unsent_for_that() {
    let mut server = RedisServer::start(&[]);
    let mut plan = numbered(1000, 100, 1);
    plan.load = OpenLoop { unsent_after_nanoseconds: 100 * MILLISECOND, ..OpenLoop::at(1000) }.load();
    let mut bench = Bench::connected(plan, standalone(&server), 1).await;
    server.kill();
    bench.until(|event| matches!(event, EngineEvent::Connected { ready: 0, .. })).await;
    bench.start(1);
    let snapshot = bench.finished(1).await;
    assert!(snapshot.total.balances());
    assert_eq!((snapshot.total.unsent, snapshot.total.unsent_not_connected), (100, 100));
}
