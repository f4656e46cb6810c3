//! Deletes all keys of the shard and no others.

use redisbench_testkit::servers::{RedisCluster, RedisServer};
use redisbench_wire::plan::{Bound, TrialPlan};
use redisbench_wire::{AbortThen, RefusalCode, ShardPhase};

use crate::client::Shard;
use crate::plans::{SECOND, authenticated, clustered, plan};

/// Keys that a wrong prefix, a wrong padding, another shard's part or a number out of range would delete.
const FOREIGN: [&str; 5] = ["r", "rb:1", "rb:0250", "rb:0999", "other:0001"];

/// Numbers 500 to 749, padded to four digits.
fn middle(mut plan: TrialPlan) -> TrialPlan {
    (plan.workload_mut().keys.start, plan.workload_mut().keys.count, plan.workload_mut().keys.width) = (500, 250, 4);
    plan
}

fn keys(redis: &RedisServer) -> u64 {
    redis.ask(&["DBSIZE"])
}

#[tokio::test]
async fn its_keys_go_and_no_other() {
    let redis = RedisServer::start(&["--requirepass", "open sesame"]);
    for key in FOREIGN {
        redis.ask::<()>(&["SET", key, "kept"]);
    }
    let mut shard = Shard::start(Some(("default", "open sesame"))).await;
    shard.prepared(&middle(authenticated(&redis.endpoint()))).await;
    assert_eq!(keys(&redis), 250 + 5);
    assert_eq!(shard.cleanup(1).await.unwrap_err().1.body.code, RefusalCode::WrongPhase);
    let snapshot = shard.run(1).await;
    let before = shard.log().len();
    assert_eq!(shard.cleanup(0).await.unwrap_err().1.body.code, RefusalCode::StaleEpoch);
    assert_eq!(keys(&redis), 250 + 5);
    assert_eq!(shard.cleaned_up().await, 250);
    assert_eq!(keys(&redis), 5);
    for key in FOREIGN {
        assert_eq!(redis.ask::<String>(&["GET", key]), "kept");
    }
    // A repeated call returns the progress and deletes nothing.
    redis.ask::<()>(&["SET", "rb:0600", "new"]);
    assert_eq!(shard.cleaned_up().await, 250);
    assert_eq!(redis.ask::<String>(&["GET", "rb:0600"]), "new");
    assert_eq!(shard.snapshot(redisbench_wire::Detail::Full).await.unwrap().body.total, snapshot.total);
    assert!(!shard.log()[before..].contains("open sesame"));
    shard.ends_with(0).await;
}

#[tokio::test]
async fn a_shard_leaves_the_parts_of_others() {
    let redis = RedisServer::start(&[]);
    let shard = Shard::start(None).await;
    // The requests of shard 0 of 4 use keys of all four.
    let bound = Bound::Requests { count: 20_000, max_nanoseconds: 30 * SECOND };
    let mut plan = TrialPlan { shards: 4, connections: 16, bound, ..plan(&redis.endpoint()) };
    plan.workload_mut().operations.remove(0);
    shard.run_plan(&plan).await;
    let all = keys(&redis);
    assert!(all > 900, "{all}");
    assert_eq!(shard.cleaned_up().await, 250);
    assert_eq!(keys(&redis), all - 250);
    assert_eq!(redis.ask::<u64>(&["EXISTS", "rb:000", "rb:249"]), 0);
}

#[tokio::test]
async fn in_a_cluster_they_go_from_every_node() {
    let cluster = RedisCluster::steady(3);
    let sum = || cluster.nodes.iter().map(keys).sum::<u64>();
    let shard = Shard::start(None).await;
    shard.run_plan(&clustered(&cluster.nodes[1].endpoint())).await;
    assert_eq!(sum(), 1000);
    assert_eq!(shard.cleaned_up().await, 1000);
    assert_eq!(sum(), 0);
}

#[tokio::test]
async fn what_was_stopped_before_its_start_is_deleted_too() {
    let redis = RedisServer::start(&[]);
    let shard = Shard::start(None).await;
    let endless = Bound::Duration { nanoseconds: 50 * SECOND };
    shard.prepared(&TrialPlan { bound: endless, ..plan(&redis.endpoint()) }).await;
    shard.abort(AbortThen::Stop).await.unwrap();
    assert_eq!(shard.cleaned_up().await, 1000);
    assert_eq!(keys(&redis), 0);
    // A re-armed shard preloads again.
    shard.abort(AbortThen::Rearm).await.unwrap();
    shard.phase(ShardPhase::Armed).await;
    assert_eq!(keys(&redis), 1000);
}

#[tokio::test]
async fn a_target_that_is_gone_is_a_failure_with_a_reason() {
    let mut redis = RedisServer::start(&[]);
    let shard = Shard::start(None).await;
    shard.run_plan(&plan(&redis.endpoint())).await;
    redis.kill();
    let failure = crate::client::eventually("the deletion is given up", async || {
        let state = shard.cleanup(1).await.unwrap().body;
        assert!(!state.done);
        state.failure
    })
    .await;
    assert!(failure.contains(&redis.endpoint()), "{failure}");
    shard.phase(ShardPhase::Finished).await;
}
