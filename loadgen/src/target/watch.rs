//! Repeated looks at a known cluster. Cheap: one command over a kept connection. Fast: never waits for a single node.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::ShardPlan;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::access::{Mounts, TargetAccess};
use super::client::Client;
use super::cluster::{self, MapReply};
use super::end::End;
use super::endpoint::Endpoint;
use super::jitter::jitter;
use super::trouble::Trouble;
use crate::cluster::Topology;

/// Timeout of the kept connection, before other nodes are tried.
const ANSWER: Duration = Duration::from_millis(500);
/// Timeout for a new connection including TLS, AUTH and the answer.
const REACH: Duration = Duration::from_secs(3);
/// Delay before the next node is tried in parallel.
const STAGGER: Duration = Duration::from_millis(50);
/// Unchanged looks in a row at one node before another is tried, because this one may be cut off from updates.
const TRUST: u32 = 40;

/// A kept connection to a node that answers.
#[derive(Default)]
pub struct ClusterWatch {
    kept: Option<Kept>,
}

struct Kept {
    endpoint: Endpoint,
    client: Client,
    /// Looks in a row that returned the known map.
    unchanged: u32,
}

impl std::fmt::Debug for ClusterWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ClusterWatch").field("at", &self.kept.as_ref().map(|kept| &kept.endpoint)).finish()
    }
}

impl ClusterWatch {
    /// The cluster's map from the kept connection, or from the first other node that answers. `None` without an answer that a load can use.
    pub async fn look(&mut self, plan: &ShardPlan, mounts: &Mounts, known: &Topology) -> Option<Topology> {
        let avoided = self.kept.as_ref().map(|kept| kept.endpoint.to_string());
        if let Some(mut kept) = self.kept.take().filter(|kept| kept.unchanged < TRUST)
            && let Ok(Ok(found)) = timeout(ANSWER, map_of(plan, &kept.endpoint, &mut kept.client)).await
        {
            kept.unchanged = if found == *known { kept.unchanged + 1 } else { 0 };
            self.kept = Some(kept);
            return Some(found);
        }
        let access = Arc::new(TargetAccess::read(plan, mounts).await.ok()?);
        let mut candidates: Vec<String> = known.nodes.iter().map(|node| node.label.clone()).collect();
        // No server is asked twice in a look.
        let others =
            plan.target.endpoints.iter().filter(|endpoint| known.nodes.iter().all(|node| node.label != **endpoint));
        candidates.extend(others.cloned());
        let begin = jitter(Duration::from_nanos(candidates.len() as u64)).as_nanos();
        candidates.rotate_left(usize::try_from(begin).unwrap_or(0));
        candidates.sort_by_key(|candidate| avoided.as_ref() == Some(candidate));
        let (endpoint, client, found) = race(plan, &access, candidates).await?;
        self.kept = Some(Kept { endpoint, client, unchanged: 0 });
        Some(found)
    }
}

/// The first answer of any candidate. The next one is tried after a failure or a delay.
async fn race(
    plan: &ShardPlan,
    access: &Arc<TargetAccess>,
    candidates: Vec<String>,
) -> Option<(Endpoint, Client, Topology)> {
    let mut asked = JoinSet::new();
    let mut candidates = candidates.into_iter();
    loop {
        let more = candidates.next().map(|candidate| {
            let (plan, access) = (plan.clone(), access.clone());
            asked.spawn(async move { timeout(REACH, reach(&plan, &access, &candidate)).await.ok().flatten() });
        });
        let answer = match more {
            Some(()) => match timeout(STAGGER, asked.join_next()).await {
                Ok(answer) => answer,
                Err(_) => continue,
            },
            None => asked.join_next().await,
        };
        match answer {
            Some(Ok(Some(found))) => return Some(found),
            None if more.is_none() => return None,
            _ => {}
        }
    }
}

async fn reach(plan: &ShardPlan, access: &TargetAccess, candidate: &str) -> Option<(Endpoint, Client, Topology)> {
    let endpoint: Endpoint = candidate.parse().ok()?;
    for address in endpoint.resolve().await.ok()? {
        if let Ok(mut client) = access.connect(candidate, address, REACH).await
            && let Ok(found) = map_of(plan, &endpoint, &mut client).await
        {
            return Some((endpoint, client, found));
        }
    }
    None
}

/// Rejects a map with unassigned slots: the node was reset, or has not joined yet.
async fn map_of(plan: &ShardPlan, asked: &Endpoint, client: &mut Client) -> Result<Topology, End> {
    match cluster::ask(client, &plan.target, asked).await? {
        MapReply::Map(map) if map.uncovered() == 0 => Ok(cluster::topology(&plan.target, map).await?),
        _ => Err(Trouble::Silent("it has no map".to_owned()).into()),
    }
}
