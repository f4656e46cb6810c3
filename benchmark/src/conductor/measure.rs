//! From the start until every shard has delivered its final snapshot or is lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use redisbench_wire::snapshot::{Snapshot, Stage};
use redisbench_wire::{Detail, ShardState};
use tokio::time::{Instant, sleep_until};

use super::clock::{ClockEstimate, nanoseconds};
use super::intervals::{polling_interval, snapshot_interval};
use super::prepare::exchange;
use super::settle::Settled;
use super::shards::{self, Shard, Standing};
use super::snapshots::{advances, replaces};
use super::trial::{CALLS_IN_FLIGHT, Conductor, Stop};
use super::{CallError, ConductStage, Failure, Journal, ShardCalls, ShardPresence, Unreachable, reason};
use crate::api::spec::OnLost;

/// A loop that wakes this late was suspended: its process or its machine was stopped.
const STOOD_STILL: Duration = Duration::from_secs(1);

/// How long after the end of the load shard 0 waits for the other shards before it is asked for the servers' counters.
const OTHERS: Duration = Duration::from_secs(3);

/// How measuring ended.
pub enum Measured {
    /// Every shard has finished or is lost.
    ToTheEnd,
    /// A shard was lost, and all shards begin a new attempt.
    Again,
    /// The recorded start reached only some of the shards: a shard that had been silent reports that it was never started.
    NeverStarted,
}

/// Consequence of a poll for the polled shard.
enum Noted {
    AskAgain(Instant, usize),
    Enough,
    NeverStarted,
}

/// Answers to one poll of one shard.
struct Polled {
    index: usize,
    clock: Result<ClockEstimate, CallError>,
    snapshot: Option<Result<Snapshot, CallError>>,
    detail: Detail,
    state: Option<Result<ShardState, CallError>>,
}

/// Next poll of each shard, soonest first.
struct Timetable {
    due: VecDeque<(Instant, usize)>,
}

impl Timetable {
    /// Spreads the shards over one interval.
    fn spread(shards: usize, from: Instant, interval: Duration) -> Self {
        let step = interval / u32::try_from(shards.max(1)).unwrap_or(u32::MAX);
        let at = |index| from + step * u32::try_from(index).unwrap_or(u32::MAX);
        Self { due: (0..shards).map(|index| (at(index), index)).collect() }
    }

    fn add(&mut self, at: Instant, index: usize) {
        let place = self.due.partition_point(|(due, _)| *due <= at);
        self.due.insert(place, (at, index));
    }

    fn next(&self) -> Option<Instant> {
        self.due.front().map(|(at, _)| *at)
    }
}

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Takes snapshots until the end. `again` allows a new attempt if a shard is lost.
    pub async fn measure(&mut self, again: bool) -> Result<Measured, Stop> {
        let interval = snapshot_interval(self.shards.len());
        let mut timetable = Timetable::spread(self.shards.len(), Instant::now(), interval);
        let mut polls = FuturesUnordered::new();
        let mut publish_at = Instant::now() + interval;
        let (mut wake_at, mut stood_still) = (Instant::now(), Duration::ZERO);
        let (mut known_lost, mut news) = (0, true);
        loop {
            // While suspended, the conductor polled no shard, so this time does not count against the shards.
            let late = wake_at.elapsed();
            if late >= STOOD_STILL {
                tracing::warn!(milliseconds = late.as_millis(), "stood still");
                stood_still += late.min((self.give_up_at() - self.config.limits.collect).elapsed());
            }
            if news {
                self.observe_presence_after_start();
            }
            // A rough start may have become precise in the meantime.
            let give_up_at = self.give_up_at() + stood_still;
            if Instant::now() >= give_up_at {
                self.give_up();
            }
            let lost = shards::count(&self.shards).lost;
            if lost > known_lost && !self.start_is_a_guess() {
                if let Some(measured) = self.on_lost(again)? {
                    return Ok(measured);
                }
                known_lost = lost;
            }
            if !self.shards.iter().any(|shard| shard.standing == Standing::Running) {
                return self.all_over();
            }
            let now = Instant::now();
            while polls.len() < CALLS_IN_FLIGHT && timetable.next().is_some_and(|at| at <= now) {
                let Some((_, index)) = timetable.due.pop_front() else { break };
                match self.poll(index) {
                    Some(poll) => polls.push(poll),
                    None if self.shards[index].standing == Standing::Running => timetable.add(now + interval, index),
                    None => {}
                }
            }
            if now >= publish_at {
                self.course.advance(&mut self.shards);
                self.look_at_thresholds()?;
                if let Settled::Torn(why) = self.look_at_warmup().await? {
                    tracing::warn!(attempt = self.attempt, why, "the shards' measurements start at different times");
                    if again {
                        return Ok(Measured::Again);
                    }
                    return Err(Stop::Failed(Failure::new(reason::START_MISSED, why)));
                }
                self.publish(self.stage());
                publish_at = now + interval;
            }
            wake_at = publish_at.min(give_up_at);
            if polls.len() < CALLS_IN_FLIGHT {
                wake_at = timetable.next().map_or(wake_at, |at| at.min(wake_at));
            }
            news = tokio::select! {
                biased;
                Ok(()) = self.presence.changed() => true,
                Some(polled) = polls.next(), if !polls.is_empty() => {
                    match self.take_note(polled, interval)? {
                        Noted::AskAgain(at, index) => timetable.add(at, index),
                        Noted::Enough => {}
                        Noted::NeverStarted => return Ok(Measured::NeverStarted),
                    }
                    false
                }
                () = sleep_until(wake_at) => false,
            };
        }
    }

    /// Marks shards as lost that the platform reports as gone.
    fn observe_presence_after_start(&mut self) {
        let seen = self.seen();
        for (shard, presence) in self.shards.iter_mut().zip(&seen) {
            if shard.observe_after_start(presence)
                && let Standing::Lost(why) = &shard.standing
            {
                tracing::warn!(shard = shard.index(), why, "shard lost");
            }
        }
    }

    /// Marks shards as lost that have no final snapshot by the collect timeout.
    fn give_up(&mut self) {
        let collect = self.config.limits.collect.as_secs();
        for shard in self.shards.iter_mut().filter(|shard| shard.standing == Standing::Running) {
            let how = shard.unreachable.as_ref().map(|how| format!(": {how}")).unwrap_or_default();
            let why = format!("no final snapshot within {collect} s after the trial{how}");
            tracing::warn!(shard = shard.index(), why, "shard lost");
            shard.standing = Standing::Lost(why);
        }
    }

    /// Whether no shard has confirmed yet that it accepted the recorded start, and some still may.
    fn start_is_a_guess(&self) -> bool {
        let heard = |shard: &Shard| matches!(shard.standing, Standing::Running | Standing::Finished) && !shard.unheard;
        let awaited = |shard: &Shard| shard.standing == Standing::Running && shard.unheard;
        self.shards.iter().any(awaited) && !self.shards.iter().any(heard)
    }

    /// Applies the policy for lost shards.
    fn on_lost(&mut self, again: bool) -> Result<Option<Measured>, Stop> {
        match self.config.on_lost {
            OnLost::Invalidate => Ok(None),
            OnLost::Restart if again && !self.gone_for_good() => Ok(Some(Measured::Again)),
            OnLost::Abort | OnLost::Restart => Err(Stop::Failed(self.lost_failure(reason::SHARD_LOST))),
        }
    }

    /// Whether a lost shard will not be replaced: a new attempt could never start and would cost what was measured.
    fn gone_for_good(&self) -> bool {
        let presence = self.presence.borrow();
        let needed = presence.iter().take(self.shards.len());
        needed.into_iter().any(|presence| matches!(presence, ShardPresence::Gone { replaced: false, .. }))
    }

    fn lost_failure(&self, reason: &str) -> Failure {
        let lost: Vec<_> = self
            .shards
            .iter()
            .filter_map(|shard| match &shard.standing {
                Standing::Lost(why) => Some((shard.index(), why)),
                _ => None,
            })
            .collect();
        let first = lost.first().map(|(index, why)| format!("; shard {index}: {why}")).unwrap_or_default();
        Failure::new(reason, format!("{} of {} shards were lost{first}", lost.len(), self.shards.len()))
    }

    fn all_over(&self) -> Result<Measured, Stop> {
        let stopped =
            self.shards.iter().filter(|shard| shard.snapshot.as_ref().is_some_and(|kept| kept.aborted)).count();
        if stopped > 0 {
            let message = format!(
                "{stopped} of {} shards had been stopped early when this conductor took over",
                self.shards.len()
            );
            return Err(Stop::Failed(Failure::new(reason::STOPPED_EARLY, message)));
        }
        if self.shards.iter().any(|shard| shard.standing == Standing::Finished) {
            return Ok(Measured::ToTheEnd);
        }
        let reason = if Instant::now() >= self.give_up_at() { reason::TRIAL_TIMED_OUT } else { reason::SHARD_LOST };
        Err(Stop::Failed(self.lost_failure(reason)))
    }

    /// When a shard without a final snapshot counts as lost. If the load ended before this conductor began, the timeout counts from its
    /// beginning (its clock's zero), because no conductor may have asked until then.
    fn give_up_at(&self) -> Instant {
        let end = self.end_at().unwrap_or_default().max(0);
        let reads = Duration::from_nanos(self.config.plan.last_read_nanoseconds());
        self.clock.instant(end.saturating_add(nanoseconds(self.config.limits.collect + reads)))
    }

    fn load_is_over(&self) -> bool {
        self.end_at().is_some_and(|end| self.clock.now() >= end)
    }

    /// The trial's stage after the start.
    pub fn stage(&self) -> ConductStage {
        let done = self
            .shards
            .iter()
            .filter(|shard| shard.standing == Standing::Running)
            .all(|shard| shard.snapshot.as_ref().is_some_and(|snapshot| snapshot.stage == Stage::Done));
        if done || self.load_is_over() { ConductStage::Collecting } else { ConductStage::Running }
    }

    /// Shard 0 reads the servers' counters when its full snapshot is requested. So it is asked only once the load of the other shards has
    /// ended, or should have ended long ago.
    fn is_its_turn(&self, index: usize) -> bool {
        if index != 0 || !self.config.plan.measurement.server_stats {
            return true;
        }
        let over = |shard: &Shard| {
            shard.standing != Standing::Running
                || shard.snapshot.as_ref().is_some_and(|snapshot| snapshot.stage == Stage::Done)
        };
        let late = self.end_at().is_some_and(|end| self.clock.now() >= end.saturating_add(nanoseconds(OTHERS)));
        late || self.shards.iter().skip(1).all(over)
    }

    /// Polls one running shard: its clock, a snapshot, and its state if the snapshots do not advance.
    fn poll(&self, index: usize) -> Option<impl Future<Output = Polled> + Send + use<C, J>> {
        let shard = &self.shards[index];
        if shard.standing != Standing::Running {
            return None;
        }
        let endpoint = shard.endpoint.clone()?;
        let done = shard.snapshot.as_ref().is_some_and(|snapshot| snapshot.stage == Stage::Done);
        let detail = if done && self.is_its_turn(index) { Detail::Full } else { Detail::Live };
        let doubtful = shard.stands_still || shard.unheard;
        let (calls, clock, trial) = (Arc::clone(&self.calls), self.clock, self.trial);
        let from = shard.seconds.next();
        Some(async move {
            let exchanged = exchange(calls.as_ref(), &endpoint, clock).await;
            if exchanged.is_err() {
                return Polled { index, clock: exchanged, snapshot: None, detail, state: None };
            }
            let snapshot = calls.snapshot(&endpoint, trial, detail, from).await;
            let ask = doubtful || matches!(snapshot, Err(CallError::Refused(_)));
            let state = if ask { Some(calls.state(&endpoint).await) } else { None };
            Polled { index, clock: exchanged, snapshot: Some(snapshot), detail, state }
        })
    }

    /// Applies the answers to a poll and schedules the next one.
    fn take_note(&mut self, polled: Polled, interval: Duration) -> Result<Noted, Stop> {
        let Polled { index, clock, snapshot, detail, state } = polled;
        let now = self.clock.now();
        let attempt = self.attempt;
        let turn = self.is_its_turn(index);
        let soon = if self.load_is_over() { polling_interval(self.shards.len()) } else { interval };
        let shard = &mut self.shards[index];
        if shard.standing != Standing::Running {
            return Ok(Noted::Enough);
        }
        let mut again_after = soon;
        let mut unreachable = None;
        match clock {
            Ok(estimate) => shard.clock = Some(ClockEstimate::better(shard.clock, estimate)),
            Err(error) => unreachable = how(error),
        }
        match snapshot {
            Some(Ok(new)) => match replaces(shard.snapshot.as_ref(), &new, &shard.plan, attempt) {
                Ok(true) => {
                    shard.stands_still = shard.snapshot.as_ref().is_some_and(|kept| !advances(kept, &new));
                    let done = new.stage == Stage::Done;
                    // Only a shard that accepted the start has such a snapshot.
                    shard.unheard = false;
                    shard.keep(new);
                    shard.snapshot_at = now;
                    if shard.seconds.more() {
                        again_after = Duration::ZERO;
                    } else if done {
                        match detail {
                            Detail::Full => shard.standing = Standing::Finished,
                            Detail::Live if turn => again_after = Duration::ZERO,
                            Detail::Live => {}
                        }
                    }
                }
                Ok(false) => shard.stands_still = true,
                Err(what) => unreachable = Some(Unreachable::Malformed(what)),
            },
            Some(Err(error)) => unreachable = unreachable.or(how(error)),
            None => {}
        }
        shard.unreachable = unreachable;
        if let Some(Ok(state)) = state
            && shard.standing == Standing::Running
        {
            if let (true, Some(accepted), Some(clock)) = (self.start_is_rough, state.accepted, shard.clock)
                && accepted.attempt == attempt
            {
                self.start_at = Some(clock.to_conductor(accepted.start_nanoseconds));
                self.start_is_rough = false;
            }
            if !shard.observe_state_after_start(state, attempt) {
                return Ok(Noted::NeverStarted);
            }
        }
        match &shard.standing {
            Standing::Running => Ok(Noted::AskAgain(Instant::now() + again_after, index)),
            Standing::Failed(failure) => Err(Stop::Failed(shard.failed_in_trial(failure))),
            Standing::Lost(why) => {
                tracing::warn!(shard = index, why, "shard lost");
                Ok(Noted::Enough)
            }
            _ => {
                self.publish_counts(self.stage());
                Ok(Noted::Enough)
            }
        }
    }
}

/// A refusal is an answer, so the shard is reachable; its state decides what the refusal means.
fn how(error: CallError) -> Option<Unreachable> {
    match error {
        CallError::Unreachable(how) => Some(how),
        CallError::Refused(_) => None,
    }
}
