//! From the start until every shard has delivered its final snapshot or is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::Bound;
use redisbench_wire::snapshot::{Snapshot, Stage};
use redisbench_wire::{ClockReading, Detail, RefusalCode, ShardState};

use super::broadcast::Broadcast;
use super::clock::{ClockEstimate, duration, nanoseconds};
use super::event::{Answered, Event, SENT_FOR};
use super::intervals::{DRAIN, POLL_FIRST_AGAIN, RESTARTS, result_step};
use super::polled::Share;
use super::settle::{Settled, unacknowledged};
use super::shards::{self, Shard, Standing};
use super::snapshots::{advances, replaces};
use super::trial::{Conductor, Step};
use super::{Call, CallError, ConductStage, Ending, Failure, Reply, ShardCounts, ShardPresence, Unreachable, reason};
use crate::api::spec::OnLost;
use crate::human;

/// A conductor that wakes this late was suspended: its process or its machine was stopped.
const STOOD_STILL: Duration = Duration::from_secs(1);

/// The longest time after the end of the load that shard 0 waits for the other shards, before it is asked for the servers' counters.
const OTHERS: Duration = Duration::from_secs(3);

/// A shard that counts `safety.unattended` stops its load this long after it at most, in addition to the drift of its clock.
const STOPS_WITHIN: Duration = Duration::from_secs(1);

/// Finished shards are published at most this often. The counts cost a look at every shard.
const COUNTS_EVERY: Duration = Duration::from_millis(200);

/// The outcome of measuring.
#[derive(Clone, Copy)]
pub enum MeasureEnd {
    /// Every shard has finished or is lost.
    Done,
    /// A shard was lost, and all shards begin a new attempt.
    Again,
    /// The recorded start reached only some of the shards: a shard that had been silent reports that it was never started.
    NeverStarted,
}

/// Takes snapshots until the end.
pub struct Measure {
    /// Its part of all polls.
    share: Share,
    /// The next poll of each shard that is not being polled.
    due: BTreeSet<(Duration, usize)>,
    /// The end of the warm-up, while it is being ordered. No poll begins meanwhile.
    order: Option<Broadcast>,
    publish_at: Duration,
    /// The time at which a shard that has finished is published.
    counts_at: Option<Duration>,
    counted_at: Duration,
    stood_still: Duration,
    /// As of the last change of a standing.
    counts: ShardCounts,
    /// A standing may have changed since.
    changed: bool,
    known_lost: u32,
    /// The time by which the first process that was told to terminate has ended.
    leaves_by: Option<Duration>,
}

impl Measure {
    /// Spreads the polls over one interval.
    pub fn begin(conductor: &mut Conductor) -> Self {
        conductor.news = true;
        let (now, shards) = (conductor.now, conductor.shards.len());
        for shard in &mut conductor.shards {
            // Calls of a takeover that had no answer yet may still arrive, and those of the conductor before.
            shard.reached_by = shard.reached_by.max(if shard.unheard { now + SENT_FOR } else { now });
        }
        let share = Share::of(Arc::clone(&conductor.config.polled), shards);
        let interval = share.interval();
        let over = conductor.load_ends_at().is_some_and(|end| now >= end);
        let step = if over { result_step(shards) } else { interval / u32::try_from(shards.max(1)).unwrap_or(u32::MAX) };
        let at = |index| due_at(conductor, index, now + step * u32::try_from(index).unwrap_or(u32::MAX));
        Self {
            share,
            due: (0..shards).map(|index| (at(index), index)).collect(),
            order: None,
            publish_at: now + interval,
            counts_at: None,
            counted_at: Duration::ZERO,
            stood_still: Duration::ZERO,
            counts: ShardCounts::default(),
            changed: true,
            known_lost: 0,
            leaves_by: None,
        }
    }

    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<MeasureEnd> {
        let settling = match event {
            Event::Answered(answered) if !matches!(answered.ask.call, Call::Measure(..)) => {
                if let Some(measured) = self.hear(conductor, *answered)? {
                    return Ok(Some(measured));
                }
                Event::Due
            }
            event => event,
        };
        let now = conductor.now;
        // While suspended, the conductor polled no shard, so this time does not count against the shards.
        let late = conductor.out.late;
        if late >= STOOD_STILL {
            tracing::warn!(milliseconds = late.as_millis(), "stood still");
            let end = conductor.give_up_at().saturating_sub(conductor.config.limits.collect);
            self.stood_still += late.min(now.saturating_sub(end));
        }
        if conductor.news {
            for index in conductor.observe_presence_after_start() {
                self.poll_now(now, index);
            }
            self.changed = true;
        }
        if self.leaves_by.is_some_and(|at| now >= at) {
            conductor.shards.iter_mut().for_each(|shard| shard.has_left(now));
            self.changed = true;
        }
        // A rough start may have become precise in the meantime.
        let give_up_at = conductor.give_up_at() + self.stood_still;
        if now >= give_up_at {
            conductor.give_up();
            self.changed = true;
        }
        if std::mem::take(&mut self.changed) {
            self.count(conductor);
        }
        let ShardCounts { finished, running, unreachable, .. } = self.counts;
        if finished > 0 && running == unreachable && self.order.is_none() && conductor.give_up_stopped() {
            self.count(conductor);
        }
        if self.counts.lost > self.known_lost && !conductor.start_is_a_guess() {
            conductor.check_stopped()?;
            if conductor.on_lost()? {
                return Ok(Some(MeasureEnd::Again));
            }
            self.known_lost = self.counts.lost;
        }
        if self.counts.running == 0 {
            conductor.publish_counts(conductor.stage());
            return conductor.all_over().map(Some);
        }
        if let Some(order) = &mut self.order {
            match order.step(conductor, settling, |_, _| Ok(()))? {
                Ok(true) => {
                    self.order = None;
                    self.publish(conductor);
                }
                Ok(false) => {}
                Err(why) => return torn(conductor, &unacknowledged(&why)).map(Some),
            }
        }
        if self.order.is_none() {
            self.poll(conductor);
            if now >= self.publish_at {
                conductor.course.advance(&mut conductor.shards);
                conductor.look_at_thresholds()?;
                match conductor.look_at_warmup() {
                    Settled::Fine => self.publish(conductor),
                    Settled::Ordered(order) => self.order = Some(order),
                    Settled::Torn(why) => return torn(conductor, &why).map(Some),
                }
            }
        }
        self.publish_counts(conductor);
        if let Some(at) = self.leaves_by {
            conductor.out.wake_by(at);
        }
        conductor.out.wake_by(if self.order.is_none() { self.publish_at.min(give_up_at) } else { give_up_at });
        Ok(None)
    }

    fn count(&mut self, conductor: &Conductor) {
        self.counts = shards::count(&conductor.shards);
        self.leaves_by = conductor.leaves_by();
    }

    /// Publishes the counts if a shard has finished and it is time.
    fn publish_counts(&mut self, conductor: &mut Conductor) {
        let Some(at) = self.counts_at else { return };
        if conductor.now < at {
            return conductor.out.wake_by(at);
        }
        conductor.publish_counts(conductor.stage());
        (self.counts_at, self.counted_at) = (None, conductor.now);
    }

    fn publish(&mut self, conductor: &mut Conductor) {
        conductor.publish(conductor.stage());
        self.publish_at = conductor.now + self.share.interval();
    }

    /// Polls the running shards that are due: their snapshots, and their states if the snapshots do not advance.
    fn poll(&mut self, conductor: &mut Conductor) {
        let now = conductor.now;
        while self.due.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, index)) = self.due.pop_first()
        {
            if conductor.shards[index].standing != Standing::Running {
                continue;
            }
            match conductor.ask(index, conductor.first_call(index)) {
                Some(ask) => {
                    conductor.shards[index].polled_at = now;
                    conductor.out.call(ask);
                }
                None => {
                    self.due.insert((self.next_poll(conductor, index), index));
                }
            }
        }
        if let Some((at, _)) = self.due.first() {
            conductor.out.wake_by(*at);
        }
    }

    /// Makes the shard due, unless it is being polled: its process serves its result for a short time only.
    fn poll_now(&mut self, now: Duration, index: usize) {
        let before = self.due.len();
        self.due.retain(|(_, other)| *other != index);
        if self.due.len() < before {
            self.due.insert((now, index));
        }
    }

    /// The time of the next poll of a shard that was polled now.
    fn next_poll(&self, conductor: &Conductor, index: usize) -> Duration {
        let over = conductor.load_ends_at().is_some_and(|end| conductor.now >= end);
        let pause = match (over, index) {
            (false, _) => self.share.interval(),
            // It is only one, and may have to wait for the others.
            (true, 0) => POLL_FIRST_AGAIN,
            (true, _) => self.share.draining_interval(),
        };
        due_at(conductor, index, conductor.now + pause)
    }

    /// Applies a reply of a running shard. Makes the next call of its poll, or schedules the next poll.
    fn hear(&mut self, conductor: &mut Conductor, answered: Answered) -> Step<MeasureEnd> {
        let index = answered.ask.shard;
        if conductor.shards[index].standing != Standing::Running {
            return Ok(None);
        }
        let mut at_once = false;
        match answered.ask.call {
            Call::Clock => {
                if conductor.shards[index].take_clock(answered) {
                    conductor.call(index, conductor.snapshot_call(index));
                    return Ok(None);
                }
            }
            Call::Snapshot(_, detail, _) => {
                let Answered { sent, received, reply, .. } = answered;
                let snapshot = reply.and_then(Reply::snapshot);
                let shard = &conductor.shards[index];
                let refusal = snapshot.as_ref().err().and_then(CallError::refusal);
                if detail == Detail::Full && !shard.is_done() && refusal == Some(RefusalCode::WrongPhase) {
                    // It still has requests in flight.
                    let from = shard.seconds.next();
                    conductor.call(index, Call::Snapshot(conductor.config.trial, Detail::Live, from));
                    return Ok(None);
                }
                let silent = matches!(&snapshot, Err(CallError::Unreachable(how)) if how.is_silence());
                let (stood_still, unheard, leaving) = (shard.stands_still, shard.unheard, shard.leaving.is_some());
                at_once = conductor.take_snapshot(index, detail, snapshot, (sent, received));
                self.changed |= conductor.shards[index].leaving.is_some() != leaving;
                let asks = refusal.is_some() || (!silent && (unheard || (stood_still && !at_once)));
                if asks && conductor.shards[index].standing == Standing::Running {
                    conductor.call(index, Call::State);
                    return Ok(None);
                }
            }
            _ => {
                if let Ok(state) = answered.reply.and_then(Reply::state)
                    && !conductor.take_state(index, state)
                {
                    return Ok(Some(MeasureEnd::NeverStarted));
                }
            }
        }
        let shard = &conductor.shards[index];
        // Without load to stop, the others keep their whole collect timeout.
        if is_aborted(shard) && !conductor.load_is_over() {
            return Err(stopped_early(shard.index()));
        }
        match &shard.standing {
            Standing::Running => {
                let at = if at_once { conductor.now } else { self.next_poll(conductor, index) };
                self.due.insert((at, index));
            }
            Standing::Failed(failure) => return Err(Ending::Failed(shard.failed_in_trial(failure))),
            Standing::Lost(why) => {
                tracing::warn!(shard = index, why, "shard lost");
                self.changed = true;
            }
            _ => {
                self.changed = true;
                self.counts_at = Some(self.counted_at + COUNTS_EVERY);
            }
        }
        Ok(None)
    }
}

/// The time at which a shard that is due at `at` is polled. Polls that would be due after the end of the load follow soon after it.
fn due_at(conductor: &Conductor, index: usize, at: Duration) -> Duration {
    let shards = conductor.shards.len();
    match conductor.load_ends_at() {
        Some(end) if conductor.now < end && end < at => {
            // Shard 0 comes last, because it may have to wait for the others.
            let place = (index + shards - 1) % shards;
            end + DRAIN + result_step(shards) * u32::try_from(place).unwrap_or(u32::MAX)
        }
        _ => at,
    }
}

fn is_aborted(shard: &Shard) -> bool {
    shard.snapshot.as_ref().is_some_and(|kept| kept.aborted && !kept.terminated)
}

/// The shard's load ended without an order of this conductor. The others must not go on against a target that gets less load than was asked for.
fn stopped_early(shard: u32) -> Ending {
    let message = format!(
        "shard {shard} was stopped early: by an operator that died before it recorded why, or by itself, because no call reached it for \
         safety.unattended"
    );
    Ending::Failed(Failure::new(reason::STOPPED_EARLY, message))
}

/// The shards do not measure together, so the attempt is void.
fn torn(conductor: &Conductor, why: &str) -> Result<MeasureEnd, Ending> {
    tracing::warn!(attempt = conductor.attempt, why, "the shards' measurements start at different times");
    if conductor.restarts < RESTARTS {
        return Ok(MeasureEnd::Again);
    }
    Err(Ending::Failed(Failure::new(reason::START_MISSED, why)))
}

impl Conductor {
    /// Keeps a new snapshot, from a call that was sent and answered at these times. Returns whether the next one is due at once.
    fn take_snapshot(
        &mut self,
        index: usize,
        detail: Detail,
        snapshot: Result<Snapshot, CallError>,
        (sent, received): (Duration, Duration),
    ) -> bool {
        let (now, turn) = (self.clock(), self.is_its_turn(index));
        let shard = &mut self.shards[index];
        shard.unreachable = None;
        match snapshot {
            Err(error) => shard.unreachable = error.unreachable(),
            Ok(new) => match replaces(shard.snapshot.as_ref(), &new, &shard.plan, self.attempt) {
                Ok(true) => {
                    shard.stands_still = shard.snapshot.as_ref().is_some_and(|kept| !advances(kept, &new));
                    let done = new.stage == Stage::Done;
                    // Only a shard that accepted the start has such a snapshot.
                    shard.unheard = false;
                    shard.snapshot_at = now;
                    if !done {
                        let reading = ClockReading { monotonic_nanoseconds: new.taken_nanoseconds };
                        shard.exchange_clock(sent, received, reading);
                    }
                    self.keep(index, new);
                    let more = self.shards[index].seconds.more();
                    if done && !more && detail == Detail::Full {
                        self.finish_shard(index);
                    }
                    return more || (done && turn && detail == Detail::Live);
                }
                Ok(false) => shard.stands_still = true,
                Err(what) => shard.unreachable = Some(Unreachable::Malformed(what)),
            },
        }
        false
    }

    /// Applies the shard's own state. Returns false if it has the plan and was never started.
    fn take_state(&mut self, index: usize, state: ShardState) -> bool {
        let shard = &mut self.shards[index];
        if let (true, Some(accepted), Some(clock)) = (self.start_is_rough, state.accepted, shard.clock)
            && accepted.attempt == self.attempt
        {
            (self.start_at, self.start_is_rough) = (Some(clock.to_conductor(accepted.start_nanoseconds)), false);
        }
        shard.observe_state_after_start(state, self.attempt)
    }

    /// Marks shards as lost that the platform reports as gone. Returns those that are newly being terminated.
    fn observe_presence_after_start(&mut self) -> Vec<usize> {
        let (now, seen) = (self.now, self.seen());
        let mut leaving = Vec::new();
        for (index, (shard, presence)) in self.shards.iter_mut().zip(&seen).enumerate() {
            let stayed = shard.leaving.is_none();
            if shard.observe_after_start(presence, now)
                && let Standing::Lost(why) = &shard.standing
            {
                tracing::warn!(shard = shard.index(), why, "shard lost");
            }
            if stayed && shard.leaving.is_some() {
                leaving.push(index);
            }
        }
        leaving
    }

    /// The time by which the first process of a running shard that was told to terminate has ended.
    fn leaves_by(&self) -> Option<Duration> {
        let running = self.shards.iter().filter(|shard| shard.standing == Standing::Running);
        running.filter_map(|shard| shard.leaving.as_ref().map(|leaving| leaving.until)).min()
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

    /// Marks the shards as lost that have no final snapshot, if all of them have stopped by themselves before the end of the load: no call
    /// has reached any of them for `safety.unattended`. What they could still report would not be a whole measurement. Returns whether there
    /// are any.
    fn give_up_stopped(&mut self) -> bool {
        let plan = &self.config.plan;
        let limit = Duration::from_nanos(plan.limits.unattended_nanoseconds);
        // A number of requests may be used up at any time.
        let ends_by_time = matches!(plan.bound, Bound::Duration { .. });
        if !ends_by_time || limit.is_zero() || !self.load_is_over() {
            return false;
        }
        let running = self.shards.iter().filter(|shard| shard.standing == Standing::Running);
        let reached_by = running.clone().map(|shard| shard.reached_by).max();
        let polled_at = running.map(|shard| shard.polled_at).min();
        let (Some(reached_by), Some(polled_at)) = (reached_by, polled_at) else { return false };
        let stopped_by = reached_by + limit + limit / 1_000 + STOPS_WITHIN;
        // A poll follows the answer to the one before. Until then a call may have arrived in time.
        if polled_at < stopped_by {
            return false;
        }
        // An early end of the warm-up may be known only to some.
        let shortest = self.shards.iter().map(Shard::length).min().unwrap_or_default();
        let in_flight = Duration::from_nanos(plan.timeouts.request_nanoseconds);
        let length = nanoseconds(shortest.saturating_sub(in_flight));
        let end = self.start_at.filter(|_| !self.start_is_rough).map(|start| duration(start.saturating_add(length)));
        if end.is_none_or(|end| stopped_by >= end) {
            return false;
        }
        let seconds = limit.as_secs();
        for shard in self.shards.iter_mut().filter(|shard| shard.standing == Standing::Running) {
            let why = format!("no call reached it for {seconds} s (safety.unattended), so it stopped its load early");
            tracing::warn!(shard = shard.index(), why, "shard lost");
            shard.standing = Standing::Lost(why);
        }
        true
    }

    /// Returns whether no shard has confirmed yet that it accepted the recorded start, and some still may.
    fn start_is_a_guess(&self) -> bool {
        let heard = |shard: &Shard| matches!(shard.standing, Standing::Running | Standing::Finished) && !shard.unheard;
        let awaited = |shard: &Shard| shard.standing == Standing::Running && shard.unheard;
        self.shards.iter().any(awaited) && !self.shards.iter().any(heard)
    }

    /// Applies the policy for lost shards. Returns whether a new attempt begins.
    fn on_lost(&self) -> Result<bool, Ending> {
        match self.config.on_lost {
            OnLost::Invalidate => Ok(false),
            OnLost::Restart if self.restarts < RESTARTS && !self.gone_for_good() => Ok(true),
            OnLost::Abort | OnLost::Restart => Err(Ending::Failed(self.lost_failure(reason::SHARD_LOST))),
        }
    }

    /// Returns whether a lost shard will not be replaced: a new attempt could never start and would cost what was measured.
    fn gone_for_good(&self) -> bool {
        let mut needed = self.presence.iter().take(self.shards.len());
        needed.any(|presence| {
            matches!(
                presence,
                ShardPresence::Gone { replaced: false, .. } | ShardPresence::Leaving { replaced: false, .. }
            )
        })
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
        let all = self.shards.len() as u64;
        let (shards, were) = (human::counted(all, "shard"), human::were(all));
        Failure::new(reason, format!("{} of {shards} {were} lost{first}", lost.len()))
    }

    /// Fails if a shard was stopped early.
    fn check_stopped(&self) -> Result<(), Ending> {
        let stopped = self.shards.iter().find(|shard| is_aborted(shard));
        stopped.map_or(Ok(()), |shard| Err(stopped_early(shard.index())))
    }

    fn all_over(&self) -> Result<MeasureEnd, Ending> {
        self.check_stopped()?;
        if self.shards.iter().any(|shard| shard.standing == Standing::Finished) {
            return Ok(MeasureEnd::Done);
        }
        let reason = if self.now >= self.give_up_at() { reason::TRIAL_TIMED_OUT } else { reason::SHARD_LOST };
        Err(Ending::Failed(self.lost_failure(reason)))
    }

    /// The time at which a shard without a final snapshot counts as lost. If the load ended before this conductor began, the timeout counts
    /// from its beginning (its clock's zero), because no conductor may have asked until then.
    fn give_up_at(&self) -> Duration {
        let end = self.end_at().unwrap_or_default().max(0);
        let reads = Duration::from_nanos(self.config.plan.last_read_nanoseconds());
        duration(end.saturating_add(nanoseconds(self.config.limits.collect + reads)))
    }

    fn load_is_over(&self) -> bool {
        self.end_at().is_some_and(|end| self.clock() >= end)
    }

    /// The time of the shards' last requests according to the plan.
    fn load_ends_at(&self) -> Option<Duration> {
        let in_flight = nanoseconds(Duration::from_nanos(self.config.plan.timeouts.request_nanoseconds));
        self.end_at().map(|end| duration(end.saturating_sub(in_flight)))
    }

    /// The trial's stage after the start.
    pub fn stage(&self) -> ConductStage {
        let done = self.shards.iter().filter(|shard| shard.standing == Standing::Running).all(Shard::is_done);
        if done || self.load_is_over() { ConductStage::Collecting } else { ConductStage::Running }
    }

    /// Shard 0 reads the servers' counters when its full snapshot is requested. So it is asked only once the load of the other shards has
    /// ended, or should have ended long ago. If its process ends, there is no later time.
    fn is_its_turn(&self, index: usize) -> bool {
        if index != 0 || !self.config.plan.measurement.server_stats || self.shards[0].leaving.is_some() {
            return true;
        }
        let over = |shard: &Shard| shard.standing != Standing::Running || shard.is_done();
        let late = self.end_at().is_some_and(|end| self.clock() >= end.saturating_add(nanoseconds(OTHERS)));
        late || self.shards.iter().skip(1).all(over)
    }

    /// The first call of the shard's next poll.
    fn first_call(&self, index: usize) -> Call {
        if self.needs_clock(&self.shards[index]) { Call::Clock } else { self.snapshot_call(index) }
    }

    /// Returns true if the next poll begins with a clock exchange. A snapshot is one too, but its round trip is longer, so the time of the first
    /// send gets an exchange of its own.
    fn needs_clock(&self, shard: &Shard) -> bool {
        let started = || self.start_at.is_some_and(|start| self.clock() > start);
        let vague = |clock: ClockEstimate| clock.half_round_trip() > self.config.limits.max_start_skew / 2;
        shard.clock.is_none() || shard.first_send.map_or_else(started, |(_, clock)| vague(clock))
    }

    fn snapshot_call(&self, index: usize) -> Call {
        Call::Snapshot(self.config.trial, self.detail(index), self.shards[index].seconds.next())
    }

    /// The detail of the shard's next snapshot. Seconds that take several answers do not come with as many full ones.
    fn detail(&self, index: usize) -> Detail {
        let shard = &self.shards[index];
        let done = shard.is_done() || self.is_probably_done(shard);
        if done && !shard.seconds.more() && self.is_its_turn(index) { Detail::Full } else { Detail::Live }
    }

    /// Returns true if the load has ended since the shard's last snapshot. A shard that was silent may need several answers for its seconds.
    fn is_probably_done(&self, shard: &Shard) -> bool {
        let ended = self.load_ends_at().filter(|end| self.now >= *end);
        let before = ended.is_some_and(|end| duration(shard.snapshot_at) < end);
        before && shard.snapshot.is_some() && shard.unreachable.is_none()
    }
}
