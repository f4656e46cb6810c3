//! A primary named by real sentinels: their queries, and failovers under load.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use redisbench_testkit::log::{Log, TOLERANCE, assert_begins, assert_ends, is_timed, now};
use redisbench_testkit::processes::Running;
use redisbench_testkit::servers::{RedisServer, free_port, wait_until};
use redisbench_wire::FailureReason;
use redisbench_wire::plan::{Topology, TrialPlan};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::topology::ChangeKind;
use tempfile::TempDir;

use crate::client::{Shard, eventually};
use crate::load::assert_sent;
use crate::plans::{SECOND, plan, steady};
use crate::refusals::assert_refused;
use crate::windows::{window, windows};

const RATE: u64 = 2000;
const SECONDS: u64 = 8;

/// A sentinel, stopped with the test.
pub struct Sentinel {
    _process: Running,
    port: u16,
    password: Option<String>,
    log: Log,
    _directory: TempDir,
}

impl Sentinel {
    fn start(primary: &RedisServer) -> Self {
        Self::start_with(primary.address().port(), 2, &[])
    }

    /// Watches the primary at port `primary`, which it replaces if `quorum` sentinels agree. `lines` are added to its configuration.
    pub fn start_with(primary: u16, quorum: u32, lines: &[String]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sentinel.conf");
        let port = free_port();
        let mut text = format!("port {port}\nbind 127.0.0.1\ndir {}\n", directory.path().display());
        // Before `monitor`, because the connection to the primary uses them.
        for line in lines {
            writeln!(text, "{line}").unwrap();
        }
        writeln!(text, "sentinel monitor mymaster 127.0.0.1 {primary} {quorum}").unwrap();
        for setting in ["down-after-milliseconds mymaster 500", "failover-timeout mymaster 2000"] {
            writeln!(text, "sentinel {setting}").unwrap();
        }
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("redis-server");
        command.arg(&file).arg("--sentinel").env("TZ", "UTC").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Running(command.spawn().unwrap());
        let log = Log::default();
        assert!(log.follow_until(process.0.stdout.take().unwrap(), "+monitor"), "{}", log.text());
        let password = lines.iter().find_map(|line| line.strip_prefix("requirepass ")).map(str::to_owned);
        Self { _process: process, port, password, log, _directory: directory }
    }

    /// Its plain port.
    pub fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn ask(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let login = self.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default();
        let client = redis::Client::open(format!("redis://{login}{}", self.endpoint()))?;
        redis::cmd(words[0]).arg(&words[1..]).query(&mut client.get_connection()?)
    }

    /// True once it knows this many other sentinels and the replica, and a failover is possible.
    pub fn is_ready(&self, others: usize) -> bool {
        let quorum = self.ask(&["SENTINEL", "CKQUORUM", "mymaster"]);
        let told = format!("{:?}", self.ask(&["SENTINEL", "MASTER", "mymaster"]));
        let field =
            |name: &str, value: &str| told.contains(&format!("bulk-string('\"{name}\"'), bulk-string('\"{value}\"')"));
        quorum.is_ok()
            && field("num-other-sentinels", &others.to_string())
            && field("num-slaves", "1")
            && field("flags", "master")
    }
}

/// The plan for the primary `name` of the sentinel at `endpoint`.
pub fn watched(endpoint: &str, name: &str) -> TrialPlan {
    let mut plan = plan(endpoint);
    plan.target.topology = Topology::Sentinel;
    plan.target.master_name = Some(name.into());
    plan
}

/// A primary and its replica.
pub fn pair() -> (RedisServer, RedisServer) {
    let primary = RedisServer::start(&[]);
    let port = primary.address().port().to_string();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"]);
    let in_step = || replica.ask::<String>(&["INFO", "replication"]).contains("master_link_status:up");
    wait_until("the replica is in step", in_step);
    (primary, replica)
}

/// A primary, its replica, and three sentinels.
struct Group {
    primary: RedisServer,
    replica: RedisServer,
    sentinels: Vec<Sentinel>,
}

impl Group {
    fn start() -> Self {
        let (primary, replica) = pair();
        let sentinels: Vec<_> = (0..3).map(|_| Sentinel::start(&primary)).collect();
        wait_until("the sentinels know all", || sentinels.iter().all(|sentinel| sentinel.is_ready(2)));
        Self { primary, replica, sentinels }
    }

    fn plan(&self) -> TrialPlan {
        let mut plan = steady(watched("", "mymaster"), RATE, SECONDS);
        plan.target.endpoints = self.sentinels.iter().map(Sentinel::endpoint).collect();
        plan.timeouts.request_nanoseconds = SECOND;
        plan
    }
}

/// Starts the load, breaks something once the primary has received a part of it, and waits for the end.
async fn run_and_break(group: &mut Group, breaking: impl FnOnce(&mut Group)) -> Snapshot {
    let shard = Shard::armed(&group.plan()).await;
    let before = group.primary.calls("get");
    shard.begin(1).await;
    eventually("the primary is loaded", async || (group.primary.calls("get") > before + 1000).then_some(())).await;
    breaking(group);
    shard.finished().await
}

/// Every request is accounted for, and both servers received some.
fn assert_followed(group: &Group, snapshot: &Snapshot) {
    let total = snapshot.total;
    assert_eq!(total.scheduled, RATE * SECONDS);
    assert!(total.balances() && total.in_flight == 0, "{total:?}");
    assert_sent(&total);
    // At most the requests in flight on broken connections failed; later ones waited.
    assert!(total.errors < total.scheduled / 10, "{total:?} {:?}", snapshot.errors);
    let labels: Vec<_> = snapshot.nodes.iter().map(|node| node.address.as_str()).collect();
    assert_eq!(labels, [group.primary.endpoint(), group.replica.endpoint()]);
    assert!(snapshot.nodes.iter().all(|node| node.requests > node.errors), "{:?}", snapshot.nodes);
    // The replica also executed replicated writes, but its reads come from the load. Some may have timed out.
    let reads = group.replica.calls("get");
    assert!(reads > 0 && reads <= snapshot.nodes[1].requests, "{reads} reads, {:?}", snapshot.nodes[1]);
    assert!(group.replica.ask::<String>(&["INFO", "replication"]).contains("role:master"));
}

#[tokio::test]
async fn a_primary_that_dies_is_followed() {
    let mut group = Group::start();
    let mut killed = 0;
    let snapshot = run_and_break(&mut group, |group| {
        killed = now();
        group.primary.kill();
    })
    .await;
    assert_followed(&group, &snapshot);
    // Sentinels name the replica from then on. The leader of the failover is the first.
    let promoted = group.sentinels.iter().flat_map(|sentinel| sentinel.log.times_of("+promoted-slave")).min().unwrap();
    let own = window(&windows(&snapshot), 0, killed);
    assert_begins("the kill", own.from, killed);
    assert_ends("the promotion", own.until, promoted);
    assert_eq!(own.node, group.primary.endpoint());
    let changes: Vec<_> = snapshot.topology.changes.iter().map(|change| (change.what, change.node.clone())).collect();
    for expected in
        [(ChangeKind::BecamePrimary, group.replica.endpoint()), (ChangeKind::Gone, group.primary.endpoint())]
    {
        assert!(changes.contains(&expected), "{expected:?} in {changes:?}");
    }
    assert_eq!((snapshot.topology.primaries, snapshot.topology.replicas), (1, 0));
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_is_followed() {
    let mut group = Group::start();
    let failover = |group: &mut Group| {
        group.sentinels[0].ask(&["SENTINEL", "FAILOVER", "mymaster"]).unwrap();
    };
    let snapshot = run_and_break(&mut group, failover).await;
    assert_followed(&group, &snapshot);
    // The old primary serves until the new one does.
    let short = windows(&snapshot).iter().all(|window| window.until - window.from <= TOLERANCE);
    assert!(!is_timed() || short, "{:?}", snapshot.topology);
}

#[tokio::test]
async fn what_is_no_sentinel_or_knows_no_such_primary_is_told() {
    let redis = RedisServer::start(&[]);
    let sentinel = Sentinel::start(&redis);
    wait_until("the sentinel answers", || sentinel.ask(&["PING"]).is_ok());
    for (plan, parts) in [
        (watched(&redis.endpoint(), "mymaster"), ["is not a sentinel", "spec.targets[0].type: Standalone"]),
        (watched(&sentinel.endpoint(), "other"), ["has no master \"other\"", "that it has: mymaster"]),
        (plan(&sentinel.endpoint()), ["is a sentinel", "spec.targets[0].type: Sentinel"]),
    ] {
        assert_refused(&plan, FailureReason::WrongTopology, &parts).await;
    }
}
