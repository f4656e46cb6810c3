//! Checks the replies of verified loads: stamps in the data sent, a check of every reply, and one write in flight per key.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use redisbench_wire::plan::ShardPlan;

use super::kind::Kind;
use super::load::Load;
use super::pipeline::{Class, Pipeline, Request, Waiting};
use crate::resp::Reply;
use crate::verify::{Begin, Moment, Seen, Verifier};

/// A worker's state for verification. Absent if nothing is verified.
#[derive(Debug)]
pub(super) struct Checker {
    pub verifier: Box<Verifier>,
    /// Requests whose key has a write in flight, by key.
    held: HashMap<u32, VecDeque<Waiting>>,
    /// Number of keys that the last read should read.
    wanted: u64,
    /// Keys of dropped writes, until [`Self::take_freed`].
    freed: Vec<u32>,
}

impl Checker {
    /// `may_evict`: the servers may evict keys.
    pub(super) fn of(plan: &ShardPlan, may_evict: bool) -> Option<Box<Self>> {
        let verifier = Verifier::of(plan, may_evict)?;
        Some(Box::new(Self { verifier, held: HashMap::new(), wanted: 0, freed: Vec::new() }))
    }

    /// Writes a request with its stamp to the beginning of `room`, and returns its length.
    pub(super) fn encode(&mut self, request: &Request, load: &Load, room: &mut [u8]) -> usize {
        let length = load.workload.encode_any(request.k, request.operation, room);
        match load.kind {
            Kind::Trial => self.verifier.stamp(request.k, request.operation, &mut room[..length]),
            Kind::Preload => self.verifier.stamp_preload(request.k, &mut room[..length]),
            Kind::LastRead => {}
        }
        length
    }

    /// Returns whether a request may be sent now. A write to a key with a write in flight is held until that one has its outcome.
    #[inline(never)]
    pub(super) fn begin(&mut self, request: &Request, load: &Load) -> bool {
        if load.kind != Kind::Trial {
            return true;
        }
        let number = load.workload.key(request.k, request.operation);
        match self.verifier.begin(request.k, request.operation, number) {
            Begin::Now => true,
            Begin::After(key) => {
                let waiting = Waiting { k: request.k, due: request.due };
                self.held.entry(key).or_default().push_back(waiting);
                false
            }
        }
    }

    /// Frees the keys that dropped requests were to write: the undecided staged ones from `keep` on.
    pub(super) fn dropped(&mut self, pipeline: &Pipeline, keep: usize) {
        let undecided = pipeline.staged().iter().filter(|request| request.class == Class::Undecided);
        self.freed.extend(undecided.skip(keep).filter_map(|request| self.verifier.cancelled(request.k)));
    }

    pub(super) fn take_freed(&mut self) -> Option<u32> {
        self.freed.pop()
    }

    /// Frees a key for its next write, and returns it if one is held.
    pub(super) fn release(&mut self, key: u32) -> Option<Waiting> {
        let held = self.held.get_mut(&key)?;
        let next = held.pop_front();
        if held.is_empty() {
            self.held.remove(&key);
        }
        next
    }

    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Drops the held requests that `give_up` returns true for, which is asked for the first one of each key.
    pub(super) fn drop_held(&mut self, mut give_up: impl FnMut(Waiting) -> bool) {
        for queue in self.held.values_mut() {
            while queue.front().is_some_and(|waiting| give_up(*waiting)) {
                queue.pop_front();
            }
        }
        self.held.retain(|_, queue| !queue.is_empty());
    }

    /// Forgets everything in flight or held: no outcome will arrive.
    pub(super) fn abandon(&mut self) {
        self.held.clear();
        self.freed.clear();
        self.verifier.abandon();
    }

    /// Checks a reply without an error. `piece` is the last part of it, or all of it. Returns the key that it wrote.
    pub(super) fn check(
        &mut self,
        index: usize,
        request: &Request,
        reply: Reply,
        piece: &[u8],
        moment: Moment<'_>,
    ) -> Option<u32> {
        let checks = &mut self.verifier;
        let kept = checks.whole(index, piece);
        let (raw, whole) = kept.as_ref().map_or((piece, true), |(bytes, whole)| (bytes.as_slice(), *whole));
        let seen = Seen::of(raw, whole);
        match request.class {
            Class::Measured | Class::Warmup => return checks.answered(request.k, request.operation, seen, moment),
            Class::Preload => checks.preloaded(request.k, reply == Reply::Nil),
            Class::Check => checks.read_back(request.k, seen, moment),
            Class::Undecided | Class::Orphan | Class::OrphanOfTrial | Class::Fill | Class::Ping | Class::Asking => {}
        }
        None
    }

    /// Accounts for a failed request. Returns the key that it was writing.
    pub(super) fn failed(&mut self, request: &Request, kind: &str, answered: bool) -> Option<u32> {
        match request.class {
            // In flight, or staged and never sent.
            Class::Measured | Class::Warmup | Class::Undecided => {
                return self.verifier.failed(request.k, kind, answered);
            }
            Class::Preload => self.verifier.preload_failed(request.k),
            Class::Check | Class::Orphan | Class::OrphanOfTrial | Class::Fill | Class::Ping | Class::Asking => {}
        }
        None
    }

    /// Begins the last read. Returns the keys, if there is anything to read.
    pub(super) fn begin_last_read(&mut self) -> Option<Range<u64>> {
        let keys = self.verifier.own_keys()?;
        self.wanted = keys.clone().filter(|k| self.verifier.wants_read(*k)).count() as u64;
        (self.wanted > 0).then_some(keys)
    }

    /// Counts the keys that the last read did not read.
    pub(super) fn end_last_read(&mut self) {
        let read = self.verifier.found().counts.read_keys;
        self.verifier.unread(self.wanted.saturating_sub(read));
    }
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::{Part, Verify};

    use super::*;

    #[test]
    fn the_key_of_a_dropped_write_is_free() {
        let mut plan = crate::sample::plan();
        (plan.verify, plan.shards) = (Verify::Values, 1);
        let operation = &mut plan.workload_mut().operations[0];
        operation.arguments = vec![vec![Part::Literal("SET".into())], vec![Part::Key], vec![Part::Data]];
        plan.workload_mut().operations.truncate(1);
        let start = plan.workload.keys.start;
        let mut checker = Checker::of(&plan.into(), false).unwrap();
        assert_eq!(checker.verifier.begin(0, 0, start), Begin::Now);
        assert_eq!(checker.verifier.begin(1, 0, start), Begin::After(0));
        let mut pipeline = Pipeline::of_window(1);
        pipeline.stage(Request::undecided(0, 0));
        checker.dropped(&pipeline, 0);
        assert_eq!(checker.freed, [0], "a request that is held for it would wait for ever");
        assert_eq!(checker.verifier.begin(1, 0, start), Begin::Now);
    }
}
