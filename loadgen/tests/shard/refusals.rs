//! Errors of a target and their report: the reason, the fix, and exit code 64.

use redisbench_testkit::servers::{ClosedPort, RedisCluster, RedisServer};
use redisbench_wire::plan::{TrialPlan, Values};
use redisbench_wire::{FailureReason, ShardFailure, ShardPhase};

use crate::client::Shard;
use crate::plans::{authenticated, clustered, operation, plan};

const PASSWORD: &str = "correct-horse";

/// A new shard with these credentials and files tells this failure of `plan`, and then ends.
pub async fn assert_refused_with(
    plan: &TrialPlan,
    credentials: Option<(&str, &str)>,
    files: &[(&str, &str)],
    reason: FailureReason,
    parts: &[&str],
) -> ShardFailure {
    let mut shard = Shard::start_with(credentials, files).await;
    shard.plan(1, plan).await.unwrap();
    let failure = shard.phase(ShardPhase::Failed).await.failure.unwrap();
    assert_eq!(shard.state().await.body.failure, Some(failure.clone()), "a failure can be read again");
    shard.ends_with(64).await;
    assert_eq!(failure.reason, reason, "{failure:?}");
    for part in parts {
        assert!(failure.message.contains(part), "{part:?} is not in {failure:?}");
    }
    failure
}

/// The same for a shard without credentials and files.
pub async fn assert_refused(plan: &TrialPlan, reason: FailureReason, parts: &[&str]) {
    assert_refused_with(plan, None, &[], reason, parts).await;
}

/// A plan, the user and password that the shard has, and parts of the message.
type Case<'a> = (TrialPlan, Option<(&'a str, &'a str)>, &'a [&'a str]);

#[tokio::test]
async fn a_login_that_does_not_fit() {
    let [guarded, open, renamed] = [
        RedisServer::start(&["--requirepass", PASSWORD]),
        RedisServer::start(&[]),
        // Redis repeats the arguments of an unknown command.
        RedisServer::start(&["--rename-command", "AUTH", "LOGIN"]),
    ];
    let login = |server: &RedisServer| authenticated(&server.endpoint());
    let secret = "spec.targets[0].auth.secretRef";
    let cases: [Case<'_>; 6] = [
        (login(&guarded), Some(("", "battery-staple")), &["cart", "user default", secret]),
        (login(&guarded), Some(("nobody", PASSWORD)), &["user nobody", secret]),
        (login(&guarded), None, &["could not be read", secret]),
        (plan(&guarded.endpoint()), None, &["needs a password: set spec.targets[0].auth.secretRef"]),
        (login(&open), Some(("", PASSWORD)), &["has no password: remove spec.targets[0].auth"]),
        (login(&renamed), Some(("", PASSWORD)), &["refused the login", "unknown command 'AUTH'"]),
    ];
    for (plan, credentials, parts) in cases {
        let reason = FailureReason::AuthenticationFailed;
        let failure = assert_refused_with(&plan, credentials, &[], reason, parts).await;
        assert!(!failure.message.contains(PASSWORD), "{failure:?}");
    }
}

/// One shard serves trials of several targets.
#[tokio::test]
async fn the_secrets_are_those_of_the_plans_target() {
    let redis = RedisServer::start(&["--requirepass", "of-second"]);
    let files = [("targets/0/password", "of-first"), ("targets/1/password", "of-second")];
    let shard = Shard::start_with(None, &files).await;
    let mut plan = authenticated(&redis.endpoint());
    plan.target.index = 1;
    let snapshot = shard.run_plan(&plan).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    plan.target.index = 0;
    let parts = ["check spec.targets[0].auth.secretRef"];
    assert_refused_with(&plan, None, &files, FailureReason::AuthenticationFailed, &parts).await;
    plan.target.index = 2;
    let parts = ["could not be read", "keys of spec.targets[2].auth.secretRef"];
    assert_refused_with(&plan, None, &files, FailureReason::AuthenticationFailed, &parts).await;
}

#[tokio::test]
async fn user_without_permission() {
    let redis = RedisServer::start(&[]);
    let _: () = redis.ask(&["ACL", "SETUSER", "reader", "on", ">secret", "~*", "+get", "+auth"]);
    let mut plan = authenticated(&redis.endpoint());
    plan.target.database = 1;
    let (login, parts) = (Some(("reader", "secret")), ["does not allow user reader", "select"]);
    assert_refused_with(&plan, login, &[], FailureReason::AuthenticationFailed, &parts).await;
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
    let parts = ["cart", endpoint.as_str(), "connection refused", "spec.targets[0].endpoints", "times in 20 s"];
    assert_refused(&plan(&endpoint), FailureReason::Unreachable, &parts).await;
}

async fn unknown_name() {
    let parts = ["no-such-host.invalid:6379", "spec.targets[0].endpoints"];
    assert_refused(&plan("no-such-host.invalid:6379"), FailureReason::NameNotResolved, &parts).await;
}

#[tokio::test]
async fn cluster_wanted_standalone_found() {
    let redis = RedisServer::start(&[]);
    let parts = ["is not a cluster: set spec.targets[0].type: Standalone"];
    assert_refused(&clustered(&redis.endpoint()), FailureReason::WrongTopology, &parts).await;
}

#[tokio::test]
async fn standalone_wanted_cluster_found() {
    let cluster = RedisCluster::start(1);
    let parts = ["is a node of a cluster: set spec.targets[0].type: Cluster"];
    assert_refused(&plan(&cluster.nodes[0].endpoint()), FailureReason::WrongTopology, &parts).await;
}

async fn cluster_without_all_slots() {
    let node = RedisServer::start(&["--cluster-enabled", "yes"]);
    let _: () = node.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16000"]);
    let parts = ["383 of 16384 slots have no primary", "spec.targets[0].endpoints"];
    assert_refused(&clustered(&node.endpoint()), FailureReason::WrongTopology, &parts).await;
}

#[tokio::test]
async fn a_command_that_the_server_cannot_run() {
    let redis = RedisServer::start(&[]);
    let plan_with = |command| {
        let mut plan = plan(&redis.endpoint());
        plan.workload_mut().operations.push(operation("third", 1, command));
        plan
    };
    for (command, parts) in [
        ("GTE __key__", ["has no command GTE", "remove operation third"]),
        ("OBJECT FREQUENCY __key__", ["no command OBJECT FREQUENCY", "remove operation third"]),
        ("SET __key__", ["at least 3 arguments including its name, not 2", "correct it"]),
        // Not on our own list: the server flags it.
        ("CLIENT LIST", ["admin", "spec.safety.allowDestructive to true"]),
        // It waits before others.
        ("BLPOP list 1", ["load.pipeline 4", "set spec.load.pipeline to 1"]),
    ] {
        let shown = format!("spec.workload.operations[2].command: {command}");
        let parts = [shown.as_str(), parts[0], parts[1]];
        assert_refused(&plan_with(command), FailureReason::CommandRefused, &parts).await;
    }
    assert_eq!(redis.calls("set") + redis.calls("get"), 0, "refused before any load");
    let mut allowed = plan_with("CLIENT LIST");
    allowed.workload_mut().options.allow_destructive = true;
    Shard::armed(&allowed).await;
}

#[tokio::test]
async fn keys_that_lie_in_different_slots() {
    let cluster = RedisCluster::steady(1);
    let mut plan = clustered(&cluster.nodes[0].endpoint());
    plan.workload_mut().operations.push(operation("both", 1, "EVAL script 2 a b"));
    let parts =
        ["spec.workload.operations[2].command: EVAL script 2 a b", "keys a and b are in different slots", "hash tag"];
    assert_refused(&plan, FailureReason::CommandRefused, &parts).await;
}

#[tokio::test]
async fn database_that_is_not_there() {
    let redis = RedisServer::start(&["--databases", "2"]);
    let mut plan = plan(&redis.endpoint());
    plan.target.database = 2;
    assert_refused(&plan, FailureReason::WrongTopology, &["has no database 2", "spec.targets[0].database"]).await;
}

async fn more_connections_than_clients() {
    let redis = RedisServer::start(&["--maxclients", "10"]);
    let parts = ["max number of clients", "raise the server's maxclients or lower spec.load.connections"];
    assert_refused(&TrialPlan { connections: 40, ..plan(&redis.endpoint()) }, FailureReason::Unreachable, &parts).await;
}

async fn node_that_announces_a_closed_port() {
    let port = ClosedPort::take();
    let closed = port.number().to_string();
    let node = RedisServer::start(&["--cluster-enabled", "yes", "--cluster-announce-port", &closed]);
    let _: () = node.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    assert_refused(&clustered(&node.endpoint()), FailureReason::Unreachable, &["cart", &closed, "refused"]).await;
}

#[tokio::test]
async fn server_without_room_for_the_keys() {
    let redis = RedisServer::start(&["--maxmemory", "1mb"]);
    let mut plan = plan(&redis.endpoint());
    plan.workload_mut().values = Values::fixed(10_000);
    assert_refused(&plan, FailureReason::PreloadFailed, &["cart", "OOM", "maxmemory"]).await;
}

#[tokio::test]
async fn more_connections_than_open_files() {
    let redis = RedisServer::start(&[]);
    let plan = TrialPlan { connections: u32::MAX, ..plan(&redis.endpoint()) };
    assert_refused(&plan, FailureReason::Resources, &["4294967295 connections", "open files"]).await;
}

#[tokio::test]
async fn plan_that_cannot_be_run() {
    let plan = TrialPlan { connections: 0, ..plan("127.0.0.1:1") };
    assert_refused(&plan, FailureReason::BadPlan, &["connections is 0"]).await;
}
