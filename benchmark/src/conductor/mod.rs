//! Conducts one trial: prepares the shards, measures their clocks, orders one start, takes snapshots, collects the result. It sees shards
//! only as endpoints, so it treats pods and child processes alike.
//!
//! `docs/architecture.md` describes its place. [`conduct`] takes [`ShardPresence`] and [`Control`] as input, publishes [`ConductProgress`], and
//! returns an [`Outcome`]. [`release`] lets the shards exit once that outcome is safe.

mod barrier;
mod broadcast;
mod cached;
mod calls;
mod cleanup;
pub mod client;
mod clock;
mod config;
mod drain;
mod driver;
mod event;
mod exchange_clocks;
mod held;
mod intervals;
mod live;
mod machine;
mod measure;
mod outbox;
mod polled;
mod prepare;
mod probe;
mod progress;
mod recording;
mod release;
mod rounds;
mod seconds;
mod settle;
mod shards;
mod snapshots;
mod stop;
mod take_over;
#[cfg(test)]
mod tests;
mod trial;

use crate::measurement::{Ending, Failure, Kept, Outcome, ShardClock, ShardEvidence, reason};

use crate::measurement::Reader;
pub use crate::measurement::ResultMemory;

pub use crate::api::status::ShardCounts;

pub use cached::CacheRates;
pub use calls::{Call, CallCounts, CallError, Endpoint, Reply, ShardCalls, Unreachable};
pub use config::{
    ConductorConfig, ConductorLimits, Control, GRACE_PERIOD, Journal, JournalError, QUEUED, ShardPresence, StartRecord,
    WallClock,
};
pub use driver::conduct;
pub use polled::{PolledShards, SNAPSHOTS_PER_SECOND};
pub use progress::{ConductProgress, ConductStage, LivePicture, LiveShard, RecentLatency, RecentPart};
pub use release::release;
