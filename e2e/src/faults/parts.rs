//! Faults of the cluster itself: etcd, the API server, whole nodes.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

use super::process::command;
use crate::cluster::repository;
use crate::tools::kubectl;
use crate::wait;

/// Timeout for a kubelet that starts on a busy machine, and for the API server.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// A part of the cluster of `e2e/cluster`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The API server's storage.
    Etcd,
    /// The only API server.
    ApiServer,
    /// A node with its containerd, kubelet, kube-proxy and containers, by name.
    Node(String),
}

impl Part {
    /// Stops its process with SIGSTOP until the guard is dropped. Not for nodes.
    pub fn stop(self) -> Result<Disturbed> {
        self.disturb("stop", "continue")
    }

    /// Kills it; it is started again when the guard is dropped. A node is cut off its network first, so that it disappears silently, like a
    /// machine without power.
    pub fn kill(self) -> Result<Disturbed> {
        self.disturb("kill", "start")
    }

    fn disturb(self, deed: &str, remedy: &'static str) -> Result<Disturbed> {
        let disturbed = Disturbed { part: self, remedy };
        disturbed.part.run(deed)?;
        Ok(disturbed)
    }

    fn run(&self, deed: &str) -> Result<()> {
        let script = repository().join("e2e/cluster/part.sh");
        let name = match self {
            Self::Etcd => "etcd".to_owned(),
            Self::ApiServer => "apiserver".to_owned(),
            Self::Node(name) => format!("node-{name}"),
        };
        command(&script.to_string_lossy(), &[&name, deed], "")
    }
}

/// A stopped or killed part. Restored on drop.
#[derive(Debug)]
pub struct Disturbed {
    part: Part,
    remedy: &'static str,
}

impl Disturbed {
    /// Continues or restarts it, and waits until it works.
    pub async fn mend(self, client: &Client) -> Result<()> {
        let part = self.part.clone();
        drop(self);
        match part {
            Part::Node(name) => node_ready(client, &name).await,
            Part::Etcd | Part::ApiServer => {
                wait::answer("a ready API server", BACK_WITHIN, || async {
                    let answer = kubectl(&["get", "--raw", "/readyz"]).await;
                    if answer.is_err() {
                        Part::ApiServer.run("keep")?;
                    }
                    Ok((answer? == "ok").then_some(()))
                })
                .await
            }
        }
    }
}

impl Drop for Disturbed {
    fn drop(&mut self) {
        if let Err(error) = self.part.run(self.remedy) {
            eprintln!("{:?} may still be disturbed: {error:#}", self.part);
        }
    }
}

/// Waits until a node that was away is ready, with a new heartbeat, because its last status may be from before.
async fn node_ready(client: &Client, name: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let before = heartbeat(&nodes.get(name).await?);
    wait::answer("a ready node", BACK_WITHIN, || async {
        let node = nodes.get(name).await?;
        Ok((heartbeat(&node) > before && is_ready(&node)).then_some(()))
    })
    .await
}

fn heartbeat(node: &Node) -> Option<k8s_openapi::jiff::Timestamp> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref())?;
    conditions.iter().find(|condition| condition.type_ == "Ready")?.last_heartbeat_time.as_ref().map(|time| time.0)
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
