//! A real `HAProxy`, stopped with the test.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::processes::Running;

/// More than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A proxy with one port for each list of servers. It forwards to the first primary of the list.
pub struct HaProxy {
    _process: Running,
    ports: Vec<u16>,
    _directory: TempDir,
}

impl HaProxy {
    /// Starts a proxy. `servers` lists the servers of each port as `host:port`.
    pub fn start(servers: &[&[String]]) -> Self {
        // Another process may take a port before the proxy binds it: retry.
        (0..10).find_map(|_| Self::try_start(servers)).expect("no haproxy came up")
    }

    fn try_start(servers: &[&[String]]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        // Without a timeout of its own, a check fails after its interval, and its failure ends all sessions: a stall of 100 ms would.
        let mut configuration =
            "global\n  maxconn 1000\ndefaults\n  mode tcp\n  timeout connect 10s\n  timeout check 10s\n  \
                                 timeout client 60s\n  timeout server 60s\n"
                .to_owned();
        let listeners = servers.iter().map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let listeners: Vec<_> = listeners.collect();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        drop(listeners);
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
        let mut process = Running(command.spawn().expect("haproxy is installed"));
        let begin = Instant::now();
        while !ports.iter().all(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_ok()) {
            assert!(begin.elapsed() < PATIENCE, "haproxy does not listen");
            if process.0.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::yield_now();
        }
        Some(Self { _process: process, ports, _directory: directory })
    }

    /// The proxy's addresses, in the order of the lists.
    pub fn endpoints(&self) -> Vec<String> {
        self.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect()
    }
}
