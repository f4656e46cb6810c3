//! Outages: slots without replies, from when to when, while the cold side looks for another owner.
//!
//! An outage opens when a request fails at a node, or cannot be sent because the node has no connection. It begins when that request was
//! sent or due, but not before the node's last reply without an error. It closes with the first such reply from the node that owns the
//! slots then. A node that answers other requests meanwhile closes it at once, so single failures are dropped as too short. An idle
//! connection that breaks is no outage: no request failed. The hot path only notes when a node last answered.

use redisbench_wire::limits;
use redisbench_wire::topology::{Outage, SlotRange, ranges};

use super::Worker;
use super::deferred::FIRST_PAUSE;
use crate::cluster::{SLOTS, UNCOVERED};
use crate::engine::api::EngineEvent;
use crate::engine::connection::Link;

/// Interval of requests for a new topology while slots get no replies, in nanoseconds.
const CALL_EVERY: u64 = 10_000_000;

/// A node with requests in flight that replies to none for this long (nanoseconds) may be gone, even if its connections stay.
const SILENCE: u64 = 200_000_000;

/// The outages of one load.
#[derive(Debug, Default)]
pub(super) struct Outages {
    open: Vec<Open>,
    closed: Vec<Outage>,
    left_out: u64,
    /// A node has been silent for a while, but nothing has failed yet.
    silence: bool,
    next_call: u64,
}

/// An outage that has not ended.
#[derive(Debug)]
struct Open {
    slots: Vec<SlotRange>,
    reads: bool,
    /// Label of the node that failed.
    node: String,
    since: u64,
    /// The node that should reply now.
    owner: usize,
}

impl Worker {
    /// Called when a connection to a node broke or could not be made. If none is left, the next request for the node opens an outage; in
    /// a closed loop that sends whenever it can, this happens at once.
    #[cold]
    pub(super) fn note_unreachable(&mut self, node: usize) {
        if self.has_ready(node) {
            return;
        }
        self.nodes[node].unreachable = true;
        if !self.uses_queues() {
            self.unanswered(node, self.now);
        }
    }

    /// Called when a request that was to be sent at `due` found no room on any connection to a node.
    #[inline]
    pub(super) fn found_no_room(&mut self, node: usize, due: u64) {
        // Only once: the next failed connection attempt sets it again.
        if std::mem::take(&mut self.nodes[node].unreachable) {
            self.unanswered(node, due);
        }
    }

    /// Returns whether requests can be sent to a node.
    pub(super) fn has_ready(&self, node: usize) -> bool {
        self.nodes[node].connections.iter().any(|index| self.connections[*index as usize].link == Link::Ready)
    }

    /// Called when a request that was sent or due at `sent` failed at a node.
    #[cold]
    pub(super) fn unanswered(&mut self, node: usize, sent: u64) {
        let Some(run) = self.run.as_ref().filter(|run| run.is_active() && !run.preload) else { return };
        let (start, known) = (run.start, &self.nodes[node]);
        if known.out || known.retired {
            return;
        }
        let since = sent.min(self.now).max(known.answered).max(start);
        let label = known.label.clone();
        for (reads, slots) in [(false, self.slots_of(node)), (true, self.reads_of(node))] {
            if !slots.is_empty() {
                self.outages.open.push(Open { slots, reads, node: label.clone(), since, owner: node });
                self.nodes[node].out = true;
            }
        }
        self.call();
    }

    /// Called when a node replied without an error after a failure.
    #[cold]
    pub(super) fn answered_again(&mut self, node: usize) {
        self.nodes[node].out = false;
        let now = self.now;
        let (over, open): (Vec<_>, Vec<_>) = self.outages.open.drain(..).partition(|open| open.owner == node);
        self.outages.open = open;
        let lasted = over.iter().map(|open| now.saturating_sub(open.since)).max().unwrap_or_default();
        for open in over {
            self.outages.close(&open, now, false);
        }
        // A node that serves some requests and not others alternates between the two: there the pauses stay.
        if lasted >= FIRST_PAUSE {
            self.resume_of(node);
        }
    }

    /// Reassigns open outages to the new owners of the slots. [`Self::silent_nodes_fail`] comes first, because a silent node that loses
    /// slots counts as failed.
    pub(super) fn hand_over_outages(&mut self) {
        for node in &mut self.nodes {
            node.out = false;
        }
        for open in std::mem::take(&mut self.outages.open) {
            let mut parts: Vec<(usize, Vec<u16>)> = Vec::new();
            for slot in open.slots.iter().flat_map(|range| range.first..=range.last) {
                let owner = self.owner_now(slot, open.reads).unwrap_or(open.owner);
                match parts.iter_mut().find(|(known, _)| *known == owner) {
                    Some((_, slots)) => slots.push(slot),
                    None => parts.push((owner, vec![slot])),
                }
            }
            for (owner, slots) in parts {
                self.nodes[owner].out = true;
                let (reads, node, since) = (open.reads, open.node.clone(), open.since);
                self.outages.open.push(Open { slots: ranges(slots), reads, node, since, owner });
            }
        }
        // The new map may still be wrong, so ask again at once.
        if !self.outages.open.is_empty() {
            (self.outages.next_call, self.next_tick) = (0, self.now);
        }
    }

    /// Opens outages of nodes that have requests in flight and were silent for a while. Called before such nodes lose slots.
    pub(super) fn silent_nodes_fail(&mut self) {
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            let node = connection.node as usize;
            if let Some(sent) = connection.pipeline.oldest_sent()
                && connection.link == Link::Ready
                && self.is_silent(node, sent)
            {
                self.unanswered(node, sent);
            }
        }
    }

    /// Returns whether a node has not replied since `sent`, and `sent` is long enough ago.
    pub(super) fn is_silent(&self, node: usize, sent: u64) -> bool {
        sent.saturating_add(SILENCE) <= self.now && self.nodes[node].answered <= sent
    }

    /// Notes that a silent node has requests in flight.
    pub(super) fn note_silence(&mut self) {
        self.outages.silence = true;
    }

    /// Asks the cold side to look for other owners, at most once per [`CALL_EVERY`].
    pub(super) fn call(&mut self) {
        let active = self.run.as_ref().is_some_and(|run| run.is_active() && !run.preload);
        let silence = std::mem::take(&mut self.outages.silence);
        if !active || self.outages.open.is_empty() && !silence {
            return;
        }
        if self.now >= self.outages.next_call {
            self.outages.next_call = self.now + CALL_EVERY;
            // The next call follows soon, so a full channel loses nothing.
            let _ = self.common.events.try_send(EngineEvent::Unanswered);
        }
        self.next_tick = self.next_tick.min(self.outages.next_call);
    }

    /// Called when a load begins.
    pub(super) fn forget_outages(&mut self) {
        self.outages = Outages::default();
        for node in &mut self.nodes {
            (node.answered, node.out) = (0, false);
        }
    }

    /// Ends the outages of a finished load. Those still open are reported as lasting, with their length so far.
    pub(super) fn end_outages(&mut self) {
        let until = self.run.as_ref().map_or(self.now, |run| run.ends.min(self.now));
        for open in std::mem::take(&mut self.outages.open) {
            self.outages.close(&open, until, true);
        }
        for node in &mut self.nodes {
            node.out = false;
        }
    }

    /// All outages until now, and how many were left out.
    pub(super) fn told_outages(&self) -> (Vec<Outage>, u64) {
        let mut told = Outages { closed: self.outages.closed.clone(), ..Outages::default() };
        told.left_out = self.outages.left_out;
        for open in &self.outages.open {
            told.close(open, self.now, true);
        }
        (told.closed, told.left_out)
    }

    /// The slots that a node owns. Without slots, the sole server owns all.
    fn slots_of(&self, node: usize) -> Vec<SlotRange> {
        match &self.slots {
            None if node == self.sole => vec![SlotRange::ALL],
            None => Vec::new(),
            Some(slots) => marked(slots, node),
        }
    }

    fn reads_of(&self, node: usize) -> Vec<SlotRange> {
        self.readers.as_ref().map_or(Vec::new(), |readers| marked(&readers.slots, node))
    }

    fn owner_now(&self, slot: u16, reads: bool) -> Option<usize> {
        let slots = match &self.readers {
            Some(readers) if reads => &readers.slots,
            _ => match &self.slots {
                Some(slots) => slots,
                None => return Some(self.sole),
            },
        };
        slots.get(usize::from(slot)).copied().filter(|owner| *owner != UNCOVERED).map(usize::from)
    }
}

fn marked(slots: &[u16; SLOTS], node: usize) -> Vec<SlotRange> {
    ranges((0..).zip(slots).filter(|(_, owner)| usize::from(**owner) == node).map(|(slot, _)| slot))
}

impl Outages {
    fn close(&mut self, open: &Open, until: u64, lasting: bool) {
        if until.saturating_sub(open.since) < Outage::SHORTEST_NANOSECONDS {
            return;
        }
        let room = limits::OUTAGES.saturating_sub(self.closed.len());
        self.left_out += open.slots.len().saturating_sub(room) as u64;
        self.closed.extend(open.slots.iter().take(room).map(|slots| Outage {
            slots: *slots,
            reads: open.reads,
            node: open.node.clone(),
            from_nanoseconds: open.since,
            until_nanoseconds: until,
            lasting,
        }));
    }
}
