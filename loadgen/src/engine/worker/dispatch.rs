//! Paces a load, and assigns its requests to connections.

use redisbench_wire::snapshot::Stage;

use super::{SHORTEST_TICK, Worker};
use crate::engine::kind::Kind;
use crate::engine::pipeline::{Class, Request, Waiting};
use crate::engine::router::Resend;
use crate::record::Unsent;

/// The number of requests that a closed loop draws in a turn while caches answer them.
const HITS: usize = 1024;

impl Worker {
    /// Advances the load: its stage, and the requests that can be sent now.
    pub(super) fn pace(&mut self) {
        if self.load.stage == Stage::Waiting && self.now >= self.load.start {
            self.begin_load();
        }
        if !self.load.come_to(self.now) {
            return;
        }
        if self.load.accrue(self.now) {
            self.fill_all();
        }
        if self.uses_queues() {
            loop {
                self.dispatch();
                if !self.flush_dirty() {
                    break;
                }
            }
        } else if !self.router.holds_none() {
            self.stage_resends();
            self.flush_dirty();
        }
        // The keys of dropped writes.
        while let Some(key) = self.checker.as_mut().and_then(|checker| checker.take_freed()) {
            self.release(Some(key));
        }
        self.load.drain(&self.connections, self.now);
        if self.load.stage == Stage::Draining {
            self.connections.end_lives();
            if self.load.is_over(self.now) {
                self.expire(true);
                while let Some(slot) = self.load.take_backlog(self.now, &mut self.recording) {
                    self.load.give_up(slot, Unsent::AtEnd, &mut self.recording);
                }
            }
            self.end_if_drained();
        }
    }

    pub(super) fn begin_load(&mut self) {
        self.load.begin(self.now, &self.connections, &self.run_queue);
        if self.load.kind == Kind::Trial {
            self.connections.begin_lives(self.load.start);
        }
        self.fill_all();
    }

    /// Returns whether requests reach connections through queues. A closed loop of one server needs none, unless callers share the
    /// connections: each connection draws for itself.
    #[inline]
    pub(super) fn uses_queues(&self) -> bool {
        self.router.has_slots() || self.load.is_open() || self.load.has_callers()
    }

    /// Notes that a connection may take requests from queues.
    #[inline]
    pub(super) fn list_if_room(&mut self, index: usize) {
        if self.uses_queues() {
            self.connections.list(index, self.load.depth);
        }
    }

    /// Assigns requests to connections: resends first, then waiting requests, then new ones.
    fn dispatch(&mut self) {
        let depth = self.load.depth;
        for node in 0..self.router.nodes().len() {
            while let Some(mut resend) = self.router.nodes()[node].resends.front().copied() {
                let Some(connection) = self.connections.with_room(node, depth) else {
                    self.found_no_room(node, resend.since);
                    break;
                };
                if !self.may_resend(node, &resend) {
                    break;
                }
                self.router.take_resend(node);
                if resend.asking {
                    self.connections.stage(connection, Request::bare(Class::Asking));
                }
                resend.request.hops.ask(resend.asking);
                self.connections.stage(connection, resend.request);
            }
            while let Some(waiting) = self.router.nodes()[node].waiting.front().copied() {
                if self.load.is_too_late(waiting.due, self.now) {
                    self.router.take_waiting(node);
                    self.load.give_up(waiting, self.why_too_late(node), &mut self.recording);
                    continue;
                }
                let request = self.load.request(waiting);
                if self.is_cached(None, &request) {
                    self.router.take_waiting(node);
                    continue;
                }
                let Some(connection) = self.with_room(node, waiting.k) else {
                    self.found_no_room(node, waiting.due);
                    break;
                };
                self.router.take_waiting(node);
                if !self.is_cached(Some(connection), &request) && self.may_begin(&request) {
                    self.load.missed_caches(&request, &mut self.recording);
                    self.load.waited_for_room(&request);
                    self.connections.stage(connection, request);
                }
            }
        }
        if self.load.is_open() { self.dispatch_due() } else { self.dispatch_tokens() }
    }

    /// Returns whether a request may be sent to a node again now. Otherwise there will be a tick when it may. A redirect that never paused
    /// may: it replaces the request that was redirected, so redirects are no more than the load.
    #[cold]
    pub(super) fn may_resend(&mut self, node: usize, resend: &Resend) -> bool {
        if resend.request.hops.deferrals() == 0 {
            return true;
        }
        let in_flight = u64::from(self.connections.kept(node)) * self.load.depth.window as u64;
        match self.router.take_turn(node, in_flight, self.now) {
            Ok(()) => true,
            Err(next) => {
                self.tick_by(next.max(self.now + SHORTEST_TICK));
                false
            }
        }
    }

    /// Draws the requests that are due.
    fn dispatch_due(&mut self) {
        let follows = self.checker.as_ref().is_some_and(|checker| checker.verifier.follows());
        if self.router.has_slots() || follows || self.load.caches || self.load.workload.has_lanes() {
            while let Some(slot) = self.load.take_slot(self.now, &mut self.recording) {
                self.route(slot);
            }
            return;
        }
        // With one server, the schedule itself is the queue.
        let node = self.router.sole();
        while let Some(slot) = self.load.next_slot(self.now) {
            if self.load.is_too_late(slot.due, self.now) {
                self.load.take_slot(self.now, &mut self.recording);
                self.load.give_up(slot, self.why_too_late(node), &mut self.recording);
                continue;
            }
            let Some(index) = self.connections.with_room(node, self.load.depth) else {
                self.load.hold_back(true);
                return self.found_no_room(node, slot.due);
            };
            let room = self.connections[index as usize].room(self.load.depth);
            self.load.stage_due(self.connections.stage_with(index), room, self.now, &mut self.recording);
        }
        self.load.hold_back(false);
    }

    /// Draws a request for each free token of a closed loop.
    fn dispatch_tokens(&mut self) {
        if !self.load.is_active() || self.load.class_at(self.now).is_none() {
            return;
        }
        // Callers use the connections in turn instead of filling one after the other.
        let in_turn = self.load.has_callers();
        let mut left = HITS;
        while let Some(drawn) = self.load.draw_tokens() {
            for k in drawn {
                left = left.saturating_sub(1);
                if self.load.kind == Kind::LastRead
                    && self.checker.as_ref().is_some_and(|checker| !checker.verifier.wants_read(k))
                {
                    self.load.return_token();
                    continue;
                }
                let connection = self.route(Waiting { k: self.load.number(k), due: self.now });
                if let Some(connection) = connection.filter(|_| in_turn) {
                    self.connections.pass_over(connection);
                }
            }
            // Hits free their tokens at once, so there may always be more.
            if self.load.caches && left == 0 {
                return self.tick_by(self.now);
            }
        }
    }

    /// Assigns a request to a connection of its node, or queues it there. Returns the connection that took it.
    fn route(&mut self, waiting: Waiting) -> Option<u32> {
        let request = self.load.request(waiting);
        if self.is_cached(None, &request) {
            return None;
        }
        let node = self.router.owner(&self.load, request.k, request.operation);
        if self.router.nodes()[node].waiting.is_empty()
            && let Some(connection) = self.with_room(node, request.k)
        {
            if self.is_cached(Some(connection), &request) {
                self.connections.pass_over(connection);
                return None;
            }
            if !self.may_begin(&request) {
                return None;
            }
            self.load.missed_caches(&request, &mut self.recording);
            self.connections.stage(connection, request);
            return Some(connection);
        }
        self.router.wait(node, waiting);
        self.found_no_room(node, waiting.due);
        None
    }

    /// A connection of `node` with room for request `k`.
    #[inline]
    fn with_room(&mut self, node: usize, k: u64) -> Option<u32> {
        let depth = self.load.depth;
        match self.load.workload.lane(k) {
            None => self.connections.with_room(node, depth),
            Some(lane) => self.connections.of_lane(node, self.seat.own_lane(lane), depth),
        }
    }

    /// Returns whether a cache answers a request: that of the connection that would send it, or with none, the one of all connections.
    #[inline]
    fn is_cached(&mut self, connection: Option<u32>, request: &Request) -> bool {
        self.load.caches && self.look_up(connection, request)
    }

    #[inline(never)]
    fn look_up(&mut self, connection: Option<u32>, request: &Request) -> bool {
        let Some(caching) = self.caching.as_mut().filter(|caching| caching.is_shared() == connection.is_none()) else {
            return false;
        };
        let class = if request.class == Class::Undecided { self.load.class_at(self.now) } else { Some(request.class) };
        let (index, counts) = (connection.unwrap_or_default() as usize, class == Some(Class::Measured));
        let hit = caching.hits(index, request, &self.load.workload, self.now, counts);
        if hit {
            self.load.answered_by_cache(self.now);
        }
        hit
    }

    /// Returns whether a request may be sent now.
    #[inline]
    fn may_begin(&mut self, request: &Request) -> bool {
        match &mut self.checker {
            None => true,
            Some(checker) => checker.begin(request, &self.load),
        }
    }

    /// Frees a key for its next write, if one is held.
    pub(super) fn release(&mut self, key: Option<u32>) {
        if let (Some(checker), Some(key)) = (&mut self.checker, key)
            && let Some(waiting) = checker.release(key)
        {
            let request = self.load.request(waiting);
            let node = self.router.owner(&self.load, request.k, request.operation);
            self.router.wait_first(node, waiting);
        }
    }

    /// Why a request missed its deadline.
    #[cold]
    fn why_too_late(&self, node: usize) -> Unsent {
        if self.connections.has_ready(node) { Unsent::NoRoom } else { Unsent::NotConnected }
    }

    /// Gives up requests that have waited too long, or all that wait at the end of the load.
    pub(super) fn expire(&mut self, all: bool) {
        if let Some(checker) = &mut self.checker {
            let why = if all { Unsent::AtEnd } else { Unsent::NoRoom };
            checker.drop_held(|waiting| {
                let given_up = all || self.load.is_too_late(waiting.due, self.now);
                if given_up {
                    self.load.give_up(waiting, why, &mut self.recording);
                }
                given_up
            });
        }
        let patience = self.common.plan.timeouts.request_nanoseconds;
        let draws = !self.load.is_open() && self.load.kind == Kind::Trial;
        for node in 0..self.router.nodes().len() {
            while let Some(waiting) = self.router.nodes()[node].waiting.front().copied() {
                let why = if all { Unsent::AtEnd } else { self.why_too_late(node) };
                if all || self.load.is_too_late(waiting.due, self.now) {
                    self.load.give_up(waiting, why, &mut self.recording);
                } else if draws && why == Unsent::NotConnected && waiting.due.saturating_add(patience) <= self.now {
                    // Otherwise all tokens would end up at a node without a connection, and the loop would stall silently.
                    self.load.give_up_drawn(waiting, self.now, &mut self.recording);
                } else {
                    break;
                }
                self.router.take_waiting(node);
            }
            while let Some(resend) = self.router.nodes()[node].resends.front().copied().filter(|_| !all) {
                if resend.since.saturating_add(patience) > self.now {
                    break;
                }
                self.router.take_resend(node);
                let why = if self.connections.has_ready(node) {
                    "no room or turn for the retry: too many requests are in flight or sent again"
                } else {
                    "no connection to the server for the retry"
                };
                self.fail(node, &resend.request, "Timeout", why, false);
            }
        }
    }
}
