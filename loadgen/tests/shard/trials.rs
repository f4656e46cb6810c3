//! Several trials in one process.

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::plan::{Bound, Part, Preload, TrialPlan};
use redisbench_wire::{Detail, RefusalCode, ShardPhase};

use crate::client::Shard;
use crate::plans::{SECOND, plan};

/// The server's connections, without the test's own.
fn connections(redis: &RedisServer) -> usize {
    redis.ask::<String>(&["CLIENT", "LIST"]).lines().count() - 1
}

fn short(redis: &RedisServer) -> TrialPlan {
    let mut plan = TrialPlan { connections: 3, ..plan(&redis.endpoint()) };
    plan.warmup_nanoseconds = 0;
    plan.bound = Bound::Requests { count: 50, max_nanoseconds: 10 * SECOND };
    plan
}

#[tokio::test]
async fn no_connection_is_left_between_two_trials() {
    let redis = RedisServer::start(&[]);
    let mut shard = Shard::armed(&short(&redis)).await;
    assert_eq!(shard.drain(1).await.unwrap_err().1.body.code, RefusalCode::WrongPhase);
    let first = shard.run(1).await;
    assert_eq!((first.total.succeeded, connections(&redis)), (50, 3));
    // The answer comes only when all connections are closed, so the test need not wait.
    assert_eq!(shard.drain(1).await.unwrap().body.phase, ShardPhase::Finished);
    assert_eq!(connections(&redis), 0);
    assert_eq!(shard.drain(1).await.unwrap().body.phase, ShardPhase::Finished);
    assert_eq!(shard.snapshot(Detail::Full).await.unwrap_err().1.body.code, RefusalCode::WrongPhase);

    shard.trial = 1;
    shard.prepared(&short(&redis)).await;
    assert_eq!(connections(&redis), 3);
    let second = shard.run(1).await;
    assert_eq!((second.total.succeeded, second.attempt), (50, 1));
    shard.ends_with(0).await;
}

#[tokio::test]
async fn elements_are_added_before_the_load_by_each_shard_its_part() {
    let redis = RedisServer::start(&[]);
    let words = |command: &str| command.split(' ').map(|word| vec![Part::Literal(word.to_owned())]).collect::<Vec<_>>();
    let mut elements = words("ZADD z");
    elements.extend([vec![Part::Score], vec![Part::Literal("element:".into()), Part::Sequence]]);
    let mut plan = TrialPlan { shards: 4, connections: 12, ..short(&redis) };
    plan.preload = Preload::Elements { count: 1_003, arguments: elements };
    plan.workload_mut().operations.truncate(1);
    plan.workload_mut().operations[0].arguments = words("ZPOPMIN z");
    plan.bound = Bound::Requests { count: 1200, max_nanoseconds: 10 * SECOND };
    let shard = Shard::armed(&plan).await;
    // The distinct ones of the first of four shards.
    assert_eq!(redis.ask::<u64>(&["ZCARD", "z"]), 250);
    let snapshot = shard.run(1).await;
    assert_eq!((snapshot.preloaded_keys, snapshot.preload_commands), (250, 250));
    assert_eq!(snapshot.total.succeeded, 300);
    // When nothing is left, the array is empty: a miss.
    assert_eq!(snapshot.operations[0].nil_replies, 300 - 250);
}
