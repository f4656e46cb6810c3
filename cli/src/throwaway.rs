//! Throwaway servers that replace the manifest's targets for one local benchmark.

mod authority;
mod configuration;
mod error;
mod limits;
mod node;
mod quote;
mod wanted;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

pub use self::authority::Authority;
use self::configuration::{Place, Role, SENTINELS, SERVING_TIMEOUT};
pub use self::error::ThrowawayError;
use self::limits::PATIENCE;
use self::node::Node;
pub use self::wanted::{Shape, Wanted};

/// Primaries of a throwaway cluster.
const PRIMARIES: usize = 3;
const SLOTS: usize = 16384;
/// Retries, because another process may take a free port before the server does.
const PORT_ATTEMPTS: usize = 5;
/// The time after which the nodes of a cluster are introduced to each other again.
const INTRODUCED_WITHIN: Duration = Duration::from_secs(3);

/// The running servers of one target. End on drop.
#[derive(Debug)]
pub struct Throwaway {
    shape: Shape,
    /// Of a standalone server.
    addresses: usize,
    /// Primaries first, then their replicas in turn.
    nodes: Vec<Node>,
    sentinels: Vec<Node>,
    // Dropped after the servers, which write into it.
    directory: TempDir,
}

impl Throwaway {
    /// Starts the `wanted` servers, and waits until they are ready.
    ///
    /// # Errors
    /// If redis-server is missing, exits, or is not ready in time.
    pub async fn start(wanted: &Wanted<'_>) -> Result<Self, ThrowawayError> {
        let directory =
            tempfile::Builder::new().prefix("redisbench-redis-").tempdir().map_err(ThrowawayError::Directory)?;
        let primaries = match wanted.shape {
            Shape::Cluster => PRIMARIES,
            Shape::Pool(servers) => servers,
            Shape::Standalone | Shape::Sentinel => 1,
        };
        let mut nodes: Vec<Node> = Vec::new();
        for index in 0..primaries * (1 + wanted.replicas) {
            let is_replica = wanted.shape != Shape::Cluster && index >= primaries;
            let follows = is_replica.then(|| nodes[index % primaries].serving_port());
            let place = directory.path().join(format!("node-{index}"));
            nodes.push(start_node(&place, Role::Server { follows }, wanted).await?);
        }
        let Wanted { shape, addresses, .. } = *wanted;
        let mut throwaway = Self { shape, addresses, nodes, sentinels: Vec::new(), directory };
        if wanted.shape == Shape::Cluster {
            throwaway.form_cluster(wanted.replicas).await?;
        }
        for replica in &throwaway.nodes[primaries..] {
            let linked = |info: &str| info.contains("master_link_status:up");
            replica.wait_for("the replicas are connected to their primaries", "INFO", linked).await?;
        }
        if wanted.shape == Shape::Cluster && wanted.replicas > 0 {
            throwaway.wait_for_health().await?;
        }
        if wanted.shape == Shape::Sentinel {
            throwaway.watch(wanted).await?;
        }
        Ok(throwaway)
    }

    /// `host:port` of the server at each of its addresses, of the primaries, or of the sentinels.
    pub fn endpoints(&self) -> Vec<String> {
        let nodes = match self.shape {
            Shape::Standalone => {
                let port = self.nodes[0].serving_port();
                return (1..=self.addresses).map(|address| format!("127.0.0.{address}:{port}")).collect();
            }
            Shape::Cluster => &self.nodes[..PRIMARIES],
            Shape::Pool(servers) => &self.nodes[..servers],
            Shape::Sentinel => &self.sentinels[..],
        };
        nodes.iter().map(Node::endpoint).collect()
    }

    pub async fn stop(self) {
        // Sentinels and replicas first, because they would take the end of a primary for a failure.
        for mut node in self.sentinels.into_iter().chain(self.nodes.into_iter().rev()) {
            node.stop().await;
        }
    }

    /// Starts the sentinels, and waits until they have discovered each other and the replicas.
    async fn watch(&mut self, wanted: &Wanted<'_>) -> Result<(), ThrowawayError> {
        let primary = self.nodes[0].serving_port();
        for index in 0..SENTINELS {
            let place = self.directory.path().join(format!("sentinel-{index}"));
            self.sentinels.push(start_node(&place, Role::Sentinel { primary }, wanted).await?);
        }
        let known = format!("slaves={},sentinels={SENTINELS}", wanted.replicas);
        for sentinel in &self.sentinels {
            let all = |info: &str| info.contains(&known);
            sentinel.wait_for("the sentinels have found each other and the replicas", "INFO sentinel", all).await?;
        }
        Ok(())
    }

    /// Introduces the nodes to the first, and waits until they know each other. Once may not be enough: on a busy machine a node forgets another
    /// that does not complete their handshake within a second.
    async fn introduce(&self) -> Result<(), ThrowawayError> {
        let (first, others) = self.nodes.split_at(1);
        for other in others {
            let [port, bus_port] = [other.serving_port(), other.bus_port()].map(|port| port.to_string());
            first[0].query("CLUSTER MEET", &["127.0.0.1", &port, &bus_port]).await?;
        }
        let known = format!("cluster_known_nodes:{}\r\n", self.nodes.len());
        let deadline = Instant::now() + INTRODUCED_WITHIN;
        for node in &self.nodes {
            let all = |info: &str| info.contains(&known);
            node.wait_until(deadline, "all nodes have found each other", "CLUSTER INFO", all).await?;
        }
        Ok(())
    }

    async fn form_cluster(&mut self, replicas: usize) -> Result<(), ThrowawayError> {
        for (index, node) in self.nodes.iter().enumerate() {
            node.query("CLUSTER SET-CONFIG-EPOCH", &[&(index + 1).to_string()]).await?;
        }
        for (index, node) in self.nodes.iter().take(PRIMARIES).enumerate() {
            let (first, last) = (index * SLOTS / PRIMARIES, (index + 1) * SLOTS / PRIMARIES - 1);
            node.query("CLUSTER ADDSLOTSRANGE", &[&first.to_string(), &last.to_string()]).await?;
        }
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.introduce().await {
            if !matches!(error, ThrowawayError::Patience { .. }) || Instant::now() >= deadline {
                return Err(error);
            }
        }
        for (replica, primary) in self.nodes[PRIMARIES..].iter().zip(self.nodes[..PRIMARIES].iter().cycle()) {
            let id = primary.query("CLUSTER MYID", &[]).await?;
            replica.query("CLUSTER REPLICATE", &[&id]).await?;
        }
        for node in &self.nodes {
            node.wait_for("the cluster's state is ok", "CLUSTER INFO", |info| info.contains("cluster_state:ok"))
                .await?;
            node.wait_for("every primary has its replicas", "CLUSTER NODES", |nodes| {
                nodes.lines().filter(|line| line.contains("slave")).count() == PRIMARIES * replicas
            })
            .await?;
        }
        let patient = SERVING_TIMEOUT.as_millis().to_string();
        for node in &self.nodes {
            node.query("CONFIG SET", &["cluster-node-timeout", &patient]).await?;
        }
        Ok(())
    }

    /// A node takes a replica for healthy only once it has heard from it how far it is. A benchmark that began earlier would list that as
    /// a change of the cluster. Servers before Redis 7 do not tell.
    async fn wait_for_health(&self) -> Result<(), ThrowawayError> {
        for node in &self.nodes {
            let all = |shards: &str| shards.matches("\"online\"").count() == self.nodes.len();
            match node.wait_for("all nodes know that the replicas are online", "CLUSTER SHARDS", all).await {
                Err(ThrowawayError::Command { .. }) => return Ok(()),
                waited => waited?,
            }
        }
        Ok(())
    }
}

async fn start_node(directory: &Path, role: Role, wanted: &Wanted<'_>) -> Result<Node, ThrowawayError> {
    std::fs::create_dir(directory).map_err(ThrowawayError::Directory)?;
    let mut attempt = 1;
    loop {
        let place = Place { directory: PathBuf::from(directory), ports: free_ports().map_err(ThrowawayError::Port)? };
        match Node::start(place, role, wanted).await {
            Err(ThrowawayError::Ended { output, .. })
                if attempt < PORT_ATTEMPTS && output.contains("Address already in use") =>
            {
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Three free ports: for plain-text clients, for the cluster bus, and for TLS clients.
fn free_ports() -> io::Result<[u16; 3]> {
    let bind = || std::net::TcpListener::bind("127.0.0.1:0");
    let listeners = [bind()?, bind()?, bind()?];
    let port = |listener: &std::net::TcpListener| listener.local_addr().map(|address| address.port());
    Ok([port(&listeners[0])?, port(&listeners[1])?, port(&listeners[2])?])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::credentials::Credentials;

    fn credentials() -> Credentials {
        Credentials { username: Some("bench".to_owned()), password: "pa\"ss w\\ord".to_owned() }
    }

    fn wanted(shape: Shape, credentials: &Credentials) -> Wanted<'_> {
        Wanted { credentials: Some(credentials), ..Wanted::plain(shape) }
    }

    #[tokio::test]
    async fn standalone_asks_for_the_credentials_and_has_its_replicas() {
        let credentials = credentials();
        let throwaway =
            Throwaway::start(&Wanted { replicas: 2, ..wanted(Shape::Standalone, &credentials) }).await.unwrap();
        let node = &throwaway.nodes[0];
        assert_eq!(node.query("PING", &[]).await.unwrap(), "PONG");
        assert!(node.query("INFO", &["replication"]).await.unwrap().contains("connected_slaves:2"));
        assert_eq!(throwaway.endpoints(), [node.endpoint()]);
        let anonymous = redis::Client::open(format!("redis://{}/", node.endpoint())).unwrap();
        let mut connection = anonymous.get_connection_with_timeout(Duration::from_secs(5)).unwrap();
        let refused = redis::cmd("PING").query::<String>(&mut connection).unwrap_err();
        assert_eq!(refused.code(), Some("NOAUTH"));
        throwaway.stop().await;
    }

    #[tokio::test]
    async fn cluster_forms_with_credentials() {
        let credentials = Credentials { username: None, ..credentials() };
        let throwaway =
            Throwaway::start(&Wanted { replicas: 1, ..wanted(Shape::Cluster, &credentials) }).await.unwrap();
        assert_eq!(throwaway.endpoints().len(), PRIMARIES);
        let info = throwaway.nodes[5].query("CLUSTER INFO", &[]).await.unwrap();
        assert!(info.contains("cluster_slots_ok:16384"), "{info}");
        assert!(info.contains("cluster_size:3"), "{info}");
        let shards = throwaway.nodes[0].query("CLUSTER SHARDS", &[]).await.unwrap();
        assert_eq!(shards.matches("\"online\"").count(), 6, "{shards}");
        throwaway.stop().await;
    }
}
