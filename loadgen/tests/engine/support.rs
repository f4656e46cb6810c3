//! Real servers for tests: a redis-server on a free port of the loopback address, alone or three of them as a cluster,
//! killed when the test lets go of it.
#![allow(dead_code, reason = "each test crate uses its part")]

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything in a test may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running redis-server.
pub struct Server {
    process: Child,
    pub address: SocketAddr,
    directory: tempfile::TempDir,
}

impl Server {
    /// Starts one with more arguments, and waits until it answers.
    pub fn start(arguments: &[&str]) -> Self {
        for _ in 0..20 {
            if let Some(server) = Self::try_start(free_port(), arguments) {
                return server;
            }
        }
        panic!("redis-server does not start");
    }

    /// None if the port was taken meanwhile.
    pub fn try_start(port: u16, arguments: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(directory.path())
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if process.try_wait().unwrap().is_some() {
                return None;
            }
            // The port may be another server's: ask whose it is.
            if let Some(id) = process_id(address) {
                return (id == process.id()).then_some(Self { process, address, directory });
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let _ = process.kill();
        let _ = process.wait();
        panic!("redis-server does not answer");
    }

    pub fn connection(&self) -> redis::Connection {
        connect(self.address).expect("the server answers")
    }

    /// How often the server ran `command`.
    pub fn calls(&self, command: &str) -> u64 {
        self.command_statistic(command, "calls")
    }

    /// A number that `INFO commandstats` has for `command`; 0 if there is none.
    pub fn command_statistic(&self, command: &str, field: &str) -> u64 {
        let info: String = redis::cmd("INFO").arg("commandstats").query(&mut self.connection()).unwrap();
        let prefix = format!("cmdstat_{command}:");
        let line = info.lines().find_map(|line| line.strip_prefix(&prefix));
        line.and_then(|line| line.split(',').find_map(|pair| pair.strip_prefix(&format!("{field}="))))
            .map_or(0, |value| value.parse().unwrap())
    }

    pub fn reset_statistics(&self) {
        redis::cmd("CONFIG").arg("RESETSTAT").exec(&mut self.connection()).unwrap();
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Stops or continues the process: a stopped server accepts and answers nothing.
    pub fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that was free a moment ago, low enough that a cluster's bus port is one too.
pub fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        if port < 55_000 {
            return port;
        }
    }
}

fn connect(address: SocketAddr) -> redis::RedisResult<redis::Connection> {
    redis::Client::open(format!("redis://{address}/"))?.get_connection_with_timeout(PATIENCE)
}

fn process_id(address: SocketAddr) -> Option<u32> {
    let mut connection = connect(address).ok()?;
    let info: String = redis::cmd("INFO").arg("server").query(&mut connection).ok()?;
    info.lines().find_map(|line| line.strip_prefix("process_id:"))?.trim().parse().ok()
}

/// Waits until `condition` gives something.
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(value) = condition() {
            return value;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("never came: {what}");
}

/// Three primaries that cover all slots.
pub struct Cluster {
    pub servers: Vec<Server>,
    /// The nodes' ids, in the order of the servers.
    pub ids: Vec<String>,
}

/// The first slot of each server, and the end.
pub const EDGES: [u16; 4] = [0, 5461, 10923, 16384];

impl Cluster {
    pub fn start() -> Self {
        let arguments = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"];
        let servers: Vec<Server> = (0..3).map(|_| Server::start(&arguments)).collect();
        for (index, server) in servers.iter().enumerate() {
            let mut connection = server.connection();
            redis::cmd("CLUSTER")
                .arg("ADDSLOTSRANGE")
                .arg(EDGES[index])
                .arg(EDGES[index + 1] - 1)
                .exec(&mut connection)
                .unwrap();
            redis::cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(index + 1).exec(&mut connection).unwrap();
        }
        for server in &servers[1..] {
            redis::cmd("CLUSTER")
                .arg("MEET")
                .arg("127.0.0.1")
                .arg(server.address.port())
                .exec(&mut servers[0].connection())
                .unwrap();
        }
        for server in &servers {
            eventually("a complete cluster", || {
                let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut server.connection()).ok()?;
                (info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")).then_some(())
            });
        }
        let id = |server: &Server| redis::cmd("CLUSTER").arg("MYID").query(&mut server.connection()).unwrap();
        let ids = servers.iter().map(id).collect();
        Self { servers, ids }
    }

    /// How often the servers together ran `command`.
    pub fn calls(&self, command: &str) -> u64 {
        self.servers.iter().map(|server| server.calls(command)).sum()
    }

    pub fn reset_statistics(&self) {
        self.servers.iter().for_each(Server::reset_statistics);
    }

    /// Which server owns a slot at first.
    pub fn owner(slot: u16) -> usize {
        EDGES.iter().rposition(|edge| *edge <= slot).unwrap()
    }

    pub fn set_slot(&self, server: usize, slot: u16, state: &str, other: usize) {
        redis::cmd("CLUSTER")
            .arg("SETSLOT")
            .arg(slot)
            .arg(state)
            .arg(&self.ids[other])
            .exec(&mut self.servers[server].connection())
            .unwrap();
    }
}
