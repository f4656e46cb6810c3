//! Targets behind a real `HAProxy`: to the load generator a proxy is the server.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};

use redisbench_wire::plan::{Bound, ShardPlan};
use redisbench_wire::{Detail, ShardPhase};
use tempfile::TempDir;

use crate::client::{Shard, eventually};
use crate::load::assert_balanced;
use crate::plans::{SECOND, open_loop, plan};
use crate::support::{RedisServer, free_port, wait_until};

const RATE: u64 = 2000;
const SECONDS: u64 = 6;

/// A proxy with one port for each list of servers. Of these it takes the first that is a primary.
pub struct HaProxy {
    child: Child,
    ports: Vec<u16>,
    _directory: TempDir,
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl HaProxy {
    /// Starts one. `servers` are the servers of each port, as `host:port`.
    pub fn start(servers: &[&[String]]) -> Self {
        // Another process may take a port between our look and the proxy's start: then look again.
        (0..10).find_map(|_| Self::try_start(servers)).expect("no haproxy came up")
    }

    fn try_start(servers: &[&[String]]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut configuration =
            "global\n  maxconn 1000\ndefaults\n  mode tcp\n  timeout connect 1s\n  timeout client 60s\n  \
                                 timeout server 60s\n"
                .to_owned();
        let ports: Vec<u16> = servers.iter().map(|_| free_port()).collect();
        for (port, servers) in ports.iter().zip(servers) {
            let _ = write!(
                configuration,
                "listen port{port}\n  bind 127.0.0.1:{port}\n  option tcp-check\n  tcp-check connect\n  \
                 tcp-check send \"info replication\\r\\n\"\n  tcp-check expect string role:master\n"
            );
            for (index, server) in servers.iter().enumerate() {
                let check = "check inter 100ms fall 1 rise 1 on-marked-down shutdown-sessions";
                let backup = if index > 0 { " backup" } else { "" };
                let _ = writeln!(configuration, "  server s{index} {server} {check}{backup}");
            }
        }
        let file = directory.path().join("haproxy.cfg");
        std::fs::write(&file, configuration).unwrap();
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("haproxy is installed");
        let mut failed = false;
        wait_until("haproxy listens", || {
            failed = child.try_wait().unwrap().is_some();
            failed || ports.iter().all(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_ok())
        });
        (!failed).then_some(Self { child, ports, _directory: directory })
    }

    /// Where its ports are, in the order of the lists.
    pub fn endpoints(&self) -> Vec<String> {
        self.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect()
    }
}

fn steady(endpoint: &str) -> ShardPlan {
    let mut plan = plan(endpoint);
    plan.load = open_loop(RATE);
    plan.timeouts.request_nanoseconds = SECOND;
    plan.bound = Bound::Duration { nanoseconds: SECONDS * SECOND };
    plan
}

#[tokio::test]
async fn a_proxy_is_loaded_as_its_server_would_be() {
    let redis = RedisServer::start(&[]);
    let proxy = HaProxy::start(&[&[redis.endpoint()]]);
    let shard = Shard::start(None).await;
    shard.plan(1, &plan(&proxy.endpoints()[0])).await.unwrap();
    let snapshot = shard.run(1).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    let all = snapshot.total.succeeded + snapshot.warmup.succeeded + snapshot.preload_commands;
    assert_eq!(redis.calls("get") + redis.calls("set"), all);
}

/// As `RedisHappy` does it: the proxy leads to whichever server is the primary.
#[tokio::test]
async fn a_proxy_that_takes_another_server_is_followed() {
    let mut first = RedisServer::start(&[]);
    let port = first.address().port().to_string();
    let second = RedisServer::start(&["--replicaof", "127.0.0.1", &port]);
    let proxy = HaProxy::start(&[&[first.endpoint(), second.endpoint()]]);
    let shard = Shard::start(None).await;
    shard.plan(1, &steady(&proxy.endpoints()[0])).await.unwrap();
    shard.phase(ShardPhase::Armed).await;
    let before = first.calls("get");
    shard.begin(1).await;
    eventually("the first is loaded", async || (first.calls("get") > before + 1000).then_some(())).await;
    first.kill();
    let _: () = second.ask(&["REPLICAOF", "NO", "ONE"]);
    shard.phase(ShardPhase::Finished).await;
    let snapshot = shard.snapshot(Detail::Full).await.unwrap().body;
    assert_balanced(&snapshot);
    let (total, errors) = (&snapshot.total, &snapshot.errors);
    println!(
        "| HAProxy goes from a killed primary to another | {} | {} | {} | {} |",
        total.scheduled,
        total.succeeded,
        errors.iter().map(|error| format!("{} {}", error.count, error.kind)).collect::<Vec<_>>().join(", "),
        total.unsent,
    );
    assert_eq!((total.scheduled, total.in_flight), (RATE * SECONDS, 0));
    assert!(second.calls("get") > RATE, "the second was not loaded: {errors:?}");
    let kinds = ["ConnectionReset", "ConnectionClosed"];
    assert!(errors.iter().all(|error| kinds.contains(&error.kind.as_str())), "{errors:?}");
    assert!(total.errors < total.scheduled / 10, "{total:?} {errors:?}");
}
