//! Verified loads: stamps in the data sent, a check of every reply, one write in flight per key, and a last read of all keys at the end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use redisbench_wire::plan::Verify;
use redisbench_wire::snapshot::Stage;

use super::Worker;
use super::send::{ASKING, PING, write};
use crate::engine::connection::{Link, Waiting};
use crate::engine::pipeline::{Class, Pipeline, Request};
use crate::engine::run::Run;
use crate::engine::sys;
use crate::record::Unsent;
use crate::resp::{Output, Reply};
use crate::verify::{Begin, Moment, Seen, Verifier};
use crate::workload::Workload;

/// A worker's state for verification. Absent if nothing is verified.
#[derive(Debug)]
pub(super) struct Verified {
    pub verifier: Box<Verifier>,
    /// Requests whose key has a write in flight, by key.
    held: HashMap<u32, VecDeque<Waiting>>,
    /// The measured load, during the last read.
    measured: Option<Run>,
    /// Reads key k as request k.
    last_read: Option<Arc<Workload>>,
    /// Number of keys that the last read should read.
    wanted: u64,
    /// Keys of dropped writes, until [`Worker::release_freed`].
    freed: Vec<u32>,
}

impl Verified {
    pub(super) fn new(verifier: Box<Verifier>, last_read: Option<Arc<Workload>>) -> Self {
        Self { verifier, held: HashMap::new(), measured: None, last_read, wanted: 0, freed: Vec::new() }
    }

    /// Encodes the staged commands with their stamps. A separate loop, so that the compiler optimizes the one without stamps.
    pub(super) fn encode(&mut self, pipeline: &Pipeline, run: &Run, output: &mut Output) {
        let longest = run.workload.longest().max(ASKING.len());
        let room = output.room(pipeline.staged_count() * longest + Workload::SLACK);
        let mut length = 0;
        for request in pipeline.staged() {
            let room = &mut room[length..];
            length += match request.class {
                Class::Ping => write(PING, room),
                Class::Asking => write(ASKING, room),
                _ => {
                    let length = run.workload.encode_any(request.k, request.operation, room);
                    match (run.preload, run.last_read) {
                        (false, _) => self.verifier.stamp(request.k, request.operation, &mut room[..length]),
                        (true, false) => self.verifier.stamp_preload(request.k, &mut room[..length]),
                        (true, true) => {}
                    }
                    length
                }
            };
        }
        output.set_length(length);
    }

    /// Frees the keys that dropped requests were to write: the undecided staged ones from `keep` on.
    pub(super) fn dropped(&mut self, pipeline: &Pipeline, keep: usize) {
        let undecided = pipeline.staged().iter().filter(|request| request.class == Class::Undecided);
        self.freed.extend(undecided.skip(keep).filter_map(|request| self.verifier.cancelled(request.k)));
    }

    pub(super) fn measured(&self) -> Option<&Run> {
        self.measured.as_ref()
    }

    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Forgets everything in flight or held: no outcome will arrive.
    pub(super) fn abandon(&mut self) {
        self.held.clear();
        self.freed.clear();
        self.verifier.abandon();
    }
}

impl Worker {
    /// Returns whether the values of keys are followed.
    pub(super) fn follows(&self) -> bool {
        self.verified.as_ref().is_some_and(|verified| verified.verifier.follows())
    }

    /// Returns whether a request may be sent now. A write to a key with a write in flight is held until that one has its outcome.
    #[inline]
    pub(super) fn may_begin(&mut self, request: &Request) -> bool {
        self.verified.is_none() || self.begins(request)
    }

    #[inline(never)]
    fn begins(&mut self, request: &Request) -> bool {
        let (Some(verified), Some(run)) = (&mut self.verified, &self.run) else { return true };
        if run.preload {
            return true;
        }
        let number = run.workload.key(request.k, request.operation);
        match verified.verifier.begin(request.k, request.operation, number) {
            Begin::Now => true,
            Begin::After(key) => {
                let waiting = Waiting { k: request.k, due: request.due };
                verified.held.entry(key).or_default().push_back(waiting);
                false
            }
        }
    }

    /// Returns whether the last read leaves out key `k`, and frees its token if so.
    #[inline]
    pub(super) fn leaves_out(&mut self, k: u64) -> bool {
        let (Some(verified), Some(run)) = (&self.verified, &mut self.run) else { return false };
        let leaves_out = run.last_read && !verified.verifier.wants_read(k);
        if leaves_out {
            run.tokens += 1;
            run.drawn = run.drawn.saturating_sub(1);
        }
        leaves_out
    }

    /// Frees the keys of dropped writes.
    pub(super) fn release_freed(&mut self) {
        while let Some(key) = self.verified.as_mut().and_then(|verified| verified.freed.pop()) {
            self.release(Some(key));
        }
    }

    /// Frees a key for its next write, if one is held.
    fn release(&mut self, key: Option<u32>) {
        let (Some(verified), Some(key)) = (&mut self.verified, key) else { return };
        let Some(held) = verified.held.get_mut(&key) else { return };
        let next = held.pop_front();
        if held.is_empty() {
            verified.held.remove(&key);
        }
        if let Some(waiting) = next
            && let Some(request) = self.request(waiting)
        {
            let node = self.node_of(&request);
            self.nodes[node].waiting.push_front(waiting);
        }
    }

    /// Keeps the received part of an incomplete reply.
    pub(super) fn hold_piece(&mut self, index: usize, piece: &[u8]) {
        if let Some(verified) = &mut self.verified {
            verified.verifier.hold(index, piece);
        }
    }

    /// Drops the kept parts of a reply that is not checked.
    pub(super) fn forget_pieces(&mut self, index: usize) {
        if let Some(verified) = &mut self.verified {
            verified.verifier.forget(index);
        }
    }

    /// Checks a reply without an error. `piece` is the last part of it, or all of it.
    #[cold]
    pub(super) fn check(&mut self, index: usize, request: &Request, reply: Reply, piece: &[u8]) {
        let Some(verified) = &mut self.verified else { return };
        let node = self.connections[index].node as usize;
        let moment = Moment { node: &self.nodes[node].label, at: self.now };
        let checks = &mut verified.verifier;
        let kept = checks.whole(index, piece);
        let (raw, whole) = kept.as_ref().map_or((piece, true), |(bytes, whole)| (bytes.as_slice(), *whole));
        let seen = Seen::of(raw, whole);
        match request.class {
            Class::Measured | Class::Warmup => {
                let free = checks.answered(request.k, request.operation, seen, moment);
                self.release(free);
            }
            Class::Preload => checks.preloaded(request.k, reply == Reply::Nil),
            Class::Check => checks.read_back(request.k, seen, moment),
            Class::Undecided | Class::Orphan | Class::OrphanOfTrial | Class::Fill | Class::Ping | Class::Asking => {}
        }
    }

    /// Accounts for a failed request.
    pub(super) fn check_failed(&mut self, request: &Request, kind: &str, answered: bool) {
        let Some(verified) = &mut self.verified else { return };
        match request.class {
            // In flight, or staged and never sent.
            Class::Measured | Class::Warmup | Class::Undecided => {
                let free = verified.verifier.failed(request.k, kind, answered);
                self.release(free);
            }
            Class::Preload => verified.verifier.preload_failed(request.k),
            Class::Check | Class::Orphan | Class::OrphanOfTrial | Class::Fill | Class::Ping | Class::Asking => {}
        }
    }

    /// Gives up held requests: those due too long ago, or all of them at the end.
    pub(super) fn give_up_held(&mut self, all: bool) {
        let Some(verified) = &mut self.verified else { return };
        if verified.held.is_empty() {
            return;
        }
        let mut held = std::mem::take(&mut verified.held);
        for queue in held.values_mut() {
            while let Some(waiting) = queue.front().copied() {
                if !all && !self.is_too_late(waiting.due) {
                    break;
                }
                queue.pop_front();
                self.give_up(waiting, if all { Unsent::AtEnd } else { Unsent::NoRoom });
            }
        }
        held.retain(|_, queue| !queue.is_empty());
        if let Some(verified) = &mut self.verified {
            verified.held = held;
        }
    }

    /// Begins the last read after the load. Returns whether there is anything to read.
    pub(super) fn begin_last_read(&mut self) -> bool {
        let (Some(verified), Some(run)) = (&mut self.verified, &self.run) else { return false };
        if run.preload || run.aborted || verified.measured.is_some() {
            return false;
        }
        let (Some(keys), Some(workload)) = (verified.verifier.own_keys(), &verified.last_read) else { return false };
        verified.wanted = keys.clone().filter(|k| verified.verifier.wants_read(*k)).count() as u64;
        if verified.wanted == 0 {
            return false;
        }
        let connections = self.connections.iter().filter(|connection| connection.link != Link::Retired).count();
        let ends = self.now.saturating_add(Verify::LAST_READ_NANOSECONDS);
        let last_read = Run::last_read(&self.common.plan, Arc::clone(workload), keys, connections, self.now, ends);
        let measured = self.run.replace(last_read);
        if let Some(mut run) = measured {
            run.drained = self.now;
            run.cpu = sys::thread_cpu_nanoseconds().saturating_sub(run.cpu_before);
            run.waited = self.run_queue.waited_nanoseconds().saturating_sub(run.waited_before);
            run.stage = Stage::Draining;
            verified.measured = Some(run);
        }
        self.begin_load();
        // Continue without waiting for an event.
        self.next_tick = self.now;
        true
    }

    /// Ends the last read, if there was one, and restores the measured load for reporting. Returns whether there was one.
    pub(super) fn end_last_read(&mut self) -> bool {
        let Some(verified) = &mut self.verified else { return false };
        let Some(measured) = verified.measured.take() else { return false };
        let read = verified.verifier.found().read_keys;
        verified.verifier.unread(verified.wanted.saturating_sub(read));
        self.run = Some(measured);
        true
    }
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::Part;

    use super::*;

    #[test]
    fn the_key_of_a_dropped_write_is_free() {
        let mut plan = crate::sample::plan();
        (plan.verify, plan.shards) = (Verify::Values, 1);
        let operation = &mut plan.workload.operations[0];
        operation.arguments = vec![vec![Part::Literal("SET".into())], vec![Part::Key], vec![Part::Data]];
        plan.workload.operations.truncate(1);
        let start = plan.workload.keys.start;
        let mut verified = Verified::new(Verifier::of(&plan.into(), false).unwrap(), None);
        assert_eq!(verified.verifier.begin(0, 0, start), Begin::Now);
        assert_eq!(verified.verifier.begin(1, 0, start), Begin::After(0));
        let mut pipeline = Pipeline::of_window(1);
        pipeline.stage(Request::undecided(0, 0));
        verified.dropped(&pipeline, 0);
        assert_eq!(verified.freed, [0], "a request that is held for it would wait for ever");
        assert_eq!(verified.verifier.begin(1, 0, start), Begin::Now);
    }
}
