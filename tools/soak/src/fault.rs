//! The faults of a run.

use std::fmt;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::servers::Redis;

#[cfg(test)]
pub const KINDS: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    /// The index of the shard or server.
    pub target: u32,
    /// The time until it is undone. Zero if it is not.
    pub time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    KillShard,
    TerminateShard,
    /// Stopped and continued.
    StopShard,
    StopServer,
    KillServer,
    /// Killed, and restarted without its keys.
    RestartServer,
    /// The server closes the connections of all clients.
    KillClients,
    /// The same, and it accepts no new connections for a time.
    RefuseClients,
    /// For a time it closes connections that are idle for a second.
    CloseIdle,
    /// It sleeps for a time without replying.
    SleepServer,
    /// Slots with keys move from a node of the cluster to the next.
    MoveSlots,
    /// A replica of the cluster takes over from its primary in a coordinated failover.
    FailOver,
    InterruptConductor,
    TerminateConductor,
    InterruptConductorTwice,
    KillConductor,
    StopConductor,
    /// Cuts the connection between conductor and shard.
    CutShard(Cut),
    /// Cuts the connection between shards and server.
    CutServer(Cut),
    /// Drops this percentage of all packets.
    LosePackets(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Drop,
    /// Connections are reset, and new ones refused.
    Reset,
}

/// Properties of a run that decide which faults are possible.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    pub redis: Redis,
    /// A server may be told to sleep.
    pub may_sleep: bool,
    /// Networks can be cut.
    pub network: bool,
    pub shards: u32,
}

impl Fault {
    /// Draws one of the possible faults.
    pub fn draw(rng: &mut StdRng, surroundings: Surroundings) -> Self {
        let cut = if rng.random_bool(0.3) { Cut::Reset } else { Cut::Drop };
        let Surroundings { redis, may_sleep, network, shards } = surroundings;
        let (own, cluster) = (redis.is_own(), redis.is_cluster());
        // Weights, and the longest time until a fault is undone, in milliseconds: zero if it is not. Many faults use the servers' own
        // commands or ports, so they apply only to the soak's own servers.
        let kinds = [
            (true, 8, 0, Kind::KillShard),
            (true, 4, 0, Kind::TerminateShard),
            (true, 8, 14_000, Kind::StopShard),
            (true, 8, 9_000, Kind::StopServer),
            (true, 5, 0, Kind::KillServer),
            (own, 7, 9_000, Kind::RestartServer),
            (own, 6, 0, Kind::KillClients),
            (own, 4, 9_000, Kind::RefuseClients),
            (own, 3, 9_000, Kind::CloseIdle),
            (may_sleep, 4, 9_000, Kind::SleepServer),
            (own && cluster, 5, 0, Kind::MoveSlots),
            (!own && cluster, 13, 0, Kind::FailOver),
            (true, 5, 0, Kind::InterruptConductor),
            (true, 3, 0, Kind::TerminateConductor),
            (true, 2, 0, Kind::InterruptConductorTwice),
            (true, 5, 0, Kind::KillConductor),
            (true, 8, 14_000, Kind::StopConductor),
            (network, 8, 14_000, Kind::CutShard(cut)),
            (own && network, 6, 14_000, Kind::CutServer(cut)),
            (network, 3, 9_000, Kind::LosePackets(rng.random_range(1..30))),
        ];
        let possible: Vec<_> = kinds.into_iter().filter(|(is_possible, ..)| *is_possible).collect();
        let drawn = possible.choose_weighted(rng, |(_, weight, ..)| *weight);
        let (most, kind): (u64, Kind) = drawn.map_or((0, Kind::KillShard), |(.., most, kind)| (*most, *kind));
        let targets = if kind.is_of_shard() { shards } else { redis.servers() };
        // Half of them are short.
        let most = if rng.random_bool(0.5) { most.min(1_500) } else { most };
        let milliseconds = if most > 0 { rng.random_range(50..most) } else { 0 };
        Self { kind, target: rng.random_range(0..targets), time: Duration::from_millis(milliseconds) }
    }

    /// The shard whose process it ends, if any.
    pub fn ends_shard(&self) -> Option<u32> {
        matches!(self.kind, Kind::KillShard | Kind::TerminateShard).then_some(self.target)
    }

    /// Returns whether the conductor may temporarily not reach this shard.
    pub fn hides_shard(&self, index: u32) -> bool {
        match self.kind {
            Kind::StopShard | Kind::CutShard(_) => self.target == index,
            Kind::LosePackets(_) | Kind::StopConductor => true,
            _ => false,
        }
    }

    /// Returns whether it makes the conductor abort.
    pub fn aborts(&self) -> bool {
        matches!(self.kind, Kind::InterruptConductor | Kind::TerminateConductor | Kind::InterruptConductorTwice)
    }

    /// Returns whether it affects the target, or the path to it.
    pub fn harms_target(&self) -> bool {
        !self.kind.is_of_shard() && !self.kind.is_of_conductor()
    }

    /// True if its effect on the target lasts until it is undone.
    pub fn stays(&self) -> bool {
        self.kind == Kind::KillServer || self.time > Duration::ZERO
    }

    /// Returns whether a server may lose acknowledged writes: it restarts without its keys, or a replica takes over.
    pub fn loses_data(&self) -> bool {
        self.harms_target() && !matches!(self.kind, Kind::KillClients | Kind::RefuseClients | Kind::CloseIdle)
    }

    /// Possible reasons of condition Failed after it.
    pub fn may_fail_with(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::KillShard | Kind::TerminateShard => &["ShardLost"],
            Kind::StopShard | Kind::CutShard(_) => {
                &["PrepareTimedOut", "StartMissed", "ShardLost", "TrialTimedOut", "ClockUncertain"]
            }
            Kind::StopConductor => &["PrepareTimedOut", "StartMissed", "ClockUncertain"],
            Kind::LosePackets(_) => {
                &["PrepareTimedOut", "StartMissed", "ShardLost", "TrialTimedOut", "ClockUncertain", "Unreachable"]
            }
            _ if self.harms_target() => &["PrepareTimedOut", "StartMissed", "Unreachable"],
            _ => &[],
        }
    }
}

impl Kind {
    fn is_of_shard(self) -> bool {
        matches!(self, Self::KillShard | Self::TerminateShard | Self::StopShard | Self::CutShard(_))
    }

    fn is_of_conductor(self) -> bool {
        matches!(
            self,
            Self::InterruptConductor
                | Self::TerminateConductor
                | Self::InterruptConductorTwice
                | Self::KillConductor
                | Self::StopConductor
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.kind)?;
        if !self.kind.is_of_conductor() {
            write!(formatter, " of {}", self.target)?;
        }
        if self.time.is_zero() { Ok(()) } else { write!(formatter, " for {:?}", self.time) }
    }
}
