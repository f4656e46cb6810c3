//! Conducts one trial: waits for the shards, arms them, measures their clocks, orders one start, takes snapshots,
//! collects the result. It sees shards only as endpoints, so pods and child processes are the same to it.
//!
//! `docs/architecture.md` shows where it stands. [`conduct`] is given [`ShardPresence`] and [`Control`] from outside,
//! publishes [`Progress`], and ends with an [`Outcome`]; [`release`] lets the shards go once that outcome is safe.

mod barrier;
mod calls;
mod cleanup;
pub mod client;
mod clock;
mod config;
mod drain;
mod drive;
mod idle;
mod measure;
mod picture;
mod prepare;
mod probe;
mod progress;
mod release;
mod seconds;
mod settle;
mod shards;
mod snapshots;
mod start;
mod stop;
mod take_over;
mod tell;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::sync::watch;

use crate::measurement::{Cleanup, Ending, Failure, Outcome, ShardClock, ShardOutcome, reason};

pub use calls::{CallError, Endpoint, ShardCalls, Unreachable};
pub use config::{
    ConductorConfig, ConductorLimits, Control, Journal, JournalError, OnLost, ShardPresence, StartRecord, WallClock,
};
pub use progress::{ConductStage, LivePicture, PreparationProgress, Progress, RecentLatency, ShardCounts};
pub use release::release;

/// Conducts the trial of `config` from its present state to its end, whether this is its first conductor or one that
/// takes over (see [`ConductorConfig::resume`]).
///
/// `presence` holds one entry per plan, in the order of the indices, and then those of shards that this trial does not
/// need, which are kept for a later one. The load of every shard has stopped, or the shard
/// is listed as lost or unacknowledged, when this returns anything but [`Ending::Superseded`]. Shards are kept for
/// [`release`]. Dropping the future stops conducting at once and leaves the shards as they are.
pub async fn conduct<C: ShardCalls, J: Journal>(
    config: ConductorConfig,
    calls: Arc<C>,
    journal: J,
    presence: watch::Receiver<Vec<ShardPresence>>,
    control: watch::Receiver<Control>,
    progress: watch::Sender<Progress>,
) -> Outcome {
    progress.send_replace(Progress::at_first(&config));
    let idle = idle::keep(Arc::clone(&calls), presence.clone(), config.plans.len());
    let conducting = drive::Conductor::new(config, calls, journal, presence, progress).conduct(control);
    tokio::select! {
        biased;
        outcome = conducting => outcome,
        never = idle => match never {},
    }
}
