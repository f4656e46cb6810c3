//! Servers that violate the protocol. Each violation costs one connection and counted errors, nothing more.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use redisbench_loadgen::cluster::{NodeAddress, Topology};
use redisbench_loadgen::engine::EngineEvent;
use redisbench_wire::limits;
use redisbench_wire::plan::Bound;

use crate::harness::{Bench, SECOND, plan, run};
use crate::peer::{Peer, listen};

/// Replies to the first data on each connection with `answer`, in pieces, and then waits for the client to disconnect.
fn server(answer: Vec<u8>) -> SocketAddr {
    listen(move |mut stream| {
        let mut buffer = [0; 4096];
        if stream.read(&mut buffer).unwrap_or(0) == 0 {
            return;
        }
        for piece in answer.chunks(1 << 16) {
            if stream.write_all(piece).is_err() {
                return;
            }
        }
        while stream.read(&mut buffer).unwrap_or(0) > 0 {}
    })
}

async fn errors_of(answer: &[u8]) -> Vec<String> {
    let address = server(answer.to_vec());
    let mut plan = plan();
    plan.pipeline = 2;
    // As many as fit into the first connections: a busy machine may send nothing within a short time.
    plan.bound = Bound::Requests { count: 4, max_nanoseconds: 20 * SECOND };
    let mut bench = Bench::new(plan, Topology::of(&[address]), 1);
    let snapshot = bench.run().await;
    assert!(bench.saw(|event| matches!(event, EngineEvent::ConnectionLost { .. })));
    snapshot.errors.into_iter().map(|error| error.kind).collect()
}

#[tokio::test]
async fn what_is_not_the_protocol_costs_the_connection() {
    for answer in [&b"$-7\r\n"[..], b"HTTP/1.1 200 OK\r\n\r\n", b"$3\r\nabcdefg\r\n", b":12three\r\n"] {
        assert_eq!(errors_of(answer).await, ["Protocol"], "{}", String::from_utf8_lossy(answer));
    }
}

#[tokio::test]
async fn more_replies_than_commands_cost_the_connection() {
    let errors = errors_of(&b"+OK\r\n".repeat(6)).await;
    assert!(errors.is_empty(), "{errors:?}");
}

/// With or without a load, an unexpected reply makes all later replies ambiguous.
#[tokio::test]
async fn a_reply_without_a_request_costs_the_connection() {
    let peer = Peer::start();
    let mut plan = plan();
    plan.bound = Bound::Requests { count: 20, max_nanoseconds: 20 * SECOND };
    let mut bench = Bench::new(plan, peer.topology(), 1);
    assert_eq!(bench.run().await.generator.reconnects, 0);
    peer.say(b"+OK\r\n");
    for _ in 0..2 {
        let lost = bench.until(|event| matches!(event, EngineEvent::ConnectionLost { .. })).await;
        assert!(format!("{lost:?}").contains("received a reply without a request"), "{lost:?}");
    }
    bench.until(|event| *event == EngineEvent::Connected { ready: 2, wanted: 2 }).await;
    bench.engine.rearm().unwrap();
    bench.start(2);
    let snapshot = bench.completed(2).await;
    assert_eq!((snapshot.total.succeeded, peer.received().len()), (20, 40));
}

#[tokio::test]
async fn a_half_closed_socket_costs_what_was_in_flight_on_it() {
    let peer = Peer::start();
    peer.hold();
    let mut plan = plan();
    plan.pipeline = 2;
    plan.bound = Bound::Requests { count: 50, max_nanoseconds: 20 * SECOND };
    let mut bench = Bench::started(plan, peer.topology(), 1).await;
    peer.wait_for_commands(4);
    // The peer still reads but never replies.
    peer.close_half();
    peer.wait_for_commands(8);
    peer.release();
    let snapshot = bench.completed(1).await;
    assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (50, 46));
    assert_eq!((snapshot.errors[0].kind.as_str(), snapshot.errors[0].count), ("ConnectionClosed", 4));
    assert_eq!(snapshot.generator.reconnects, 2);
    assert_eq!(peer.received().len(), 50);
}

#[tokio::test]
async fn an_endless_line_costs_the_connection() {
    assert_eq!(errors_of(&[b'+'; 1 << 20]).await[0], "Protocol");
}

#[tokio::test]
async fn endless_nesting_ends_with_the_request_timeout() {
    for level in [&b"*1\r\n"[..], b"%1\r\n+k\r\n", b"|1\r\n+k\r\n"] {
        assert!(errors_of(&level.repeat(100_000)).await.contains(&"Timeout".to_owned()));
    }
}

#[tokio::test]
async fn an_endless_body_ends_with_the_request_timeout() {
    let mut answer = b"$1000000000\r\n".to_vec();
    answer.resize(8 << 20, 0);
    assert!(errors_of(&answer).await.contains(&"Timeout".to_owned()));
}

#[tokio::test]
async fn kinds_of_errors_are_bounded() {
    let answer: String = (0..200).map(|kind| format!("-KIND{kind} {}\r\n", "x".repeat(2000))).collect();
    let address = server(answer.into_bytes());
    let mut plan = plan();
    plan.connections = 1;
    plan.pipeline = 200;
    plan.bound = Bound::Requests { count: 200, max_nanoseconds: 20 * SECOND };
    let snapshot = run(plan, Topology::of(&[address]), 1).await;
    assert_eq!(snapshot.total.errors, 200);
    assert_eq!(snapshot.errors.len(), limits::ERROR_KINDS);
    assert_eq!(snapshot.errors.last().unwrap().kind, "Other");
    assert!(snapshot.errors.iter().all(|error| error.first_message.len() <= 256 && error.kind.len() <= 32));
}

/// A cluster whose nodes keep changing for days, such as pods with new addresses.
#[tokio::test]
async fn nodes_that_come_and_go_do_not_grow_a_report_beyond_its_bounds() {
    let nodes = |generation: u8| {
        let node = |index: usize| {
            let address = SocketAddr::from(([127, generation, 0, 1], 1 + index as u16));
            NodeAddress { id: format!("{generation}-{index}"), address, label: address.to_string() }
        };
        Topology { nodes: (0..400).map(node).collect(), slots: None, ..Topology::default() }
    };
    let bench = Bench::new(plan(), nodes(0), 1);
    for generation in 1..=5 {
        bench.engine.update_topology(&Arc::new(nodes(generation))).unwrap();
    }
    assert_eq!(bench.snapshot().await.nodes.len(), limits::NODES);
}
