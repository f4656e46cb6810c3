//! Fills the windows of connections, and sends once per connection and turn.

use bytes::Bytes;

use super::Worker;
use super::share::Share;
use crate::engine::caching::Caching;
use crate::engine::connections::Sent;
use crate::engine::pipeline::{Class, Pipeline, Request, Waiting};
use crate::record::{Period, Recording};
use crate::resp::Output;
use crate::sys;
use crate::workload::Workload;

impl Worker {
    /// Gives every connection as many requests as it has room for.
    pub(super) fn fill_all(&mut self) {
        for index in 0..self.connections.len() {
            self.fill(index);
            self.list_if_room(index);
        }
    }

    /// Keeps a connection's window full in a closed loop, unless callers share the connections.
    #[inline]
    pub(super) fn fill(&mut self, index: usize) {
        if self.uses_queues() {
            // Only a closed loop without callers draws before there is room, which keeps windows full.
            if !self.load.is_open() && !self.load.has_callers() {
                self.fill_for_node(index);
            }
            return;
        }
        while self.load.is_active() {
            let mut room = self.connections[index].room(self.load.depth);
            if !self.router.holds_none() {
                // Requests that pause or are sent again take part of it.
                room = self.load.room_left(room, self.connections.ready());
            }
            let connection = &mut self.connections[index];
            self.load.fill(index, connection, room);
            if connection.pipeline.staged_count() == 0 || !self.flush(index) {
                return;
            }
        }
    }

    /// Fills a connection's window right after its replies, if enough requests wait for its node: that costs less than a send after all
    /// replies have been read. Fewer requests are sent later, on as few connections as possible.
    fn fill_for_node(&mut self, index: usize) {
        let node = self.connections[index].node();
        // Resends go first.
        if !self.router.nodes()[node].resends.is_empty() {
            return;
        }
        let now = self.now;
        while self.load.is_active() && self.load.class_at(self.now).is_some() {
            let connection = &mut self.connections[index];
            let room = connection.room(self.load.depth);
            self.router.queue_drawn(&mut self.load, now);
            let Some(waiting) = self.router.take_many(node, room) else { return };
            let operations = self.load.workload.operations();
            let requests = waiting.map(|Waiting { k, .. }| Request::undecided(k, operations.of(k)));
            connection.pipeline.stage_undecided(requests);
            if !self.flush(index) {
                return;
            }
        }
    }

    /// Stages held requests where a closed loop of one server has room.
    #[cold]
    pub(super) fn stage_resends(&mut self) {
        let node = self.router.sole();
        for index in 0..self.connections.len() {
            while self.connections[index].room(self.load.depth) > 0 {
                let Some(resend) = self.router.nodes()[node].resends.front().copied() else { return };
                if !self.may_resend(node, &resend) {
                    return;
                }
                self.router.take_resend(node);
                self.connections.stage(index as u32, resend.request);
            }
        }
    }

    /// Sends all staged commands. Returns whether there were any.
    pub(super) fn flush_dirty(&mut self) -> bool {
        let mut any = false;
        while let Some(index) = self.connections.next_dirty() {
            any = true;
            self.flush(index as usize);
            // The next turn begins with another connection.
            self.connections.pass_over(index);
            self.list_if_room(index as usize);
        }
        any
    }

    /// Encodes and sends the staged commands of a connection. Returns whether the socket may take more.
    pub(super) fn flush(&mut self, index: usize) -> bool {
        let connection = &mut self.connections[index];
        let pipeline = &mut connection.pipeline;
        let mut time = self.now;
        let several = self.recording.only_operation().is_none();
        let (class, sent) = loop {
            let class = self.load.class_at(time);
            // Requests that a closed loop staged but may no longer send.
            if let Some(keep) = self.load.limit(class, pipeline.undecided_count()) {
                if let Some(checker) = &mut self.checker {
                    checker.dropped(pipeline, keep);
                }
                pipeline.keep_undecided(keep);
            }
            if pipeline.staged_count() == 0 {
                return false;
            }
            let workload = &*self.load.workload;
            let longest = workload.longest();
            let (output, shares) = (&mut self.output, Shares { several, list: &mut self.shares });
            match (&mut self.checker, self.caching.as_ref().filter(|_| self.load.caches)) {
                (None, None) => match &self.load.large_values {
                    None => encode(pipeline, workload, longest, output, shares, |operation, requests, room| {
                        (workload.encode(requests.iter().map(|request| request.k), operation, room), 0)
                    }),
                    Some(all) => {
                        let values = &mut self.values;
                        let longest = workload.longest_around();
                        encode(pipeline, workload, longest, output, shares, |operation, requests, room| {
                            encode_around(workload, all, operation, requests, room, values)
                        });
                        output.insert(values);
                    }
                },
                (checker, caching) => {
                    let longest = longest + caching.map_or(0, |_| Caching::PREFIX_LENGTH);
                    encode(pipeline, workload, longest, output, shares, |operation, requests, room| {
                        let write = |mut written, request: &Request| {
                            written +=
                                caching.map_or(0, |caching| caching.encode_prefix(request, &mut room[written..]));
                            let room = &mut room[written..];
                            written
                                + match checker {
                                    None => workload.encode_any(request.k, operation, room),
                                    Some(checker) => checker.encode(request, &self.load, room),
                                }
                        };
                        (requests.iter().fold(0, write), 0)
                    });
                }
            }
            let sent = sys::monotonic_nanoseconds();
            // The load may change its class between the two readings of the clock.
            if self.load.class_at(sent) == class {
                break (class, sent);
            }
            time = sent;
            self.now = sent;
        };
        if self.load.is_open() {
            self.vigil.sent(sent);
            lateness(pipeline, sent, &mut self.recording);
        } else {
            scheduled(pipeline, class, &mut self.recording);
        }
        self.load.sent(pipeline.undecided_count() as u64, class, sent);
        if class == Some(Class::Measured) {
            self.recording.wrote(self.output.len());
            if several {
                self.shares.iter().for_each(|share| self.recording.wrote_of(share.operation, share.bytes));
            }
        }
        if let Some(caching) = self.caching.as_mut().filter(|_| self.load.caches) {
            let measured = class == Some(Class::Measured);
            caching.sent(index, pipeline.staged(), sent, measured, &self.load.workload);
        }
        if let Some(life) = &mut connection.life {
            life.sent(pipeline.staged_count());
        }
        pipeline.sent(sent, class.unwrap_or(Class::Orphan));
        match connection.send(&mut self.output) {
            Ok(Sent::All) => true,
            Ok(Sent::Blocked) => false,
            Err(error) => {
                self.broken(index, &error);
                false
            }
        }
    }
}

/// Where the shares of a send are listed.
struct Shares<'a> {
    /// Requests can be of several operations.
    several: bool,
    list: &'a mut Vec<Share>,
}

impl Shares<'_> {
    /// Adds the bytes of requests. Out of line: a mix of a single operation does without.
    #[inline(never)]
    fn add(&mut self, operation: u16, bytes: usize) {
        match self.list.last_mut().filter(|share| share.operation == operation) {
            Some(share) => share.bytes += bytes,
            None => self.list.push(Share { operation, bytes }),
        }
    }
}

/// Encodes the staged commands, and lists the `shares` of their operations. `write` writes consecutive requests of one operation, each in at
/// most `longest` bytes. It returns how many bytes it wrote, and how many bytes of values it did not write.
#[inline]
fn encode(
    pipeline: &Pipeline,
    workload: &Workload,
    longest: usize,
    output: &mut Output,
    mut shares: Shares<'_>,
    mut write: impl FnMut(u16, &[Request], &mut [u8]) -> (usize, usize),
) {
    if shares.several {
        shares.list.clear();
        // Enough for good, unless connections keep more requests in flight later.
        shares.list.reserve(pipeline.staged_count());
    }
    let room = output.room(pipeline.staged_count() * longest.max(ASKING.len()) + Workload::SLACK);
    let (mut length, mut rest) = (0, pipeline.staged());
    while let Some(first) = rest.first() {
        let (operation, room) = (first.operation, &mut room[length..]);
        let in_run = |request: &&Request| request.operation == operation && !request.class.is_beside();
        let run = rest.iter().take_while(in_run).count();
        let (written, apart) = match run {
            0 => (encode_beside(first, workload, room), 0),
            _ => write(operation, &rest[..run], room),
        };
        length += written;
        if shares.several && (run > 0 || first.class == Class::Fill) {
            shares.add(operation, written + apart);
        }
        rest = &rest[run.max(1)..];
    }
    output.set_length(length);
}

/// Encodes requests without their values, which are slices of `all`. Adds these to `values`, as [`Output::insert`] takes them.
#[cold]
fn encode_around(
    workload: &Workload,
    all: &Bytes,
    operation: u16,
    requests: &[Request],
    room: &mut [u8],
    values: &mut Vec<(usize, Bytes)>,
) -> (usize, usize) {
    requests.iter().fold((0, 0), |(mut written, mut apart), request| {
        written += workload.encode_around(request.k, operation, &mut room[written..], |after, place| {
            apart += place.len();
            values.push((after, all.slice(place)));
        });
        (written, apart)
    })
}

/// Encodes a command that is not a request.
#[cold]
fn encode_beside(request: &Request, workload: &Workload, room: &mut [u8]) -> usize {
    let command = match request.class {
        Class::Ping => PING,
        Class::Asking => ASKING,
        _ => return workload.encode_fill(request.k, request.operation, room),
    };
    room[..command.len()].copy_from_slice(command);
    command.len()
}

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// Counts requests of a closed loop as scheduled when they are sent.
#[inline]
fn scheduled(pipeline: &Pipeline, class: Option<Class>, recording: &mut Recording) {
    let count = pipeline.undecided_count() as u64;
    match (class.and_then(Class::period), recording.only_operation()) {
        (Some(Period::Measured), None) => {
            let undecided = pipeline.staged().iter().filter(|request| request.class == Class::Undecided);
            undecided.for_each(|request| recording.scheduled(Period::Measured, request.operation, 1));
        }
        (Some(period), only) => recording.scheduled(period, only.unwrap_or_default(), count),
        (None, _) => {}
    }
}

/// Records how late an open loop's requests are sent. Skips requests sent before: redirected or deferred ones.
#[inline]
fn lateness(pipeline: &Pipeline, sent: u64, recording: &mut Recording) {
    for request in pipeline.staged() {
        let late = sent.saturating_sub(request.due);
        match request.class {
            Class::Measured if request.hops.is_first() => recording.sent(Period::Measured, request.operation, late),
            Class::Warmup if request.hops.is_first() => recording.sent(Period::Warmup, request.operation, late),
            _ => {}
        }
    }
}
