//! Preparation of the target before the load: resolves it, authenticates, compares it with the plan, and checks that it supports the
//! workload's commands. Speed does not matter here; the engine runs the load.

mod access;
mod addresses;
mod advice;
mod cleanup;
mod client;
mod cluster;
mod commands;
mod credentials;
mod end;
mod endpoint;
mod finding;
mod inspect;
mod jitter;
mod map;
mod same_slot;
mod scripts;
mod sentinel;
mod servers;
#[cfg(test)]
mod tests;
mod tls;
mod trouble;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::FailureReason;
use redisbench_wire::plan::{ShardPlan, Target, Topology as Kind};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, timeout};

pub use self::access::Mounts;
use self::access::TargetAccess;
pub use self::advice::{failure, of_target, refused_handshake};
pub use self::cleanup::clean_up;
pub use self::finding::{Finding, FoundTarget};
use self::inspect::look;
use self::jitter::{jitter, share};
pub use self::sentinel::watch;
pub use self::servers::{ServerView, ServerWatch};
pub use self::watch::ClusterWatch;
use crate::cluster::{Topology, UNIX};
use crate::engine;

/// Timeout for one look at all endpoints.
const LOOK: Duration = Duration::from_secs(15);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// Pause between looks while the map changes.
const SETTLING_PAUSE: Duration = Duration::from_millis(300);
/// Looks that may return the known map while slots get no answers, before it is reported anyway.
const UNCHANGED: u32 = 20;
/// Shortest pause between looks while slots get no answers.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Why a target is looked at again, in rising urgency. A more urgent reason does not wait for a less urgent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Again {
    /// The map has changed and may still be changing.
    Settling,
    /// A node is unreachable.
    NodeGone,
    /// A node redirected a slot.
    Moved,
    /// Slots get no answers while a load runs.
    Unanswered,
}

impl Again {
    /// The pause before the look. Random, because all shards of a benchmark notice at once. Longer while a node is down, because each look
    /// that finds the old map is followed by another. While slots get no answers, looks are frequent. All shards together make at most
    /// about 1,000 looks per second, whatever the reason.
    fn pause(self, plan: &ShardPlan) -> Duration {
        let share = share(plan.shards);
        match self {
            Self::Unanswered => {
                let shortest = SHORTEST_PAUSE.max(share);
                shortest + jitter(shortest)
            }
            // With Sentinel the map is one address, and the primary may change within a second.
            _ if plan.target.topology == Kind::Sentinel => share + jitter(share.max(Duration::from_millis(200))),
            Self::Moved => share + jitter(share.max(Duration::from_millis(500))),
            Self::Settling => {
                let shortest = SETTLING_PAUSE.max(share * 2);
                shortest + jitter(shortest)
            }
            Self::NodeGone => share.max(Duration::from_secs(1)) + jitter(share.max(Duration::from_secs(2))),
        }
    }
}

/// Looks at the target until it matches the plan or cannot. Sends every finding; the last one is Found or Failed.
pub async fn search(plan: ShardPlan, mounts: Mounts, findings: mpsc::Sender<Finding>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let finding = look_in_time(&plan, &mounts, None, false).await;
        let over = matches!(finding, Finding::Found(_) | Finding::Failed(_));
        if findings.send(finding).await.is_err() || over {
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Re-reads the Secrets, which may have been rotated. Sends the handshake and TLS settings for new connections.
pub async fn renew(plan: ShardPlan, mounts: Mounts, named: bool, renewed: mpsc::Sender<engine::Access>) {
    // A Secret in mid-replacement is read again when the next connection fails.
    if let Ok(access) = TargetAccess::read(&plan, &mounts).await {
        let _ = renewed.send(inspect::for_engine(&plan, &access, named)).await;
    }
}

/// Returns whether the target's addresses may change, so that another look makes sense.
pub fn may_move(target: &Target) -> bool {
    match target.topology {
        Kind::Cluster | Kind::Sentinel => true,
        // A host name may later resolve to another address.
        Kind::Standalone | Kind::Pool => (target.endpoints.iter())
            .any(|endpoint| endpoint.parse::<SocketAddr>().is_err() && !endpoint.starts_with(UNIX)),
    }
}

/// Looks at a target that may have moved until it answers. Findings never end a running load, which counts its own errors.
pub async fn search_again(
    plan: ShardPlan,
    mounts: Mounts,
    cluster_watch: Arc<Mutex<ClusterWatch>>,
    known: Arc<Topology>,
    why: Again,
    findings: mpsc::Sender<Finding>,
) {
    let share = share(plan.shards);
    let mut pause = if why == Again::Unanswered { why.pause(&plan) } else { FIRST_PAUSE.max(share) };
    let longest = share.max(if plan.target.topology == Kind::Sentinel { FIRST_PAUSE } else { LONGEST_PAUSE });
    let mut unchanged = 0;
    sleep(why.pause(&plan)).await;
    loop {
        let finding = match plan.target.topology {
            // A full look also loads scripts, which a newly promoted node may lack.
            Kind::Cluster if !needs_scripts(&plan) => {
                cluster_watch.lock().await.look(&plan, &mounts, &known).await.map(Finding::Map)
            }
            _ => match look_in_time(&plan, &mounts, Some(&known), why == Again::Unanswered).await {
                found @ Finding::Found(_) => Some(found),
                _ => None,
            },
        };
        if why == Again::Unanswered
            && unchanged < UNCHANGED
            && matches!(&finding, Some(Finding::Map(map)) if *map == *known)
        {
            unchanged += 1;
            sleep(why.pause(&plan)).await;
            continue;
        }
        if let Some(finding) = finding {
            // Sending fails if the trial has ended, which needs no finding.
            let _ = findings.send(finding).await;
            return;
        }
        sleep(pause + jitter(pause)).await;
        if why != Again::Unanswered {
            pause = (pause * 2).min(longest);
        }
    }
}

fn needs_scripts(plan: &ShardPlan) -> bool {
    !plan.workload.options.scripts.is_empty() || !plan.workload.options.functions.is_empty()
}

async fn look_in_time(plan: &ShardPlan, mounts: &Mounts, known: Option<&Topology>, silent: bool) -> Finding {
    let finding = match TargetAccess::read(plan, mounts).await {
        Ok(access) => timeout(LOOK, look(plan, &access, known, silent)).await.unwrap_or_else(|_| {
            Finding::Obstacle(failure(
                FailureReason::Unreachable,
                &format!(
                    "target {}: its endpoints did not reply within {} s: check spec.targets[0].endpoints",
                    plan.target.name,
                    LOOK.as_secs()
                ),
            ))
        }),
        Err(failure) => Finding::Failed(failure),
    };
    match finding {
        Finding::Obstacle(failure) => Finding::Obstacle(of_target(&plan.target, &failure)),
        Finding::Failed(failure) => Finding::Failed(of_target(&plan.target, &failure)),
        other => other,
    }
}
