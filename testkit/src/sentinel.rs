//! Real sentinels, and servers that they watch.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::log::Log;
use crate::processes::Running;
use crate::servers::{RedisServer, free_port, wait_until};

/// A sentinel, stopped with the test.
pub struct Sentinel {
    _process: Running,
    port: u16,
    password: Option<String>,
    log: Log,
    _directory: TempDir,
}

impl Sentinel {
    /// Watches `primary`, which two sentinels can replace.
    pub fn start(primary: &RedisServer) -> Self {
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

    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Sends one command on a new connection.
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

/// A primary and its replica.
pub fn pair() -> (RedisServer, RedisServer) {
    let primary = RedisServer::start(&[]);
    let port = primary.address().port().to_string();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"]);
    let in_step = || replica.ask::<String>(&["INFO", "replication"]).contains("master_link_status:up");
    wait_until("the replica is in step", in_step);
    (primary, replica)
}

/// A primary, its replica, and three sentinels that call it `mymaster`.
pub struct Group {
    pub primary: RedisServer,
    pub replica: RedisServer,
    pub sentinels: Vec<Sentinel>,
}

impl Group {
    /// Starts all, and waits until a failover is possible.
    pub fn start() -> Self {
        let (primary, replica) = pair();
        let sentinels: Vec<_> = (0..3).map(|_| Sentinel::start(&primary)).collect();
        wait_until("the sentinels know all", || sentinels.iter().all(|sentinel| sentinel.is_ready(2)));
        Self { primary, replica, sentinels }
    }
}
