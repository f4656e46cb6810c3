//! RESP3 to the target, against real servers.

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::FailureReason;
use redisbench_wire::plan::Protocol;

use crate::client::Shard;
use crate::plans::{authenticated, operation, plan};
use crate::refusals::assert_refused;

/// The entries of the load's connections in the server's client list.
fn connections(redis: &RedisServer) -> Vec<String> {
    let list: String = redis.ask(&["CLIENT", "LIST"]);
    // Connections that inspect the target have sent another last command or are closed.
    list.lines().filter(|line| line.contains(" db=3 ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn resp3_with_a_user_a_database_and_a_name() {
    let redis = RedisServer::start(&[]);
    let _: () = redis.ask(&["ACL", "SETUSER", "bench", "on", ">secret", "~*", "+@all"]);
    let _: () = redis.ask(&["ACL", "SETUSER", "nameless", "on", ">secret", "~*", "+@all", "-client"]);
    for (user, name) in [("bench", "name=redisbench:01j8run:0 "), ("nameless", "name= ")] {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut plan = authenticated(&redis.endpoint());
            plan.target.protocol = protocol;
            plan.target.database = 3;
            let mut shard = Shard::start(Some((user, "secret"))).await;
            shard.prepared(&plan).await;
            let resp = if protocol == Protocol::Resp3 { " resp=3" } else { " resp=2" };
            let connections = connections(&redis);
            assert_eq!(connections.len(), 4, "{connections:?}");
            for fields in connections {
                assert!(fields.contains(name) && fields.contains(&format!(" user={user} ")), "{fields}");
                assert!(fields.contains(resp), "{fields}");
            }
            let snapshot = shard.run(1).await;
            assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
            assert_eq!(shard.cleaned_up().await, 1000);
            shard.ends_with(0).await;
        }
    }
}

#[tokio::test]
async fn every_type_of_reply_counts_once() {
    let redis = RedisServer::start(&[]);
    let mut plan = plan(&redis.endpoint());
    plan.target.protocol = Protocol::Resp3;
    plan.workload_mut().operations = vec![
        operation("null", 1, "GET none:__key__"),
        operation("map", 1, "HGETALL hash"),
        operation("set", 1, "SMEMBERS set"),
        operation("double", 1, "ZSCORE sorted a"),
        operation("many", 1, "XINFO STREAM stream FULL"),
    ];
    let _: () = redis.ask(&["HSET", "hash", "a", "1", "b", "2"]);
    let _: () = redis.ask(&["SADD", "set", "a", "b"]);
    let _: () = redis.ask(&["ZADD", "sorted", "1.5", "a"]);
    let _: String = redis.ask(&["XADD", "stream", "*", "field", "value"]);
    let snapshot = Shard::start(None).await.run_plan(&plan).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    let nulls = &snapshot.operations[0];
    assert_eq!(nulls.nil_replies, nulls.tally.succeeded);
    assert!(snapshot.operations[1..].iter().all(|operation| operation.nil_replies == 0));
    let asked =
        ["hgetall", "smembers", "zscore", "xinfo|stream", "get"].map(|name| redis.calls(name)).iter().sum::<u64>();
    assert_eq!(asked, snapshot.total.succeeded + snapshot.warmup.succeeded);
}

#[tokio::test]
async fn a_server_without_resp3_is_told() {
    let redis = RedisServer::start(&["--rename-command", "HELLO", ""]);
    let mut plan = plan(&redis.endpoint());
    plan.target.protocol = Protocol::Resp3;
    let parts = ["does not support RESP3: set spec.targets[0].protocol to RESP2"];
    assert_refused(&plan, FailureReason::WrongTopology, &parts).await;
}
