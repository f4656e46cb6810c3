//! Every library against real servers, as a shard drives it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bench;
mod drivers;
mod lossy;
mod scripted;

use std::collections::BTreeSet;
use std::process::Command;

use redisbench_loadgen::cluster::{NodeAddress, Topology};
use redisbench_loadgen::engine::{EngineConfig, EngineEvent, monotonic_nanoseconds};
use redisbench_loadgen::record::Span;
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{
    self, Bound, Client, Library, Operation, Pool, Preload, ReadFrom, RedisRsConnection, Runtime, Tracing, TrialPlan,
};
use redisbench_wire::snapshot::Stage;

use bench::{Bench, SECOND, client, constant, plan};
use lossy::Lossy;

fn all() -> Vec<Client> {
    let redis_rs = |connection| Library::RedisRs(connection);
    let smart = || Library::SmartBatching { queue: 64, batch_bytes: 4096 };
    let mut clients: Vec<Client> = [
        (redis_rs(RedisRsConnection::Multiplexed), Pool::Shared),
        (redis_rs(RedisRsConnection::Multiplexed), Pool::Exclusive),
        (redis_rs(RedisRsConnection::Multiplexed), Pool::Bb8),
        (redis_rs(RedisRsConnection::Multiplexed), Pool::Deadpool),
        (redis_rs(RedisRsConnection::ConnectionManager), Pool::Shared),
        (Library::Fred, Pool::Shared),
        (Library::Fred, Pool::Exclusive),
        (smart(), Pool::Shared),
        (smart(), Pool::Exclusive),
        (Library::Engine, Pool::Shared),
    ]
    .map(|(library, pool)| client(library, pool))
    .into();
    for library in [Library::Fred, redis_rs(RedisRsConnection::Multiplexed), smart()] {
        clients.push(Client { runtime: Runtime::MultiThread, ..client(library, Pool::Shared) });
    }
    clients
}

#[tokio::test]
async fn every_client_sends_each_request_once() {
    for client in all() {
        let server = RedisServer::start(&[]);
        let snapshot = Bench::start(plan(client.clone()).of_shard(0), &server).await.finish().await;
        assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (2_000, 2_000), "{client:?}");
        assert_eq!(server.calls("get"), 2_000, "{client:?}");
        assert_eq!((snapshot.stage, snapshot.errors.len()), (Stage::Done, 0), "{client:?}");
        let usage = snapshot.client.unwrap();
        assert_eq!((usage.connections, usage.callers), (4, 8), "{client:?}");
        assert!(usage.user_nanoseconds + usage.system_nanoseconds > 0 && usage.version.contains(' '), "{usage:?}");
    }
}

/// Two primaries with a replica each, which all nodes know.
fn replicated() -> RedisCluster {
    let mut cluster = RedisCluster::steady(2);
    cluster.add_replica(0);
    cluster.add_replica(1);
    let ports: Vec<_> = cluster.nodes.iter().map(|node| node.address().port().to_string()).collect();
    let knows = |node: &RedisServer| {
        let told = format!("{:?}", node.ask::<redis::Value>(&["CLUSTER", "SLOTS"]));
        ports.iter().all(|port| told.contains(port))
    };
    wait_until("all nodes know the replicas", || cluster.nodes.iter().all(knows));
    cluster
}

#[tokio::test]
async fn reads_of_a_cluster_go_to_its_replicas() {
    let cluster = replicated();
    let (primaries, replicas) = cluster.nodes.split_at(2);
    for (library, from) in [
        (Library::Fred, ReadFrom::Replica),
        (Library::Fred, ReadFrom::PreferReplica),
        (Library::RedisRs(RedisRsConnection::Cluster), ReadFrom::PreferReplica),
    ] {
        cluster.reset_statistics();
        let mut plan = plan(client(library.clone(), Pool::Shared));
        (plan.target.topology, plan.target.read_from) = (plan::Topology::Cluster, from);
        plan.workload_mut().operations =
            vec![Operation::of("get", 1, "GET __key__"), Operation::of("set", 1, "SET __key__ __data__")];
        let topology = Topology::sharing(primaries.iter().map(|node| NodeAddress::from(node.address())).collect());
        let config = EngineConfig { reads: vec![true, false], ..EngineConfig::new(plan, 1, topology) };
        let bench = Bench::of(config).await;
        bench.driver.start(monotonic_nanoseconds() + SECOND / 20, 1).unwrap();
        let snapshot = bench.finish().await;
        assert_eq!((snapshot.total.succeeded, snapshot.errors.len()), (2_000, 0), "{library:?}: {:?}", snapshot.errors);
        let calls = |nodes: &[RedisServer], command: &str| nodes.iter().map(|node| node.calls(command)).sum::<u64>();
        assert_eq!(calls(primaries, "get"), 0, "{library:?} {from:?}");
        assert_eq!(calls(replicas, "get") + calls(primaries, "set"), 2_000, "{library:?} {from:?}");
    }
}

#[tokio::test]
async fn fred_needs_no_right_to_ask_for_replicas() {
    let server = RedisServer::start(&[]);
    server.ask::<()>(&["ACL", "SETUSER", "default", "-role"]);
    let plan = plan(client(Library::Fred, Pool::Shared));
    let snapshot = Bench::start(plan.of_shard(0), &server).await.finish().await;
    assert_eq!(snapshot.total.succeeded, 2_000, "{:?}", snapshot.errors);
}

#[tokio::test]
async fn an_open_loop_has_the_schedule_of_the_engine() {
    for client in all() {
        let server = RedisServer::start(&[]);
        let plan = TrialPlan {
            load: constant(1_000),
            // However late they are sent.
            bound: Bound::Requests { count: 500, max_nanoseconds: 60 * SECOND },
            warmup_nanoseconds: SECOND / 10,
            ..plan(client.clone())
        };
        let snapshot = Bench::start(plan.of_shard(0), &server).await.finish().await;
        assert_eq!((snapshot.warmup.scheduled, snapshot.total.scheduled), (100, 500), "{client:?}");
        assert_eq!(snapshot.total.succeeded, 500, "{client:?}: {:?}", snapshot.errors);
        assert_eq!(server.calls("get"), 600, "{client:?}");
    }
}

#[tokio::test]
async fn nobody_calls_what_answers_at_once() {
    let server = RedisServer::start(&[]);
    let snapshot = Bench::start(plan(client(Library::Null, Pool::Shared)).of_shard(0), &server).await.finish().await;
    assert_eq!((snapshot.total.succeeded, server.calls("get")), (2_000, 0));
}

#[tokio::test]
async fn error_replies_keep_their_kind() {
    for client in all() {
        let server = RedisServer::start(&[]);
        let mut plan = plan(client.clone());
        let operation = &mut plan.workload_mut().operations[0];
        operation.arguments = [["LPUSH"], ["text"], ["x"]].map(|[word]| vec![plan::Part::Literal(word.into())]).into();
        let _: () = server.ask(&["SET", "text", "1"]);
        let snapshot = Bench::start(plan.of_shard(0), &server).await.finish().await;
        assert_eq!((snapshot.total.errors, snapshot.total.unanswered), (2_000, 0), "{client:?}");
        assert_eq!(snapshot.errors[0].kind, "WRONGTYPE", "{client:?}: {:?}", snapshot.errors);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_load_ends_at_once_with_its_counts() {
    for client in all() {
        let server = RedisServer::start(&[]);
        let plan = TrialPlan { bound: Bound::Duration { nanoseconds: 600 * SECOND }, ..plan(client.clone()) };
        let mut bench = Bench::start(plan.of_shard(0), &server).await;
        wait_until("the load runs", || server.calls("get") > 100);
        bench.driver.abort().unwrap();
        bench.until(|event| matches!(event, EngineEvent::Finished { aborted: true, .. })).await;
        let snapshot = bench.end().await;
        assert!(snapshot.aborted && snapshot.total.balances() && snapshot.total.succeeded > 0, "{client:?}");
    }
}

/// With a preload and without one: the engine, which prepares the target, must not stay connected.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_library_is_connected_while_the_load_runs_and_nothing_after_it() {
    for (client, preload) in
        all().into_iter().flat_map(|client| [(client.clone(), Preload::None), (client, Preload::Always)])
    {
        let server = RedisServer::start(&[]);
        let bound = Bound::Duration { nanoseconds: 600 * SECOND };
        let mut plan = TrialPlan { bound, preload: preload.clone(), ..plan(client.clone()) };
        plan.workload_mut().keys.count = 100;
        let mut bench = Bench::start(plan.of_shard(0), &server).await;
        let connected = || {
            let clients: String = server.ask(&["INFO", "clients"]);
            let count = clients.lines().find_map(|line| line.strip_prefix("connected_clients:")).unwrap();
            // The one that asks is connected, too.
            count.parse::<u32>().unwrap() - 1
        };
        wait_until(&format!("4 connections of {client:?} with {preload:?}"), || connected() == 4);
        bench.driver.abort().unwrap();
        bench.until(|event| matches!(event, EngineEvent::Finished { aborted: true, .. })).await;
        bench.driver.disconnect().await.unwrap();
        wait_until(&format!("no connection of {client:?}"), || connected() == 0);
        bench.end().await;
    }
}

/// A second of 1,000 requests.
fn thousand(client: &Client) -> TrialPlan {
    let bound = Bound::Requests { count: 1_000, max_nanoseconds: 60 * SECOND };
    TrialPlan { load: constant(1_000), bound, ..plan(client.clone()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_is_in_the_response_times_of_every_client() {
    for client in all() {
        let server = RedisServer::start(&[]);
        let bench = Bench::connected(thousand(&client).of_shard(0), &server).await;
        assert_stall_is_seen(&client, bench, &[server]).await;
    }
    for library in [Library::Fred, Library::RedisRs(RedisRsConnection::Cluster)] {
        let cluster = RedisCluster::steady(2);
        let client = client(library, Pool::Shared);
        let mut plan = thousand(&client);
        plan.target.topology = plan::Topology::Cluster;
        let nodes = cluster.nodes.iter().map(|node| NodeAddress::from(node.address())).collect();
        let bench = Bench::of(EngineConfig::new(plan, 1, Topology::sharing(nodes))).await;
        assert_stall_is_seen(&client, bench, &cluster.nodes).await;
    }
}

/// While all servers stand still, requests become due. The one that is due `x` before they go on waits for `x` at least, through whatever
/// library, and however few callers or connections are free.
async fn assert_stall_is_seen(client: &Client, bench: Bench, servers: &[RedisServer]) {
    const MILLISECOND: u64 = 1_000_000;
    let start = monotonic_nanoseconds() + SECOND / 20;
    bench.driver.start(start, 1).unwrap();
    wait_until("the load runs", || monotonic_nanoseconds() > start + 200 * MILLISECOND);
    servers.iter().for_each(RedisServer::pause);
    // Later than the kernel needs to stop them.
    let stopped = monotonic_nanoseconds() + 20 * MILLISECOND;
    wait_until("the stall is long enough", || monotonic_nanoseconds() > stopped + 300 * MILLISECOND);
    let continued = monotonic_nanoseconds();
    servers.iter().for_each(RedisServer::resume);
    let snapshot = bench.finish().await;
    assert_eq!(snapshot.total.succeeded, 1_000, "{client:?}: {:?}", snapshot.errors);
    let response = snapshot.latency.response.decode(Kind::Request).unwrap();
    for wait in [50, 100, 200].map(|wait| wait * MILLISECOND) {
        let (first, last) = (stopped, (continued - wait).min(start + SECOND));
        let due = last.saturating_sub(first) / MILLISECOND;
        let waited = response.count_between(wait, u64::MAX);
        assert!(waited + 1 >= due, "{client:?}: {waited} of {due} requests waited for {wait} ns");
    }
}

/// The server has executed a request, and its reply is lost with the connection. Whether the library then sends the request again is in
/// the server's counts, and nowhere else.
#[tokio::test]
async fn a_call_that_a_library_repeats_counts_once() {
    for retries in [0, 1] {
        let server = RedisServer::start(&[]);
        // A repeated request is the first on its new connection, so it is not lost again.
        let lossy = Lossy::before(server.address(), 100);
        let mut plan = plan(Client { retries, ..client(Library::Fred, Pool::Exclusive) });
        // However long it takes to connect again.
        (plan.timeouts.connect_nanoseconds, plan.timeouts.request_nanoseconds) = (60 * SECOND, 60 * SECOND);
        let bench = Bench::of(EngineConfig::new(plan, 1, Topology::of(&[lossy.address]))).await;
        bench.driver.start(monotonic_nanoseconds() + SECOND / 20, 1).unwrap();
        let snapshot = bench.finish().await;
        let (total, lost) = (snapshot.total, lossy.lost());
        // Four connections are left, each with fewer requests than that.
        assert!((17..=20).contains(&lost), "{lost} of {total:?}: {:?}", snapshot.errors);
        let repeated = lost * u64::from(retries);
        let failed = lost - repeated;
        assert_eq!((total.succeeded, total.errors, total.unanswered), (2_000 - failed, failed, failed));
        assert_eq!(server.calls("get"), 2_000 + repeated);
        assert!(snapshot.errors.iter().all(|error| error.kind == "ConnectionReset"), "{:?}", snapshot.errors);
    }
}

/// Runs 400 requests, of which one in `one_in` is traced. The times in the spans must be those of the calls.
async fn traced(client: &Client, one_in: u64) -> Vec<Span> {
    let server = RedisServer::start(&[]);
    let plan = TrialPlan {
        // Each of the two threads keeps up to 256 spans until they are taken.
        bound: Bound::Requests { count: 400, max_nanoseconds: 60 * SECOND },
        tracing: Some(Tracing { endpoint: "http://collector:4318".into(), one_in }),
        ..plan(client.clone())
    };
    let mut bench = Bench::start(plan.of_shard(0), &server).await;
    bench.until(|event| matches!(event, EngineEvent::Finished { aborted: false, .. })).await;
    let batches = std::mem::take(&mut bench.traced);
    assert!(batches.iter().all(|batch| batch.lost == 0), "{client:?}");
    let spans: Vec<Span> = batches.into_iter().flat_map(|batch| batch.spans).collect();
    let snapshot = bench.end().await;
    assert_eq!(snapshot.total.succeeded, 400, "{client:?}: {:?}", snapshot.errors);
    for span in &spans {
        let in_order = span.sent.is_some_and(|sent| span.due <= sent && sent <= span.ended);
        assert!(in_order && (span.node, &span.error) == (None, &None), "{client:?}: {span:?}");
    }
    let slowest = spans.iter().map(|span| span.ended - span.due).max().unwrap();
    let longest = snapshot.latency.response.decode(Kind::Request).unwrap().max();
    assert!(slowest <= longest + longest / 100, "{client:?}: {slowest} ns, in the histogram {longest}");
    assert!(one_in > 1 || longest <= slowest + longest / 100, "{client:?}: {slowest} ns, in the histogram {longest}");
    spans
}

#[tokio::test]
async fn requests_of_every_client_can_be_traced() {
    let mut chosen = BTreeSet::new();
    // The engine's own spans come from its workers.
    for client in all().into_iter().filter(|client| client.library != Library::Engine) {
        let mut numbers: Vec<u64> = traced(&client, 1).await.iter().map(|span| span.k).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..400).collect::<Vec<u64>>(), "{client:?}");
        let some: BTreeSet<u64> = traced(&client, 4).await.iter().map(|span| span.k).collect();
        assert!(!some.is_empty() && some.len() < 400, "{client:?}");
        chosen.insert(some);
    }
    assert_eq!(chosen.len(), 1, "the number of a request decides, whatever its client: {chosen:?}");
}

/// Callers that wait for a free connection give up in time, so that a load ends when its server stands still.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_ends_although_the_server_stands_still() {
    for client in all() {
        let server = RedisServer::start(&[]);
        let mut plan = TrialPlan {
            concurrency: Some(200),
            bound: Bound::Duration { nanoseconds: 2 * SECOND },
            ..plan(client.clone())
        };
        plan.timeouts.request_nanoseconds = SECOND / 2;
        let mut bench = Bench::connected(plan.of_shard(0), &server).await;
        server.pause();
        bench.driver.start(monotonic_nanoseconds() + SECOND / 20, 1).unwrap();
        bench.until(|event| matches!(event, EngineEvent::Finished { .. })).await;
        server.resume();
        let snapshot = bench.end().await;
        assert!(snapshot.total.balances() && snapshot.total.unanswered > 0, "{client:?}: {:?}", snapshot.total);
        let timeouts = snapshot.errors.iter().any(|error| error.kind == "Timeout");
        assert!(timeouts, "{client:?}: {:?}", snapshot.errors);
    }
}

/// The evidence compares closed loops with it.
#[test]
fn a_plain_program_sends_the_requests_that_it_counts() {
    for library in ["redis-rs", "fred"] {
        let server = RedisServer::start(&[]);
        let port = server.address().port().to_string();
        let output = Command::new(env!("CARGO_BIN_EXE_redisbench-plain"))
            .args(["--library", library, "--port", &port, "--tasks", "8", "--requests", "1000"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let rate = text.trim().strip_prefix("requests per second: ").and_then(|rate| rate.parse::<u64>().ok());
        assert!(output.status.success() && rate > Some(0), "{library}: {output:?}");
        // A tenth more to warm up.
        assert_eq!(server.calls("get"), 1_100, "{library}");
    }
}
