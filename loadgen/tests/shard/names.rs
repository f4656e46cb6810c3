//! Host names of targets whose address changes, for a shard with its own `/etc/hosts`.

use std::path::Path;

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::plan::Topology;
use tokio::process::Command;

use crate::client::{Shard, command, eventually};
use crate::load::assert_sent;
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
