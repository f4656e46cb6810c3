//! Servers under load: the null server, a redis-server, a cluster of three.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use redisbench_testkit::servers::{RedisCluster, RedisServer, connect, free_port};
use tempfile::TempDir;

use crate::clients::Bench;
use crate::process::{Running, cpu_of, pinned, run};

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// Running servers, all of one kind; they end with this value.
pub struct Servers {
    kind: Kind,
    nodes: Nodes,
    /// The port that speaks TLS, if one does.
    tls_port: u16,
    directory: TempDir,
}

enum Nodes {
    Null(Running, u16),
    Redis(RedisServer),
    Cluster(RedisCluster),
}

/// What kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `redisbench-loadgen null-server` with this number of threads.
    Null(usize),
    /// One redis-server.
    Redis,
    /// One redis-server, loaded through TLS.
    Tls,
    /// Three redis-servers with a third of the slots each.
    Cluster,
}

/// What servers have counted, up to a point in time.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Commands executed.
    pub commands: u64,
    /// Processor time.
    pub cpu: Duration,
}

impl Servers {
    /// Starts servers on the processors `cpus`, and waits until they serve.
    ///
    /// # Errors
    /// If one does not.
    pub fn start(bench: &Bench, kind: Kind, cpus: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("failed to make a directory for servers")?;
        let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        let (tls_port, certificate, key) = (free_port(), file(CERTIFICATE), file("key.pem"));
        let redis =
            |arguments: &[&str]| RedisServer::start_on(Some(cpus), &[&["--maxclients", "11000"], arguments].concat());
        let nodes = match kind {
            Kind::Null(threads) => null_server(bench, threads, cpus)?,
            Kind::Redis => Nodes::Redis(redis(&[])),
            Kind::Tls => {
                make_certificate(&certificate, &key)?;
                let files =
                    ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &certificate];
                let port = tls_port.to_string();
                Nodes::Redis(redis(&[&["--tls-auth-clients", "no", "--tls-port", &port][..], &files].concat()))
            }
            Kind::Cluster => {
                let node = |_| redis(&["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"]);
                Nodes::Cluster(RedisCluster::form((0..3).map(node).collect()))
            }
        };
        Ok(Self { kind, nodes, tls_port, directory })
    }

    /// The file with the certificate that its clients trust.
    pub fn certificate(&self) -> String {
        self.directory.path().join(CERTIFICATE).to_string_lossy().into_owned()
    }

    /// Their kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Process and port of each.
    fn all(&self) -> Vec<(u32, u16)> {
        let of = |node: &RedisServer| (node.pid(), node.address().port());
        match &self.nodes {
            Nodes::Null(running, port) => vec![(running.0.id(), *port)],
            Nodes::Redis(node) => vec![of(node)],
            Nodes::Cluster(cluster) => cluster.nodes.iter().map(of).collect(),
        }
    }

    /// Their addresses for the load, as `host:port`.
    pub fn addresses(&self) -> Vec<String> {
        if self.kind == Kind::Tls {
            return vec![format!("127.0.0.1:{}", self.tls_port)];
        }
        self.all().into_iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect()
    }

    /// For each node a key that it owns and that the load has written.
    pub fn keys(&self) -> Vec<String> {
        let key = |number: u32| format!("key:{number:012}");
        let Nodes::Cluster(cluster) = &self.nodes else { return vec![key(12_345)] };
        let owner = |number: &u32| cluster.owner(cluster.nodes[0].ask(&["CLUSTER", "KEYSLOT", &key(*number)]));
        (0..cluster.nodes.len())
            .filter_map(|node| (0..1_000_000).find(|number| owner(number) == node))
            .map(key)
            .collect()
    }

    /// The first one's port for the load.
    pub fn port(&self) -> String {
        if self.kind == Kind::Tls { self.tls_port.to_string() } else { self.all()[0].1.to_string() }
    }

    /// The only redis-server.
    ///
    /// # Errors
    /// If there is none, or there are several.
    pub fn redis(&self) -> anyhow::Result<&RedisServer> {
        match &self.nodes {
            Nodes::Redis(node) => Ok(node),
            Nodes::Null(..) | Nodes::Cluster(_) => anyhow::bail!("this is not one redis-server"),
        }
    }

    /// Their counts so far, without the request for them.
    ///
    /// # Errors
    /// If one does not report them.
    pub fn counted(&self) -> anyhow::Result<Counted> {
        let mut counted = Counted { commands: 0, cpu: Duration::ZERO };
        for (process, port) in self.all() {
            counted.cpu += cpu_of(process)?;
            let mut connection = connect(port, None, PATIENCE).context("failed to connect to a server")?;
            let info: String =
                redis::cmd("INFO").arg("all").query(&mut connection).context("failed to get a server's counts")?;
            let line = |name: &str| info.lines().find_map(|line| line.trim_end().strip_prefix(name));
            counted.commands += match self.kind {
                Kind::Null(_) => {
                    let total = line("total_commands_processed:").context("the null server does not count")?;
                    total.parse::<u64>().context("the null server's count is no number")?
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

const CERTIFICATE: &str = "certificate.pem";

/// Makes a self-signed certificate for localhost.
fn make_certificate(certificate: &str, key: &str) -> anyhow::Result<()> {
    let words = [
        ["openssl", "req", "-x509", "-nodes", "-days", "30", "-newkey", "ec"].as_slice(),
        &["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"],
        &["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"],
        &["-keyout", key, "-out", certificate],
    ];
    run(&words.concat(), "0", PATIENCE).context("failed to make a certificate")?;
    Ok(())
}

fn null_server(bench: &Bench, threads: usize, cpus: &str) -> anyhow::Result<Nodes> {
    // Another process may take the port before the server does; then the run fails with a message.
    let port = free_port();
    let (loadgen, listen, threads) =
        (bench.program("redisbench-loadgen")?, format!("127.0.0.1:{port}"), threads.to_string());
    let words = [&loadgen, "null-server", "--listen", &listen, "--value-bytes", "100", "--threads", &threads];
    let file = tempfile::tempfile().context("failed to make a file for a server's output")?;
    let child = pinned(&words, cpus, &file)?.spawn().with_context(|| format!("failed to start {loadgen}"))?;
    let (running, begin) = (Running(child), Instant::now());
    while connect(port, None, PATIENCE).is_err() {
        anyhow::ensure!(begin.elapsed() < PATIENCE, "the null server does not reply");
        std::thread::park_timeout(LOOK);
    }
    Ok(Nodes::Null(running, port))
}
