//! One load of one worker: a preload, a trial or the last read. Its requests, its times, and its progress.

mod found;
mod report;
mod requests;
mod source;
mod usage;

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytes::Bytes;
use redisbench_wire::plan::{self, Bound, PipelineMode, ShardPlan, Verify};
use redisbench_wire::snapshot::Stage;

use super::depth::Depth;
use super::integral::Integral;
use super::kind::Kind;
use super::links::Links;
use super::own::OwnNodes;
use super::pipeline::Class;
use super::together::Together;
use crate::record::{Delays, LATE_NANOSECONDS, Period};
use crate::schedule::Seat;
use crate::selfcheck::RunQueue;
use crate::workload::{PreloadWalk, Workload, part_of};
use found::Found;
use source::{Allowance, Source, Walk};
use usage::Usage;

/// The use of connections by a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filling {
    /// Each connection's window is kept full.
    Windows,
    /// Each connection is filled when all of its requests were answered.
    Batches,
    /// This many callers take turns on all connections.
    Callers(u64),
}

/// The properties of a load that a worker may read.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub(super) struct Facts {
    pub kind: Kind,
    pub workload: Arc<Workload>,
    /// The bytes that values are slices of, if these are sent without a copy.
    pub large_values: Option<Bytes>,
    pub together: Arc<Together>,
    /// The nodes that its requests go to, if not all.
    pub own: Option<Arc<OwnNodes>>,
    pub depth: Depth,
    /// True if keys that reads have missed are written.
    pub fills: bool,
    /// True if caches may answer its requests.
    pub caches: bool,
    /// True if the commands of a preload count as keys.
    pub writes_keys: bool,
    pub start: u64,
    pub stage: Stage,
    pub aborted: bool,
}

/// The load in progress, or the latest one.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub(super) struct Load {
    facts: Facts,
    source: Source,
    filling: Filling,
    measure_from: u64,
    /// Nothing is sent from here on.
    ends: u64,
    /// Measured requests that may still be sent, if the plan limits their number.
    quota: Option<u64>,
    /// The time at which the quota was used up.
    dry: Option<u64>,
    /// This worker's share of the quota is zero.
    idle: bool,
    unsent_after: u64,
    /// The due time of its first request.
    first_due: u64,
    first_send: u64,
    drained: u64,
    /// Requests without an outcome.
    outstanding: u64,
    /// Closed loop of a cluster or of callers: requests that may be drawn.
    tokens: u64,
    /// All tokens, free or in use.
    granted: u64,
    /// Requests drawn for tokens that were not sent yet.
    drawn: u64,
    /// Of the thread, when the load began.
    used_before: Usage,
    /// Set once drained.
    used: Usage,
    /// Requests in flight over time; meaningless in an open loop.
    in_flight: Integral,
    /// Ready connections times nanoseconds, when the load began.
    connected_before: u128,
    /// Set when the last request was sent.
    found: Option<Found>,
    /// The due time of the next request, if it can be sent then. Open loop only.
    planned: u64,
    /// The delays between the planned time and the worker's turn.
    delays: Delays,
    /// Sum of those that exceed 1 ms, in nanoseconds.
    delayed: u64,
    longest_delay: u64,
    /// True if due requests wait for room on a connection. Requests sent now have waited too.
    held_back: bool,
    /// Measured requests that waited for room or for a connection before they were sent.
    waited_for_room: u64,
    /// The trial that this last read follows.
    measured: Option<Box<Self>>,
}

impl Deref for Load {
    type Target = Facts;

    #[inline]
    fn deref(&self) -> &Facts {
        &self.facts
    }
}

/// Enough for one send: more would only wait in the socket.
const BATCH_BYTES: usize = 1 << 20;

/// A preload keeps at least this many commands in flight per connection.
const PRELOAD_WINDOW: usize = 16;

impl Load {
    fn new(kind: Kind, workload: Arc<Workload>, source: Source, window: usize, start: u64) -> Self {
        let batch = (BATCH_BYTES / workload.longest().max(1)).max(1);
        let facts = Facts {
            kind,
            fills: workload.has_fills(),
            caches: false,
            writes_keys: false,
            large_values: workload.large_values(),
            workload,
            together: Arc::default(),
            own: None,
            depth: Depth { window, batch },
            start,
            stage: Stage::Waiting,
            aborted: false,
        };
        Self {
            facts,
            source,
            filling: Filling::Windows,
            measure_from: start,
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
            used_before: Usage::default(),
            used: Usage::default(),
            in_flight: Integral::default(),
            connected_before: u128::MAX,
            found: None,
            planned: u64::MAX,
            delays: Delays::default(),
            delayed: 0,
            longest_delay: 0,
            held_back: false,
            waited_for_room: 0,
            measured: None,
        }
    }

    /// No load: finished, and with room for nothing.
    pub(super) fn none(workload: Arc<Workload>) -> Self {
        let mut load = Self::new(Kind::Preload, workload, Source::Walk(Walk::default()), 0, 0);
        (load.facts.stage, load.facts.aborted) = (Stage::Done, true);
        load
    }

    pub(super) fn trial(
        plan: &ShardPlan,
        seat: Seat,
        workload: Arc<Workload>,
        start: u64,
        together: Arc<Together>,
    ) -> Self {
        let source = Source::of_trial(plan, &workload, seat, start);
        let mut load = Self::new(Kind::Trial, workload, source, plan.pipeline as usize, start);
        (load.facts.together, load.facts.caches) = (together, plan.workload.options.caching.is_some());
        load.first_due = start;
        if let Source::Open(schedule) = &load.source {
            // A recording ends for all workers at once, also for those that have none of its last commands.
            (load.first_due, load.dry) = (schedule.peek().due, schedule.end());
        }
        load.filling = match (plan.concurrency, plan.pipeline_mode) {
            _ if load.is_open() => Filling::Windows,
            (Some(callers), _) => Filling::Callers(seat.share(0, callers.into())),
            // Requests are queued by key, or answered by a cache: connections that draw for themselves cannot do that.
            (None, _) if plan.followed().is_some() || load.caches => {
                Filling::Callers(u64::from(plan.connections) * u64::from(plan.pipeline))
            }
            // Each request of a recording has its connection.
            (None, _) if plan.trace.is_some() => {
                Filling::Callers(seat.share(0, u64::from(plan.connections) * u64::from(plan.pipeline)))
            }
            (None, PipelineMode::Batch) => Filling::Batches,
            (None, PipelineMode::Window) => Filling::Windows,
        };
        load.measure_from = start.saturating_add(plan.warmup_nanoseconds);
        if let plan::Load::OpenLoop { unsent_after_nanoseconds, .. }
        | plan::Load::Recorded { unsent_after_nanoseconds, .. } = plan.load
        {
            load.unsent_after = unsent_after_nanoseconds;
        }
        match plan.bound {
            Bound::Duration { nanoseconds } => load.ends = load.measure_from.saturating_add(nanoseconds),
            Bound::Requests { count, max_nanoseconds } => {
                load.ends = load.measure_from.saturating_add(max_nanoseconds);
                let share = seat.share(source::warmup_of_shard(plan, seat, start), count);
                load.quota = Some(share);
                load.idle = share == 0;
            }
        }
        // A recording at a very low speed may have a first due time that no clock reads.
        load.first_due = load.first_due.min(load.ends);
        load
    }

    /// This shard's part of a step of the preload, beginning now.
    pub(super) fn preload(plan: &ShardPlan, seat: Seat, walk: &PreloadWalk, now: u64, together: Arc<Together>) -> Self {
        let part = match plan.nodes_per_shard {
            None => part_of(walk.count, plan.shard.into(), plan.shards.into()),
            // The shards of each node divide its keys among them.
            Some(_) => 0..walk.count,
        };
        let pace = plan.preload_pace;
        let source = Source::Walk(Walk {
            k: part.start + u64::from(seat.worker),
            step: seat.workers.into(),
            end: part.end,
            redo: Vec::new(),
            allowance: pace.rate_per_second.map(|rate| Allowance::of(rate, seat.step(), now)),
        });
        let window = pace.pipeline.map_or((plan.pipeline as usize).max(PRELOAD_WINDOW), |pipeline| pipeline as usize);
        let mut load = Self::new(Kind::Preload, Arc::clone(&walk.workload), source, window, now);
        (load.facts.together, load.facts.writes_keys) = (together, walk.writes);
        load
    }

    /// Limits the load to some nodes of a cluster.
    pub(super) fn on(mut self, own: Option<Arc<OwnNodes>>) -> Self {
        self.facts.own = own;
        self
    }

    /// Replaces a trial whose last request has its outcome by the last read of `keys` over `connections` connections.
    pub(super) fn begin_last_read(
        &mut self,
        plan: &ShardPlan,
        workload: Arc<Workload>,
        keys: Range<u64>,
        connections: usize,
        now: u64,
        run_queue: &RunQueue,
    ) {
        self.drained(now, run_queue);
        let source = Source::Walk(Walk { k: keys.start, step: 1, end: keys.end, ..Walk::default() });
        let window = (plan.pipeline as usize).max(PRELOAD_WINDOW);
        let mut load = Self::new(Kind::LastRead, workload, source, window, now);
        load.filling = Filling::Callers((connections * window) as u64);
        load.ends = now.saturating_add(Verify::LAST_READ_NANOSECONDS);
        self.facts.stage = Stage::Draining;
        self.measured = Some(Box::new(std::mem::replace(self, load)));
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        matches!(self.source, Source::Open(_))
    }

    pub(super) fn has_callers(&self) -> bool {
        matches!(self.filling, Filling::Callers(_))
    }

    pub(super) fn is_active(&self) -> bool {
        matches!(self.stage, Stage::Warmup | Stage::Measuring)
    }

    pub(super) fn is_active_trial(&self) -> bool {
        self.kind == Kind::Trial && self.is_active()
    }

    pub(super) fn begin(&mut self, now: u64, connections: &impl Links, run_queue: &RunQueue) {
        self.facts.stage = if now >= self.measure_from { Stage::Measuring } else { Stage::Warmup };
        self.grant_tokens(connections);
        self.connected_before = connections.ready_time(now);
        self.used_before = Usage::so_far(run_queue);
    }

    /// Advances to `now`. Returns whether the load is in progress.
    #[inline]
    pub(super) fn come_to(&mut self, now: u64) -> bool {
        if self.stage == Stage::Warmup && now >= self.measure_from {
            self.facts.stage = Stage::Measuring;
        }
        !matches!(self.stage, Stage::Waiting | Stage::Done)
    }

    /// Ends the warm-up at `from`, if both `from` and the planned end are in the future: then nothing was counted as measured. The
    /// measurement keeps its length.
    pub(super) fn measure_sooner(&mut self, from: u64, now: u64) {
        let waits = matches!(self.stage, Stage::Waiting | Stage::Warmup);
        if waits && self.kind == Kind::Trial && now < from && from < self.measure_from {
            let length = self.ends.saturating_sub(self.measure_from);
            self.measure_from = from;
            self.ends = from.saturating_add(length);
        }
    }

    /// Begins to drain if the load sends no further new requests.
    pub(super) fn drain(&mut self, connections: &impl Links, now: u64) {
        if self.is_active() && (now >= self.ends || self.source.is_over() || self.aborted || self.used_up(now)) {
            if let Source::Replay(replay) = &self.source
                && !replay.is_empty()
            {
                self.dry.get_or_insert(now);
            }
            self.facts.stage = Stage::Draining;
            self.settle(connections, now);
        }
    }

    /// Returns whether requests that wait are given up. With a number of requests, an open loop sends waiting slots until its end time; a
    /// closed loop's tokens end with the quota.
    pub(super) fn is_over(&self, now: u64) -> bool {
        if self.is_open() { now >= self.ends } else { self.class_at(now).is_none() }
    }

    pub(super) fn has_drained(&self) -> bool {
        self.outstanding == 0
    }

    /// Sends nothing from now on. Requests in flight stay counted as such.
    pub(super) fn abort(&mut self, now: u64) {
        self.facts.aborted = true;
        self.ends = self.ends.min(now);
        self.outstanding = 0;
    }

    fn drained(&mut self, now: u64, run_queue: &RunQueue) {
        self.drained = now;
        self.used = Usage::so_far(run_queue).since(self.used_before);
    }

    /// Ends the load when the last request has its outcome. After a last read, the trial is restored. Returns when the load stopped
    /// sending at the latest.
    pub(super) fn end(&mut self, now: u64, run_queue: &RunQueue) -> u64 {
        match self.measured.take() {
            Some(measured) => *self = *measured,
            None => self.drained(now, run_queue),
        }
        self.facts.stage = Stage::Done;
        self.ends.min(now)
    }

    /// The class of a closed loop's request sent at `time`, or `None` if the load does not send then.
    #[inline]
    pub(super) fn class_at(&self, time: u64) -> Option<Class> {
        if time >= self.ends || self.aborted || self.used_up(time) {
            None
        } else if self.kind != Kind::Trial {
            Some(if self.kind == Kind::LastRead { Class::Check } else { Class::Preload })
        } else if time < self.measure_from {
            Some(Class::Warmup)
        } else {
            Some(Class::Measured)
        }
    }

    /// Returns whether what happens now counts for the measurement: from its beginning on.
    pub(super) fn has_measured_by(&self, now: u64) -> bool {
        self.kind == Kind::Trial && now >= self.measure_from && self.stage != Stage::Waiting
    }

    #[inline]
    fn period_of(&self, due: u64) -> Period {
        if due < self.measure_from { Period::Warmup } else { Period::Measured }
    }

    fn used_up(&self, now: u64) -> bool {
        self.quota == Some(0) && now >= self.measure_from
    }

    /// The time at which the load next needs attention without an event, and whether it is for a request that is due then.
    pub(super) fn next(&mut self, now: u64) -> (u64, bool) {
        match self.stage {
            Stage::Waiting => return (self.start, false),
            Stage::Warmup | Stage::Measuring => {}
            Stage::Draining | Stage::Done => return (u64::MAX, false),
        }
        let border = if now < self.measure_from { self.measure_from } else { self.ends };
        match &self.source {
            Source::Walk(walk) => {
                (walk.allowance.as_ref().map_or(border, |allowance| border.min(allowance.next())), false)
            }
            Source::Closed { .. } | Source::PerConnection(_) | Source::Replay(_) => (border, false),
            Source::Open(schedule) => match schedule.peek().due {
                // It waits for room, which only a reply makes.
                due if due <= now => (border, false),
                due => {
                    self.planned = border.min(due);
                    (self.planned, true)
                }
            },
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_ends_sooner_where_both_instants_lie_ahead() {
        let load = |now: u64, from: u64| {
            let plan = crate::sample::plan().of_shard(1);
            let workload = Arc::new(Workload::of_trial(&plan).unwrap());
            let seat = Seat { shard: 0, shards: 1, worker: 0, workers: 1 };
            let mut load = Load::trial(&plan, seat, workload, 1_000, Arc::default());
            (load.facts.stage, load.measure_from, load.ends) = (Stage::Warmup, 9_000, 10_000);
            load.measure_sooner(from, now);
            (load.measure_from, load.ends)
        };
        assert_eq!(load(2_000, 5_000), (5_000, 6_000));
        // `from` has passed, is not sooner, or is after the warm-up.
        for (now, from) in [(5_000, 5_000), (2_000, 9_000), (2_000, 9_500), (9_100, 9_200)] {
            assert_eq!(load(now, from), (9_000, 10_000), "{from} at {now}");
        }
    }
}
