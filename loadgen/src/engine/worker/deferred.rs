//! Requests that a server cannot serve now but may soon (TRYAGAIN, CLUSTERDOWN, LOADING). They are sent again after a pause.
//!
//! A request is held while it pauses: its caller waits, so a closed loop sends no other request in its place.

use super::Worker;
use crate::cluster::Deferral;
use crate::engine::connection::Resend;
use crate::engine::pipeline::{Class, Hops, Request};

/// The first pause, in nanoseconds. Each further pause is twice as long.
pub(super) const FIRST_PAUSE: u64 = 10_000_000;

impl Worker {
    /// Holds a request for a pause. Returns false if its pauses would exceed the request timeout: then it has failed.
    #[cold]
    pub(super) fn defer(&mut self, request: Request, why: Deferral) -> bool {
        match request.class {
            Class::Measured => self.recording.deferred(request.operation, why),
            Class::Warmup => self.recording.warmup_deferred(why),
            _ => {}
        }
        self.hold(request)
    }

    /// Like `defer`, for a request whose slot has no known owner.
    #[cold]
    pub(super) fn hold(&mut self, mut request: Request) -> bool {
        let pause = FIRST_PAUSE << request.hops.deferrals();
        let pauses = 2 * pause - FIRST_PAUSE;
        if pauses > self.common.plan.timeouts.request_nanoseconds || request.hops.deferrals() == Hops::MOST {
            return false;
        }
        request.hops.defer();
        let ends = self.now + pause;
        // A cluster that was down may have other owners afterwards.
        self.topology_stale |= self.slots.is_some();
        self.deferred.insert((ends, request.k), request);
        self.next_tick = self.next_tick.min(ends);
        true
    }

    /// Passes requests whose pauses have ended to the nodes that own them now.
    pub(super) fn resume(&mut self) {
        while let Some(first) = self.deferred.first_entry() {
            if first.key().0 > self.now {
                self.next_tick = self.next_tick.min(first.key().0);
                break;
            }
            let request = first.remove();
            let node = self.node_of(&request);
            self.nodes[node].resend(Resend { request, since: self.now, asking: false });
        }
    }

    /// Ends the pauses of requests for a node that has recovered. Pauses for other nodes continue.
    #[cold]
    pub(super) fn resume_of(&mut self, node: usize) {
        for (place, request) in std::mem::take(&mut self.deferred) {
            if self.node_of(&request) == node {
                self.nodes[node].resend(Resend { request, since: self.now, asking: false });
            } else {
                self.deferred.insert(place, request);
            }
        }
    }

    /// How many new requests a connection with `room` may take in a closed loop of one server, besides those held.
    #[inline]
    pub(super) fn room_beside_held(&self, room: usize) -> usize {
        if self.holds_none() { room } else { self.room_left(room) }
    }

    /// Sends held requests where a closed loop of one server has room.
    #[inline]
    pub(super) fn resend_held(&mut self) {
        if !self.holds_none() {
            self.stage_resends();
            self.flush_dirty();
        }
    }

    #[inline]
    fn holds_none(&self) -> bool {
        self.deferred.is_empty() && self.nodes.get(self.sole).is_none_or(|node| node.resends.is_empty())
    }

    #[cold]
    fn room_left(&self, room: usize) -> usize {
        let Some(run) = &self.run else { return 0 };
        let windows = (self.ready * run.window) as u64;
        room.min(usize::try_from(windows.saturating_sub(run.outstanding)).unwrap_or(room))
    }

    #[cold]
    fn stage_resends(&mut self) {
        let Some((window, batch)) = self.run.as_ref().map(|run| (run.window, run.batch)) else { return };
        for index in 0..self.connections.len() {
            while self.connections[index].room(window, batch) > 0 {
                let Some(resend) = self.nodes.get_mut(self.sole).and_then(|node| node.resends.pop_front()) else {
                    return;
                };
                self.stage(index as u32, resend.request);
            }
        }
    }
}
