//! Stops a trial early: ends the load of every shard and fetches what was measured.

use std::time::Duration;

use redisbench_wire::snapshot::Stage;
use redisbench_wire::{AbortRequest, AbortThen, Detail, RefusalCode, ShardState};

use super::broadcast::RETRY_AFTER;
use super::event::{Answered, Event};
use super::intervals::reach_all;
use super::shards::{REPLACED, Shard, Standing};
use super::snapshots::replaces;
use super::trial::{Conductor, Step};
use super::{Call, CallError, ConductStage, Ending, Reply, reason};

/// A shard that has not acknowledged the abort by then must be ended from outside. Several calls fit into it.
const ACKNOWLEDGE_ABORT_WITHIN: Duration = Duration::from_secs(4);

/// Pause between two calls to a shard that has not acknowledged the abort by then.
const RETRY_LATER: Duration = Duration::from_secs(1);

/// For the snapshots of stopped shards, which only wait for requests in flight. Longer with more than 1,000 shards.
const COLLECT_STOPPED_WITHIN: Duration = Duration::from_secs(10);

/// Stops the load of every shard and keeps what was measured.
pub struct StopLoad {
    ending: Ending,
    start_was_known: bool,
    /// Every shard that may have load is called until it has acknowledged the abort. Then snapshots are fetched.
    aborting: bool,
    superseded: bool,
    began: Duration,
    /// The deadline of the present calls.
    until: Duration,
}

impl StopLoad {
    pub fn begin(conductor: &mut Conductor, ending: Ending) -> Self {
        let start_was_known = conductor.start_at_unix_nanoseconds.is_some();
        conductor.adopt_endpoints();
        let request = AbortRequest { epoch: conductor.config.epoch, attempt: None, then: AbortThen::Stop };
        // Those that replied to the last call come first.
        let mut order: Vec<usize> = (0..conductor.shards.len()).collect();
        order.sort_by_key(|index| conductor.shards[*index].unreachable.is_some());
        for index in order {
            let shard = &mut conductor.shards[index];
            if !matches!(shard.standing, Standing::Finished | Standing::Lost(_)) {
                shard.unacknowledged = shard.endpoint.is_some();
                conductor.call(index, Call::Abort(conductor.config.trial, request));
            }
        }
        let until = conductor.now + patience(&ending, conductor, ACKNOWLEDGE_ABORT_WITHIN);
        Self { ending, start_was_known, aborting: true, superseded: false, began: conductor.now, until }
    }

    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<Ending> {
        if let Event::Answered(answered) = event {
            if self.aborting { self.acknowledged(conductor, *answered) } else { fetched(conductor, *answered) }
        }
        if conductor.control.abort && self.ending != Ending::Aborted {
            // The user does not wait for shards that stopped by themselves.
            let within = COLLECT_STOPPED_WITHIN.max(reach_all(conductor.shards.len()));
            self.until = self.until.min(conductor.now + within);
        }
        while conductor.out.unanswered == 0 || conductor.now >= self.until {
            if self.superseded {
                return Err(Ending::Superseded);
            }
            if !self.aborting {
                let was_over = self.ending == Ending::Aborted && conductor.was_over();
                return Ok(Some(if was_over { Ending::Completed } else { self.ending.clone() }));
            }
            self.collect(conductor);
        }
        conductor.out.wake_by(self.until);
        Ok(None)
    }

    fn acknowledged(&mut self, conductor: &mut Conductor, answered: Answered) {
        let Answered { ask, reply, .. } = answered;
        let state = match reply.and_then(Reply::state) {
            Ok(state) => Some(state),
            Err(error) if error.is_stale_epoch() => return self.superseded = true,
            // A shard in another phase, or without this trial, has no load to stop.
            Err(error) if matches!(error.refusal(), Some(RefusalCode::WrongPhase | RefusalCode::Unknown)) => None,
            Err(_) => {
                let is_usual = conductor.now < self.began + ACKNOWLEDGE_ABORT_WITHIN;
                let pause = if is_usual { RETRY_AFTER } else { RETRY_LATER };
                return conductor.out.call_at(conductor.now + pause, ask);
            }
        };
        conductor.note_stopped(ask.shard, state.as_ref());
    }

    /// Fetches the full snapshot and all seconds of every shard that had started and has stopped.
    fn collect(&mut self, conductor: &mut Conductor) {
        self.aborting = false;
        conductor.out.forget();
        if !self.start_was_known && conductor.start_at_unix_nanoseconds.is_some() {
            // The trial had started after all: a shard without a process from that time is lost.
            let gone = |shard: &&mut Shard| !shard.unacknowledged && shard.standing == Standing::Absent;
            for shard in conductor.shards.iter_mut().filter(gone) {
                let why = shard.absence.clone();
                shard.standing = Standing::Lost(why.unwrap_or_else(|| "its process was deleted".to_owned()));
            }
        }
        conductor.publish_counts(ConductStage::Collecting);
        let within = COLLECT_STOPPED_WITHIN.max(reach_all(conductor.shards.len()));
        self.until = conductor.now + patience(&self.ending, conductor, within.min(conductor.config.limits.collect));
        for index in 0..conductor.shards.len() {
            let shard = &conductor.shards[index];
            if shard.standing == Standing::Running && !shard.unacknowledged {
                fetch(conductor, index);
            }
        }
    }
}

/// The time that the shards may take. Those that stopped by themselves keep their results for long, and no user waits for this end.
fn patience(ending: &Ending, conductor: &Conductor, usual: Duration) -> Duration {
    match ending {
        Ending::Failed(failure) if failure.reason == reason::STOPPED_EARLY => {
            usual.max(conductor.config.limits.collect)
        }
        _ => usual,
    }
}

/// Seconds that take several answers do not come with as many full ones.
fn fetch(conductor: &mut Conductor, index: usize) {
    let seconds = &conductor.shards[index].seconds;
    let detail = if seconds.more() { Detail::Live } else { Detail::Full };
    let from = seconds.next();
    conductor.call(index, Call::Snapshot(conductor.config.trial, detail, from));
}

/// Keeps a snapshot of a shard that has stopped. Calls again until it has.
fn fetched(conductor: &mut Conductor, answered: Answered) {
    let index = answered.ask.shard;
    let is_full = matches!(answered.ask.call, Call::Snapshot(_, Detail::Full, _));
    let snapshot = match answered.reply.and_then(Reply::snapshot) {
        Ok(snapshot) if snapshot.stage == Stage::Done => snapshot,
        other => {
            conductor.shards[index].unreachable = other.err().and_then(CallError::unreachable);
            return conductor.out.call_at(conductor.now + RETRY_AFTER, answered.ask);
        }
    };
    let shard = &mut conductor.shards[index];
    shard.unreachable = None;
    if replaces(shard.snapshot.as_ref(), &snapshot, &shard.plan, conductor.attempt) == Ok(true) {
        conductor.keep(index, snapshot);
        if conductor.shards[index].seconds.more() || !is_full {
            fetch(conductor, index);
        } else {
            conductor.finish_shard(index);
        }
    }
}

impl Conductor {
    /// Returns whether an abort came too late to stop any load.
    fn was_over(&self) -> bool {
        let ended = |shard: &Shard| match shard.standing {
            Standing::Finished => shard.snapshot.as_ref().is_some_and(|kept| !kept.aborted),
            Standing::Lost(_) => true,
            _ => false,
        };
        self.shards.iter().all(ended) && self.shards.iter().any(|shard| shard.standing == Standing::Finished)
    }

    /// Shards that appeared since the last check may hold a plan and need the abort, too.
    fn adopt_endpoints(&mut self) {
        let (now, seen) = (self.now, self.seen());
        for (shard, presence) in self.shards.iter_mut().zip(seen) {
            if shard.standing == Standing::Running {
                shard.observe_after_start(&presence, now);
            } else if !matches!(shard.standing, Standing::Finished | Standing::Failed(_) | Standing::Lost(_)) {
                // A process that has ended needs no abort.
                let _ = shard.observe_before_start(&presence.while_reachable());
            }
        }
    }

    /// Notes that a shard has replied to the abort. After a takeover that stops at once, only these replies show which shards had started. An
    /// attempt that was given up stays void, although shards still hold its start.
    fn note_stopped(&mut self, index: usize, state: Option<&ShardState>) {
        let shard = &mut self.shards[index];
        shard.unacknowledged = false;
        if state.is_none() && shard.standing == Standing::Unplanned {
            // The trial belonged to another process than this one.
            (shard.standing, shard.absence) = (Standing::Absent, Some(REPLACED.to_owned()));
        }
        if self.attempt > 0 && state.is_some_and(|state| shard.accepted(state, self.attempt)) {
            let record = self.config.resume.filter(|record| record.attempt == self.attempt);
            let recorded = record.map(|record| record.start_at_unix_nanoseconds);
            self.start_at_unix_nanoseconds = self.start_at_unix_nanoseconds.or(recorded);
            if self.start_at_unix_nanoseconds.is_some() {
                shard.standing = Standing::Running;
            }
        }
    }
}
