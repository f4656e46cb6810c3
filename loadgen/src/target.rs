//! The target before the load: where it is, whether it takes the credentials, whether it is what the plan says, and
//! whether it knows the workload's commands. Slow and careful; the load itself is the engine's.

mod advice;
mod cleanup;
mod client;
mod cluster;
mod commands;
mod credentials;
mod endpoint;
mod inspect;
mod lookout;
mod map;
mod same_slot;
mod scripts;
mod sentinel;
mod servers;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::{Sentinels, ShardPlan, Target, Topology as Kind, Transport};
use redisbench_wire::{FailureReason, ShardFailure};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, timeout};

pub use self::advice::refused_handshake;
pub use self::cleanup::clean_up;
use self::credentials::Credentials;
use self::inspect::look;
pub use self::lookout::Lookout;
pub use self::sentinel::watch;
pub use self::servers::{ServerView, ServerWatch};
use self::tls::Security;
use crate::cluster::{Topology, UNIX};
use crate::engine::{self, Handshake, Tls};

/// For one look at all endpoints.
const LOOK: Duration = Duration::from_secs(15);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// Between looks while the map changes.
const SETTLING_PAUSE: Duration = Duration::from_millis(300);
/// Looks while slots get no answers that show the known map, before one is told.
const UNCHANGED: u32 = 20;
/// Between looks while slots get no answers.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// What a look at the target found.
#[derive(Debug)]
pub enum Finding {
    /// It is there, will be ready by itself, and is waited for.
    Waiting(String),
    /// Something that may pass; a failure if it lasts.
    Obstacle(ShardFailure),
    /// Something that will not pass.
    Failed(ShardFailure),
    /// It is what the plan says.
    Found(Box<Found>),
    /// A cluster that is known has this map now.
    Map(Topology),
}

/// Why a target is looked at again. What is more urgent does not wait for what is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Again {
    /// The map was another than before, and may be changing still.
    Settling,
    /// A node cannot be reached.
    NodeGone,
    /// A node said that a slot is elsewhere.
    Moved,
    /// Slots get no answers while a load runs.
    Unanswered,
}

impl Again {
    /// How long to wait before. Random, because all shards of a benchmark notice at once; and longer while a node is
    /// gone, because each look that finds the old map is followed by another. While slots get no answers looks follow one
    /// another closely, and less so the more shards there are: about 1,000 in a second over all of them at most.
    fn pause(self, plan: &ShardPlan) -> Duration {
        match self {
            Self::Unanswered => {
                let shortest = SHORTEST_PAUSE.max(Duration::from_millis(1) * plan.shards);
                shortest + jitter(shortest)
            }
            // The map is one address, and the primary may be another within a second.
            _ if plan.target.topology == Kind::Sentinel => jitter(Duration::from_millis(200)),
            Self::Moved => jitter(Duration::from_millis(500)),
            Self::Settling => {
                let shortest = SETTLING_PAUSE.max(Duration::from_millis(2) * plan.shards);
                shortest + jitter(shortest)
            }
            Self::NodeGone => Duration::from_secs(1) + jitter(Duration::from_secs(2)),
        }
    }
}

/// What the engine needs to know of the target.
#[derive(Debug)]
pub struct Found {
    /// The servers.
    pub topology: Topology,
    /// Of each operation, whether it only reads.
    pub reads: Vec<bool>,
    /// The first commands of every connection.
    pub handshake: Handshake,
    /// Whether that gives it a name.
    pub named: bool,
    /// How to speak TLS to them, if they do.
    pub tls: Option<Tls>,
    /// Whether they may remove keys of their own accord, as far as the one that was asked tells.
    pub may_evict: bool,
}

/// Where the secrets are mounted that a target wants to see.
#[derive(Clone, Debug)]
pub struct Mounts {
    /// Folder of `username` and `password`.
    pub credentials: PathBuf,
    /// Folder of `ca.crt`, `tls.crt` and `tls.key`.
    pub tls: PathBuf,
    /// Folder of all of these that are for sentinels.
    pub sentinels: PathBuf,
}

/// What lets us in: who to be, and whom to trust.
#[derive(Clone, Debug, Default)]
struct Access {
    credentials: Option<Credentials>,
    security: Option<Security>,
    /// The same for sentinels, if they ask for something of their own.
    sentinels: Option<Box<Self>>,
}

impl Access {
    /// Reads the files that the plan asks for. They are read at every look, so that a rotated Secret is seen.
    async fn read(plan: &ShardPlan, mounts: &Mounts) -> Result<Self, ShardFailure> {
        let target = &plan.target;
        let mut access = Self::default();
        if target.authenticate {
            let credentials = Credentials::read(&mounts.credentials).await;
            access.credentials =
                Some(credentials.map_err(|problem| advice::unreadable_credentials(&target.name, &problem))?);
        }
        if let Some(tls) = &target.tls {
            let security = Security::read(tls, &mounts.tls).await;
            access.security = Some(security.map_err(|problem| advice::insecure(&target.name, &problem))?);
        }
        if let Some(own) = &target.sentinels {
            let read = access.of_sentinels(target, own, &mounts.sentinels).await;
            access.sentinels = Some(Box::new(read.map_err(|failure| advice::of_sentinels(target, &failure))?));
        }
        Ok(access)
    }

    /// What sentinels have no `own` of is that of the servers.
    async fn of_sentinels(&self, target: &Target, own: &Sentinels, mount: &Path) -> Result<Self, ShardFailure> {
        let credentials = if own.authenticate {
            let credentials = Credentials::read(mount).await;
            Some(credentials.map_err(|problem| advice::unreadable_credentials(&target.name, &problem))?)
        } else {
            self.credentials.clone()
        };
        let security = match &own.transport {
            Transport::SameAsTarget => self.security.clone(),
            Transport::Plain => None,
            Transport::Tls(tls) => {
                let security = Security::read(tls, mount).await;
                Some(security.map_err(|problem| advice::insecure(&target.name, &problem))?)
            }
        };
        Ok(Self { credentials, security, sentinels: None })
    }

    fn for_sentinels(&self) -> &Self {
        self.sentinels.as_deref().unwrap_or(self)
    }
}

/// Looks at the target until it is what the plan says, or never will be. Tells every finding; the last one is Found
/// or Failed.
pub async fn search(plan: Arc<ShardPlan>, mounts: Mounts, findings: mpsc::Sender<Finding>) {
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

/// Reads the Secrets anew, which may have been rotated: what connections that are made from now on say first, and how they
/// speak TLS.
pub async fn renew(plan: Arc<ShardPlan>, mounts: Mounts, named: bool, renewed: mpsc::Sender<engine::Access>) {
    // Files that are just being replaced are read when the next connection fails.
    if let Ok(access) = Access::read(&plan, &mounts).await {
        let tls = access.security.as_ref().map(|security| security.engine.clone());
        let handshake = inspect::handshake(&plan, &access, named);
        let _ = renewed.send(engine::Access { handshake, tls }).await;
    }
}

/// Whether the target can be elsewhere at another time, so that it is worth looking again.
pub fn may_move(target: &Target) -> bool {
    match target.topology {
        Kind::Cluster | Kind::Sentinel => true,
        // A name may come to mean another address.
        Kind::Standalone => target
            .endpoints
            .first()
            .is_some_and(|endpoint| endpoint.parse::<SocketAddr>().is_err() && !endpoint.starts_with(UNIX)),
    }
}

/// Looks at a target that may have moved until it answers. A running load is not ended by what is found: it counts
/// its errors itself.
pub async fn search_again(
    plan: Arc<ShardPlan>,
    mounts: Mounts,
    lookout: Arc<Mutex<Lookout>>,
    known: Arc<Topology>,
    why: Again,
    findings: mpsc::Sender<Finding>,
) {
    let mut pause = if why == Again::Unanswered { why.pause(&plan) } else { FIRST_PAUSE };
    let longest = if plan.target.topology == Kind::Sentinel { FIRST_PAUSE } else { LONGEST_PAUSE };
    let mut unchanged = 0;
    sleep(why.pause(&plan)).await;
    loop {
        let finding = match plan.target.topology {
            // A full look loads scripts too, which a node that took over may not have.
            Kind::Cluster if !needs_scripts(&plan) => {
                lookout.lock().await.look(&plan, &mounts, &known).await.map(Finding::Map)
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
            // Nobody listens any more if the trial is over.
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
    let access = match Access::read(plan, mounts).await {
        Ok(access) => access,
        Err(failure) => return Finding::Failed(failure),
    };
    timeout(LOOK, look(plan, &access, known, silent)).await.unwrap_or_else(|_| {
        Finding::Obstacle(advice::failure(
            FailureReason::Unreachable,
            &format!(
                "target {}: its endpoints did not answer within {} s: check spec.targets[0].endpoints",
                plan.target.name,
                LOOK.as_secs()
            ),
        ))
    })
}

/// A random time below `most`. The hasher's keys are random; no more is asked of it.
fn jitter(most: Duration) -> Duration {
    most.mul_f64((RandomState::new().hash_one(0) % 1024) as f64 / 1024.0)
}
