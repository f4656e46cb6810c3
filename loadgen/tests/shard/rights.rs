//! A user with only the permissions in docs/security.md must be sufficient.

use redisbench_testkit::servers::{RedisCluster, RedisServer};

use crate::client::Shard;
use crate::load::assert_balanced;
use crate::plans::{authenticated, clustered};

/// The key prefix of the plans here.
const USER: [&str; 6] = ["ACL", "SETUSER", "bench", "on", ">secret", "~rb:*"];
const LOGIN: Option<(&str, &str)> = Some(("bench", "secret"));

#[tokio::test]
async fn a_workload_needs_its_commands_only() {
    let redis = RedisServer::start(&[]);
    let _: () = redis.ask(&[&USER[..], &["+get", "+set"]].concat());
    let snapshot = Shard::start(LOGIN).await.run_plan(&authenticated(&redis.endpoint())).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
}

#[tokio::test]
async fn a_cluster_must_show_its_map() {
    let cluster = RedisCluster::start(3);
    for node in &cluster.nodes {
        let _: () = node.ask(&[&USER[..], &["+get", "+set", "+cluster|slots"]].concat());
    }
    let mut plan = clustered(&cluster.nodes[0].endpoint());
    plan.target.authenticate = true;
    let snapshot = Shard::start(LOGIN).await.run_plan(&plan).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
}
