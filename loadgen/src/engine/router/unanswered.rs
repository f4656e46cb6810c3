//! Outages that a router notes, and passes to the new owners of slots.

use redisbench_wire::topology::{Outage, SlotRange, ranges};

use super::outages::{Open, Outages};
use super::{FIRST_PAUSE, Router};
use crate::cluster::{SLOTS, UNCOVERED};
use crate::engine::load::Load;

/// Interval of requests for a new topology while slots get no replies, in nanoseconds.
const CALL_EVERY: u64 = 10_000_000;

/// A node with requests in flight that replies to none for this long (nanoseconds) may be gone, even if its connections stay.
const SILENCE: u64 = 200_000_000;

impl Router {
    /// Called when a request of a load that began at `start`, sent or due at `sent`, failed at a node. Returns whether that was news.
    #[cold]
    pub(crate) fn unanswered(&mut self, node: usize, sent: u64, start: u64, now: u64) -> bool {
        let known = &self.nodes[node];
        if known.out || known.retired {
            return false;
        }
        let since = sent.min(now).max(known.answered).max(start);
        let label = known.server.label.clone();
        for (reads, slots) in [(false, self.slots_of(node)), (true, self.reads_of(node))] {
            if !slots.is_empty() {
                self.outages.open.push(Open { slots, reads, node: label.clone(), since, owner: node });
                self.nodes[node].out = true;
            }
        }
        true
    }

    /// Called when a node replied without an error.
    #[inline]
    pub(crate) fn answered(&mut self, node: usize, load: &Load, now: u64) {
        self.nodes[node].answered = now;
        if self.nodes[node].out {
            self.answered_again(node, load, now);
        }
    }

    /// Called when that follows a failure.
    #[cold]
    fn answered_again(&mut self, node: usize, load: &Load, now: u64) {
        self.nodes[node].out = false;
        let (over, open): (Vec<_>, Vec<_>) = self.outages.open.drain(..).partition(|open| open.owner == node);
        self.outages.open = open;
        let lasted = over.iter().map(|open| now.saturating_sub(open.since)).max().unwrap_or_default();
        for open in over {
            self.outages.close(&open, now, false);
        }
        // A node that serves some requests and not others alternates between the two: there the pauses stay.
        if lasted >= FIRST_PAUSE {
            self.resume_of(node, load, now);
        }
    }

    /// Reassigns open outages to the new owners of the slots. Silent nodes fail first, because a silent node that loses slots counts as
    /// failed. Returns whether any are open: the new map may still be wrong, so ask again at once.
    pub(crate) fn hand_over_outages(&mut self) -> bool {
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
        if self.outages.open.is_empty() {
            return false;
        }
        self.outages.next_call = 0;
        true
    }

    /// Notes and returns whether a node has not replied since `sent`, and `sent` is long enough ago.
    pub(crate) fn note_silence(&mut self, node: usize, sent: u64, now: u64) -> bool {
        let silent = sent.saturating_add(SILENCE) <= now && self.nodes[node].answered <= sent;
        self.outages.silence |= silent;
        silent
    }

    /// Returns whether the cold side is to look for other owners, at most once per [`CALL_EVERY`]. `active`: a trial sends requests.
    /// With it, when to ask again.
    pub(crate) fn call(&mut self, active: bool, now: u64) -> Option<(bool, u64)> {
        let silence = std::mem::take(&mut self.outages.silence);
        if !active || self.outages.open.is_empty() && !silence {
            return None;
        }
        let due = now >= self.outages.next_call;
        if due {
            self.outages.next_call = now + CALL_EVERY;
        }
        Some((due, self.outages.next_call))
    }

    /// Called when a load begins.
    pub(crate) fn forget_outages(&mut self) {
        self.outages = Outages::default();
        for node in &mut self.nodes {
            (node.answered, node.out) = (0, false);
        }
    }

    /// Ends the outages of a load that finished at `until`. Those still open are reported as lasting, with their length so far.
    pub(crate) fn end_outages(&mut self, until: u64) {
        for open in std::mem::take(&mut self.outages.open) {
            self.outages.close(&open, until, true);
        }
        for node in &mut self.nodes {
            node.out = false;
        }
    }

    /// All outages until now, and how many were left out.
    pub(crate) fn told_outages(&self, now: u64) -> (Vec<Outage>, u64) {
        let mut told = Outages { closed: self.outages.closed.clone(), ..Outages::default() };
        told.left_out = self.outages.left_out;
        for open in &self.outages.open {
            told.close(open, now, true);
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
        self.readers.as_ref().map_or(Vec::new(), |readers| marked(readers, node))
    }

    fn owner_now(&self, slot: u16, reads: bool) -> Option<usize> {
        let slots = match &self.readers {
            Some(readers) if reads => readers,
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
