//! Whole trials: the counts against the server's own, starts, aborts, limits, and the places where the password must not appear.

use std::path::Path;

use redisbench_testkit::log::is_timed;
use redisbench_testkit::servers::{RedisCluster, RedisServer};
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Bound, TrialPlan};
use redisbench_wire::snapshot::{Snapshot, Stage, Tally};
use redisbench_wire::{AbortThen, Detail, RefusalCode, ShardPhase};

use crate::client::{Shard, command, eventually};
use crate::plans::{SECOND, authenticated, clustered, plan};

/// A load that only a stop ends.
pub fn endless(plan: TrialPlan) -> TrialPlan {
    TrialPlan { bound: Bound::Duration { nanoseconds: 50 * SECOND }, warmup_nanoseconds: 0, ..plan }
}

/// Every request has exactly one outcome, and the parts add up to the total.
pub fn assert_balanced(snapshot: &Snapshot) {
    assert!(snapshot.total.balances(), "{:?}", snapshot.total);
    let operations = snapshot.operations.iter();
    assert!(operations.clone().all(|operation| operation.tally.balances()));
    assert_eq!(operations.map(|operation| operation.tally.scheduled).sum::<u64>(), snapshot.total.scheduled);
    let recorded = snapshot.latency.response.count(Kind::Request).unwrap();
    assert_eq!(recorded + snapshot.total.overflow, snapshot.total.succeeded);
}

/// Waits until requests have succeeded.
async fn loaded(shard: &Shard) -> Snapshot {
    eventually("the load runs", async || {
        let snapshot = shard.snapshot(Detail::Live).await.unwrap().body;
        (snapshot.total.succeeded > 100).then_some(snapshot)
    })
    .await
}

/// No request waited in vain. On a busy machine the last ones may become due too late to be sent.
pub fn assert_sent(total: &Tally) {
    assert_eq!(total.unsent, total.unsent_at_end, "all others could wait: {total:?}");
    assert!(!is_timed() || total.unsent == 0, "{total:?}");
}

#[tokio::test]
async fn a_trial_counts_what_the_server_counted() {
    let redis = RedisServer::start(&[]);
    let mut shard = Shard::start(None).await;
    let state = shard.plan(1, &plan(&redis.endpoint())).await.unwrap();
    assert_eq!(state.body.phase, ShardPhase::Preparing);
    let snapshot = shard.run(1).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.stage, snapshot.aborted, snapshot.attempt, snapshot.shard), (Stage::Done, false, 1, 0));
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    assert_eq!((snapshot.preloaded_keys, snapshot.preload_commands), (1000, 1000));
    assert_eq!((snapshot.generator.host.as_str(), snapshot.generator.workers), ("node-7", 2));
    let all = snapshot.total.succeeded + snapshot.warmup.succeeded + snapshot.preload_commands;
    assert_eq!(redis.calls("get") + redis.calls("set"), all);
    let live = shard.snapshot(Detail::Live).await.unwrap().body;
    assert!(live.sequence > snapshot.sequence);
    assert_eq!(live.total, snapshot.total);
    shard.ends_with(0).await;
}

#[tokio::test]
async fn a_cluster_is_loaded_node_by_node() {
    let cluster = RedisCluster::start(3);
    let snapshot = Shard::start(None).await.run_plan(&clustered(&cluster.nodes[1].endpoint())).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.total.succeeded, snapshot.total.redirected), (5000, 0), "{:?}", snapshot.errors);
    assert_eq!(snapshot.nodes.iter().map(|node| node.requests).sum::<u64>(), 5000);
    assert_eq!(snapshot.nodes.iter().map(|node| node.slots).sum::<u32>(), 16384);
    for node in &snapshot.nodes {
        assert!(node.requests > 0 && node.address.starts_with("127.0.0.1:"), "{node:?}");
    }
    let all = snapshot.total.succeeded + snapshot.warmup.succeeded + snapshot.preload_commands;
    assert_eq!(cluster.calls("get") + cluster.calls("set"), all);
}

#[tokio::test]
async fn an_aborted_load_is_kept_and_its_server_left_alone() {
    let redis = RedisServer::start(&[]);
    let shard = Shard::armed(&endless(plan(&redis.endpoint()))).await;
    shard.begin(1).await;
    loaded(&shard).await;
    shard.abort(AbortThen::Stop).await.unwrap();
    let snapshot = shard.finished().await;
    assert_balanced(&snapshot);
    assert!(snapshot.aborted && snapshot.total.succeeded > 100);
    let calls = redis.calls("get");
    assert_eq!(shard.snapshot(Detail::Full).await.unwrap().body.total, snapshot.total);
    assert_eq!(redis.calls("get"), calls);
}

#[tokio::test]
async fn a_rearmed_shard_measures_anew_without_a_second_preload() {
    let redis = RedisServer::start(&[]);
    let shard = Shard::start(None).await;
    let endless = endless(plan(&redis.endpoint()));
    shard.prepared(&TrialPlan { bound: Bound::Duration { nanoseconds: 5 * SECOND }, ..endless }).await;
    shard.begin(1).await;
    let accepted = shard.state().await.body.accepted.unwrap();
    let begin = accepted.start_nanoseconds;
    assert_eq!(loaded(&shard).await.window.start_nanoseconds, begin);
    assert_eq!(shard.start_at(1, 1, begin + 9 * SECOND).await.unwrap().body, accepted);
    assert_eq!(shard.snapshot(Detail::Full).await.unwrap_err().1.body.code, RefusalCode::WrongPhase);
    assert_eq!(shard.state().await.body.accepted, Some(accepted));
    shard.abort(AbortThen::Rearm).await.unwrap();
    shard.phase(ShardPhase::Armed).await;
    assert_eq!(shard.state().await.body.accepted, None);
    let refused = shard.start_at(1, 1, begin + 9 * SECOND).await.unwrap_err().1;
    assert_eq!(refused.body.code, RefusalCode::WrongPhase);
    let snapshot = shard.run(2).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.attempt, snapshot.aborted, snapshot.preloaded_keys), (2, false, 1000));
    assert!(snapshot.window.start_nanoseconds > begin && snapshot.total.in_flight == 0);
}

#[tokio::test]
async fn trials_follow_one_another() {
    let redis = RedisServer::start(&[]);
    let mut shard = Shard::start(None).await;
    let first = shard.run_plan(&plan(&redis.endpoint())).await;
    shard.trial = 1;
    let second = shard.run_plan(&plan(&redis.endpoint())).await;
    assert_balanced(&second);
    assert_eq!((first.total.succeeded, second.total.succeeded), (5000, 5000));
    assert_eq!(shard.state().await.trial, Some(1));
    shard.trial = 0;
    let (_, refused) = shard.snapshot(Detail::Full).await.unwrap_err();
    assert_eq!((refused.trial, refused.body.code), (Some(0), RefusalCode::Unknown));
}

#[tokio::test]
async fn a_finished_shard_that_nobody_asks_ends_with_its_counters_in_the_log() {
    let redis = RedisServer::start(&[]);
    let mut shard = Shard::start(None).await;
    let mut plan = plan(&redis.endpoint());
    plan.limits.finished_nanoseconds = 2 * SECOND;
    shard.prepared(&plan).await;
    shard.begin(1).await;
    shard.phase(ShardPhase::Finished).await;
    assert_eq!(shard.exit_code().await, Some(76));
    assert_counters_are_logged(&shard);
}

#[tokio::test]
async fn a_load_that_nobody_attends_stops_and_is_kept() {
    let redis = RedisServer::start(&[]);
    let mut plan = endless(plan(&redis.endpoint()));
    plan.limits.unattended_nanoseconds = 2 * SECOND;
    let shard = Shard::armed(&plan).await;
    shard.begin(1).await;
    // Every call to the shard would attend it.
    eventually("the load stops", async || shard.log().contains("safety.unattended").then_some(())).await;
    let snapshot = shard.finished().await;
    assert_balanced(&snapshot);
    assert!(snapshot.aborted && snapshot.total.succeeded > 100, "{:?}", snapshot.total);
    let calls = redis.calls("get") + redis.calls("set") - snapshot.preload_commands;
    let counted = snapshot.total.succeeded;
    assert!((counted..=counted + snapshot.total.in_flight).contains(&calls), "{calls}: {:?}", snapshot.total);
}

#[tokio::test]
async fn a_signal_ends_the_load() {
    let redis = RedisServer::start(&[]);
    let mut shard = Shard::armed(&endless(plan(&redis.endpoint()))).await;
    shard.begin(1).await;
    eventually("the load runs", async || (redis.calls("get") > 0).then_some(())).await;
    shard.terminate();
    assert_eq!(shard.exit_code().await, Some(75));
    assert_counters_are_logged(&shard);
}

#[tokio::test]
async fn after_a_signal_a_shard_keeps_its_result_for_some_time() {
    let redis = RedisServer::start(&[]);
    let staying = |directory: &Path| {
        let mut command = command(directory, "127.0.0.1:0");
        command.args(["--stay", "3600"]);
        command
    };
    let mut shard = Shard::start_by(None, &[], staying).await;
    shard.prepared(&endless(plan(&redis.endpoint()))).await;
    shard.begin(1).await;
    assert!(!loaded(&shard).await.terminated);
    shard.terminate();
    let snapshot = shard.finished().await;
    assert_balanced(&snapshot);
    assert!(snapshot.is_cut_short() && snapshot.total.succeeded > 0, "{:?}", snapshot.total);
    shard.ends_with(0).await;
}

fn assert_counters_are_logged(shard: &Shard) {
    let log = shard.log();
    let line = log.lines().find(|line| line.contains("counters")).unwrap_or_else(|| panic!("no counters in {log}"));
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let counters: serde_json::Value = serde_json::from_str(line["counters"].as_str().unwrap()).unwrap();
    assert!(counters["total"]["succeeded"].as_u64().unwrap() > 0, "{counters}");
}

#[tokio::test]
async fn a_lost_target_disarms_the_shard_until_it_is_back() {
    let mut redis = RedisServer::start(&[]);
    let shard = Shard::armed(&plan(&redis.endpoint())).await;
    redis.kill();
    let state = shard.phase(ShardPhase::Preparing).await;
    assert!(state.preparation.connected < 4, "{state:?}");
    let refused = shard.start_at(1, 1, shard.clock().await + SECOND).await.unwrap_err().1;
    assert_eq!(refused.body.code, RefusalCode::WrongPhase);
    redis.restart();
    let snapshot = shard.run(1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
}

#[tokio::test]
async fn the_password_stays_in_its_file() {
    let password = "a-password-like-no-other";
    let redis = RedisServer::start(&["--requirepass", password]);
    let mut shard = Shard::start(Some(("default", &format!("{password}\n")))).await;
    let snapshot = shard.run_plan(&authenticated(&redis.endpoint())).await;
    assert_eq!(snapshot.total.succeeded, 5000);
    let state = format!("{:?}{snapshot:?}", shard.state().await);
    let process = ["cmdline", "environ"].map(|name| {
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{}/{name}", shard.pid())).unwrap()).into_owned()
    });
    shard.ends_with(0).await;
    for text in [state, process.concat(), shard.log()] {
        assert!(!text.contains(password) && !text.contains(&shard.token), "{text}");
    }
}

/// A Secret is rotated and the connections break. With the old password none could reconnect.
#[tokio::test]
async fn a_rotated_password_lets_connections_in_again() {
    let redis = RedisServer::start(&["--requirepass", "before"]);
    let shard = Shard::start(Some(("default", "before"))).await;
    let plan = authenticated(&redis.endpoint());
    shard.prepared(&plan).await;
    let mut administrator = redis.connection();
    let mut ask =
        |words: &[&str]| -> redis::Value { redis::cmd(words[0]).arg(&words[1..]).query(&mut administrator).unwrap() };
    shard.write("targets/0/password", "after");
    ask(&["CONFIG", "SET", "requirepass", "after"]);
    ask(&["CLIENT", "KILL", "TYPE", "normal"]);
    eventually("all connections are back", async || {
        let clients: String = redis::from_redis_value(ask(&["CLIENT", "LIST"])).unwrap();
        (clients.matches("name=redisbench").count() == plan.connections as usize).then_some(())
    })
    .await;
    let snapshot = shard.run(1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
}
