//! The requests of a load: drawn, sent, and finished or given up.

use redisbench_wire::snapshot::Stage;

use super::{Filling, Load, Source};
use crate::engine::connections::Connection;
use crate::engine::kind::Kind;
use crate::engine::links::Links;
use crate::engine::pipeline::{Class, Hops, Pipeline, Request, Waiting};
use crate::record::{Period, Recording, Unsent};
use crate::schedule::Slot;

impl Load {
    /// Takes `count` measured requests from the quota.
    #[inline]
    fn spend(&mut self, count: u64, now: u64) {
        if let Some(quota) = &mut self.quota {
            *quota -= count;
            if *quota == 0 {
                self.dry.get_or_insert(now);
            }
        }
    }

    /// Adds what has accrued by `now` at a preload's rate. Returns whether it allows commands.
    pub(crate) fn accrue(&mut self, now: u64) -> bool {
        let Source::Walk(walk) = &mut self.source else { return false };
        walk.allowance.as_mut().is_some_and(|allowance| allowance.come(now))
    }

    /// Stages as many new requests of a closed loop as connection `index` has `room` for.
    #[inline]
    pub(crate) fn fill(&mut self, index: usize, connection: &mut Connection, mut room: usize) {
        if self.filling == Filling::Batches {
            room = connection.of_batch(room, self.depth.window);
        }
        let operations = self.facts.workload.operations();
        if let Source::Closed { k, step } = &mut self.source {
            let (first, step) = (*k, *step);
            *k += step * room as u64;
            connection.pipeline.stage_undecided((0..room).map(|at| {
                let k = first + step * at as u64;
                Request::undecided(k, operations.of(k))
            }));
        } else if let Source::PerConnection(next) = &mut self.source {
            // The connections to each server of a target are as many.
            let Some(place) = index.checked_rem(next.len()) else { return };
            let first = next[place];
            next[place] += room as u64;
            let numbers = first..next[place];
            connection.pipeline.stage_undecided(numbers.map(|k| Request::undecided(k, operations.of(k))));
        } else {
            let drawn = (0..room).map_while(|_| self.source.draw());
            connection.pipeline.stage_undecided(drawn.map(|k| Request::undecided(k, operations.of(k))));
        }
    }

    /// Stages the slots that are due, as far as there is `room`.
    #[inline]
    pub(crate) fn stage_due(&mut self, pipeline: &mut Pipeline, room: usize, now: u64, recording: &mut Recording) {
        let Source::Open(schedule) = &mut self.source else { return };
        let border = now.saturating_add(1).min(self.ends);
        let oldest = now.saturating_sub(self.unsent_after);
        let (measure_from, quota) = (self.measure_from, self.quota.unwrap_or(u64::MAX));
        let (operations, only) = (self.facts.workload.operations(), recording.only_operation());
        let (mut staged, mut measured) = (0, 0);
        for _ in 0..room {
            let Slot { k, due } = schedule.peek();
            let class = if due < measure_from { Class::Warmup } else { Class::Measured };
            if due >= border || due < oldest || class == Class::Measured && measured == quota {
                break;
            }
            schedule.advance();
            let operation = operations.of(k);
            if class == Class::Measured {
                measured += 1;
                if only.is_none() {
                    recording.scheduled(Period::Measured, operation, 1);
                }
            }
            staged += 1;
            pipeline.stage(Request { k, due, operation, class, hops: Hops::default() });
        }
        self.outstanding += staged;
        if let Some(only) = only {
            recording.scheduled(Period::Measured, only, measured);
        }
        recording.scheduled(Period::Warmup, 0, staged - measured);
        if self.held_back {
            self.waited_for_room += measured;
        }
        self.spend(measured, now);
    }

    /// The next slot of the schedule, if it is due by `now` and the load sends requests.
    #[inline]
    pub(crate) fn next_slot(&self, now: u64) -> Option<Waiting> {
        self.slot_by(now).filter(|_| self.is_active())
    }

    #[inline]
    fn slot_by(&self, now: u64) -> Option<Waiting> {
        let Source::Open(schedule) = &self.source else { return None };
        let Slot { k, due } = schedule.peek();
        (due <= now && self.class_at(due).is_some()).then_some(Waiting { k, due })
    }

    /// Takes that slot, and counts it as scheduled.
    #[inline]
    pub(crate) fn take_slot(&mut self, now: u64, recording: &mut Recording) -> Option<Waiting> {
        self.next_slot(now).map(|slot| self.take(slot, now, recording))
    }

    /// Like [`Self::take_slot`], after the load has sent its last request.
    pub(crate) fn take_backlog(&mut self, now: u64, recording: &mut Recording) -> Option<Waiting> {
        let slot = self.slot_by(now.min(self.ends.saturating_sub(1)));
        slot.map(|slot| self.take(slot, now, recording))
    }

    #[inline]
    fn take(&mut self, slot: Waiting, now: u64, recording: &mut Recording) -> Waiting {
        let Source::Open(schedule) = &mut self.source else { return slot };
        schedule.advance();
        let slot = Waiting { k: self.number(slot.k), ..slot };
        self.outstanding += 1;
        let period = self.period_of(slot.due);
        if period == Period::Measured {
            self.spend(1, now);
        }
        if !self.caches {
            recording.scheduled(period, self.workload.operation(slot.k), 1);
        }
        slot
    }

    /// The number that request `k` of a trial is generated by.
    #[inline]
    pub(crate) fn number(&self, k: u64) -> u64 {
        match &self.own {
            Some(own) if self.kind == Kind::Trial => own.number(&self.workload, k),
            _ => k,
        }
    }

    /// Counts a request as scheduled that no cache has answered. With caches, slots count only then.
    pub(crate) fn missed_caches(&self, request: &Request, recording: &mut Recording) {
        if self.caches
            && let Some(period) = request.class.period()
        {
            recording.scheduled(period, request.operation, 1);
        }
    }

    /// Ends a request that a cache has answered. It counts for the quota, and for nothing else.
    pub(crate) fn answered_by_cache(&mut self, now: u64) {
        if self.is_open() {
            self.outstanding -= 1;
            return;
        }
        self.return_token();
        if self.class_at(now) == Some(Class::Measured) {
            self.spend(1, now);
        }
    }

    /// Counts a slot of an open loop as never sent.
    #[inline]
    pub(crate) fn give_up(&mut self, slot: Waiting, why: Unsent, recording: &mut Recording) {
        if self.is_open() {
            self.outstanding -= 1;
            if self.caches {
                recording.scheduled(self.period_of(slot.due), self.workload.operation(slot.k), 1);
            }
            recording.unsent(self.period_of(slot.due), self.workload.operation(slot.k), why);
        }
    }

    /// Counts a request that a closed loop has drawn as never sent.
    pub(crate) fn give_up_drawn(&mut self, drawn: Waiting, now: u64, recording: &mut Recording) {
        if let Some(period) = self.class_at(now).and_then(Class::period) {
            let operation = self.workload.operation(drawn.k);
            recording.scheduled(period, operation, 1);
            recording.unsent(period, operation, Unsent::NotConnected);
            if period == Period::Measured {
                self.spend(1, now);
            }
        }
        self.return_token();
    }

    #[inline]
    pub(crate) fn is_too_late(&self, due: u64, now: u64) -> bool {
        self.is_open() && due.saturating_add(self.unsent_after) < now
    }

    /// Notes whether due slots are left because there is no room.
    pub(crate) fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Notes that a request waited for room before it was sent.
    #[inline]
    pub(crate) fn waited_for_room(&mut self, request: &Request) {
        self.waited_for_room += u64::from(request.class == Class::Measured);
    }

    #[inline]
    pub(crate) fn request(&self, Waiting { k, due }: Waiting) -> Request {
        let class = match (&self.source, due < self.measure_from) {
            (Source::Open(_), true) => Class::Warmup,
            (Source::Open(_), false) => Class::Measured,
            _ => Class::Undecided,
        };
        Request { k, due, operation: self.workload.operation(k), class, hops: Hops::default() }
    }

    /// The write of the key whose read was answered with null, if its operation has one. It takes the place of the read on its
    /// connection, so the number of writes is bounded by the requests in flight. It is not a request of the schedule.
    #[cold]
    pub(crate) fn missed(&mut self, request: Request) -> Option<Request> {
        if !self.workload.has_fill(request.operation) {
            return None;
        }
        self.outstanding += 1;
        Some(Request { class: Class::Fill, hops: Hops::default(), ..request })
    }

    /// Counts the outcome of such a write, in the same period as its read.
    #[cold]
    pub(crate) fn filled(&mut self, request: &Request, is_error: bool, recording: &mut Recording) {
        self.outstanding -= 1;
        recording.filled(self.period_of(request.due), request.operation, is_error);
    }

    /// The number of `staged` undecided requests that may be sent as `class`, if not all of them.
    #[inline]
    pub(crate) fn limit(&self, class: Option<Class>, staged: usize) -> Option<usize> {
        match (class, self.quota) {
            (None, _) => Some(0),
            (Some(Class::Measured), Some(quota)) if quota < staged as u64 => Some(quota as usize),
            _ => None,
        }
    }

    /// Accounts for a send of `fresh` undecided requests as `class`.
    #[inline]
    pub(crate) fn sent(&mut self, fresh: u64, class: Option<Class>, sent: u64) {
        self.outstanding += fresh;
        self.drawn = self.drawn.saturating_sub(fresh);
        self.in_flight.rise(fresh, sent);
        if class == Some(Class::Measured) {
            self.spend(fresh, sent);
        }
        if self.first_send == 0 && self.is_active() {
            self.first_send = sent;
        }
    }

    /// Accounts for `count` requests that have their outcome.
    #[inline]
    pub(crate) fn finished(&mut self, count: u64, now: u64) {
        self.outstanding -= count;
        self.in_flight.fall(count, now);
        self.tokens += count;
    }

    /// Writes a key of the preload again.
    pub(crate) fn redo(&mut self, k: u64) {
        if let Source::Walk(walk) = &mut self.source {
            walk.redo.push(k);
            self.facts.stage = Stage::Measuring;
        }
    }

    /// The number of `room` requests that a closed loop may draw so that its `ready` connections have no more than their windows.
    #[cold]
    pub(crate) fn room_left(&self, room: usize, ready: usize) -> usize {
        let windows = (ready * self.depth.window) as u64;
        room.min(usize::try_from(windows.saturating_sub(self.outstanding)).unwrap_or(room))
    }

    /// Adjusts a closed loop's tokens to its connections, whose number changes with the nodes of a cluster. Excess tokens are
    /// removed as they become free. A token permits drawing one request; its reply returns the token.
    pub(crate) fn grant_tokens(&mut self, connections: &impl Links) {
        let worth = match self.filling {
            Filling::Callers(callers) => callers,
            // Twice as many as the windows hold wait for their nodes, so that nearly always a node has enough to fill a window.
            Filling::Windows | Filling::Batches => (connections.usable() * self.depth.window * 3) as u64,
        };
        let spare = self.granted.saturating_sub(worth).min(self.tokens);
        let lacking = worth.saturating_sub(self.granted);
        self.tokens = self.tokens + lacking - spare;
        self.granted = self.granted + lacking - spare;
    }

    /// The next requests for the free tokens; call again until it returns `None`. With a quota no more requests are drawn than will be
    /// sent, so the requests sent are the first ones of the sequence.
    #[inline]
    pub(crate) fn draw_tokens(&mut self) -> Option<impl Iterator<Item = u64> + use<>> {
        let most = self.quota.map_or(self.tokens, |quota| self.tokens.min(quota.saturating_sub(self.drawn)));
        if most == 0 {
            return None;
        }
        if let (Some(own), Source::Walk(walk)) = (&self.facts.own, &mut self.source) {
            walk.skip(|k| own.writes(&self.facts.workload, k));
        }
        let (first, step, count) = match &mut self.source {
            Source::Closed { k, step } => {
                let first = *k;
                *k += *step * most;
                (first, *step, most)
            }
            source => (source.draw()?, 1, 1),
        };
        self.tokens -= count;
        self.drawn += count;
        Some((0..count).map(move |at| first + step * at))
    }

    /// Frees the token of a request that was drawn and will not be sent.
    pub(crate) fn return_token(&mut self) {
        self.tokens += 1;
        self.drawn = self.drawn.saturating_sub(1);
    }
}
