//! The soak's own redis-servers: one, or a cluster of three primaries.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use redis::Value;

use crate::plot::PASSWORD;
use crate::processes::{die_with_parent, look_again, signal};

/// Timeout of a reply: stopped servers do not reply.
const ANSWER: Duration = Duration::from_millis(700);
/// Timeout for a cluster to form, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const SLOTS: usize = 16384;
/// The number of slots per move.
const MOVED: usize = 8;
/// Below the kernel's ephemeral ports, so that the port of a restarted server is still free.
const PORTS: std::ops::Range<u16> = 12_000..30_000;

/// A redis-server, and its counts of executed commands.
pub struct Server {
    child: Option<Child>,
    pub port: u16,
    bus: u16,
    directory: PathBuf,
    cluster: bool,
    password: bool,
    /// Timeout of a reply.
    patience: Duration,
    /// Kept open, to control the server even when it accepts no new clients.
    connection: Option<redis::Connection>,
    /// Last known counts of earlier processes.
    before: BTreeMap<String, u64>,
    seen: BTreeMap<String, u64>,
    /// Whether a process ended, so that its last commands are unknown.
    pub died: bool,
}

impl Server {
    fn start(directory: PathBuf, cluster: bool, password: bool) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&directory)?;
        let [port, bus] = free_ports()?;
        let (before, seen) = (BTreeMap::new(), BTreeMap::new());
        let (connection, patience) = (None, PATIENCE);
        let mut server = Self {
            child: None,
            port,
            bus,
            directory,
            cluster,
            password,
            patience,
            connection,
            before,
            seen,
            died: false,
        };
        server.restart()?;
        Ok(server)
    }

    /// Starts it on its port without keys. In a cluster it is the same node as before.
    ///
    /// # Errors
    /// If it does not start.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        let mut command = Command::new("redis-server");
        let port = self.port.to_string();
        command.args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"]);
        command.args(["--enable-debug-command", "yes", "--dir"]).arg(&self.directory);
        if self.cluster {
            // Long, so that a node that is stopped for some seconds is not marked as failed.
            command.args(["--cluster-enabled", "yes", "--cluster-node-timeout", "15000"]);
            command.args(["--cluster-port", &self.bus.to_string()]);
        }
        if self.password {
            command.args(["--requirepass", PASSWORD, "--masterauth", PASSWORD]);
        }
        die_with_parent(&mut command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("failed to start redis-server; install it (on Debian: apt-get install redis-server)")?;
        let mut log = File::options().create(true).append(true).open(self.directory.join("log"))?;
        let mut lines = BufReader::new(child.stdout.take().context("redis-server without standard output")?);
        self.child = Some(child);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            log.write_all(line.as_bytes())?;
            if line.contains("Ready to accept connections") {
                // The rest must be read too, or the server blocks on a full pipe.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut log));
                return Ok(());
            }
            line.clear();
        }
        anyhow::bail!("redis-server did not start on port {}; see {}", self.port, self.directory.display())
    }

    /// Kills it. Returns whether it was running.
    pub fn kill(&mut self) -> bool {
        let Some(mut child) = self.child.take() else { return false };
        let _ = child.kill();
        let _ = child.wait();
        self.connection = None;
        for (command, count) in std::mem::take(&mut self.seen) {
            *self.before.entry(command).or_default() += count;
        }
        self.died = true;
        true
    }

    /// Sends a signal. Returns whether it was running.
    pub fn signal(&self, number: libc::c_int) -> bool {
        let id = self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok());
        id.is_some_and(|id| signal(id, number))
    }

    /// Sends a command and returns its reply.
    ///
    /// # Errors
    /// If it does not reply, or replies with an error.
    pub fn ask(&mut self, words: &[&str]) -> anyhow::Result<Value> {
        let mut connection = self.take_connection()?;
        let value = redis::cmd(words[0]).arg(&words[1..]).query(&mut connection)?;
        self.connection = Some(connection);
        Ok(value)
    }

    /// Like [`Self::ask`], with the reply as text.
    ///
    /// # Errors
    /// As above, or if the reply is not text.
    pub fn text(&mut self, words: &[&str]) -> anyhow::Result<String> {
        Ok(redis::from_redis_value(self.ask(words)?)?)
    }

    /// Sends several commands in a pipeline.
    ///
    /// # Errors
    /// If it does not reply, or replies with an error.
    fn all<T: redis::FromRedisValue>(&mut self, commands: impl Iterator<Item = redis::Cmd>) -> anyhow::Result<Vec<T>> {
        let mut connection = self.take_connection()?;
        let mut pipe = redis::pipe();
        for command in commands {
            pipe.add_command(command);
        }
        let values = pipe.query(&mut connection)?;
        self.connection = Some(connection);
        Ok(values)
    }

    /// Sends a command without waiting for the reply, which may be delayed.
    ///
    /// # Errors
    /// If it cannot be sent.
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
        connect(self.port, self.password, self.patience)
    }

    /// Records the counts of executed commands. Returns whether the server replied.
    pub fn sample(&mut self) -> bool {
        let Ok(text) = self.text(&["INFO", "commandstats"]) else { return false };
        let lines = text.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
        self.seen = lines
            .filter_map(|(command, rest)| Some((command.to_owned(), rest.split(',').next()?.parse().ok()?)))
            .collect();
        true
    }

    /// The known number of executions of `command`, over all its processes.
    pub fn calls(&self, command: &str) -> u64 {
        [&self.before, &self.seen].iter().filter_map(|counts| counts.get(command)).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn connect(port: u16, password: bool, patience: Duration) -> anyhow::Result<redis::Connection> {
    let login = if password { format!(":{PASSWORD}@") } else { String::new() };
    let client = redis::Client::open(format!("redis://{login}127.0.0.1:{port}/"))?;
    let connection = client.get_connection_with_timeout(patience)?;
    connection.set_read_timeout(Some(patience))?;
    connection.set_write_timeout(Some(patience))?;
    Ok(connection)
}

/// Sends one command to a server that is not the soak's own.
///
/// # Errors
/// If it does not reply, or replies with an error.
pub fn tell_once(port: u16, password: bool, words: &[&str]) -> anyhow::Result<()> {
    Ok(redis::cmd(words[0]).arg(&words[1..]).query(&mut connect(port, password, ANSWER)?)?)
}

/// Starts one server, or three that form a cluster.
///
/// # Errors
/// If they do not start.
pub fn start(directory: &Path, cluster: bool, password: bool) -> anyhow::Result<Vec<Server>> {
    let count = if cluster { 3 } else { 1 };
    let mut servers = (0..count)
        .map(|index| Server::start(directory.join(format!("server-{index}")), cluster, password))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if cluster {
        form(&mut servers)?;
    }
    for server in &mut servers {
        (server.patience, server.connection) = (ANSWER, None);
    }
    Ok(servers)
}

fn form(servers: &mut [Server]) -> anyhow::Result<()> {
    let count = servers.len();
    let seats: Vec<_> = servers.iter().map(|server| (server.port.to_string(), server.bus.to_string())).collect();
    for (index, server) in servers.iter_mut().enumerate() {
        server.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        let (first, last) = (index * SLOTS / count, (index + 1) * SLOTS / count - 1);
        server.ask(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()])?;
        for (port, bus) in &seats[..index] {
            server.ask(&["CLUSTER", "MEET", "127.0.0.1", port, bus])?;
        }
    }
    let known = format!("cluster_known_nodes:{count}");
    let until = Instant::now() + PATIENCE;
    for server in servers {
        loop {
            let info = server.text(&["CLUSTER", "INFO"])?;
            if info.contains("cluster_state:ok") && info.contains(&known) {
                break;
            }
            anyhow::ensure!(Instant::now() < until, "the cluster did not form: {info}");
            look_again();
        }
    }
    Ok(())
}

/// Moves some slots with all their keys between nodes, like `redis-cli --cluster reshard`. Returns whether there were any.
///
/// # Errors
/// If a node refuses.
pub fn move_slots(servers: &mut [Server], from: usize, to: usize) -> anyhow::Result<bool> {
    let [source, target] = [from, to].map(|index| index.min(servers.len() - 1));
    let source_id = servers[source].text(&["CLUSTER", "MYID"])?;
    let target_id = servers[target].text(&["CLUSTER", "MYID"])?;
    let port = servers[target].port.to_string();
    let Value::Array(ranges) = servers[source].ask(&["CLUSTER", "SLOTS"])? else { return Ok(false) };
    let own = ranges.iter().find_map(|range| match range {
        Value::Array(fields) => match fields.as_slice() {
            [Value::Int(first), Value::Int(last), Value::Array(node), ..]
                if node.get(1) == Some(&Value::Int(servers[source].port.into())) =>
            {
                Some((*first, *last))
            }
            _ => None,
        },
        _ => None,
    });
    let Some((first, last)) = own else { return Ok(false) };
    let counted: Vec<i64> = servers[source].all((first..=last).map(|slot| {
        let mut command = redis::cmd("CLUSTER");
        command.arg("COUNTKEYSINSLOT").arg(slot);
        command
    }))?;
    let with_keys = (first..=last).zip(counted).filter(|(_, keys)| *keys > 0).map(|(slot, _)| slot.to_string());
    let mut moved = false;
    for slot in with_keys.take(MOVED) {
        let keys = servers[source].ask(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000"])?;
        let keys: Vec<String> = redis::from_redis_value(keys)?;
        servers[target].ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id])?;
        servers[source].ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id])?;
        let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "500", "REPLACE"];
        if servers[source].password {
            migrate.extend(["AUTH", PASSWORD]);
        }
        migrate.push("KEYS");
        migrate.extend(keys.iter().map(String::as_str));
        servers[source].ask(&migrate)?;
        for index in [target, source].into_iter().chain((0..servers.len()).filter(|i| *i != target && *i != source)) {
            // Errors are ignored, because the third node learns it from the others too.
            let _ = servers[index].ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        }
        moved = true;
    }
    Ok(moved)
}

/// A port for clients and one for the cluster bus.
fn free_ports() -> anyhow::Result<[u16; 2]> {
    let from = PORTS.start + (std::process::id() % 1_000) as u16 * 10;
    let mut free =
        (from..PORTS.end).chain(PORTS.start..from).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    match (free.next(), free.next()) {
        (Some(port), Some(bus)) => Ok([port, bus]),
        _ => anyhow::bail!("no free port on 127.0.0.1 in {PORTS:?}"),
    }
}
