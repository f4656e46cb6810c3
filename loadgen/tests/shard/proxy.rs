//! Targets behind a real `HAProxy`: for the load generator the proxy is the server.

use redisbench_testkit::haproxy::HaProxy;
use redisbench_testkit::servers::RedisServer;

use crate::client::{Shard, eventually};
use crate::load::assert_balanced;
use crate::plans::{SECOND, plan, steady};

const RATE: u64 = 2000;
const SECONDS: u64 = 6;

#[tokio::test]
async fn a_proxy_is_loaded_as_its_server_would_be() {
    let redis = RedisServer::start(&[]);
    let proxy = HaProxy::start(&[&[redis.endpoint()]]);
    let snapshot = Shard::start(None).await.run_plan(&plan(&proxy.endpoints()[0])).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    let all = snapshot.total.succeeded + snapshot.warmup.succeeded + snapshot.preload_commands;
    assert_eq!(redis.calls("get") + redis.calls("set"), all);
}

/// Like `RedisHappy`: the proxy forwards to the server that is the primary.
#[tokio::test]
async fn a_proxy_that_takes_another_server_is_followed() {
    let mut first = RedisServer::start(&[]);
    let port = first.address().port().to_string();
    let second = RedisServer::start(&["--replicaof", "127.0.0.1", &port]);
    let proxy = HaProxy::start(&[&[first.endpoint(), second.endpoint()]]);
    let mut plan = steady(plan(&proxy.endpoints()[0]), RATE, SECONDS);
    plan.timeouts.request_nanoseconds = SECOND;
    let shard = Shard::armed(&plan).await;
    let before = first.calls("get");
    shard.begin(1).await;
    eventually("the first is loaded", async || (first.calls("get") > before + 1000).then_some(())).await;
    first.kill();
    let _: () = second.ask(&["REPLICAOF", "NO", "ONE"]);
    let snapshot = shard.finished().await;
    assert_balanced(&snapshot);
    let (total, errors) = (&snapshot.total, &snapshot.errors);
    println!(
        "| HAProxy goes from a killed primary to another | {} | {} | {} | {} |",
        total.scheduled,
        total.succeeded,
        errors.iter().map(|error| format!("{} {}", error.count, error.kind)).collect::<Vec<_>>().join(", "),
        total.unsent,
    );
    assert_eq!((total.scheduled, total.in_flight), (RATE * SECONDS, 0));
    assert!(second.calls("get") > RATE, "the second was not loaded: {errors:?}");
    let kinds = ["ConnectionReset", "ConnectionClosed"];
    assert!(errors.iter().all(|error| kinds.contains(&error.kind.as_str())), "{errors:?}");
    assert!(total.errors < total.scheduled / 10, "{total:?} {errors:?}");
}
