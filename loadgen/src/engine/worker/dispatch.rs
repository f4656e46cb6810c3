//! Everything sent: draws requests, assigns each to a connection, and sends once per connection and turn.

use redisbench_wire::snapshot::Stage;

use super::Worker;
use crate::cluster::{SLOTS, UNCOVERED};
use crate::engine::connection::{Link, Node, Resend, Waiting};
use crate::engine::pipeline::{Class, Hops, Request};
use crate::engine::run::{Run, Source};
use crate::engine::sys;
use crate::record::Unsent;
use crate::schedule::Slot;
use crate::workload::Workload;

impl Worker {
    /// Advances the load: its stage, and the requests that can be sent now.
    pub(super) fn pace(&mut self) {
        let Some(run) = &mut self.run else { return };
        match run.stage {
            Stage::Waiting if self.now >= run.start => self.begin_load(),
            Stage::Waiting | Stage::Done => return,
            Stage::Warmup if self.now >= run.measure_from => run.stage = Stage::Measuring,
            Stage::Warmup | Stage::Measuring | Stage::Draining => {}
        }
        let now = self.now;
        let allowance = self.run.as_mut().and_then(|run| run.allowance.as_mut());
        if allowance.is_some_and(|allowance| allowance.come(now)) {
            self.fill_all();
        }
        if self.uses_queues() {
            loop {
                self.dispatch();
                if self.dirty.is_empty() {
                    break;
                }
                self.flush_dirty();
            }
        } else {
            self.resend_held();
        }
        self.release_freed();
        let Some(run) = &mut self.run else { return };
        if run.is_active() && run.exhausted(self.now) {
            run.stage = Stage::Draining;
            self.settle();
        }
        let Some(run) = &mut self.run else { return };
        if run.stage == Stage::Draining {
            // With a number of requests, an open loop sends waiting slots until its end time; a closed loop's tokens end with the
            // quota.
            let over = if run.is_open() { self.now >= run.ends } else { run.class_at(self.now).is_none() };
            if over {
                self.give_up_waiting();
            }
            self.end_if_drained();
        }
    }

    pub(super) fn begin_load(&mut self) {
        let ready = self.connections.iter().filter(|connection| connection.link == Link::Ready).count();
        let Some(run) = &mut self.run else { return };
        run.stage = if self.now >= run.measure_from { Stage::Measuring } else { Stage::Warmup };
        self.grant_tokens();
        let Some(run) = &mut self.run else { return };
        run.connected.rise(ready as u64, self.now);
        run.cpu_before = sys::thread_cpu_nanoseconds();
        run.waited_before = self.run_queue.waited_nanoseconds();
        self.fill_all();
    }

    /// Returns whether requests reach connections through queues. A closed loop of one server needs none, unless callers share the
    /// connections: each connection draws for itself.
    #[inline]
    pub(super) fn uses_queues(&self) -> bool {
        self.slots.is_some() || self.run.as_ref().is_some_and(|run| run.is_open() || run.has_callers())
    }

    /// Notes that a connection may take requests from queues.
    #[inline]
    pub(super) fn has_room(&mut self, index: usize) {
        if !self.uses_queues() {
            return;
        }
        let Some(run) = &self.run else { return };
        let connection = &mut self.connections[index];
        if !connection.listed && connection.room(run.window, run.batch) > 0 {
            connection.listed = true;
            self.nodes[connection.node as usize].open.push_back(index as u32);
        }
    }

    /// A connection of `node` with room.
    #[inline]
    pub(super) fn connection_of(&mut self, node: usize) -> Option<u32> {
        let run = self.run.as_ref()?;
        let open = &mut self.nodes[node].open;
        while let Some(index) = open.front() {
            let connection = &mut self.connections[*index as usize];
            if connection.room(run.window, run.batch) > 0 {
                return Some(*index);
            }
            connection.listed = false;
            open.pop_front();
        }
        None
    }

    /// Assigns requests to connections: resends first, then waiting requests, then new ones.
    fn dispatch(&mut self) {
        for node in 0..self.nodes.len() {
            while let Some(resend) = self.nodes[node].resends.front().copied() {
                let Some(connection) = self.connection_of(node) else {
                    self.found_no_room(node, resend.since);
                    break;
                };
                self.nodes[node].resends.pop_front();
                if resend.asking {
                    self.stage(connection, Request::bare(Class::Asking));
                }
                self.stage(connection, resend.request);
            }
            while let Some(waiting) = self.nodes[node].waiting.front().copied() {
                if self.is_too_late(waiting.due) {
                    self.nodes[node].waiting.pop_front();
                    self.give_up(waiting, self.why_too_late(node));
                    continue;
                }
                let Some(connection) = self.connection_of(node) else {
                    self.found_no_room(node, waiting.due);
                    break;
                };
                self.nodes[node].waiting.pop_front();
                if let Some(request) = self.request(waiting)
                    && self.may_begin(&request)
                {
                    if let Some(run) = &mut self.run {
                        run.waited_for_room += u64::from(request.class == Class::Measured);
                    }
                    self.stage(connection, request);
                }
            }
        }
        if self.run.as_ref().is_some_and(Run::is_open) { self.dispatch_due() } else { self.dispatch_tokens() }
    }

    /// Draws the requests that are due.
    fn dispatch_due(&mut self) {
        if self.slots.is_some() || self.follows() {
            while let Some(slot) = self.next_slot(self.now) {
                self.take_slot();
                self.route(slot);
            }
            return;
        }
        // With one server, the schedule itself is the queue.
        while let Some(slot) = self.next_slot(self.now) {
            if self.is_too_late(slot.due) {
                self.take_slot();
                self.give_up(slot, self.why_too_late(self.sole));
                continue;
            }
            let Some(index) = self.connection_of(self.sole) else {
                self.hold_back(true);
                return self.found_no_room(self.sole, slot.due);
            };
            self.stage_due(index);
        }
        self.hold_back(false);
    }

    /// Notes whether due slots are left because there is no room.
    #[inline]
    fn hold_back(&mut self, held_back: bool) {
        if let Some(run) = &mut self.run {
            run.held_back = held_back;
        }
    }

    /// Gives a connection of the only server the slots that are due, as far as it has room.
    #[inline]
    fn stage_due(&mut self, index: u32) {
        let Some(run) = &mut self.run else { return };
        let Source::Open(schedule) = &mut run.source else { return };
        let connection = &mut self.connections[index as usize];
        let room = connection.room(run.window, run.batch);
        let border = self.now.saturating_add(1).min(run.ends);
        let oldest = self.now.saturating_sub(run.unsent_after);
        if connection.pipeline.staged_count() == 0 {
            self.dirty.push(index);
        }
        let only = self.recording.only_operation();
        let (mut staged, mut measured) = (0, 0);
        for _ in 0..room {
            let Slot { k, due } = schedule.peek();
            let class = if due < run.measure_from { Class::Warmup } else { Class::Measured };
            if due >= border || due < oldest || class == Class::Measured && run.quota == Some(measured) {
                break;
            }
            schedule.advance();
            let operation = run.workload.operation(k);
            if class == Class::Measured {
                measured += 1;
                if only.is_none() {
                    self.recording.scheduled(operation, 1);
                }
            }
            staged += 1;
            connection.pipeline.stage(Request { k, due, operation, class, hops: Hops::default() });
        }
        run.outstanding += staged;
        if let Some(only) = only {
            self.recording.scheduled(only, measured);
        }
        self.recording.warmup.scheduled += staged - measured;
        if run.held_back {
            run.waited_for_room += measured;
        }
        run.spend(measured, self.now);
    }

    /// The next slot of the schedule, if it is due by `now` and part of the load.
    fn next_slot(&self, now: u64) -> Option<Waiting> {
        let run = self.run.as_ref()?;
        let Source::Open(schedule) = &run.source else { return None };
        let slot = schedule.peek();
        let comes = slot.due <= now && run.is_active() && run.class_at(slot.due).is_some();
        comes.then_some(Waiting { k: slot.k, due: slot.due })
    }

    /// Advances the schedule, and counts the slot as scheduled.
    fn take_slot(&mut self) {
        let Some(run) = &mut self.run else { return };
        let Source::Open(schedule) = &mut run.source else { return };
        let slot = schedule.peek();
        schedule.advance();
        run.outstanding += 1;
        if slot.due < run.measure_from {
            self.recording.warmup.scheduled += 1;
        } else {
            run.spend(1, self.now);
            self.recording.scheduled(run.workload.operation(slot.k), 1);
        }
    }

    /// Assigns a request to a connection of its node, or queues it there. Returns the node if a connection took it.
    pub(super) fn route(&mut self, waiting: Waiting) -> Option<usize> {
        let request = self.request(waiting)?;
        let node = self.node_of(&request);
        if self.nodes[node].waiting.is_empty()
            && let Some(connection) = self.connection_of(node)
        {
            if !self.may_begin(&request) {
                return None;
            }
            self.stage(connection, request);
            return Some(node);
        }
        self.nodes[node].waiting.push_back(waiting);
        self.found_no_room(node, waiting.due);
        None
    }

    pub(super) fn node_of(&self, request: &Request) -> usize {
        let (Some(slots), Some(run)) = (&self.slots, &self.run) else { return self.sole };
        // A preload has its own operations, and all of them write.
        let readers = self.readers.as_ref().filter(|_| !run.preload);
        owner(&run.workload, slots, readers, &self.nodes, request.k, request.operation)
    }

    pub(super) fn request(&self, waiting: Waiting) -> Option<Request> {
        let run = self.run.as_ref()?;
        let class = match (&run.source, waiting.due < run.measure_from) {
            (Source::Open(_), true) => Class::Warmup,
            (Source::Open(_), false) => Class::Measured,
            _ => Class::Undecided,
        };
        Some(Request {
            k: waiting.k,
            due: waiting.due,
            operation: run.workload.operation(waiting.k),
            class,
            hops: Hops::default(),
        })
    }

    pub(super) fn is_too_late(&self, due: u64) -> bool {
        self.run.as_ref().is_some_and(|run| run.is_open() && due.saturating_add(run.unsent_after) < self.now)
    }

    /// Why a request missed its deadline.
    #[cold]
    fn why_too_late(&self, node: usize) -> Unsent {
        if self.has_ready(node) { Unsent::NoRoom } else { Unsent::NotConnected }
    }

    /// Counts a slot as never sent.
    pub(super) fn give_up(&mut self, waiting: Waiting, why: Unsent) {
        let Some(run) = &mut self.run else { return };
        if !run.is_open() {
            return;
        }
        run.outstanding -= 1;
        if waiting.due < run.measure_from {
            self.recording.warmup_unsent(why);
        } else {
            self.recording.unsent(run.workload.operation(waiting.k), why);
        }
    }

    /// Gives up all waiting requests at the end of the load.
    fn give_up_waiting(&mut self) {
        for node in 0..self.nodes.len() {
            while let Some(waiting) = self.nodes[node].waiting.pop_front() {
                self.give_up(waiting, Unsent::AtEnd);
            }
        }
        self.give_up_held(true);
        self.take_backlog(|worker, waiting| worker.give_up(waiting, Unsent::AtEnd));
    }

    /// Takes all due slots from the schedule, counts them, and calls `then` for each.
    pub(super) fn take_backlog(&mut self, then: fn(&mut Self, Waiting)) {
        let Some(run) = &mut self.run else { return };
        let (active, end) =
            (std::mem::replace(&mut run.stage, Stage::Measuring), self.now.min(run.ends.saturating_sub(1)));
        while let Some(slot) = self.next_slot(end) {
            self.take_slot();
            then(self, slot);
        }
        if let Some(run) = &mut self.run {
            run.stage = active;
        }
    }

    /// Gives up requests that have waited too long.
    pub(super) fn expire(&mut self) {
        let patience = self.common.plan.timeouts.request_nanoseconds;
        self.give_up_held(false);
        for node in 0..self.nodes.len() {
            while let Some(waiting) = self.nodes[node].waiting.front().copied() {
                if !self.is_too_late(waiting.due) {
                    break;
                }
                self.nodes[node].waiting.pop_front();
                self.give_up(waiting, self.why_too_late(node));
            }
            self.expire_drawn(node, patience);
            while let Some(resend) = self.nodes[node].resends.front().copied() {
                if resend.since.saturating_add(patience) > self.now {
                    break;
                }
                self.nodes[node].resends.pop_front();
                let why = "no connection to the server for the retry";
                self.fail(node as u32, &resend.request, "Timeout", why, false);
            }
        }
    }

    /// Gives up requests that a closed loop drew for a node without a connection, after `patience`. Otherwise all tokens would end up at
    /// that node, and the loop would stall silently.
    fn expire_drawn(&mut self, node: usize, patience: u64) {
        while let Some(waiting) = self.nodes[node].waiting.front().copied() {
            let Some(run) = self.run.as_ref().filter(|run| !run.is_open() && !run.preload) else { return };
            if waiting.due.saturating_add(patience) > self.now || self.why_too_late(node) != Unsent::NotConnected {
                return;
            }
            self.nodes[node].waiting.pop_front();
            let (class, operation) = (run.class_at(self.now), run.workload.operation(waiting.k));
            match class {
                Some(Class::Measured) => {
                    self.recording.scheduled(operation, 1);
                    self.recording.unsent(operation, Unsent::NotConnected);
                }
                Some(Class::Warmup) => {
                    self.recording.warmup.scheduled += 1;
                    self.recording.warmup_unsent(Unsent::NotConnected);
                }
                _ => {}
            }
            if let Some(run) = &mut self.run {
                if class == Some(Class::Measured) {
                    run.spend(1, self.now);
                }
                run.drawn = run.drawn.saturating_sub(1);
                run.tokens += 1;
            }
        }
    }

    /// Moves waiting requests to their nodes in a new map.
    pub(super) fn reroute(&mut self) {
        let mut waiting: Vec<Waiting> = self.nodes.iter_mut().flat_map(|node| node.waiting.drain(..)).collect();
        waiting.sort_by_key(|waiting| (waiting.due, waiting.k));
        let resends: Vec<Resend> = self.nodes.iter_mut().flat_map(|node| node.resends.drain(..)).collect();
        for waiting in waiting {
            if let Some(request) = self.request(waiting) {
                let node = self.node_of(&request);
                self.nodes[node].waiting.push_back(waiting);
            }
        }
        for resend in resends {
            let node = self.node_of(&resend.request);
            self.nodes[node].resend(resend);
        }
    }
}

/// The nodes to read from.
#[derive(Debug)]
pub(super) struct Readers {
    /// Node per slot, like the map of owners.
    pub slots: Box<[u16; SLOTS]>,
    /// Per operation, whether it only reads.
    pub operations: Vec<bool>,
}

impl Readers {
    pub(super) fn take(&self, operation: u16) -> bool {
        self.operations.get(usize::from(operation)).is_some_and(|reads| *reads)
    }
}

/// The node that serves a request in a cluster.
#[inline]
pub(super) fn owner(
    workload: &Workload,
    slots: &[u16; SLOTS],
    readers: Option<&Readers>,
    nodes: &[Node],
    k: u64,
    operation: u16,
) -> usize {
    let slot = workload.slot(k, operation);
    let slots = match readers {
        Some(readers) if readers.take(operation) => &readers.slots,
        _ => slots,
    };
    match slots[usize::from(slot)] {
        UNCOVERED => any_node(nodes, slot),
        node => usize::from(node),
    }
}

/// A node for an uncovered slot. Any node can reply with the reason.
#[cold]
fn any_node(nodes: &[Node], slot: u16) -> usize {
    let count = nodes.len();
    (0..count).map(|index| (usize::from(slot) + index) % count).find(|node| !nodes[*node].retired).unwrap_or(0)
}
