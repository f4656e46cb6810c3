//! The servers under load: the null server, a redis-server, a cluster of three.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::clients::Bench;
use crate::process::{Running, cpu_of, pinned, run};

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
const SLOTS: usize = 16_384;

/// Running servers of one kind. Killed on drop.
#[derive(Debug)]
pub struct Servers {
    kind: Kind,
    nodes: Vec<(Running, u16)>,
    /// The TLS port, if there is one.
    tls_port: u16,
    // Dropped after the servers that write into it.
    directory: TempDir,
}

/// The kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `redisbench-loadgen null-server`, with this number of threads.
    Null(usize),
    /// One redis-server.
    Redis,
    /// One redis-server, loaded through TLS.
    Tls,
    /// Three redis-servers with a third of the slots each.
    Cluster,
}

impl Kind {
    fn threads(self) -> usize {
        if let Self::Null(threads) = self { threads } else { 1 }
    }
}

/// The servers' counts at a point in time.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Commands executed.
    pub commands: u64,
    /// CPU time.
    pub cpu: Duration,
}

impl Servers {
    /// Starts servers on the processors `cpus`, and waits until they serve.
    ///
    /// # Errors
    /// If one does not.
    pub fn start(bench: &Bench, kind: Kind, cpus: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("failed to create a directory for servers")?;
        let count = if kind == Kind::Cluster { 3 } else { 1 };
        let mut servers = Self { kind, nodes: Vec::new(), tls_port: free_port()?, directory };
        if kind == Kind::Tls {
            servers.make_certificate()?;
        }
        for _ in 0..count {
            let node = servers.start_node(bench, cpus)?;
            servers.nodes.push(node);
        }
        for (_, port) in &servers.nodes {
            wait_until("a server replies", || Ok(ask(*port, &["PING"])?.starts_with("PONG")))?;
        }
        if kind == Kind::Cluster {
            servers.form_cluster()?;
        }
        Ok(servers)
    }

    fn start_node(&self, bench: &Bench, cpus: &str) -> anyhow::Result<(Running, u16)> {
        // Another process may take the port before the server does. Then the run fails with an error.
        let port = free_port()?;
        let place = self.directory.path().join(port.to_string());
        std::fs::create_dir(&place).context("failed to create a directory for a server")?;
        let port_text = port.to_string();
        let listen = format!("127.0.0.1:{port}");
        let loadgen = bench.program("redisbench-loadgen")?;
        let (threads, tls_port) = (Kind::threads(self.kind).to_string(), self.tls_port.to_string());
        let (certificate, key) = (self.certificate(), self.file("key.pem"));
        let mut words = vec!["redis-server", "--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--maxclients"];
        words.push("11000");
        match self.kind {
            Kind::Null(_) => {
                words = vec![&loadgen, "null-server", "--listen", &listen, "--value-bytes", "100"];
                words.extend(["--threads", &threads]);
            }
            Kind::Redis => {}
            Kind::Tls => {
                words.extend(["--tls-port", &tls_port, "--tls-cert-file", &certificate, "--tls-key-file", &key]);
                words.extend(["--tls-ca-cert-file", &certificate, "--tls-auth-clients", "no"]);
            }
            Kind::Cluster => words.extend(["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"]),
        }
        let file = tempfile::tempfile().context("failed to create a file for a server's output")?;
        let mut command = pinned(&words, cpus, &file)?;
        let child = command.current_dir(&place).spawn().with_context(|| format!("failed to start {}", words[0]))?;
        Ok((Running(child), port))
    }

    /// A self-signed certificate for localhost.
    fn make_certificate(&self) -> anyhow::Result<()> {
        let (certificate, key) = (self.certificate(), self.file("key.pem"));
        let words = [
            ["openssl", "req", "-x509", "-nodes", "-days", "30", "-newkey", "ec"].as_slice(),
            &["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"],
            &["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"],
            &["-keyout", &key, "-out", &certificate],
        ];
        run(&words.concat(), "0", PATIENCE).context("failed to create a certificate")?;
        Ok(())
    }

    /// The file with the certificate that its clients trust.
    pub fn certificate(&self) -> String {
        self.file("certificate.pem")
    }

    fn file(&self, name: &str) -> String {
        self.directory.path().join(name).to_string_lossy().into_owned()
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    fn form_cluster(&self) -> anyhow::Result<()> {
        let count = self.nodes.len();
        let first_port = self.nodes[0].1.to_string();
        for (index, (_, port)) in self.nodes.iter().enumerate() {
            let (first, last) = (SLOTS * index / count, SLOTS * (index + 1) / count - 1);
            ask(*port, &["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()])?;
            // Without distinct epochs, two nodes might conflict over the first.
            ask(*port, &["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
            if index > 0 {
                ask(*port, &["CLUSTER", "MEET", "127.0.0.1", &first_port])?;
            }
        }
        for (_, port) in &self.nodes {
            wait_until("the cluster has formed", || {
                let info = ask(*port, &["CLUSTER", "INFO"])?;
                Ok(info.contains("cluster_state:ok") && info.contains(&format!("cluster_known_nodes:{count}")))
            })?;
        }
        Ok(())
    }

    /// `host:port` of each, for the load.
    pub fn addresses(&self) -> Vec<String> {
        if self.kind == Kind::Tls {
            return vec![format!("127.0.0.1:{}", self.tls_port)];
        }
        self.nodes.iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect()
    }

    /// For each server, a key that it owns and that the load has written.
    ///
    /// # Errors
    /// If one does not report a key's slot.
    pub fn keys(&self) -> anyhow::Result<Vec<String>> {
        let count = self.nodes.len();
        let key = |number: u32| format!("key:{number:012}");
        if self.kind != Kind::Cluster {
            return Ok((0..count).map(|_| key(12_345)).collect());
        }
        let mut keys = vec![String::new(); count];
        for number in 0.. {
            let Some(missing) = keys.iter().position(String::is_empty) else { break };
            let slot: usize = ask(self.nodes[missing].1, &["CLUSTER", "KEYSLOT", &key(number)])?.trim().parse()?;
            let owns = |node: &usize| slot < SLOTS * (node + 1) / count;
            if let Some(owner) = (0..count).find(owns) {
                keys[owner] = key(number);
            }
        }
        Ok(keys)
    }

    /// The port of the first, for the load.
    pub fn port(&self) -> String {
        if self.kind == Kind::Tls { self.tls_port.to_string() } else { self.nodes[0].1.to_string() }
    }

    /// Sends the first a signal.
    ///
    /// # Errors
    /// If it has exited.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.nodes[0].0.0.id()).ok().and_then(Pid::from_raw).context("a server has no id")?;
        kill_process(id, signal).context("failed to send a server a signal")
    }

    /// The current counts, without the commands that read them.
    ///
    /// # Errors
    /// If one does not reply.
    pub fn counted(&self) -> anyhow::Result<Counted> {
        let mut counted = Counted { commands: 0, cpu: Duration::ZERO };
        for (running, port) in &self.nodes {
            counted.cpu += cpu_of(running.0.id())?;
            let info = ask(*port, &["INFO", "all"])?;
            let line = |name: &str| info.lines().find_map(|line| line.trim_end().strip_prefix(name));
            counted.commands += match self.kind {
                Kind::Null(_) => {
                    let total = line("total_commands_processed:").context("the null server reports no count")?;
                    total.parse::<u64>().context("the null server's count is not a number")?
                }
                Kind::Redis | Kind::Tls | Kind::Cluster => {
                    let calls = |name: &str| line(&format!("cmdstat_{name}:calls="))?.split(',').next()?.parse().ok();
                    calls("get").unwrap_or(0u64) + calls("set").unwrap_or(0u64)
                }
            };
        }
        Ok(counted)
    }
}

/// Runs a command with redis-cli, and returns the reply's text.
fn ask(port: u16, words: &[&str]) -> anyhow::Result<String> {
    let port = port.to_string();
    let words = [&["redis-cli", "-h", "127.0.0.1", "-p", &port], words].concat();
    let all = format!("0-{}", std::thread::available_parallelism().map_or(1, usize::from).saturating_sub(1));
    Ok(run(&words, &all, PATIENCE)?.output)
}

fn wait_until(what: &str, mut condition: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        let last = condition();
        if matches!(last, Ok(true)) {
            return Ok(());
        }
        if begin.elapsed() > PATIENCE {
            last?;
            anyhow::bail!("timed out after {} s waiting until {what}", PATIENCE.as_secs());
        }
        std::thread::park_timeout(LOOK);
    }
}

/// A free port. A cluster's bus listens 10000 above, which must be a valid port too.
fn free_port() -> anyhow::Result<u16> {
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to find a free port")?;
        let port = listener.local_addr().context("failed to find a free port")?.port();
        if port < 55_000 {
            return Ok(port);
        }
    }
}
