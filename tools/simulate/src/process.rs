//! Shards as processes: the load generator's real state machine with its own clock and a simulated engine.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use redisbench_benchmark::conductor::{Call, Reply};
use redisbench_loadgen::control::trial::{Action, ProcessLimits, Trial, refusal};
use redisbench_wire::{ClockReading, Refusal, RefusalCode};

use crate::engine::Engine;

/// All processes, past and present, by address. Addresses are not reused.
pub type Processes = BTreeMap<IpAddr, Process>;

/// As the operator sets them: no prepare timeout of a scenario is longer.
const LIMITS: ProcessLimits = ProcessLimits { idle: Duration::from_secs(600), leaving: Duration::from_secs(28) };

/// One incarnation of a shard.
pub struct Process {
    pub run: String,
    pub shard: u32,
    pub incarnation: String,
    pub trial: Trial,
    pub engine: Option<Engine>,
    /// Its clock at the beginning, in nanoseconds, and its drift from true time, in millionths.
    offset: i64,
    drift: i64,
    /// Rises when pending events become obsolete.
    pub preparation: u32,
    sequence: u64,
    pub highest_epoch: u64,
    pub tick_at: Option<u64>,
    /// The true time of the last call to it that counts as contact.
    pub called_at: Duration,
    /// A signal stopped its load.
    pub terminated: bool,
    /// It has closed its connections, and keeps only its measurement.
    pub disconnected: bool,
    pub exited: Option<i32>,
    /// It runs on a lost node, unknown to the cluster.
    pub forsaken: bool,
}

impl Process {
    /// A process that begins now, with the offset and the drift of its clock.
    pub fn new(run: &str, shard: u32, incarnation: &str, (offset, drift): (i64, i64), now: Duration) -> Self {
        let clock = clock(offset, drift, now);
        Self {
            run: run.to_owned(),
            shard,
            incarnation: incarnation.to_owned(),
            trial: Trial::new(run, shard, clock, LIMITS),
            engine: None,
            offset,
            drift,
            preparation: 0,
            sequence: 0,
            highest_epoch: 0,
            tick_at: None,
            called_at: now,
            terminated: false,
            disconnected: false,
            exited: None,
            forsaken: false,
        }
    }

    /// The time on its clock, in nanoseconds.
    pub fn clock(&self, now: Duration) -> u64 {
        clock(self.offset, self.drift, now)
    }

    /// The true time at which the clock shows `at`, in nanoseconds.
    pub fn truth(&self, at: u64) -> u64 {
        let since = i64::try_from(at).unwrap_or(i64::MAX) - self.offset;
        u64::try_from(since - since / 1_000_000 * self.drift).unwrap_or(0)
    }

    /// Returns whether its load is running or will start.
    pub fn has_load(&self) -> bool {
        self.exited.is_none() && self.engine.as_ref().is_some_and(|engine| !engine.ended && !engine.is_stopped())
    }

    /// Answers a call at this time on its clock, and returns what its state machine orders.
    pub fn answer(&mut self, now: u64, call: Call) -> (Result<Reply, Refusal>, Vec<Action>) {
        let trial = &mut self.trial;
        let state = |actions: Vec<Action>| (None, actions);
        let done = match call {
            Call::Clock => Ok((Some(Reply::Clock(ClockReading { monotonic_nanoseconds: now })), Vec::new())),
            Call::State => {
                trial.contact(now);
                Ok(state(Vec::new()))
            }
            Call::Plan(of, request) => trial.plan(now, of, request).map(state),
            Call::Start(of, request) => {
                trial.start(now, of, request).map(|(accepted, actions)| (Some(Reply::Start(accepted)), actions))
            }
            Call::Measure(of, request) => trial.measure(now, of, request).map(state),
            Call::Probe(of, request) => {
                trial.probe(now, of, request).map(|(probe, actions)| (Some(Reply::Probe(Box::new(probe))), actions))
            }
            Call::Abort(of, request) => trial.abort(now, of, request).map(state),
            Call::Cleanup(request) => {
                trial.cleanup(now, request).map(|(cleanup, actions)| (Some(Reply::Cleanup(cleanup)), actions))
            }
            Call::Drain(request) => trial.drain(now, request).map(state),
            Call::Release(request) => trial.release(now, request).map(state),
            Call::Snapshot(of, detail, from) => trial.snapshot(now, of, detail).and_then(|()| {
                let engine =
                    self.engine.as_ref().ok_or_else(|| refusal(RefusalCode::Unavailable, "the engine has stopped"))?;
                self.sequence += 1;
                let mut snapshot = engine.snapshot(now, self.sequence, (detail, from), "node");
                snapshot.terminated = self.terminated;
                Ok((Some(Reply::Snapshot(Box::new(snapshot))), Vec::new()))
            }),
        };
        match done {
            Ok((reply, actions)) => (Ok(reply.unwrap_or_else(|| Reply::State(Box::new(trial.state())))), actions),
            Err(refusal) => (Err(refusal), Vec::new()),
        }
    }
}

/// The time on a clock with this offset and drift, in nanoseconds.
fn clock(offset: i64, drift: i64, now: Duration) -> u64 {
    let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
    u64::try_from(offset + now + now / 1_000_000 * drift).unwrap_or(0)
}
