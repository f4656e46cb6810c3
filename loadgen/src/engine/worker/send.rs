//! Fills the windows of connections, and sends once per connection and turn.

use super::Worker;
use super::verified::Verified;
use crate::engine::connection::{Connection, Sent};
use crate::engine::pipeline::{Class, Pipeline, Request};
use crate::engine::run::{Filling, Run, Source};
use crate::engine::sys;
use crate::record::{LATE_NANOSECONDS, Recording};
use crate::resp::Output;
use crate::workload::Workload;

impl Worker {
    /// Gives every connection as many requests as it has room for.
    pub(super) fn fill_all(&mut self) {
        for index in 0..self.connections.len() {
            self.fill(index);
            self.has_room(index);
        }
    }

    /// Keeps a connection's window full in a closed loop, unless callers share the connections.
    #[inline]
    pub(super) fn fill(&mut self, index: usize) {
        if self.uses_queues() {
            if self.run.as_ref().is_some_and(Run::draws_ahead) {
                self.fill_for_node(index);
            }
            return;
        }
        while let Some(run) = &self.run {
            if !run.is_active() {
                return;
            }
            let mut room = self.room_beside_held(self.connections[index].room(run.window, run.batch));
            let (Some(run), connection) = (&mut self.run, &mut self.connections[index]) else { return };
            if run.filling == Filling::Batches {
                room = connection.of_batch(room, run.window);
            }
            if let Source::Closed { k, step } = &mut run.source {
                let (first, step, workload) = (*k, *step, &*run.workload);
                *k += step * room as u64;
                connection.pipeline.stage_undecided((0..room).map(|at| {
                    let k = first + step * at as u64;
                    Request::undecided(k, workload.operation(k))
                }));
            } else {
                connection.pipeline.stage_undecided(
                    (0..room).map_while(|_| run.draw().map(|k| Request::undecided(k, run.workload.operation(k)))),
                );
            }
            if connection.pipeline.staged_count() == 0 || !self.flush(index) {
                return;
            }
        }
    }

    /// Adds a command to the next send of a connection.
    #[inline]
    pub(super) fn stage(&mut self, index: u32, request: Request) {
        let pipeline = &mut self.connections[index as usize].pipeline;
        if pipeline.staged_count() == 0 {
            self.dirty.push(index);
        }
        pipeline.stage(request);
    }

    pub(super) fn flush_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.flush(index as usize);
            // The next turn begins with another connection.
            let open = &mut self.nodes[self.connections[index as usize].node as usize].open;
            if open.front() == Some(&index) {
                open.rotate_left(1);
            }
            self.has_room(index as usize);
        }
        self.dirty = dirty;
    }

    /// Encodes and sends the staged commands of a connection. Returns whether the socket may take more.
    pub(super) fn flush(&mut self, index: usize) -> bool {
        let connection = &mut self.connections[index];
        let mut class = None;
        let sent = if let Some(run) = &self.run {
            let mut time = self.now;
            loop {
                class = run.class_at(time);
                limit(connection, run, class, self.verified.as_deref_mut());
                if connection.pipeline.staged_count() == 0 {
                    return false;
                }
                match &mut self.verified {
                    None => encode(&connection.pipeline, Some(run), &mut self.output),
                    Some(verified) => verified.encode(&connection.pipeline, run, &mut self.output),
                }
                let sent = sys::monotonic_nanoseconds();
                // The load may change its class between the two readings of the clock.
                if run.class_at(sent) == class {
                    break sent;
                }
                time = sent;
                self.now = sent;
            }
        } else {
            encode(&connection.pipeline, None, &mut self.output);
            sys::monotonic_nanoseconds()
        };
        let open_loop = self.run.as_ref().is_some_and(Run::is_open);
        if open_loop {
            self.vigil.sent(sent);
            lateness(&connection.pipeline, sent, &mut self.recording);
        } else {
            scheduled(&connection.pipeline, class, &mut self.recording);
        }
        if let Some(run) = &mut self.run {
            let fresh = connection.pipeline.undecided_count() as u64;
            run.outstanding += fresh;
            run.drawn = run.drawn.saturating_sub(fresh);
            run.in_flight.rise(fresh, sent);
            if class == Some(Class::Measured) {
                run.spend(fresh, sent);
                self.recording.sent_bytes += self.output.bytes().len() as u64;
            }
            if run.first_send == 0 && run.is_active() {
                run.first_send = sent;
            }
        }
        connection.pipeline.sent(sent, class.unwrap_or(Class::Orphan));
        match connection.send(self.output.bytes()) {
            Ok(Sent::All) => true,
            Ok(Sent::Blocked) => false,
            Err(error) => {
                self.broken(index, &error);
                false
            }
        }
    }
}

/// Drops requests that a closed loop staged but may no longer send.
#[inline]
fn limit(connection: &mut Connection, run: &Run, class: Option<Class>, verified: Option<&mut Verified>) {
    let keep = match (class, run.quota) {
        (None, _) => 0,
        (Some(Class::Measured), Some(quota)) if quota < connection.pipeline.undecided_count() as u64 => quota as usize,
        _ => return,
    };
    if let Some(verified) = verified {
        verified.dropped(&connection.pipeline, keep);
    }
    connection.pipeline.keep_undecided(keep);
}

/// Encodes the staged commands.
#[inline]
fn encode(pipeline: &Pipeline, run: Option<&Run>, output: &mut Output) {
    let workload = run.map(|run| &*run.workload);
    let longest = workload.map_or(0, Workload::longest).max(ASKING.len());
    let room = output.room(pipeline.staged_count() * longest + Workload::SLACK);
    let mut length = 0;
    for request in pipeline.staged() {
        let room = &mut room[length..];
        length += match workload {
            Some(workload) if !request.class.is_beside() => workload.encode(request.k, request.operation, room),
            _ => encode_beside(request, workload, room),
        };
    }
    output.set_length(length);
}

/// Encodes a command that is not a request.
#[cold]
fn encode_beside(request: &Request, workload: Option<&Workload>, room: &mut [u8]) -> usize {
    match (request.class, workload) {
        (Class::Ping, _) => write(PING, room),
        (Class::Asking, _) => write(ASKING, room),
        (Class::Fill, Some(workload)) => workload.encode_fill(request.k, request.operation, room),
        _ => 0,
    }
}

pub(super) const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
pub(super) const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

#[cold]
pub(super) fn write(command: &[u8], room: &mut [u8]) -> usize {
    room[..command.len()].copy_from_slice(command);
    command.len()
}

/// Counts requests of a closed loop as scheduled when they are sent.
#[inline]
fn scheduled(pipeline: &Pipeline, class: Option<Class>, recording: &mut Recording) {
    let count = pipeline.undecided_count() as u64;
    match (class, recording.only_operation()) {
        (Some(Class::Measured), Some(operation)) => recording.scheduled(operation, count),
        (Some(Class::Measured), None) => {
            let undecided = pipeline.staged().iter().filter(|request| request.class == Class::Undecided);
            undecided.for_each(|request| recording.scheduled(request.operation, 1));
        }
        (Some(Class::Warmup), _) => recording.warmup.scheduled += count,
        _ => {}
    }
}

/// Records how late an open loop's requests are sent. Skips requests sent before: redirected or deferred ones.
#[inline]
fn lateness(pipeline: &Pipeline, sent: u64, recording: &mut Recording) {
    for request in pipeline.staged() {
        let late = sent.saturating_sub(request.due);
        match request.class {
            Class::Measured if request.hops.is_first() => recording.sent(request.operation, late),
            Class::Warmup if request.hops.is_first() => recording.warmup.late += u64::from(late > LATE_NANOSECONDS),
            _ => {}
        }
    }
}
