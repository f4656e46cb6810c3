//! A closed loop that does not keep its connections busy.

use redisbench_testkit::servers::{RedisCluster, RedisServer};
use redisbench_wire::plan::Values;
use redisbench_wire::snapshot::Snapshot;

use crate::harness::{operation, plan, run, topology};
use crate::machine::{alone, lasting, ready, until_silent};

fn idle(snapshot: &Snapshot) -> u32 {
    snapshot.generator.idle_millionths.unwrap()
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn time_that_the_client_takes_before_a_send_shows_as_idle() {
    let _machine = alone().await;
    let server = RedisServer::start(&[]);
    // Encoding a request of 4 MiB takes time, while nothing is in flight on the only connection.
    let mut plan = lasting(plan(), 500);
    plan.connections = 1;
    plan.workload_mut().values = Values::fixed(4 << 20);
    plan.workload_mut().operations = vec![operation("set", 1, "SET key __data__")];
    let mut bench = ready(plan, &server).await;
    bench.start(1);
    let snapshot = bench.finished(1).await;
    assert!(idle(&snapshot) > 50_000, "{:?}", snapshot.generator);
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_node_that_does_not_answer_shows_as_idle_connections_to_the_others() {
    let _machine = alone().await;
    let cluster = RedisCluster::steady(3);
    let mut plan = lasting(plan(), 500);
    plan.connections = 6;
    plan.pipeline = 2;
    let nodes = topology(&cluster);
    let quiet = run(plan.clone(), nodes.clone(), 1).await;
    cluster.nodes[0].pause();
    plan.timeouts.request_nanoseconds = 600_000_000;
    let mut bench = crate::harness::Bench::started(plan, nodes, 1).await;
    let stopped = bench.finished(1).await;
    cluster.nodes[0].resume();
    // Soon all requests wait for the stopped node, which has room for a third of them.
    assert!(idle(&stopped) > 500_000, "{:?}", stopped.generator);
    assert!(idle(&quiet) < idle(&stopped), "{:?}", quiet.generator);
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_quiet_closed_loop_is_hardly_ever_idle() {
    let _machine = alone().await;
    let mut plan = lasting(plan(), 300);
    plan.connections = 16;
    until_silent(plan, |snapshot| idle(snapshot) < 50_000).await;
}
