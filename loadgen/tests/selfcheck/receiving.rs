//! Replies that had arrived but were not read.

use redisbench_loadgen::cluster::UNIX;
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::snapshot::{ReceiveDelay, Snapshot};

use crate::harness::{plan, run, standalone};
use crate::lateness::{STALL, stall};
use crate::machine::{alone, easy, lasting, measuring, ready, until_silent};

fn delay(snapshot: &Snapshot) -> &ReceiveDelay {
    snapshot.generator.receive_delay.as_ref().unwrap()
}

fn longest(snapshot: &Snapshot) -> u64 {
    delay(snapshot).quantile_nanoseconds(1_000_000).unwrap()
}

#[tokio::test]
async fn a_reply_that_arrives_while_nobody_reads_shows_as_delayed() {
    let _machine = alone().await;
    let server = RedisServer::start(&[]);
    let mut bench = ready(lasting(plan(), 800), &server).await;
    for attempt in 1.. {
        bench.start(attempt);
        measuring(&bench).await;
        stall(std::process::id()).wait().unwrap();
        let snapshot = bench.finished(attempt).await;
        // Only the first of the two connections is measured.
        assert_eq!(delay(&snapshot).connections, 1);
        // Sometimes this connection has nothing in flight during the stall.
        if longest(&snapshot) > STALL / 2 {
            return;
        }
        assert!(attempt < 20, "{:?}", snapshot.generator);
    }
}

#[tokio::test]
async fn delays_over_a_unix_socket_are_unknown() {
    let _machine = alone().await;
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("redis.sock");
    let server = RedisServer::start(&["--unixsocket", socket.to_str().unwrap()]);
    let mut topology = standalone(&server);
    topology.nodes[0].label = format!("{UNIX}{}", socket.display());
    let snapshot = run(plan(), topology, 1).await;
    assert!(snapshot.total.succeeded > 0, "{:?}", snapshot.total);
    assert_eq!(snapshot.generator.receive_delay, None);
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_quiet_run_reads_at_once() {
    let _machine = alone().await;
    let snapshot = until_silent(easy(), |snapshot| longest(snapshot) < STALL / 5).await;
    let reads: u64 = delay(&snapshot).counts.iter().sum();
    // Connections take turns, so about half of 250 replies arrive on the measured one.
    assert!(reads > 50, "{reads} reads");
}
