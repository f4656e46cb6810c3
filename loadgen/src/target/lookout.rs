//! Looking at a known cluster again: often, so with one question over a connection that is kept, and quickly, so never
//! waiting for one node alone.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::ShardPlan;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::client::{Client, Trouble};
use super::cluster::{self, Answer};
use super::endpoint::Endpoint;
use super::inspect::End;
use super::{Access, Mounts, jitter};
use crate::cluster::Topology;

/// A node that takes longer is not asked again before others were.
const ANSWER: Duration = Duration::from_millis(500);
/// For a connection to a node, with TLS and AUTH, and its answer.
const REACH: Duration = Duration::from_secs(3);
/// When the next node is asked too, if one has not answered yet.
const STAGGER: Duration = Duration::from_millis(50);
/// Looks at one node in a row that show nothing new. It may be the one that hears of nothing.
const TRUST: u32 = 40;

/// A connection to a node that answers.
#[derive(Default)]
pub struct Lookout {
    kept: Option<Kept>,
}

struct Kept {
    endpoint: Endpoint,
    client: Client,
    /// Looks that showed the map that was known.
    unchanged: u32,
}

impl std::fmt::Debug for Lookout {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lookout").field("at", &self.kept.as_ref().map(|kept| &kept.endpoint)).finish()
    }
}

impl Lookout {
    /// The cluster's map, by the node that was asked last, or the first other one that answers. None if there is no answer
    /// that a load can go on with.
    pub async fn look(&mut self, plan: &Arc<ShardPlan>, mounts: &Mounts, known: &Topology) -> Option<Topology> {
        let avoided = self.kept.as_ref().map(|kept| kept.endpoint.to_string());
        if let Some(mut kept) = self.kept.take().filter(|kept| kept.unchanged < TRUST)
            && let Ok(Ok(found)) = timeout(ANSWER, map_of(plan, &kept.endpoint, &mut kept.client)).await
        {
            kept.unchanged = if found == *known { kept.unchanged + 1 } else { 0 };
            self.kept = Some(kept);
            return Some(found);
        }
        let access = Arc::new(Access::read(plan, mounts).await.ok()?);
        let mut candidates: Vec<String> = known.nodes.iter().map(|node| node.label.clone()).collect();
        candidates.extend(plan.target.endpoints.iter().cloned());
        let begin = jitter(Duration::from_nanos(candidates.len() as u64)).as_nanos();
        candidates.rotate_left(usize::try_from(begin).unwrap_or(0));
        candidates.sort_by_key(|candidate| avoided.as_ref() == Some(candidate));
        let (endpoint, client, found) = race(plan, &access, candidates).await?;
        self.kept = Some(Kept { endpoint, client, unchanged: 0 });
        Some(found)
    }
}

/// The first answer of any; the next one is asked when one has failed, or after a while.
async fn race(
    plan: &Arc<ShardPlan>,
    access: &Arc<Access>,
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

async fn reach(plan: &ShardPlan, access: &Access, candidate: &str) -> Option<(Endpoint, Client, Topology)> {
    let endpoint: Endpoint = candidate.parse().ok()?;
    for address in endpoint.resolve().await.ok()? {
        let Ok(mut client) = Client::connect(candidate, address, access.security.as_ref(), REACH).await else {
            continue;
        };
        if let Some(credentials) = &access.credentials
            && client.ask(&credentials.command()).await.is_err()
        {
            continue;
        }
        if let Ok(found) = map_of(plan, &endpoint, &mut client).await {
            return Some((endpoint, client, found));
        }
    }
    None
}

/// A map with slots that nobody owns is one of a node that was reset, or has not heard of the others yet.
async fn map_of(plan: &ShardPlan, asked: &Endpoint, client: &mut Client) -> Result<Topology, End> {
    match cluster::ask(client, &plan.target, asked).await? {
        Answer::Map(map) if map.uncovered() == 0 => Ok(cluster::topology(&plan.target, map).await?),
        _ => Err(Trouble::Silent("it has no map".to_owned()).into()),
    }
}
