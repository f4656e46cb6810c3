//! The soak's own redis-servers: one, or a cluster of three primaries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redisbench_testkit::servers::{RedisCluster, RedisServer, calls, connect};

/// The password of servers that require one.
pub const PASSWORD: &str = "correct-horse-battery";
/// Timeout of a reply: stopped servers do not reply.
const ANSWER: Duration = Duration::from_millis(700);
/// The number of slots per move.
const MOVED: usize = 8;

/// Where the servers of a run come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redis {
    /// One server of the soak's own.
    Standalone,
    /// Three primaries of the soak's own.
    Cluster,
    /// `--with-redis`, one server.
    Throwaway,
    /// `--with-redis`, three primaries with a replica each.
    ThrowawayCluster,
}

impl Redis {
    pub fn is_cluster(self) -> bool {
        matches!(self, Self::Cluster | Self::ThrowawayCluster)
    }

    /// Returns whether the servers are the soak's own, so that their counts can be read after the benchmark.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Standalone | Self::Cluster)
    }

    pub fn servers(self) -> u32 {
        match self {
            Self::Standalone | Self::Throwaway => 1,
            Self::Cluster => 3,
            Self::ThrowawayCluster => 6,
        }
    }
}

/// A redis-server, and its counts of executed commands.
pub struct Server {
    redis: RedisServer,
    running: bool,
    pub port: u16,
    password: bool,
    log: PathBuf,
    /// Kept open, to control the server even when it accepts no new clients.
    connection: Option<redis::Connection>,
    /// Last known counts of earlier processes.
    before: BTreeMap<String, u64>,
    seen: BTreeMap<String, u64>,
    /// True if a process ended, so that its last commands are unknown.
    pub died: bool,
}

impl Server {
    fn new(redis: RedisServer, password: bool, log: PathBuf) -> Self {
        let (port, before, seen) = (redis.address().port(), BTreeMap::new(), BTreeMap::new());
        Self { redis, running: true, port, password, log, connection: None, before, seen, died: false }
    }

    /// Starts it on its port without keys. In a cluster it is the same node as before.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.running = self.redis.try_restart();
        anyhow::ensure!(
            self.running,
            "redis-server did not start again on port {}; see its log, {}",
            self.port,
            self.log.display()
        );
        Ok(())
    }

    /// Kills it. Returns whether it was running.
    pub fn kill(&mut self) -> bool {
        if !std::mem::take(&mut self.running) {
            return false;
        }
        self.redis.kill();
        self.connection = None;
        for (command, count) in std::mem::take(&mut self.seen) {
            *self.before.entry(command).or_default() += count;
        }
        self.died = true;
        true
    }

    /// Stops its process. Returns whether it was running.
    pub fn pause(&self) -> bool {
        if self.running {
            self.redis.pause();
        }
        self.running
    }

    pub fn resume(&self) {
        if self.running {
            self.redis.resume();
        }
    }

    /// Sends a command and returns its reply.
    pub fn ask<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> anyhow::Result<T> {
        self.query(|connection| redis::cmd(words[0]).arg(&words[1..]).query(connection))
    }

    /// The number of keys in each slot of the cluster.
    fn keys_by_slot(&mut self) -> anyhow::Result<Vec<u64>> {
        let mut pipe = redis::pipe();
        for slot in 0..16_384 {
            pipe.cmd("CLUSTER").arg("COUNTKEYSINSLOT").arg(slot);
        }
        self.query(|connection| pipe.query(connection))
    }

    /// Keeps the connection for the next query, unless this one fails.
    fn query<T>(&mut self, ask: impl FnOnce(&mut redis::Connection) -> redis::RedisResult<T>) -> anyhow::Result<T> {
        let mut connection = self.take_connection()?;
        let value = ask(&mut connection)?;
        self.connection = Some(connection);
        Ok(value)
    }

    /// Sends a command without waiting for the reply, which may be delayed.
    pub fn tell(&mut self, words: &[&str]) -> anyhow::Result<()> {
        let mut connection = self.take_connection()?;
        // The reply stays unread, so the connection cannot be reused.
        connection.send_packed_command(&redis::cmd(words[0]).arg(&words[1..]).get_packed_command())?;
        Ok(())
    }

    fn take_connection(&mut self) -> anyhow::Result<redis::Connection> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        Ok(self.redis.try_connect(ANSWER)?)
    }

    /// Records the counts of executed commands. Returns whether the server replied.
    pub fn sample(&mut self) -> bool {
        let Ok(text) = self.ask::<String>(&["INFO", "commandstats"]) else { return false };
        self.seen = calls(&text);
        true
    }

    /// The known number of executions of `command`, over all its processes.
    pub fn calls(&self, command: &str) -> u64 {
        [&self.before, &self.seen].iter().filter_map(|counts| counts.get(command)).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(&self.log, self.redis.log().text()) {
            eprintln!("warning: failed to write {}: {error}", self.log.display());
        }
    }
}

/// Sends one command to a server that is not the soak's own.
pub fn tell_once(port: u16, password: bool, words: &[&str]) -> anyhow::Result<()> {
    let password = password.then_some(PASSWORD);
    Ok(redis::cmd(words[0]).arg(&words[1..]).query(&mut connect(port, password, ANSWER)?)?)
}

/// Starts one server, or three that form a cluster. Their logs are written into `directory` when they end.
pub fn start(directory: &Path, cluster: bool, password: bool) -> Vec<Server> {
    let mut arguments = vec!["--enable-debug-command", "yes"];
    if cluster {
        // Long, so that a node that is stopped for some seconds is not marked as failed.
        arguments.extend(["--cluster-enabled", "yes", "--cluster-node-timeout", "15000"]);
    }
    if password {
        arguments.extend(["--requirepass", PASSWORD, "--masterauth", PASSWORD]);
    }
    let count = if cluster { 3 } else { 1 };
    let nodes = (0..count).map(|_| RedisServer::start(&arguments)).collect();
    let nodes = if cluster { RedisCluster::form(nodes).nodes } else { nodes };
    let log = |index| directory.join(format!("server-{index}.log"));
    nodes.into_iter().enumerate().map(|(index, node)| Server::new(node, password, log(index))).collect()
}

/// Moves some slots with all their keys to the next node, like `redis-cli --cluster reshard`. Returns whether there were any.
pub fn move_slots(servers: &mut [Server], source: usize) -> anyhow::Result<bool> {
    let target = (source + 1) % servers.len();
    let source_id: String = servers[source].ask(&["CLUSTER", "MYID"])?;
    let target_id: String = servers[target].ask(&["CLUSTER", "MYID"])?;
    let port = servers[target].port.to_string();
    let slots = servers[source].keys_by_slot()?.into_iter().enumerate().filter(|(_, keys)| *keys > 0);
    let with_keys: Vec<String> = slots.take(MOVED).map(|(slot, _)| slot.to_string()).collect();
    for slot in &with_keys {
        let keys: Vec<String> = servers[source].ask(&["CLUSTER", "GETKEYSINSLOT", slot, "1000"])?;
        servers[target].ask::<()>(&["CLUSTER", "SETSLOT", slot, "IMPORTING", &source_id])?;
        servers[source].ask::<()>(&["CLUSTER", "SETSLOT", slot, "MIGRATING", &target_id])?;
        let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "500", "REPLACE"];
        if servers[source].password {
            migrate.extend(["AUTH", PASSWORD]);
        }
        migrate.push("KEYS");
        migrate.extend(keys.iter().map(String::as_str));
        servers[source].ask::<()>(&migrate)?;
        // The target first, and in any order the others, which learn it from it too: errors are ignored.
        for offset in 0..servers.len() {
            let node = (target + offset) % servers.len();
            let _ = servers[node].ask::<()>(&["CLUSTER", "SETSLOT", slot, "NODE", &target_id]);
        }
    }
    Ok(!with_keys.is_empty())
}
