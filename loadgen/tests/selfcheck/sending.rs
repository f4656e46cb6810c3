//! Limits on the sending of connections.

use std::net::{SocketAddr, TcpListener};

use redisbench_loadgen::cluster::Topology;
use redisbench_testkit::network::Shaped;
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::plan::Values;
use redisbench_wire::snapshot::{Sending, Snapshot};

use crate::harness::{Bench, MILLISECOND, operation, plan};
use crate::machine::{alone, easy, lasting, ready, until_silent};
use crate::network::{self, BYTES_PER_SECOND};

fn sending(snapshot: &Snapshot) -> Sending {
    snapshot.generator.sending.unwrap()
}

/// A part of the connections' time, in per cent.
fn percent(sending: &Sending, part: u64) -> u64 {
    part * 100 / sending.connection_nanoseconds
}

fn on_the_network(sending: &Sending) -> u64 {
    let held_up = sending.peer_limited_nanoseconds + sending.buffer_limited_nanoseconds;
    percent(sending, sending.busy_nanoseconds - held_up)
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_peer_that_does_not_read_shows_as_the_limit_of_sending() {
    let _machine = alone().await;
    // The kernel accepts connections, but no process reads from them.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut plan = lasting(plan(), 500);
    plan.pipeline = 4;
    plan.workload_mut().values = Values::fixed(4 << 20);
    plan.workload_mut().operations = vec![operation("set", 1, "SET key __data__")];
    plan.timeouts.request_nanoseconds = 1000 * MILLISECOND;
    let mut bench = Bench::started(plan, Topology::of(&[listener.local_addr().unwrap()]), 1).await;
    let sending = sending(&bench.finished(1).await);
    assert_eq!(sending.connections, 2);
    assert!(percent(&sending, sending.peer_limited_nanoseconds) > 50, "{sending:?}");
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_quiet_run_is_not_held_up() {
    let _machine = alone().await;
    let is_silent = |snapshot: &Snapshot| {
        let sending = sending(snapshot);
        percent(&sending, sending.peer_limited_nanoseconds) == 0 && on_the_network(&sending) < 50
    };
    until_silent(easy(), is_silent).await;
}

#[tokio::test]
async fn the_interface_and_the_environment_are_named() {
    let _machine = alone().await;
    let server = RedisServer::start(&[]);
    let mut bench = ready(easy(), &server).await;
    bench.start(1);
    let snapshot = bench.finished(1).await;
    let interface = snapshot.generator.interface.unwrap();
    assert!(interface.nanoseconds > 0 && !interface.name.is_empty(), "{interface:?}");
    let environment = snapshot.generator.environment.unwrap();
    assert!(environment.open_files_soft.is_some() && environment.somaxconn.is_some(), "{environment:?}");
    assert!(environment.congestion_control.is_some_and(|name| !name.is_empty()));
    assert_eq!(snapshot.generator.idle_millionths, None, "an open loop is not judged by it");
}

#[tokio::test]
#[ignore = "makes a network of its own, which needs root, and depends on how busy the machine is: make test-timing"]
async fn a_shaped_uplink_shows_as_time_on_the_network() {
    let _machine = alone().await;
    let Some(server) = network::inside("sending::a_shaped_uplink_shows_as_time_on_the_network", Shaped::Uplink) else {
        return;
    };
    let mut plan = lasting(plan(), 1500);
    plan.workload_mut().values = Values::fixed(1 << 16);
    plan.workload_mut().operations = vec![operation("set", 1, "SET key __data__")];
    let snapshot = run(plan, server).await;
    let sending = sending(&snapshot);
    assert!(on_the_network(&sending) > 50, "{sending:?}");
    assert!(percent(&sending, sending.peer_limited_nanoseconds) < 10, "{sending:?}");
    let interface = snapshot.generator.interface.unwrap();
    network::assert_full(interface.busiest_sent_bytes_per_second, &interface);
}

#[tokio::test]
#[ignore = "makes a network of its own, which needs root, and depends on how busy the machine is: make test-timing"]
async fn a_shaped_downlink_shows_as_a_rate_that_never_rises() {
    let _machine = alone().await;
    let Some(server) = network::inside("sending::a_shaped_downlink_shows_as_a_rate_that_never_rises", Shaped::Downlink)
    else {
        return;
    };
    let mut plan = lasting(plan(), 1500);
    plan.preload = redisbench_wire::plan::Preload::Always;
    plan.workload_mut().keys.count = 4;
    plan.workload_mut().values = Values::fixed(1 << 16);
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    let snapshot = run(plan, server).await;
    let interface = snapshot.generator.interface.unwrap();
    network::assert_full(interface.busiest_received_bytes_per_second, &interface);
    assert!(interface.busiest_sent_bytes_per_second < BYTES_PER_SECOND / 4, "{interface:?}");
}

async fn run(mut plan: redisbench_wire::plan::TrialPlan, server: SocketAddr) -> Snapshot {
    plan.connections = 8;
    plan.pipeline = 2;
    let mut bench = Bench::connected(plan, Topology::of(&[server]), 1).await;
    bench.preload().await;
    bench.start(1);
    bench.finished(1).await
}
