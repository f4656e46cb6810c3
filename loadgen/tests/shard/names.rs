//! Host names of targets whose address changes, for a shard with its own `/etc/hosts`.

use std::path::Path;

use redisbench_testkit::servers::{RedisServer, calls};
use redisbench_wire::plan::Topology;
use redisbench_wire::topology::{Change, ChangeKind};
use redisbench_wire::{AbortThen, Detail};
use tokio::process::Command;

use crate::client::{Shard, command, eventually};
use crate::load::{assert_balanced, assert_sent, endless};
use crate::plans::{SECOND, plan, steady};

const RATE: u64 = 2000;
const SECONDS: u64 = 6;

/// A shard that uses `hosts` as `/etc/hosts`, including later changes of the file.
async fn shard_with(hosts: &Path) -> Shard {
    let own_hosts = |directory: &Path| {
        let plain = command(directory, "127.0.0.1:0");
        let plain = plain.as_std();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", "mount --bind \"$0\" /etc/hosts && exec \"$@\""]).arg(hosts);
        command.arg(plain.get_program()).args(plain.get_args());
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.stderr(std::fs::File::create(directory.join("log")).unwrap()).kill_on_drop(true);
        command
    };
    Shard::start_by(None, &[], own_hosts).await
}

#[tokio::test]
#[ignore = "gives a process names of its own, which needs root: make test-selfcheck"]
async fn a_name_that_moves_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let hosts = directory.path().join("hosts");
    let mut first = RedisServer::start(&[]);
    let port = first.address().port().to_string();
    // Two addresses. Only the second has a server.
    std::fs::write(&hosts, "127.0.0.9 redis.test\n127.0.0.1 redis.test\n").unwrap();
    let shard = shard_with(&hosts).await;
    let mut plan = steady(plan(&format!("redis.test:{port}")), RATE, SECONDS);
    plan.timeouts.request_nanoseconds = SECOND;
    shard.prepared(&plan).await;
    let second = RedisServer::try_start(&["--bind", "127.0.0.2", "--port", &port]).expect("the port is taken");
    let mut other = redis::Client::open(format!("redis://127.0.0.2:{port}")).unwrap().get_connection().unwrap();
    let before = first.calls("get");
    shard.begin(1).await;
    eventually("the first is loaded", async || (first.calls("get") > before + 1000).then_some(())).await;
    std::fs::write(&hosts, "127.0.0.2 redis.test\n").unwrap();
    first.kill();
    let snapshot = shard.finished().await;
    let total = snapshot.total;
    assert_eq!(total.scheduled, RATE * SECONDS);
    assert!(total.balances() && total.in_flight == 0, "{total:?}");
    assert_sent(&total);
    assert!(total.errors < total.scheduled / 10, "{total:?} {:?}", snapshot.errors);
    let served: u64 = snapshot.nodes[1].requests - snapshot.nodes[1].errors;
    assert!(served > 0 && snapshot.nodes.len() == 2, "{:?}", snapshot.nodes);
    let keys: u64 = redis::cmd("DBSIZE").query(&mut other).unwrap();
    assert!(keys > 0, "nothing was written to the second server");
    drop(second);
}

#[tokio::test]
#[ignore = "gives a process names of its own, which needs root: make test-selfcheck"]
async fn a_pool_has_all_addresses_of_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let hosts = directory.path().join("hosts");
    let redis = RedisServer::start(&["--bind", "127.0.0.1 127.0.0.2 ::1"]);
    let port = redis.address().port();
    // Both families usually lead to the same servers.
    std::fs::write(&hosts, "127.0.0.2 redis.test\n127.0.0.1 redis.test\n::1 redis.test\n").unwrap();
    let shard = shard_with(&hosts).await;
    let mut plan = plan(&format!("redis.test:{port}"));
    plan.target.topology = Topology::Pool;
    let snapshot = shard.run_plan(&plan).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    let addresses: Vec<_> = snapshot.nodes.iter().map(|node| node.address.clone()).collect();
    assert_eq!(addresses, [1, 2].map(|last| format!("127.0.0.{last}:{port}")));
}

/// The calls of a command that the server at the other end counted.
fn counted(server: &mut redis::Connection, command: &str) -> u64 {
    let statistics: String = redis::cmd("INFO").arg("commandstats").query(server).unwrap();
    calls(&statistics).get(command).copied().unwrap_or_default()
}

/// Closes the connections of the server's other clients.
fn close_connections(server: &mut redis::Connection) {
    let closed: u32 = redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").query(server).unwrap();
    assert!(closed > 0, "the shard had no connection");
}

/// Both servers answer all the time, so only a broken connection makes the shard resolve the name again.
#[tokio::test]
#[ignore = "gives a process names of its own, which needs root: make test-selfcheck"]
async fn a_pool_follows_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let hosts = directory.path().join("hosts");
    let stays = RedisServer::start(&[]);
    let port = stays.address().port().to_string();
    let comes = RedisServer::try_start(&["--bind", "127.0.0.2", "--port", &port]).expect("the port is taken");
    let mut first = stays.connection();
    let mut second = redis::Client::open(format!("redis://127.0.0.2:{port}")).unwrap().get_connection().unwrap();
    std::fs::write(&hosts, "127.0.0.1 redis.test\n").unwrap();
    let shard = shard_with(&hosts).await;
    let mut plan = endless(steady(plan(&format!("redis.test:{port}")), RATE, SECONDS));
    plan.target.topology = Topology::Pool;
    plan.measurement.server_stats = true;
    shard.prepared(&plan).await;
    shard.begin(1).await;
    eventually("the first is loaded", async || (counted(&mut first, "get") > 1000).then_some(())).await;
    assert_eq!(counted(&mut second, "get"), 0, "it has not joined yet");

    std::fs::write(&hosts, "127.0.0.1 redis.test\n127.0.0.2 redis.test\n").unwrap();
    close_connections(&mut first);
    eventually("the second is loaded", async || (counted(&mut second, "get") > 1000).then_some(())).await;
    let before = counted(&mut first, "get");
    eventually("the first still is", async || (counted(&mut first, "get") > before + 1000).then_some(())).await;

    std::fs::write(&hosts, "127.0.0.1 redis.test\n").unwrap();
    close_connections(&mut second);
    let gone = eventually("the second has left", async || {
        let changes = shard.snapshot(Detail::Live).await.unwrap().body.topology.changes;
        changes.iter().any(|change| change.what == ChangeKind::Gone).then_some(())
    });
    gone.await;
    eventually("no connection is left but this one, and one for statistics", async || {
        let clients: String = redis::cmd("CLIENT").arg("LIST").query(&mut second).unwrap();
        (clients.lines().count() <= 2).then_some(())
    })
    .await;
    shard.abort(AbortThen::Stop).await.unwrap();
    let snapshot = shard.finished().await;

    assert_balanced(&snapshot);
    let (name, address) = (format!("redis.test:{port}"), format!("127.0.0.2:{port}"));
    let slots = |change: &Change| change.slots.iter().map(|range| range.count()).sum::<u64>();
    let changes = snapshot.topology.changes.iter();
    let changes: Vec<_> =
        changes.map(|change| (change.what, change.node.as_str(), change.from.as_deref(), slots(change))).collect();
    let half = 8192_u64;
    let joined = [
        (ChangeKind::Appeared, address.as_str(), None, half),
        (ChangeKind::SlotsMoved, address.as_str(), Some(name.as_str()), half),
    ];
    let left = [
        (ChangeKind::SlotsMoved, name.as_str(), Some(address.as_str()), half),
        (ChangeKind::Gone, address.as_str(), None, half),
    ];
    assert_eq!(changes, [joined, left].concat());
    let nodes: Vec<_> = snapshot.nodes.iter().map(|node| node.address.as_str()).collect();
    assert_eq!(nodes, [name.as_str(), address.as_str()]);
    let servers = snapshot.servers.as_ref().expect("the plan asks for it").nodes.iter();
    let servers: Vec<_> = servers.map(|server| server.address.as_str()).collect();
    assert_eq!(servers, nodes, "the first is not two servers, although its name has two addresses now");
    // At most what was in flight on the connections that were closed.
    let in_flight = u64::from(plan.connections * plan.pipeline);
    assert!(snapshot.total.errors <= 2 * in_flight, "{:?}", snapshot.errors);
    let mut served = |command: &str| counted(&mut first, command) + counted(&mut second, command);
    let served = served("get") + served("set") - snapshot.preload_commands;
    let total = snapshot.total;
    let answered = total.succeeded..=total.succeeded + total.errors + total.in_flight;
    assert!(answered.contains(&served), "{served}: {total:?}");
    drop(comes);
}
