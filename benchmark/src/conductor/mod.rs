//! Conducts one trial: prepares the shards, measures their clocks, orders one start, takes snapshots, collects the result. It sees shards
//! only as endpoints, so it treats pods and child processes alike.
//!
//! `docs/architecture.md` describes its place. [`conduct`] takes [`ShardPresence`] and [`Control`] as input, publishes [`Progress`], and
//! returns an [`Outcome`]. [`release`] lets the shards exit once that outcome is safe.

mod barrier;
mod broadcast;
mod calls;
mod cleanup;
pub mod client;
mod clock;
mod config;
mod drain;
mod intervals;
mod keep_alive;
mod live;
mod measure;
mod prepare;
mod probe;
mod progress;
mod release;
mod seconds;
mod settle;
mod shards;
mod snapshots;
mod stop;
mod take_over;
#[cfg(test)]
mod tests;
mod trial;

use std::sync::Arc;

use tokio::sync::watch;

use crate::measurement::{Cleanup, Ending, Failure, Outcome, ShardClock, ShardOutcome, reason};

pub use calls::{CallError, Endpoint, ShardCalls, Unreachable};
pub use config::{
    ConductorConfig, ConductorLimits, Control, Journal, JournalError, ShardPresence, StartRecord, WallClock,
};
pub use progress::{ConductStage, LivePicture, PreparationProgress, Progress, RecentLatency, ShardCounts};
pub use release::release;

/// Conducts the trial of `config` to its end, either from the beginning or as a takeover (see [`ConductorConfig::resume`]).
///
/// `presence` holds one entry per shard of the plan, in index order, followed by idle shards that only a later trial needs.
///
/// When this returns anything but [`Ending::Superseded`], each shard's load has stopped, or the shard is listed as lost or unacknowledged.
/// Shards are kept until [`release`]. Dropping the future stops conducting at once and leaves the shards as they are.
pub async fn conduct<C: ShardCalls, J: Journal>(
    config: ConductorConfig,
    calls: Arc<C>,
    journal: J,
    presence: watch::Receiver<Vec<ShardPresence>>,
    control: watch::Receiver<Control>,
    progress: watch::Sender<Progress>,
) -> Outcome {
    progress.send_replace(Progress::at_first(&config));
    let idle = keep_alive::keep_alive(Arc::clone(&calls), presence.clone(), config.plan.shards as usize);
    let conducting = trial::Conductor::new(config, calls, journal, presence, progress).conduct(control);
    tokio::select! {
        biased;
        outcome = conducting => outcome,
        never = idle => match never {},
    }
}
