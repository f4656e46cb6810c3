//! Errors of a target and their report: the reason, the fix, and exit code 64.

use redisbench_testkit::servers::{ClosedPort, RedisCluster, RedisServer};
use redisbench_wire::plan::{TrialPlan, Values};
use redisbench_wire::{FailureReason, ShardFailure, ShardPhase};

use crate::client::Shard;
use crate::plans::{authenticated, clustered, operation, plan};

const PASSWORD: &str = "correct-horse";

/// Sends the plan to a shard, waits for the failure, and lets the shard end.
async fn failure_of(plan: &TrialPlan, credentials: Option<(&str, &str)>) -> ShardFailure {
    let mut shard = Shard::start(credentials).await;
    shard.plan(1, plan).await.unwrap();
    let failure = shard.phase(ShardPhase::Failed).await.failure.unwrap();
    assert_eq!(shard.state().await.body.failure, Some(failure.clone()), "a failure can be read again");
    shard.ends_with(64).await;
    failure
}

fn assert_told(failure: &ShardFailure, reason: FailureReason, parts: &[&str]) {
    assert_eq!(failure.reason, reason, "{failure:?}");
    for part in parts {
        assert!(failure.message.contains(part), "{part:?} is not in {failure:?}");
    }
}

#[tokio::test]
async fn wrong_password() {
    let redis = RedisServer::start(&["--requirepass", PASSWORD]);
    let failure = failure_of(&authenticated(&redis.endpoint()), Some(("", "battery-staple"))).await;
    assert_told(
        &failure,
        FailureReason::AuthenticationFailed,
        &["cart", "user default", "spec.targets[0].auth.secretRef"],
    );
}

#[tokio::test]
async fn wrong_user() {
    let redis = RedisServer::start(&["--requirepass", PASSWORD]);
    let failure = failure_of(&authenticated(&redis.endpoint()), Some(("nobody", PASSWORD))).await;
    assert_told(&failure, FailureReason::AuthenticationFailed, &["user nobody", "spec.targets[0].auth.secretRef"]);
}

#[tokio::test]
async fn no_password_given() {
    let redis = RedisServer::start(&["--requirepass", PASSWORD]);
    let failure = failure_of(&plan(&redis.endpoint()), None).await;
    assert_told(
        &failure,
        FailureReason::AuthenticationFailed,
        &["needs a password: set spec.targets[0].auth.secretRef"],
    );
}

#[tokio::test]
async fn password_that_nobody_asked_for() {
    let redis = RedisServer::start(&[]);
    let failure = failure_of(&authenticated(&redis.endpoint()), Some(("", PASSWORD))).await;
    assert_told(&failure, FailureReason::AuthenticationFailed, &["has no password: remove spec.targets[0].auth"]);
}

/// Redis repeats the arguments of an unknown command.
#[tokio::test]
async fn password_that_the_server_repeats() {
    let redis = RedisServer::start(&["--rename-command", "AUTH", "LOGIN"]);
    let failure = failure_of(&authenticated(&redis.endpoint()), Some(("", PASSWORD))).await;
    assert_told(&failure, FailureReason::AuthenticationFailed, &["refused the login", "unknown command 'AUTH'"]);
    assert!(!failure.message.contains(PASSWORD), "{failure:?}");
}

#[tokio::test]
async fn password_not_mounted() {
    let redis = RedisServer::start(&["--requirepass", PASSWORD]);
    let failure = failure_of(&authenticated(&redis.endpoint()), None).await;
    assert_told(
        &failure,
        FailureReason::AuthenticationFailed,
        &["could not be read", "spec.targets[0].auth.secretRef"],
    );
}

#[tokio::test]
async fn user_without_permission() {
    let redis = RedisServer::start(&[]);
    let _: () = redis.ask(&["ACL", "SETUSER", "reader", "on", ">secret", "~*", "+get", "+auth"]);
    let mut plan = authenticated(&redis.endpoint());
    plan.target.database = 1;
    let failure = failure_of(&plan, Some(("reader", "secret"))).await;
    assert_told(&failure, FailureReason::AuthenticationFailed, &["does not allow user reader", "select"]);
}

/// Each of these waits until the limit of 20 s on an obstacle, so they run in parallel.
#[tokio::test]
async fn what_lasts_becomes_a_failure() {
    tokio::join!(
        closed_port(),
        unknown_name(),
        cluster_without_all_slots(),
        more_connections_than_clients(),
        node_that_announces_a_closed_port()
    );
}

async fn closed_port() {
    let port = ClosedPort::take();
    let endpoint = port.endpoint();
    let failure = failure_of(&plan(&endpoint), None).await;
    let parts = ["cart", endpoint.as_str(), "connection refused", "spec.targets[0].endpoints", "times in 20 s"];
    assert_told(&failure, FailureReason::Unreachable, &parts);
}

async fn unknown_name() {
    let failure = failure_of(&plan("no-such-host.invalid:6379"), None).await;
    assert_told(&failure, FailureReason::NameNotResolved, &["no-such-host.invalid:6379", "spec.targets[0].endpoints"]);
}

#[tokio::test]
async fn cluster_wanted_standalone_found() {
    let redis = RedisServer::start(&[]);
    let failure = failure_of(&clustered(&redis.endpoint()), None).await;
    assert_told(&failure, FailureReason::WrongTopology, &["is not a cluster: set spec.targets[0].type: Standalone"]);
}

#[tokio::test]
async fn standalone_wanted_cluster_found() {
    let cluster = RedisCluster::start(1);
    let failure = failure_of(&plan(&cluster.nodes[0].endpoint()), None).await;
    assert_told(&failure, FailureReason::WrongTopology, &["is a node of a cluster: set spec.targets[0].type: Cluster"]);
}

async fn cluster_without_all_slots() {
    let node = RedisServer::start(&["--cluster-enabled", "yes"]);
    let _: () = node.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16000"]);
    let failure = failure_of(&clustered(&node.endpoint()), None).await;
    assert_told(
        &failure,
        FailureReason::WrongTopology,
        &["383 of 16384 slots have no primary", "spec.targets[0].endpoints"],
    );
}

#[tokio::test]
async fn unknown_command() {
    let redis = RedisServer::start(&[]);
    let mut plan = plan(&redis.endpoint());
    plan.workload.operations.push(operation("typo", 1, "GTE __key__"));
    let failure = failure_of(&plan, None).await;
    let parts = ["spec.workload.operations[2].command: GTE __key__", "has no command GTE", "remove operation typo"];
    assert_told(&failure, FailureReason::CommandRefused, &parts);
}

#[tokio::test]
async fn command_with_too_few_arguments() {
    let redis = RedisServer::start(&[]);
    let mut plan = plan(&redis.endpoint());
    plan.workload.operations = vec![operation("short", 1, "SET __key__")];
    let failure = failure_of(&plan, None).await;
    let parts = ["spec.workload.operations[0].command: SET __key__", "at least 3 arguments including its name, not 2"];
    assert_told(&failure, FailureReason::CommandRefused, &parts);
}

#[tokio::test]
async fn subcommand_that_is_not_there() {
    let redis = RedisServer::start(&[]);
    let mut plan = plan(&redis.endpoint());
    plan.workload.operations.push(operation("typo", 1, "OBJECT FREQUENCY __key__"));
    let failure = failure_of(&plan, None).await;
    let parts = ["spec.workload.operations[2].command: OBJECT FREQUENCY __key__", "no command OBJECT FREQUENCY"];
    assert_told(&failure, FailureReason::CommandRefused, &parts);
}

#[tokio::test]
async fn command_for_administrators() {
    let redis = RedisServer::start(&[]);
    let mut plan = plan(&redis.endpoint());
    // Not on our own list: the server flags it.
    plan.workload.operations.push(operation("spy", 1, "CLIENT LIST"));
    let failure = failure_of(&plan, None).await;
    let parts = ["spec.workload.operations[2].command: CLIENT LIST", "admin", "spec.safety.allowDestructive to true"];
    assert_told(&failure, FailureReason::CommandRefused, &parts);
    assert_eq!(redis.calls("set") + redis.calls("get"), 0, "refused before any load");
    plan.workload.options.allow_destructive = true;
    let shard = Shard::armed(&plan).await;
}

#[tokio::test]
async fn command_that_waits_before_others() {
    let redis = RedisServer::start(&[]);
    let mut plan = plan(&redis.endpoint());
    plan.workload.operations.push(operation("pop", 1, "BLPOP list 1"));
    let failure = failure_of(&plan, None).await;
    let parts = ["spec.workload.operations[2].command: BLPOP list 1", "load.pipeline 4", "set spec.load.pipeline to 1"];
    assert_told(&failure, FailureReason::CommandRefused, &parts);
}

#[tokio::test]
async fn keys_that_lie_in_different_slots() {
    let cluster = RedisCluster::steady(1);
    let mut plan = clustered(&cluster.nodes[0].endpoint());
    plan.workload.operations.push(operation("both", 1, "EVAL script 2 a b"));
    let failure = failure_of(&plan, None).await;
    let parts =
        ["spec.workload.operations[2].command: EVAL script 2 a b", "keys a and b are in different slots", "hash tag"];
    assert_told(&failure, FailureReason::CommandRefused, &parts);
}

#[tokio::test]
async fn database_that_is_not_there() {
    let redis = RedisServer::start(&["--databases", "2"]);
    let mut plan = plan(&redis.endpoint());
    plan.target.database = 2;
    let failure = failure_of(&plan, None).await;
    assert_told(&failure, FailureReason::WrongTopology, &["has no database 2", "spec.targets[0].database"]);
}

async fn more_connections_than_clients() {
    let redis = RedisServer::start(&["--maxclients", "10"]);
    let failure = failure_of(&TrialPlan { connections: 40, ..plan(&redis.endpoint()) }, None).await;
    let parts = ["max number of clients", "raise the server's maxclients or lower spec.load.connections"];
    assert_told(&failure, FailureReason::Unreachable, &parts);
}

async fn node_that_announces_a_closed_port() {
    let port = ClosedPort::take();
    let closed = port.number().to_string();
    let node = RedisServer::start(&["--cluster-enabled", "yes", "--cluster-announce-port", &closed]);
    let _: () = node.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let failure = failure_of(&clustered(&node.endpoint()), None).await;
    assert_told(&failure, FailureReason::Unreachable, &["cart", &closed, "refused"]);
}

#[tokio::test]
async fn server_without_room_for_the_keys() {
    let redis = RedisServer::start(&["--maxmemory", "1mb"]);
    let mut plan = plan(&redis.endpoint());
    plan.workload.values = Values::fixed(10_000);
    let failure = failure_of(&plan, None).await;
    assert_told(&failure, FailureReason::PreloadFailed, &["cart", "OOM", "maxmemory"]);
}

#[tokio::test]
async fn more_connections_than_open_files() {
    let redis = RedisServer::start(&[]);
    let plan = TrialPlan { connections: u32::MAX, ..plan(&redis.endpoint()) };
    let failure = failure_of(&plan, None).await;
    assert_told(&failure, FailureReason::Resources, &["4294967295 connections", "open files"]);
}

#[tokio::test]
async fn plan_that_cannot_be_run() {
    let plan = TrialPlan { connections: 0, ..plan("127.0.0.1:1") };
    assert_told(&failure_of(&plan, None).await, FailureReason::BadPlan, &["connections is 0"]);
}
