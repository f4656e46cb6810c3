//! Makes connections, makes them again, and follows the target's servers.

use super::{SHORTEST_TICK, Worker};
use crate::cluster::Topology;
use crate::engine::api::{ConnectFailure, EngineEvent};
use crate::engine::connections::{Failure, Link};
use crate::engine::pipeline::Class;

impl Worker {
    /// Begins as many connections as the limits allow, and closes those to servers that left.
    pub(super) fn make_connections(&mut self) {
        self.connections.retire(self.now);
        if self.connections.ready() == self.connections.len() {
            return;
        }
        let hurried = self.load.is_active_trial();
        let mut free = self.connections.free_attempts();
        for index in 0..self.connections.len() {
            if free == 0 {
                break;
            }
            if let Err(at) = self.connections.due(index, hurried, self.now) {
                self.tick_by(at.max(self.now + SHORTEST_TICK));
                continue;
            }
            if let Err(next) = self.connections.rate.take(self.now) {
                self.tick_by(next);
                break;
            }
            free -= 1;
            let server = &self.router.nodes()[self.connections[index].node()].server;
            if let Err(failure) = self.connections.begin(index, &self.poller, server, self.now) {
                self.failed_to_connect(index, failure);
            }
        }
    }

    /// Closes the connections whose life has ended, if it ends by time.
    pub(super) fn age_connections(&mut self) {
        let Some(next) = self.connections.age(self.now) else { return };
        for index in 0..self.connections.len() {
            if self.connections[index].is_worn_out() && self.load.class_at(self.now).is_some() {
                self.renew(index);
            }
        }
        self.tick_by(next.max(self.now + SHORTEST_TICK));
    }

    /// Closes a connection at the end of its life, to be made again.
    #[cold]
    pub(super) fn renew(&mut self, index: usize) {
        self.connections.renew(index, self.is_measuring(), self.now);
        self.uncache(index);
    }

    /// Drops what the cache holds of a connection that is gone.
    fn uncache(&mut self, index: usize) {
        let counts = self.load.has_measured_by(self.now);
        self.caching.iter_mut().for_each(|caching| caching.lost(index, counts));
    }

    /// Drops what the caches hold of a node's keys, because some of them have another owner now.
    pub(super) fn uncache_node(&mut self, node: usize) {
        let counts = self.load.has_measured_by(self.now);
        let Some(caching) = &mut self.caching else { return };
        let indices = self.connections.iter().enumerate().filter(|(_, connection)| connection.node() == node);
        indices.for_each(|(index, _)| caching.flush(index, counts));
    }

    /// Called after each step in the making of a connection, which may have completed it.
    pub(super) fn made(&mut self, index: usize, complete: Result<bool, Failure>) {
        match complete {
            Ok(true) => self.complete(index),
            Ok(false) => {}
            Err(failure) => self.failed_to_connect(index, failure),
        }
    }

    fn complete(&mut self, index: usize) {
        self.checker.iter_mut().for_each(|checker| checker.verifier.forget(index));
        self.uncache(index);
        let out = self.router.nodes()[self.connections[index].node()].out;
        self.connections.complete(index, out, self.is_measuring(), self.now);
        self.list_if_room(index);
        self.fill(index);
    }

    fn failed_to_connect(&mut self, index: usize, Failure { reason, why }: Failure) {
        self.connections.lose(index, self.now);
        let node = self.connections[index].node();
        let message = format!("failed to connect to {}: {why}", self.router.nodes()[node].server.label);
        // The next attempt reports again, so a full channel loses nothing.
        self.outbox.offer(EngineEvent::ConnectFailed { reason, message });
        self.note_unreachable(node);
    }

    /// Returns whether requests sent now are measured.
    pub(super) fn is_measuring(&self) -> bool {
        self.load.class_at(self.now) == Some(Class::Measured)
    }

    /// Handles a lost connection: requests in flight fail, nothing is sent again, and the connection is made anew.
    pub(super) fn lost(&mut self, index: usize, kind: &str, why: &str) {
        let link = self.connections[index].link();
        if link.is_in_the_making() {
            return self.failed_to_connect(index, Failure { reason: ConnectFailure::Broken, why: why.to_owned() });
        }
        if link != Link::Ready {
            return;
        }
        let node = self.connections[index].node();
        let commands = self.connections.lose(index, self.now);
        self.uncache(index);
        let of_load = commands.iter().filter(|(request, _)| request.class.is_load());
        if let Some(first) = of_load.map(|(_, sent)| *sent).min() {
            self.unanswered(node, first);
        }
        self.note_unreachable(node);
        let patience = self.common.plan.timeouts.request_nanoseconds;
        for (request, sent) in commands {
            if sent.saturating_add(patience) <= self.now {
                let message = format!("no reply within {} ms", patience / 1_000_000);
                self.fail(node, &request, "Timeout", &message, false);
            } else {
                self.fail(node, &request, kind, why, false);
            }
        }
        let message = format!("lost the connection to {}: {why}", self.router.nodes()[node].server.label);
        self.outbox.offer(EngineEvent::ConnectionLost { message });
    }

    /// Closes connections whose oldest command or whose setup takes too long.
    pub(super) fn check_timeouts(&mut self) {
        let patience = self.common.plan.timeouts.request_nanoseconds;
        for index in 0..self.connections.len() {
            if let Some(failure) = self.connections.timed_out(index, self.now) {
                self.failed_to_connect(index, failure);
            } else if let Some(sent) = self.connections[index].oldest_sent() {
                if sent.saturating_add(patience) <= self.now {
                    self.lost(index, "ConnectionClosed", "closed after a request timed out");
                } else {
                    self.router.note_silence(self.connections[index].node(), sent, self.now);
                }
            }
        }
    }

    /// Called when a connection to a node broke or could not be made. If none is left, the next request for the node opens an outage; in
    /// a closed loop that sends whenever it can, this happens at once.
    #[cold]
    fn note_unreachable(&mut self, node: usize) {
        if !self.uses_queues() && !self.connections.has_ready(node) {
            self.unanswered(node, self.now);
        }
    }

    /// Called when a request that was to be sent at `due` found no room on any connection to a node.
    #[inline]
    pub(super) fn found_no_room(&mut self, node: usize, due: u64) {
        if self.connections.take_unreachable(node) {
            self.unanswered(node, due);
        }
    }

    /// Called when a request that was sent or due at `sent` failed at a node.
    #[cold]
    pub(super) fn unanswered(&mut self, node: usize, sent: u64) {
        if self.load.is_active_trial() && self.router.unanswered(node, sent, self.load.start, self.now) {
            self.call();
        }
    }

    /// Asks the cold side to look for other owners of slots without replies.
    pub(super) fn call(&mut self) {
        if let Some((now, next)) = self.router.call(self.load.is_active_trial(), self.now) {
            if now {
                // The next call follows soon, so a full channel loses nothing.
                self.outbox.offer(EngineEvent::Unanswered);
            }
            self.tick_by(next);
        }
    }

    /// Applies a new topology. Servers that left keep their counts and lose their connections.
    pub(super) fn update_topology(&mut self, topology: &Topology) {
        self.outbox.topology_is_new();
        self.silent_nodes_fail();
        if self.router.update(topology) {
            let counts = self.load.has_measured_by(self.now);
            self.caching.iter_mut().for_each(|caching| caching.flush_all(counts));
        }
        self.follow_router();
        if topology.slots.is_none() {
            self.leave_retired();
        }
        if self.router.hand_over_outages() {
            self.next_tick = self.now;
        }
        self.router.reroute(&self.load);
    }

    /// Keeps connections to the router's servers, and counts per server. Those of servers that left keep their places.
    pub(super) fn follow_router(&mut self) {
        let share = self.connections.share();
        for (index, node) in self.router.nodes().iter().enumerate() {
            self.connections.want(index, !node.retired && node.used, share, self.now);
            self.recording.name_node(index, &node.server.id, &node.server.label);
            self.recording.connect_node(index, self.connections.kept(index));
        }
        self.caching.iter_mut().for_each(|caching| caching.grow(self.connections.len()));
    }

    /// Opens outages of nodes that have requests in flight and were silent for a while. Called before such nodes lose slots.
    fn silent_nodes_fail(&mut self) {
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            let node = connection.node();
            if let Some(sent) = connection.oldest_sent()
                && self.router.note_silence(node, sent, self.now)
            {
                self.unanswered(node, sent);
            }
        }
    }

    /// Closes the connections to the previous server after the only server was replaced. Requests in flight there fail: it may not reply
    /// any more, or only as a replica.
    fn leave_retired(&mut self) {
        for index in 0..self.connections.len() {
            if !self.router.nodes()[self.connections[index].node()].retired {
                continue;
            }
            if self.connections[index].link().is_in_the_making() {
                self.connections.lose(index, self.now);
            } else {
                self.lost(index, "ConnectionClosed", "the target is now another server");
            }
        }
    }
}
