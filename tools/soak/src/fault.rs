//! The faults of a run.

use std::fmt;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::scenario::{Scenario, pick};

/// The number of kinds.
#[cfg(test)]
pub const KINDS: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    KillShard {
        shard: u32,
    },
    TerminateShard {
        shard: u32,
    },
    /// Stopped and continued.
    StopShard {
        shard: u32,
        time: Duration,
    },
    StopServer {
        server: u32,
        time: Duration,
    },
    KillServer {
        server: u32,
    },
    /// Killed, and restarted without its keys.
    RestartServer {
        server: u32,
        after: Duration,
    },
    /// The server closes the connections of all clients.
    KillClients {
        server: u32,
    },
    /// The same, and it accepts no new connections for a time.
    RefuseClients {
        server: u32,
        time: Duration,
    },
    /// For a time it closes connections that are idle for a second.
    CloseIdle {
        server: u32,
        time: Duration,
    },
    /// It sleeps for a time without replying.
    SleepServer {
        server: u32,
        time: Duration,
    },
    /// Slots with keys move to another node of the cluster.
    MoveSlots {
        from: u32,
        to: u32,
    },
    /// A replica of the cluster takes over from its primary in a coordinated failover.
    FailOver,
    InterruptConductor,
    TerminateConductor,
    InterruptConductorTwice,
    KillConductor,
    StopConductor {
        time: Duration,
    },
    /// Cuts the connection between conductor and shard.
    CutShard {
        shard: u32,
        time: Duration,
        how: Cut,
    },
    /// Cuts the connection between shards and server.
    CutServer {
        server: u32,
        time: Duration,
        how: Cut,
    },
    /// Drops this percentage of all packets.
    LosePackets {
        percent: u32,
        time: Duration,
    },
}

/// How a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Packets are dropped.
    Drop,
    /// Connections are reset, and new ones refused.
    Reset,
}

impl Fault {
    pub fn draw(rng: &mut StdRng, scenario: &Scenario) -> Self {
        let shard = rng.random_range(0..scenario.shards);
        let server = rng.random_range(0..scenario.redis.servers());
        let (from, to) = (rng.random_range(0..3), rng.random_range(1..3));
        let mut span = |from: u64, to: u64| Duration::from_millis(rng.random_range(from..to));
        let (short, long, pause) = (span(50, 1_500), span(1_500, 14_000), span(50, 9_000));
        let time = if rng.random_bool(0.5) { short } else { long };
        let how = pick(rng, &[Cut::Drop, Cut::Drop, Cut::Reset]);
        let kind = rng.random_range(0..100);
        let of_shards_and_conductor = match kind {
            0..8 => Some(Self::KillShard { shard }),
            8..12 => Some(Self::TerminateShard { shard }),
            12..20 => Some(Self::StopShard { shard, time }),
            20..28 => Some(Self::StopServer { server, time: pause }),
            28..33 => Some(Self::KillServer { server }),
            33..38 => Some(Self::InterruptConductor),
            38..41 => Some(Self::TerminateConductor),
            41..43 => Some(Self::InterruptConductorTwice),
            43..48 => Some(Self::KillConductor),
            48..56 => Some(Self::StopConductor { time }),
            56..64 => Some(Self::CutShard { shard, time, how }),
            64..67 => Some(Self::LosePackets { percent: rng.random_range(1..30), time: pause }),
            _ => None,
        };
        if let Some(fault) = of_shards_and_conductor {
            return fault;
        }
        // The other faults use the servers' own commands or ports, so they apply only to the soak's own servers.
        if !scenario.redis.is_own() {
            return match kind {
                67..80 if scenario.redis.is_cluster() => Self::FailOver,
                67..84 => Self::StopShard { shard, time },
                _ => Self::StopServer { server, time: pause },
            };
        }
        // The DEBUG of this fault would be counted among the load's.
        let may_sleep = !scenario.commands.iter().any(|command| command.starts_with("DEBUG"));
        match kind {
            67..74 => Self::RestartServer { server, after: pause },
            74..80 => Self::KillClients { server },
            80..84 => Self::RefuseClients { server, time: pause },
            84..87 => Self::CloseIdle { server, time: pause },
            87..91 if may_sleep => Self::SleepServer { server, time: pause },
            91..96 if scenario.redis.is_cluster() => Self::MoveSlots { from, to: (from + to) % 3 },
            _ => Self::CutServer { server, time, how },
        }
    }

    /// The name of its kind.
    pub fn kind(&self) -> String {
        let text = format!("{self:?}");
        text.split(' ').next().unwrap_or_default().to_owned()
    }

    /// Whether it needs the soak's own network.
    pub fn needs_network(&self) -> bool {
        matches!(self, Self::CutShard { .. } | Self::CutServer { .. } | Self::LosePackets { .. })
    }

    /// The time until it is undone. Zero if it is not.
    pub fn lasts(&self) -> Duration {
        match *self {
            Self::StopShard { time, .. }
            | Self::StopServer { time, .. }
            | Self::RestartServer { after: time, .. }
            | Self::RefuseClients { time, .. }
            | Self::CloseIdle { time, .. }
            | Self::SleepServer { time, .. }
            | Self::StopConductor { time }
            | Self::CutShard { time, .. }
            | Self::CutServer { time, .. }
            | Self::LosePackets { time, .. } => time,
            _ => Duration::ZERO,
        }
    }

    /// The shard whose process it ends, if any.
    pub fn ends_shard(&self) -> Option<u32> {
        match self {
            Self::KillShard { shard } | Self::TerminateShard { shard } => Some(*shard),
            _ => None,
        }
    }

    /// Whether the conductor may temporarily not reach this shard.
    pub fn hides_shard(&self, index: u32) -> bool {
        match self {
            Self::StopShard { shard, .. } | Self::CutShard { shard, .. } => *shard == index,
            Self::LosePackets { .. } | Self::StopConductor { .. } => true,
            _ => false,
        }
    }

    /// Whether it makes the conductor abort.
    pub fn aborts(&self) -> bool {
        matches!(self, Self::InterruptConductor | Self::TerminateConductor | Self::InterruptConductorTwice)
    }

    /// Whether it affects the target, or the path to it.
    pub fn harms_target(&self) -> bool {
        matches!(
            self,
            Self::StopServer { .. }
                | Self::KillServer { .. }
                | Self::RestartServer { .. }
                | Self::KillClients { .. }
                | Self::RefuseClients { .. }
                | Self::CloseIdle { .. }
                | Self::SleepServer { .. }
                | Self::MoveSlots { .. }
                | Self::FailOver
                | Self::CutServer { .. }
                | Self::LosePackets { .. }
        )
    }

    /// True if its effect on the target lasts until it is undone.
    pub fn stays(&self) -> bool {
        matches!(self, Self::KillServer { .. }) || self.lasts() > Duration::ZERO
    }

    /// Whether a server may lose acknowledged writes: it restarts without its keys, or a replica takes over.
    pub fn loses_data(&self) -> bool {
        !matches!(self, Self::KillClients { .. } | Self::RefuseClients { .. } | Self::CloseIdle { .. })
            && self.harms_target()
    }

    /// Possible reasons of condition Failed after it.
    pub fn may_fail_with(&self) -> &'static [&'static str] {
        match self {
            Self::KillShard { .. } | Self::TerminateShard { .. } => &["ShardLost"],
            Self::StopShard { .. } | Self::CutShard { .. } => {
                &["PrepareTimedOut", "StartMissed", "ShardLost", "TrialTimedOut", "ClockUncertain"]
            }
            Self::StopConductor { .. } => &["PrepareTimedOut", "StartMissed", "ClockUncertain"],
            Self::LosePackets { .. } => {
                &["PrepareTimedOut", "StartMissed", "ShardLost", "TrialTimedOut", "ClockUncertain", "Unreachable"]
            }
            _ if self.harms_target() => &["PrepareTimedOut", "StartMissed", "Unreachable"],
            _ => &[],
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{self:?}");
        formatter.write_str(&text.replace(" { ", "(").replace(" }", ")"))
    }
}
