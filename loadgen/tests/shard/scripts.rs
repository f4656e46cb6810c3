//! Scripts and functions are loaded into every primary before the load, and again after a loss.

use redisbench_loadgen::cluster::slot_of;
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::FailureReason;
use redisbench_wire::plan::{Preload, Script, TrialPlan};

use crate::client::Shard;
use crate::plans::{clustered, operation, plan, steady};
use crate::refusals::assert_refused;

const SOURCE: &str = "return redis.call('INCR', KEYS[1])";
const LIBRARY: &str =
    "#!lua name=counters\nredis.register_function('count', function(keys) return redis.call('INCR', keys[1]) end)";

/// Counters, incremented by the script with digest `sha`.
fn counting(plan: TrialPlan, sha: &str) -> TrialPlan {
    let mut plan = plan;
    plan.preload = Preload::None;
    plan.workload_mut().keys.prefix = "counter:".into();
    plan.workload_mut().operations = vec![operation("count", 1, &format!("EVALSHA {sha} 1 __key__"))];
    plan.workload_mut().options.scripts = vec![Script { name: "count".into(), source: SOURCE.into() }];
    plan
}

/// The script's digest. The server does not keep the script.
fn sha(server: &RedisServer) -> String {
    let sha = server.ask(&["SCRIPT", "LOAD", SOURCE]);
    server.ask::<()>(&["SCRIPT", "FLUSH"]);
    sha
}

#[tokio::test]
async fn every_primary_has_them_before_the_load() {
    let cluster = RedisCluster::steady(3);
    let sha = sha(&cluster.nodes[0]);
    let mut plan = counting(clustered(&cluster.nodes[0].endpoint()), &sha);
    plan.workload_mut().operations.push(operation("call", 1, "FCALL count 1 __key__"));
    plan.workload_mut().operations.push(operation("fixed", 1, &format!("EVALSHA {sha} 1 one-counter __key__")));
    plan.workload_mut().options.functions = vec![Script { name: "counters".into(), source: LIBRARY.into() }];
    let shard = Shard::armed(&plan).await;
    let total = shard.run(1).await.total;
    assert_eq!((total.succeeded, total.errors, total.redirect_hops), (5000, 0, 0));
    // Requests follow the declared keys, also those without a placeholder.
    let owner = &cluster.nodes[cluster.owner(slot_of(b"one-counter"))];
    assert!(owner.ask::<u64>(&["GET", "one-counter"]) > 1000);
}

#[tokio::test]
async fn what_a_server_has_lost_is_loaded_again() {
    let server = RedisServer::start(&[]);
    let plan = counting(plan(&server.endpoint()), &sha(&server));
    let shard = Shard::armed(&steady(plan, 500, 6)).await;
    shard.begin(1).await;
    wait_until("the load runs", || server.calls("evalsha") > 100);
    server.ask::<()>(&["SCRIPT", "FLUSH"]);
    let snapshot = shard.finished().await;
    let [lost] = snapshot.errors.as_slice() else { panic!("{:?}", snapshot.errors) };
    assert_eq!((lost.kind.as_str(), lost.count), ("NOSCRIPT", snapshot.total.errors));
    // Only requests before the next look, at most about 2 s later, fail.
    assert!(snapshot.total.errors < 2000, "{:?}", snapshot.total);
    assert_eq!(server.command_statistic("script|load", "calls"), 3, "before the load, after the loss, and in the test");
}

#[tokio::test]
async fn what_is_no_script_is_named() {
    let server = RedisServer::start(&[]);
    let mut plan = counting(plan(&server.endpoint()), "0000000000000000000000000000000000000000");
    plan.workload_mut().options.scripts[0].source = "this is no Lua".into();
    let parts = ["spec.workload.scripts[0].source", "count", "correct it"];
    assert_refused(&plan, FailureReason::CommandRefused, &parts).await;
}
