//! 20,000 requests per second for 10 s over 50 connections to three nodes. One of them stops for half a second.

use hdrhistogram::Histogram;
use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_loadgen::workload::Workload;
use redisbench_testkit::servers::RedisCluster;
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Bound, Topology};
use redisbench_wire::snapshot::Snapshot;

use super::quiet::{alone, until};
use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, operation, plan, topology};

const RATE: u64 = 20_000;
const REQUESTS: u64 = 10 * RATE;

/// Service times of node `index` up to a snapshot.
fn service(index: usize, snapshot: &Snapshot) -> Histogram<u64> {
    snapshot.nodes[index].service.decode(Kind::Node).unwrap()
}

/// Service times of node `index` between two snapshots.
fn between(index: usize, from: &Snapshot, to: &Snapshot) -> Histogram<u64> {
    let mut difference = service(index, to);
    difference.subtract(service(index, from)).unwrap();
    difference
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn the_other_nodes_of_a_cluster_do_not_feel_that_one_stops() {
    let _turn = alone().await;
    let cluster = RedisCluster::steady(3);
    let mut plan = plan();
    plan.target.topology = Topology::Cluster;
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    plan.load = open_loop(RATE);
    plan.connections = 50;
    plan.bound = Bound::Requests { count: REQUESTS, max_nanoseconds: 60 * SECOND };
    let map = topology(&cluster);
    let workload = Workload::of_trial(&plan).unwrap();
    let mut wanted = [0; 3];
    for k in 0..REQUESTS {
        wanted[cluster.owner(workload.slot(k, workload.operation(k)))] += 1;
    }
    let mut bench = Bench::connected(plan, map, 1).await;
    let start = monotonic_nanoseconds() + 20 * MILLISECOND;
    bench.engine.start(start, 1).unwrap();
    until(start + 4 * SECOND).await;
    let before = bench.snapshot().await;
    cluster.nodes[0].pause();
    until(start + 4500 * MILLISECOND).await;
    let stopped = bench.snapshot().await;
    cluster.nodes[0].resume();
    while bench.live().await.total.in_flight >= 100 {}
    let caught_up = bench.snapshot().await;
    let snapshot = bench.completed(1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.unsent), (REQUESTS, 0));
    // No request was drawn again because its node was busy.
    for (node, wanted) in wanted.into_iter().enumerate() {
        assert_eq!((snapshot.nodes[node].requests, cluster.nodes[node].calls("get")), (wanted, wanted));
    }
    // With and without the time of the stop. Neither includes the drain, which slows the other nodes too.
    for node in 1..3 {
        let mut all = service(node, &before);
        all.add(between(node, &caught_up, &snapshot)).unwrap();
        let usual = all.value_at_quantile(0.99) as f64;
        let within = between(node, &before, &stopped);
        all.add(&within).unwrap();
        let off = all.value_at_quantile(0.99) as f64 / usual - 1.0;
        let (usual, within) = (usual / 1e3, within.value_at_quantile(0.99) as f64 / 1e3);
        let line =
            format!("node {node}: p99 {usual:.0} us, {within:.0} us while node 0 stands, {:+.1} % in all", 100.0 * off);
        println!("{line}");
        assert!(off.abs() <= 0.1, "{line}");
    }
}
