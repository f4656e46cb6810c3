//! Real redis-servers on free ports of 127.0.0.1.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::net::TcpSocket;

use crate::log::Log;
use crate::processes::{die_with_parent, signal};

/// More than a busy machine needs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The time after which the nodes of a cluster are introduced to each other again.
const INTRODUCED_WITHIN: Duration = Duration::from_secs(3);

/// These ports, and those of cluster buses 10,000 above, are below the kernel's ephemeral ports: no connection takes the port of a server
/// that restarts.
const PORTS: Range<u16> = 12_000..22_000;

/// A redis-server without persistence, stopped with this value, or when the thread that started it ends.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    /// The processors it may use, as taskset takes them.
    cpus: Option<String>,
    directory: TempDir,
    log: Log,
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl RedisServer {
    /// Starts a server with additional `arguments`, such as `--requirepass`.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_on(None, arguments)
    }

    /// Like [`Self::start`], on the processors `cpus`.
    pub fn start_on(cpus: Option<&str>, arguments: &[&str]) -> Self {
        // Another process may take the port before the server binds it: retry.
        (0..10).find_map(|_| Self::try_start_on(cpus, arguments)).expect("no redis-server came up")
    }

    /// Like [`Self::start`], but returns `None` if the port was taken.
    pub fn try_start(arguments: &[&str]) -> Option<Self> {
        Self::try_start_on(None, arguments)
    }

    fn try_start_on(cpus: Option<&str>, arguments: &[&str]) -> Option<Self> {
        // A cluster node writes its map to disk and waits for that before it announces it.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (port, log, cpus) = (free_port(), Log::default(), cpus.map(str::to_owned));
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let child = spawn(command(port, cpus.as_deref(), directory.path(), &arguments), &log)?;
        Some(Self { child, port, arguments, cpus, directory, log })
    }

    /// Kills the server, like a crash. Without effect if it is not running.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Restarts the server on its port, without its data.
    pub fn restart(&mut self) {
        assert!(self.try_restart(), "the port was taken meanwhile");
    }

    /// Like [`Self::restart`], but returns false if the server did not start.
    pub fn try_restart(&mut self) -> bool {
        self.kill();
        let command = command(self.port, self.cpus.as_deref(), self.directory.path(), &self.arguments);
        spawn(command, &self.log).map(|child| self.child = child).is_some()
    }

    /// The log of all its runs.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Restarts the server with additional `arguments` and its saved data. Returns as soon as it accepts connections, possibly while it is
    /// still loading.
    pub fn restart_loading(&mut self, arguments: &[&str]) {
        self.kill();
        let mut command = command(self.port, self.cpus.as_deref(), self.directory.path(), &self.arguments);
        self.child = command.args(arguments).stdout(Stdio::null()).spawn().expect("redis-server was there before");
        wait_until("the server accepts connections", || TcpStream::connect(self.address()).is_ok());
    }

    /// Stops the process. The kernel still accepts connections for it, but it never replies.
    pub fn pause(&self) {
        self.signal(libc::SIGSTOP);
    }

    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, number: libc::c_int) {
        assert!(signal(self.child.id().cast_signed(), number), "the server is gone");
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// `host:port`.
    pub fn endpoint(&self) -> String {
        self.address().to_string()
    }

    /// A connection as the server's administrator. Without timeouts: the kernel does not restart a read with one after a signal, such as
    /// that of a child's end.
    pub fn connection(&self) -> redis::Connection {
        client(self.port, self.password()).unwrap().get_connection().unwrap()
    }

    /// The same with a timeout for connecting and for each reply.
    pub fn try_connect(&self, timeout: Duration) -> redis::RedisResult<redis::Connection> {
        connect(self.port, self.password(), timeout)
    }

    fn password(&self) -> Option<&str> {
        self.arguments.iter().skip_while(|argument| *argument != "--requirepass").nth(1).map(String::as_str)
    }

    /// Sends one command on a new connection.
    pub fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut self.connection()).unwrap()
    }

    /// The server's own count of executions of `command`.
    pub fn calls(&self, command: &str) -> u64 {
        self.command_statistic(command, "calls")
    }

    /// A field of `command` in `INFO commandstats`; 0 if missing.
    pub fn command_statistic(&self, command: &str, field: &str) -> u64 {
        let stats: String = self.ask(&["INFO", "commandstats"]);
        let prefix = format!("cmdstat_{command}:");
        let line = stats.lines().find_map(|line| line.strip_prefix(&prefix));
        line.and_then(|line| line.split(',').find_map(|pair| pair.strip_prefix(&format!("{field}="))))
            .map_or(0, |value| value.parse().unwrap())
    }

    pub fn reset_statistics(&self) {
        self.ask::<()>(&["CONFIG", "RESETSTAT"]);
    }
}

/// A server's counts of executed commands, from the text of `INFO commandstats`.
pub fn calls(statistics: &str) -> BTreeMap<String, u64> {
    let lines = statistics.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
    lines.filter_map(|(command, rest)| Some((command.to_owned(), rest.split(',').next()?.parse().ok()?))).collect()
}

/// A connection to a server of this machine, with a timeout for connecting and for each reply.
pub fn connect(port: u16, password: Option<&str>, timeout: Duration) -> redis::RedisResult<redis::Connection> {
    let connection = client(port, password)?.get_connection_with_timeout(timeout)?;
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))?;
    Ok(connection)
}

fn client(port: u16, password: Option<&str>) -> redis::RedisResult<redis::Client> {
    let login = password.map_or_else(String::new, |password| format!(":{password}@"));
    redis::Client::open(format!("redis://{login}127.0.0.1:{port}"))
}

fn command(port: u16, cpus: Option<&str>, directory: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(if cpus.is_some() { "taskset" } else { "redis-server" });
    if let Some(cpus) = cpus {
        command.args(["-c", cpus, "redis-server"]);
    }
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    command.arg("--dir").arg(directory).args(arguments).env("TZ", "UTC").stdin(Stdio::null()).stderr(Stdio::null());
    die_with_parent(&mut command);
    command
}

/// Starts a redis-server and waits until it is ready. `None` if it exits before.
fn spawn(mut command: Command, log: &Log) -> Option<Child> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().expect("redis-server is not installed: apt-get install redis-server");
    if log.follow_until(child.stdout.take().unwrap(), "Ready to accept connections") {
        return Some(child);
    }
    let _ = child.wait();
    None
}

/// Arguments of nodes that fail over after half a second.
const HASTY: &str = "--cluster-enabled yes --cluster-node-timeout 500";
/// Arguments of nodes that may stop for some seconds without a failover.
const STEADY: &str = "--cluster-enabled yes --cluster-node-timeout 5000";
/// Like `STEADY`, with announced host names.
const NAMED: &str = "--cluster-enabled yes --cluster-node-timeout 5000 --cluster-announce-hostname localhost \
                     --cluster-preferred-endpoint-type hostname";

/// A Redis Cluster, initially without replicas.
pub struct RedisCluster {
    /// In the order of their slots.
    pub nodes: Vec<RedisServer>,
    primaries: usize,
}

impl RedisCluster {
    /// Starts `primaries` nodes and divides the slots among them. A node fails over after half a second.
    pub fn start(primaries: usize) -> Self {
        Self::with(primaries, HASTY)
    }

    /// Like `start`, but nodes may stop for some seconds without a failover.
    pub fn steady(primaries: usize) -> Self {
        Self::with(primaries, STEADY)
    }

    /// Like `steady`, with nodes that announce a host name.
    pub fn named(primaries: usize) -> Self {
        Self::with(primaries, NAMED)
    }

    fn with(primaries: usize, arguments: &str) -> Self {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        Self::form((0..primaries).map(|_| RedisServer::start(&arguments)).collect())
    }

    /// Forms a cluster of servers that run with `--cluster-enabled yes`, and divides the slots among them.
    pub fn form(nodes: Vec<RedisServer>) -> Self {
        let primaries = nodes.len();
        for (index, node) in nodes.iter().enumerate() {
            let slots = part(index, primaries);
            let (first, last) = (slots.start.to_string(), (slots.end - 1).to_string());
            let _: () = node.ask(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            // Without distinct epochs, two nodes might both claim the first one.
            let _: () = node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
        let cluster = Self { nodes, primaries };
        cluster.introduce();
        cluster
    }

    /// Introduces the nodes to each other until all know all, and the cluster state is ok. A node drops an introduction that another has not
    /// answered within its timeout, which happens on a busy machine.
    fn introduce(&self) {
        // A node that is introduced again is listed a second time during its handshake.
        let knows_all = |node: &RedisServer| {
            let nodes: String = node.ask(&["CLUSTER", "NODES"]);
            let known = nodes.lines().filter(|line| !line.contains("handshake")).count();
            known == self.nodes.len() && node.ask::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
        };
        let port = self.nodes[0].port.to_string();
        let mut introduced: Option<Instant> = None;
        wait_until("all nodes have found each other", || {
            if introduced.is_none_or(|at| at.elapsed() > INTRODUCED_WITHIN) {
                self.nodes[1..].iter().for_each(|node| node.ask(&["CLUSTER", "MEET", "127.0.0.1", &port]));
                introduced = Some(Instant::now());
            }
            self.nodes.iter().all(knows_all)
        });
    }

    /// Adds a replica of node `primary` and waits until it follows it.
    pub fn add_replica(&mut self, primary: usize) {
        let replica = RedisServer::start(&HASTY.split(' ').collect::<Vec<_>>());
        self.nodes.push(replica);
        self.introduce();
        let (id, replica): (String, _) =
            (self.nodes[primary].ask(&["CLUSTER", "MYID"]), &self.nodes[self.nodes.len() - 1]);
        replica.ask::<()>(&["CLUSTER", "REPLICATE", &id]);
        let in_step = || replica.ask::<String>(&["INFO", "replication"]).contains("master_link_status:up");
        wait_until("the replica is in step", in_step);
    }

    /// Adds a primary with the arguments of the others and without slots.
    pub fn add_primary(&mut self) {
        let arguments: Vec<&str> = self.nodes[0].arguments.iter().map(String::as_str).collect();
        let added = RedisServer::start(&arguments);
        // The highest, so that no other node takes back a slot that this one was given.
        let _: () = added.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(self.nodes.len() + 1).to_string()]);
        self.nodes.push(added);
        self.introduce();
    }

    /// Executions of `command` on all nodes together.
    pub fn calls(&self, command: &str) -> u64 {
        self.nodes.iter().map(|node| node.calls(command)).sum()
    }

    pub fn reset_statistics(&self) {
        self.nodes.iter().for_each(RedisServer::reset_statistics);
    }

    pub fn ids(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.ask(&["CLUSTER", "MYID"])).collect()
    }

    /// The initial slots of a primary.
    pub fn slots(&self, primary: usize) -> Range<usize> {
        part(primary, self.primaries)
    }

    /// The initial owner of a slot.
    pub fn owner(&self, slot: u16) -> usize {
        (0..self.primaries).find(|primary| self.slots(*primary).contains(&usize::from(slot))).unwrap()
    }

    /// Sets the state of a slot on node `at`, with node `other` as the second party.
    pub fn set_slot(&self, at: usize, slot: u16, state: &str, other: usize) {
        self.nodes[at].ask::<()>(&["CLUSTER", "SETSLOT", &slot.to_string(), state, &self.ids()[other]]);
    }
}

/// The slots of part `index` of `parts`.
fn part(index: usize, parts: usize) -> Range<usize> {
    16384 * index / parts..16384 * (index + 1) / parts
}

/// A port without a listener, reserved while this lives.
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    pub fn take() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        Self(socket)
    }

    pub fn number(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// `host:port`.
    pub fn endpoint(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }
}

/// A port that is free at the moment.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    // Processes begin at different ports, and threads get different ones.
    let first = u16::try_from(std::process::id() * 61 % u32::from(count)).unwrap();
    (0..count)
        .map(|_| PORTS.start + first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % count)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("no port is free")
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "waited too long until {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn calls_are_read_per_command() {
        let info =
            "# Commandstats\r\ncmdstat_get:calls=12,usec=3,usec_per_call=0.25\r\ncmdstat_config|get:calls=1,usec=9\r\n";
        let calls = super::calls(info);
        assert_eq!(calls["get"], 12);
        assert_eq!(calls["config|get"], 1);
    }
}
