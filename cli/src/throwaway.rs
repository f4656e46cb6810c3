//! A redis-server, or a cluster of them, that lives as long as one local benchmark.

mod configuration;
mod node;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use crate::credentials::Credentials;
use configuration::{Place, SERVING_TIMEOUT};
use node::Node;

/// Primaries of a throwaway cluster, and as many replicas.
const PRIMARIES: usize = 3;
const SLOTS: usize = 16384;
/// How long servers may take to answer, and to agree on their cluster.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(20);
/// Another process may take a free port before the server does.
const PORT_ATTEMPTS: usize = 5;

/// What kind of target the servers shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One server.
    Standalone,
    /// Three primaries with a replica each.
    Cluster,
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Standalone => "redis-server",
            Self::Cluster => "Redis Cluster of three primaries and three replicas",
        })
    }
}

/// Why there is no throwaway server.
#[derive(Debug, thiserror::Error)]
pub enum ThrowawayError {
    /// The program is missing or cannot be started.
    #[error(
        "failed to start redis-server; install it (on Debian: apt-get install redis-server) or leave --with-redis out"
    )]
    Start(#[source] io::Error),
    /// No directory for its files.
    #[error("failed to create a directory for redis-server")]
    Directory(#[source] io::Error),
    /// No port to listen on.
    #[error("failed to find a free port on 127.0.0.1")]
    Port(#[source] io::Error),
    /// It ended by itself.
    #[error("redis-server ended with {status}; it said:\n{output}")]
    Ended {
        /// How it ended.
        status: String,
        /// Its last lines.
        output: String,
    },
    /// A command failed.
    #[error("failed to run {command} on the redis-server at {address}")]
    Command {
        /// Without its arguments.
        command: &'static str,
        /// Which server.
        address: String,
        /// The cause.
        source: redis::RedisError,
    },
    /// A condition did not come about.
    #[error("waited {} s in vain until {condition}; last: {last}", PATIENCE.as_secs())]
    Patience {
        /// What was awaited.
        condition: &'static str,
        /// What was seen instead.
        last: String,
    },
    /// Its access list cannot hold this name.
    #[error("the user name {0:?} cannot be used with --with-redis: it is empty or holds white space")]
    UserName(String),
    /// The task that spoke to the server died.
    #[error("failed to speak to redis-server")]
    Task(#[source] tokio::task::JoinError),
}

/// Running servers; they end with this value.
#[derive(Debug)]
pub struct Throwaway {
    nodes: Vec<Node>,
    // Dropped after the servers that write into it.
    _directory: TempDir,
}

impl Throwaway {
    /// Starts servers that ask for `credentials`, and waits until they serve.
    ///
    /// # Errors
    /// When redis-server is missing, ends by itself, or does not come to serve in time.
    pub async fn start(shape: Shape, credentials: Option<&Credentials>) -> Result<Self, ThrowawayError> {
        let directory =
            tempfile::Builder::new().prefix("redisbench-redis-").tempdir().map_err(ThrowawayError::Directory)?;
        let count = match shape {
            Shape::Standalone => 1,
            Shape::Cluster => 2 * PRIMARIES,
        };
        let mut nodes = Vec::with_capacity(count);
        for index in 0..count {
            let place = directory.path().join(format!("node-{index}"));
            std::fs::create_dir(&place).map_err(ThrowawayError::Directory)?;
            nodes.push(start_node(place, shape, credentials).await?);
        }
        let mut throwaway = Self { nodes, _directory: directory };
        if shape == Shape::Cluster {
            throwaway.form_cluster().await?;
        }
        Ok(throwaway)
    }

    /// `host:port` of the server, or of the cluster's primaries.
    pub fn endpoints(&self) -> Vec<String> {
        self.nodes.iter().take(PRIMARIES).map(Node::address).collect()
    }

    /// Ends the servers.
    pub async fn stop(self) {
        for mut node in self.nodes {
            node.stop().await;
        }
    }

    async fn form_cluster(&mut self) -> Result<(), ThrowawayError> {
        for (index, node) in self.nodes.iter().enumerate() {
            node.query("CLUSTER SET-CONFIG-EPOCH", &[&(index + 1).to_string()]).await?;
        }
        for (index, node) in self.nodes.iter().take(PRIMARIES).enumerate() {
            let (first, last) = (index * SLOTS / PRIMARIES, (index + 1) * SLOTS / PRIMARIES - 1);
            node.query("CLUSTER ADDSLOTSRANGE", &[&first.to_string(), &last.to_string()]).await?;
        }
        let (first, others) = self.nodes.split_at(1);
        for other in others {
            let [port, bus_port] = other.ports().map(|port| port.to_string());
            first[0].query("CLUSTER MEET", &["127.0.0.1", &port, &bus_port]).await?;
        }
        let known = format!("cluster_known_nodes:{}", self.nodes.len());
        for node in &self.nodes {
            node.wait_for("all nodes know each other", "CLUSTER INFO", |info| info.contains(&known)).await?;
        }
        for (replica, primary) in self.nodes[PRIMARIES..].iter().zip(&self.nodes) {
            let id = primary.query("CLUSTER MYID", &[]).await?;
            replica.query("CLUSTER REPLICATE", &[&id]).await?;
        }
        for node in &self.nodes {
            node.wait_for("the cluster's state is ok", "CLUSTER INFO", |info| info.contains("cluster_state:ok"))
                .await?;
            node.wait_for("every primary has its replica", "CLUSTER NODES", |nodes| {
                nodes.lines().filter(|line| line.contains("slave")).count() == PRIMARIES
            })
            .await?;
        }
        for replica in &self.nodes[PRIMARIES..] {
            let linked = |info: &str| info.contains("master_link_status:up");
            replica.wait_for("replicas follow their primaries", "INFO", linked).await?;
        }
        let patient = SERVING_TIMEOUT.as_millis().to_string();
        for node in &self.nodes {
            node.query("CONFIG SET", &["cluster-node-timeout", &patient]).await?;
        }
        Ok(())
    }
}

async fn start_node(
    directory: PathBuf,
    shape: Shape,
    credentials: Option<&Credentials>,
) -> Result<Node, ThrowawayError> {
    let mut attempt = 1;
    loop {
        let place = Place { directory: directory.clone(), ports: free_ports().map_err(ThrowawayError::Port)? };
        match Node::start(place, shape, credentials).await {
            Err(ThrowawayError::Ended { output, .. })
                if attempt < PORT_ATTEMPTS && output.contains("Address already in use") =>
            {
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

/// One port for clients, one for the cluster's bus.
fn free_ports() -> io::Result<[u16; 2]> {
    let listeners = [std::net::TcpListener::bind("127.0.0.1:0")?, std::net::TcpListener::bind("127.0.0.1:0")?];
    Ok([listeners[0].local_addr()?.port(), listeners[1].local_addr()?.port()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        Credentials { username: Some("bench".to_owned()), password: "pa\"ss w\\ord".to_owned() }
    }

    #[tokio::test]
    async fn standalone_asks_for_the_credentials() {
        let credentials = credentials();
        let throwaway = Throwaway::start(Shape::Standalone, Some(&credentials)).await.unwrap();
        let node = &throwaway.nodes[0];
        assert_eq!(node.query("PING", &[]).await.unwrap(), "PONG");
        let anonymous = redis::Client::open(format!("redis://{}/", node.address())).unwrap();
        let mut connection = anonymous.get_connection_with_timeout(Duration::from_secs(5)).unwrap();
        let refused = redis::cmd("PING").query::<String>(&mut connection).unwrap_err();
        assert_eq!(refused.code(), Some("NOAUTH"));
        throwaway.stop().await;
    }

    #[tokio::test]
    async fn cluster_forms_with_credentials() {
        let credentials = Credentials { username: None, ..credentials() };
        let throwaway = Throwaway::start(Shape::Cluster, Some(&credentials)).await.unwrap();
        assert_eq!(throwaway.endpoints().len(), PRIMARIES);
        let info = throwaway.nodes[5].query("CLUSTER INFO", &[]).await.unwrap();
        assert!(info.contains("cluster_slots_ok:16384"), "{info}");
        assert!(info.contains("cluster_size:3"), "{info}");
        throwaway.stop().await;
    }
}
