//! Servers under load: the null server, a redis-server, a cluster of three.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use redisbench_testkit::processes::Running;
use redisbench_testkit::servers::{RedisCluster, RedisServer, connect, free_port};
use tempfile::TempDir;

use crate::bench::Bench;

/// Keys, of `key:` and twelve digits in all clients.
pub const KEYS: u32 = 100_000;

const PATIENCE: Duration = Duration::from_secs(30);

/// Running servers, all of one kind; they end with this value.
pub struct Servers {
    pub kind: Kind,
    nodes: Nodes,
    /// The port that speaks TLS, if one does.
    tls_port: u16,
    /// The file with the certificate that its clients trust.
    pub certificate: String,
    _directory: TempDir,
}

enum Nodes {
    Null(Running, u16),
    Redis(RedisServer),
    Cluster(RedisCluster),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `redisbench-loadgen null-server` with this number of threads.
    Null(usize),
    Redis,
    /// One redis-server, loaded through TLS.
    Tls,
    /// Three redis-servers with a third of the slots each.
    Cluster,
}

/// The servers' own counts, up to a point in time.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// GETs and SETs executed; all commands of the null server.
    pub commands: u64,
    pub cpu: Duration,
}

impl Servers {
    /// Starts servers on the servers' processor, and waits until they serve.
    pub fn start(bench: &Bench, kind: Kind) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("failed to create a directory for servers")?;
        let file = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        let (certificate, key, tls_port) = (file("certificate.pem"), file("key.pem"), free_port());
        let redis = |arguments: &str| {
            let arguments = format!("--maxclients 11000 {arguments}");
            RedisServer::start_on(Some(bench.server_cpu.as_str()), &arguments.split_whitespace().collect::<Vec<_>>())
        };
        let nodes = match kind {
            Kind::Null(threads) => null_server(bench, threads)?,
            Kind::Redis => Nodes::Redis(redis("")),
            Kind::Tls => {
                make_certificate(&certificate, &key)?;
                let files =
                    format!("--tls-cert-file {certificate} --tls-key-file {key} --tls-ca-cert-file {certificate}");
                Nodes::Redis(redis(&format!("--tls-auth-clients no --tls-port {tls_port} {files}")))
            }
            Kind::Cluster => {
                let node = |_| redis("--cluster-enabled yes --cluster-node-timeout 5000");
                Nodes::Cluster(RedisCluster::form((0..3).map(node).collect()))
            }
        };
        Ok(Self { kind, nodes, tls_port, certificate, _directory: directory })
    }

    /// The port of each for the load.
    fn ports(&self) -> Vec<u16> {
        match &self.nodes {
            _ if self.kind == Kind::Tls => vec![self.tls_port],
            Nodes::Null(_, port) => vec![*port],
            Nodes::Redis(node) => vec![node.address().port()],
            Nodes::Cluster(cluster) => cluster.nodes.iter().map(|node| node.address().port()).collect(),
        }
    }

    /// The first one's port.
    pub fn port(&self) -> u16 {
        self.ports()[0]
    }

    /// Their addresses, separated by spaces.
    pub fn addresses(&self) -> String {
        self.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect::<Vec<_>>().join(" ")
    }

    /// For each node a key that it owns and that the load has written.
    pub fn keys(&self) -> Vec<String> {
        let key = |number: u32| format!("key:{number:012}");
        let Nodes::Cluster(cluster) = &self.nodes else { return vec![key(12_345)] };
        let owner = |number: &u32| cluster.owner(cluster.nodes[0].ask(&["CLUSTER", "KEYSLOT", &key(*number)]));
        (0..cluster.nodes.len()).filter_map(|node| (0..KEYS).find(|number| owner(number) == node)).map(key).collect()
    }

    /// The only redis-server.
    pub fn redis(&self) -> anyhow::Result<&RedisServer> {
        match &self.nodes {
            Nodes::Redis(node) => Ok(node),
            Nodes::Null(..) | Nodes::Cluster(_) => anyhow::bail!("this is not one redis-server"),
        }
    }

    pub fn counted(&self) -> anyhow::Result<Counted> {
        let calls = |node: &RedisServer| node.calls("get") + node.calls("set");
        let (commands, processes) = match &self.nodes {
            Nodes::Null(running, port) => (null_commands(*port)?, vec![running.0.id()]),
            Nodes::Redis(node) => (calls(node), vec![node.pid()]),
            Nodes::Cluster(cluster) => {
                (cluster.nodes.iter().map(calls).sum(), cluster.nodes.iter().map(RedisServer::pid).collect())
            }
        };
        let cpu = processes.into_iter().map(cpu_of).sum::<anyhow::Result<Duration>>()?;
        Ok(Counted { commands, cpu })
    }
}

fn null_commands(port: u16) -> anyhow::Result<u64> {
    let mut connection = connect(port, None, PATIENCE).context("failed to connect to the null server")?;
    let info: redis::InfoDict =
        redis::cmd("INFO").query(&mut connection).context("failed to get the server's counts")?;
    info.get("total_commands_processed").context("the null server does not count its commands")
}

/// CPU time of all threads of process `id`.
fn cpu_of(id: u32) -> anyhow::Result<Duration> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir(format!("/proc/{id}/task")).context("failed to read a server's threads")? {
        let path = task.context("failed to read a server's threads")?.path().join("schedstat");
        let text = std::fs::read_to_string(&path).context("failed to read a server's processor time")?;
        nanoseconds += text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

fn null_server(bench: &Bench, threads: usize) -> anyhow::Result<Nodes> {
    let line = format!("redisbench-loadgen null-server --listen 127.0.0.1:0 --value-bytes 100 --threads {threads}");
    let mut command = bench.command(&line, &bench.server_cpu)?;
    let child = command.stdout(Stdio::piped()).spawn().context("failed to start the null server")?;
    let mut running = Running(child);
    let mut serving = String::new();
    let output = running.0.stdout.as_mut().context("the null server has no standard output")?;
    BufReader::new(output).read_line(&mut serving).context("failed to read the null server's address")?;
    let address: Option<SocketAddr> = serving.strip_prefix("serving on ").and_then(|text| text.trim().parse().ok());
    let address = address.with_context(|| format!("the null server printed {serving:?} instead of its address"))?;
    Ok(Nodes::Null(running, address.port()))
}

/// Makes a self-signed certificate for localhost, with its key.
fn make_certificate(certificate: &str, key: &str) -> anyhow::Result<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).context("failed to make a certificate")?;
    std::fs::write(certificate, made.cert.pem()).context("failed to write a certificate")?;
    std::fs::write(key, made.signing_key.serialize_pem()).context("failed to write a key")
}
