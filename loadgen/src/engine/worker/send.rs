//! Filling the windows of connections, and one send per connection and turn.

use super::Worker;
use crate::engine::connection::{Connection, Sent};
use crate::engine::pipeline::{Class, Request};
use crate::engine::run::Run;
use crate::engine::sys;
use crate::record::LATE_NANOSECONDS;
use crate::resp;

impl Worker {
    /// Gives every connection what it has room for.
    pub(super) fn fill_all(&mut self) {
        for index in 0..self.connections.len() {
            self.has_room(index);
            self.fill(index);
        }
    }

    /// Keeps a connection's window full in a closed loop of one server.
    #[inline]
    pub(super) fn fill(&mut self, index: usize) {
        if self.uses_queues() {
            return;
        }
        while let Some(run) = &mut self.run {
            if !run.is_active() {
                return;
            }
            let connection = &mut self.connections[index];
            for _ in 0..connection.room(run.window, run.batch) {
                let Some(k) = run.draw() else { break };
                let draw = run.workload.draw(k);
                connection.pipeline.stage(Request { k, draw, due: 0, sent: 0, class: Class::Undecided, hops: 0 });
            }
            if connection.pipeline.staged() == 0 || !self.flush(index) {
                return;
            }
        }
    }

    /// Adds a command to what the next send of a connection takes along.
    #[inline]
    pub(super) fn stage(&mut self, index: u32, request: Request) {
        let pipeline = &mut self.connections[index as usize].pipeline;
        if pipeline.staged() == 0 {
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

    /// Encodes and sends what is staged on a connection. Says whether the socket may take more.
    fn flush(&mut self, index: usize) -> bool {
        let connection = &mut self.connections[index];
        let mut class = None;
        let sent = if let Some(run) = &mut self.run {
            let mut time = self.now;
            loop {
                class = run.class_at(time);
                limit(connection, run, class);
                if connection.pipeline.staged() == 0 {
                    return false;
                }
                self.encode_buffer.clear();
                let buffer = &mut self.encode_buffer;
                connection.pipeline.each_staged(|request| encode(request, Some(run), buffer));
                let sent = sys::monotonic_nanoseconds();
                // The border between two classes may lie between the two readings of the clock.
                if run.class_at(sent) == class {
                    break sent;
                }
                time = sent;
                self.now = sent;
            }
        } else {
            self.encode_buffer.clear();
            let buffer = &mut self.encode_buffer;
            connection.pipeline.each_staged(|request| encode(request, None, buffer));
            sys::monotonic_nanoseconds()
        };
        let mut fresh = 0;
        let open_loop = self.run.as_ref().is_some_and(Run::is_open);
        let recording = &mut self.recording;
        connection.pipeline.each_staged(|request| {
            request.sent = sent;
            if let (Class::Undecided, Some(class)) = (request.class, class) {
                request.class = class;
                request.due = sent;
                fresh += 1;
                match class {
                    Class::Measured => recording.scheduled(request.draw.operation),
                    Class::Warmup => recording.warmup.scheduled += 1,
                    _ => {}
                }
            } else if open_loop && request.hops == 0 {
                let late = sent.saturating_sub(request.due);
                match request.class {
                    Class::Measured => recording.sent(request.draw.operation, late),
                    Class::Warmup => recording.warmup.late += u64::from(late > LATE_NANOSECONDS),
                    _ => {}
                }
            }
        });
        if let Some(run) = &mut self.run {
            run.outstanding += fresh;
            if class == Some(Class::Measured) {
                run.spend(if open_loop { 0 } else { fresh }, sent);
                self.recording.sent_bytes += self.encode_buffer.len() as u64;
            }
            if run.first_send == 0 && run.is_active() {
                run.first_send = sent;
            }
        }
        connection.pipeline.sent();
        match connection.send(&self.encode_buffer) {
            Ok(Sent::All) => true,
            Ok(Sent::Blocked) => false,
            Err(error) => {
                self.broken(index, &error);
                false
            }
        }
    }
}

/// Drops what a closed loop staged but may not send any more.
#[inline]
fn limit(connection: &mut Connection, run: &Run, class: Option<Class>) {
    let staged = connection.pipeline.staged();
    let most = match (class, run.quota) {
        (None, _) => 0,
        (Some(Class::Measured), Some(quota)) if quota < staged as u64 => quota as usize,
        _ => return,
    };
    let mut undecided = 0;
    connection.pipeline.each_staged(|request| undecided += usize::from(request.class == Class::Undecided));
    // Undecided ones are behind the resends of the same send.
    if undecided > most {
        connection.pipeline.drop_staged(staged - (undecided - most));
    }
}

#[inline]
fn encode(request: &Request, run: Option<&Run>, buffer: &mut Vec<u8>) {
    match (request.class, run) {
        (Class::Ping, _) => resp::append_command(buffer, &[b"PING"]),
        (Class::Asking, _) => resp::append_command(buffer, &[b"ASKING"]),
        (_, Some(run)) => run.workload.encode(request.k, request.draw, buffer),
        (_, None) => {}
    }
}
