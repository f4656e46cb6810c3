//! One load (preload or trial) of one worker: its requests, its times, and its progress.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use redisbench_wire::plan::{Arrival, Bound, Load, PipelineMode, ShardPlan};
use redisbench_wire::snapshot::{Sending, Stage};

use super::integral::Integral;
use super::pipeline::Class;
use super::sys::SendTimes;
use crate::record::{Delays, LATE_NANOSECONDS};
use crate::schedule::{Schedule, Seat};
use crate::workload::{Workload, begin_apart, part_of};

/// The source of a load's requests.
#[derive(Debug)]
pub(super) enum Source {
    /// Endless: a request whenever there is room.
    Closed {
        k: u64,
        /// Distance to the request after it.
        step: u64,
    },
    /// Like `Closed`, up to an end.
    Walk {
        k: u64,
        /// Distance to the request after it.
        step: u64,
        /// Exclusive.
        end: u64,
    },
    /// Requests have due times.
    Open(Schedule),
}

/// How a closed loop uses its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// Each connection's window is kept full.
    Windows,
    /// Each connection is filled when all of its requests were answered.
    Batches,
    /// This many callers take turns on all connections.
    Callers(u64),
}

/// Shared by the workers of one load, to detect which one finishes last.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Workers that have not finished.
    pub remaining: AtomicUsize,
    /// Keys that the preload wrote or found.
    pub keys: AtomicU64,
    /// One worker met an error that ends the load of all.
    pub failed: AtomicBool,
}

/// A load in progress.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub(super) struct Run {
    pub workload: Arc<Workload>,
    pub source: Source,
    pub together: Arc<Together>,
    /// Not a trial: a preload, or the last read.
    pub preload: bool,
    pub last_read: bool,
    pub attempt: u32,
    /// Keys whose write got no reply: the preload writes them again.
    pub redo: Vec<u64>,
    /// How many more commands a preload may draw at its rate; `None` without a rate.
    pub allowance: Option<Allowance>,
    /// Pipeline depth: the maximum number of commands in flight per connection.
    pub window: usize,
    /// The maximum number of commands in one send.
    pub batch: usize,
    pub filling: Filling,
    pub stage: Stage,
    pub aborted: bool,
    pub start: u64,
    pub measure_from: u64,
    /// Nothing is sent from here on.
    pub ends: u64,
    /// Measured requests that may still be sent, if the plan limits their number.
    pub quota: Option<u64>,
    /// When the quota was used up.
    pub dry: Option<u64>,
    /// This worker's share of the quota is zero.
    pub idle: bool,
    pub unsent_after: u64,
    /// When its first request is due.
    pub first_due: u64,
    pub first_send: u64,
    pub drained: u64,
    /// Requests without an outcome.
    pub outstanding: u64,
    /// Closed loop of a cluster or of callers: requests that may be drawn.
    pub tokens: u64,
    /// All tokens, free or in use.
    pub granted: u64,
    /// Requests drawn for tokens that were not sent yet.
    pub drawn: u64,
    /// CPU time of the thread when the load began.
    pub cpu_before: u64,
    /// CPU time of the load, set once drained.
    pub cpu: u64,
    /// Requests in flight over time; meaningless in an open loop.
    pub in_flight: Integral,
    /// Ready connections over time.
    pub connected: Integral,
    /// Indices of sampled connections, with TCP's counters at the beginning.
    pub sampled: Vec<(u32, SendTimes)>,
    /// Set when the last request was sent.
    pub found: Option<Found>,
    /// When the next request is due, if it can be sent then. Open loop only.
    pub planned: u64,
    /// Sum of the delays between the planned time and the worker's turn that exceed 1 ms, in nanoseconds.
    pub delayed: u64,
    /// The longest of these delays.
    pub longest_delay: u64,
    /// The distribution of all these delays, shorter ones too.
    pub delays: Delays,
    /// Whether due requests wait for room on a connection. Requests sent now have waited too.
    pub held_back: bool,
    /// Measured requests that waited for room or for a connection before they were sent.
    pub waited_for_room: u64,
    /// The thread's run queue wait when the load began.
    pub waited_before: u64,
    /// Run queue wait during the load, set once drained.
    pub waited: u64,
}

/// A worker's observations of itself while its load was sending.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// Requests in flight times nanoseconds, in a closed loop.
    pub in_flight: u128,
    /// Requests that its ready connections had room for, times nanoseconds.
    pub room: u128,
    /// Limits on sending, from the sampled connections.
    pub sending: Sending,
}

/// Enough for one send: more would only wait in the socket.
const BATCH_BYTES: usize = 1 << 20;

/// A worker's share of a preload's rate. Missed sends are made up for, because the rate applies to the preload as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Per second, of all workers of all shards.
    rate: u64,
    /// The number of workers of all shards.
    seats: u64,
    since: u64,
    drawn: u64,
    left: u64,
}

impl Allowance {
    /// Adds what has accrued by `now`. Returns whether commands may be drawn.
    pub(super) fn come(&mut self, now: u64) -> bool {
        let time = u128::from(now.saturating_sub(self.since));
        let come = time * u128::from(self.rate) / (SECOND * u128::from(self.seats));
        self.left = u64::try_from(come).unwrap_or(u64::MAX).saturating_sub(self.drawn);
        self.left > 0
    }

    fn take(&mut self) {
        self.drawn += 1;
        self.left -= 1;
    }

    /// When the next command accrues if none is left, rounded up to whole milliseconds.
    fn next(&self) -> u64 {
        if self.left > 0 {
            return u64::MAX;
        }
        let time = (u128::from(self.drawn) + 1) * SECOND * u128::from(self.seats) / u128::from(self.rate.max(1));
        let next = self.since.saturating_add(u64::try_from(time).unwrap_or(u64::MAX).saturating_add(1));
        next.next_multiple_of(1_000_000)
    }
}

const SECOND: u128 = 1_000_000_000;

/// A preload keeps at least this many commands in flight per connection.
const PRELOAD_WINDOW: usize = 16;

impl Run {
    fn new(workload: Arc<Workload>, source: Source, window: usize, together: Arc<Together>) -> Self {
        let batch = (BATCH_BYTES / workload.longest().max(1)).max(1);
        Self {
            workload,
            source,
            together,
            preload: false,
            last_read: false,
            attempt: 0,
            redo: Vec::new(),
            allowance: None,
            window,
            batch,
            filling: Filling::Windows,
            stage: Stage::Waiting,
            aborted: false,
            start: 0,
            measure_from: 0,
            ends: u64::MAX,
            quota: None,
            dry: None,
            idle: false,
            unsent_after: u64::MAX,
            first_due: 0,
            first_send: 0,
            drained: 0,
            outstanding: 0,
            tokens: 0,
            granted: 0,
            drawn: 0,
            cpu_before: 0,
            cpu: 0,
            in_flight: Integral::default(),
            connected: Integral::default(),
            sampled: Vec::new(),
            found: None,
            planned: u64::MAX,
            delayed: 0,
            held_back: false,
            waited_for_room: 0,
            longest_delay: 0,
            delays: Delays::default(),
            waited_before: 0,
            waited: 0,
        }
    }

    pub(super) fn trial(
        plan: &ShardPlan,
        seat: Seat,
        workload: Arc<Workload>,
        start: u64,
        attempt: u32,
        together: Arc<Together>,
    ) -> Self {
        let closed = closed(plan, seat);
        let schedule = Schedule::of(plan, seat, start);
        let first_due = schedule.as_ref().map_or(start, |schedule| schedule.peek().due);
        let unsent_after = match plan.load {
            Load::ClosedLoop => u64::MAX,
            Load::OpenLoop { unsent_after_nanoseconds, .. } => unsent_after_nanoseconds,
        };
        let source = schedule.map_or(closed, Source::Open);
        let mut run = Self::new(workload, source, plan.pipeline as usize, together);
        run.filling = match (plan.concurrency, plan.pipeline_mode) {
            _ if run.is_open() => Filling::Windows,
            (Some(callers), _) => Filling::Callers(seat.share(0, callers.into())),
            // Requests are queued by key, which connections that draw for themselves cannot do.
            (None, _) if plan.followed().is_some() => {
                Filling::Callers(u64::from(plan.connections) * u64::from(plan.pipeline))
            }
            (None, PipelineMode::Batch) => Filling::Batches,
            (None, PipelineMode::Window) => Filling::Windows,
        };
        run.attempt = attempt;
        run.start = start;
        run.first_due = first_due;
        run.measure_from = start.saturating_add(plan.warmup_nanoseconds);
        run.unsent_after = unsent_after;
        match plan.bound {
            Bound::Duration { nanoseconds } => run.ends = run.measure_from.saturating_add(nanoseconds),
            Bound::Requests { count, max_nanoseconds } => {
                run.ends = run.measure_from.saturating_add(max_nanoseconds);
                let share = seat.share(warmup_of_shard(plan, seat, start), count);
                run.quota = Some(share);
                run.idle = share == 0;
            }
        }
        run
    }

    /// This shard's part of the preload, beginning now.
    pub(super) fn preload(
        plan: &ShardPlan,
        seat: Seat,
        workload: Arc<Workload>,
        now: u64,
        together: Arc<Together>,
    ) -> Self {
        let part = part_of(plan.preload_commands(), plan.shard.into(), plan.shards.into());
        let step = u64::from(seat.workers);
        let source = Source::Walk { k: part.start + u64::from(seat.worker), step, end: part.end };
        let pace = plan.preload_pace;
        let window = pace.pipeline.map_or((plan.pipeline as usize).max(PRELOAD_WINDOW), |pipeline| pipeline as usize);
        let mut run = Self::new(workload, source, window, together);
        run.preload = true;
        run.allowance =
            pace.rate_per_second.map(|rate| Allowance { rate, seats: seat.step(), since: now, drawn: 0, left: 0 });
        run.start = now;
        run.measure_from = now;
        run
    }

    /// The last read of `keys` over `connections` connections, until `ends` at the latest.
    pub(super) fn last_read(
        plan: &ShardPlan,
        workload: Arc<Workload>,
        keys: Range<u64>,
        connections: usize,
        now: u64,
        ends: u64,
    ) -> Self {
        let source = Source::Walk { k: keys.start, step: 1, end: keys.end };
        let window = (plan.pipeline as usize).max(PRELOAD_WINDOW);
        let mut run = Self::new(workload, source, window, Arc::default());
        run.filling = Filling::Callers((connections * window) as u64);
        (run.preload, run.last_read) = (true, true);
        (run.start, run.measure_from, run.ends) = (now, now, ends);
        run
    }

    /// Ends the warm-up at `from`, if both `from` and the planned end are in the future: then nothing was counted as measured. The
    /// measurement keeps its length.
    pub(super) fn measure_sooner(&mut self, from: u64, now: u64) {
        let waits = matches!(self.stage, Stage::Waiting | Stage::Warmup);
        if waits && !self.preload && now < from && from < self.measure_from {
            let length = self.ends.saturating_sub(self.measure_from);
            self.measure_from = from;
            self.ends = from.saturating_add(length);
        }
    }

    /// The class of a closed loop's request sent at `time`, or `None` if the load does not send then.
    #[inline]
    pub(super) fn class_at(&self, time: u64) -> Option<Class> {
        if time >= self.ends || self.aborted || self.used_up(time) {
            None
        } else if self.preload {
            Some(if self.last_read { Class::Check } else { Class::Preload })
        } else if time < self.measure_from {
            Some(Class::Warmup)
        } else {
            Some(Class::Measured)
        }
    }

    /// The next request of a source without due times.
    #[inline]
    pub(super) fn draw(&mut self) -> Option<u64> {
        match &mut self.source {
            Source::Closed { k, step } => {
                let drawn = *k;
                *k += *step;
                Some(drawn)
            }
            Source::Walk { k, step, end } => {
                if self.allowance.is_some_and(|allowance| allowance.left == 0) {
                    return None;
                }
                let drawn = match self.redo.pop() {
                    Some(again) => again,
                    None if *k >= *end => return None,
                    None => {
                        *k += *step;
                        *k - *step
                    }
                };
                if let Some(allowance) = &mut self.allowance {
                    allowance.take();
                }
                Some(drawn)
            }
            Source::Open(_) => None,
        }
    }

    /// The next requests for the free tokens; call again until it returns `None`. With a quota no more requests are drawn than will be
    /// sent, so the requests sent are the first ones of the sequence.
    #[inline]
    pub(super) fn draw_tokens(&mut self) -> Option<impl Iterator<Item = u64> + use<>> {
        let most = self.quota.map_or(self.tokens, |quota| self.tokens.min(quota.saturating_sub(self.drawn)));
        if most == 0 {
            return None;
        }
        let (first, step, count) = match &mut self.source {
            Source::Closed { k, step } => {
                let first = *k;
                *k += *step * most;
                (first, *step, most)
            }
            _ => (self.draw()?, 1, 1),
        };
        self.tokens -= count;
        self.drawn += count;
        Some((0..count).map(move |at| first + step * at))
    }

    /// Returns whether the load sends no further new requests.
    pub(super) fn exhausted(&self, now: u64) -> bool {
        let walked = matches!(self.source, Source::Walk { k, end, .. } if k >= end && self.redo.is_empty());
        now >= self.ends || walked || self.aborted || self.used_up(now)
    }

    /// Returns whether the quota is used up.
    #[inline]
    fn used_up(&self, now: u64) -> bool {
        self.quota == Some(0) && now >= self.measure_from
    }

    /// Takes `count` measured requests from the quota.
    #[inline]
    pub(super) fn spend(&mut self, count: u64, now: u64) {
        if let Some(quota) = &mut self.quota {
            *quota -= count;
            if *quota == 0 {
                self.dry.get_or_insert(now);
            }
        }
    }

    /// When the load next needs attention without an event.
    pub(super) fn next(&mut self, now: u64) -> u64 {
        let border = if now < self.measure_from { self.measure_from } else { self.ends };
        if let Some(allowance) = &self.allowance {
            return border.min(allowance.next());
        }
        let Source::Open(schedule) = &self.source else { return border };
        match schedule.peek().due {
            // It waits for room, which only a reply makes.
            due if due <= now => border,
            due => {
                self.planned = border.min(due);
                self.planned
            }
        }
    }

    /// Records how late the worker turned to the planned request.
    #[inline]
    pub(super) fn woke(&mut self, now: u64) {
        if let Some(delay) = now.checked_sub(self.planned) {
            self.delays.record(delay);
            if delay > LATE_NANOSECONDS {
                self.delayed += delay;
                self.longest_delay = self.longest_delay.max(delay);
            }
        }
        self.planned = u64::MAX;
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.source, Source::Open(_))
    }

    pub(super) fn has_callers(&self) -> bool {
        matches!(self.filling, Filling::Callers(_))
    }

    /// Returns whether requests are drawn before there is room for them, which keeps windows full.
    #[inline]
    pub(super) fn draws_ahead(&self) -> bool {
        !self.is_open() && !self.has_callers()
    }

    pub(super) fn is_active(&self) -> bool {
        matches!(self.stage, Stage::Warmup | Stage::Measuring)
    }
}

/// The request numbers of a closed loop's worker. With a mix in turns each worker walks the whole sequence, because a step could leave
/// out some operations. It starts at the beginning of a period, far from the other workers.
fn closed(plan: &ShardPlan, seat: Seat) -> Source {
    let operations = &plan.workload.operations;
    if !plan.workload.options.in_turns || operations.len() == 1 {
        return Source::Closed { k: seat.first(), step: seat.step() };
    }
    let period: u64 = operations.iter().map(|operation| u64::from(operation.weight)).sum();
    Source::Closed { k: begin_apart(seat.first(), period), step: 1 }
}

/// The number of warm-up requests of the shard in an open loop with constant arrivals: the measured requests are numbered after them. A
/// closed loop and Poisson arrivals number each worker's requests separately, so it is 0.
fn warmup_of_shard(plan: &ShardPlan, seat: Seat, start: u64) -> u64 {
    let Load::OpenLoop { arrival: Arrival::Constant, .. } = plan.load else { return 0 };
    let schedule = Schedule::of(plan, Seat { worker: 0, workers: 1, ..seat }, start);
    schedule.map_or(0, |schedule| schedule.due_before(start.saturating_add(plan.warmup_nanoseconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_ends_sooner_where_both_instants_lie_ahead() {
        let run = |now: u64, from: u64| {
            let plan = crate::sample::plan().of_shard(1);
            let workload = Arc::new(Workload::of_trial(&plan).unwrap());
            let seat = Seat { shard: 0, shards: 1, worker: 0, workers: 1 };
            let mut run = Run::trial(&plan, seat, workload, 1_000, 1, Arc::default());
            (run.stage, run.measure_from, run.ends) = (Stage::Warmup, 9_000, 10_000);
            run.measure_sooner(from, now);
            (run.measure_from, run.ends)
        };
        assert_eq!(run(2_000, 5_000), (5_000, 6_000));
        // `from` has passed, is not sooner, or is after the warm-up.
        for (now, from) in [(5_000, 5_000), (2_000, 9_000), (2_000, 9_500), (9_100, 9_200)] {
            assert_eq!(run(now, from), (9_000, 10_000), "{from} at {now}");
        }
    }

    #[test]
    fn all_seats_together_keep_the_rate_of_a_preload() {
        const START: u64 = 77_000_000_000;
        let mut seats = [Allowance { rate: 1000, seats: 3, since: START, drawn: 0, left: 0 }; 3];
        let mut drawn = 0;
        for millisecond in 0..=3000 {
            for seat in &mut seats {
                while seat.come(START + millisecond * 1_000_000) {
                    seat.take();
                    drawn += 1;
                }
                let wait = seat.next() - START;
                assert!(
                    wait > millisecond * 1_000_000 && wait <= (millisecond + 4) * 1_000_000,
                    "{millisecond} {wait}"
                );
            }
            assert!((drawn..drawn + 3).contains(&millisecond), "{millisecond}: {drawn}");
        }
    }
}
