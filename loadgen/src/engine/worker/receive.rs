//! Everything received: replies, redirects, and the ends of connections.

use std::io;
use std::net::SocketAddr;

use redisbench_wire::plan::Topology;

use super::Worker;
use crate::cluster::{Deferral, Redirect};
use crate::engine::caching::Answered;
use crate::engine::compound::{self, CompoundOutcome};
use crate::engine::connections::{Link, Sent};
use crate::engine::pipeline::{Class, Flight, Request};
use crate::engine::progress::Error;
use crate::engine::router::Resend;
use crate::engine::stream::Received;
use crate::record::{Completion, Recording, Span};
use crate::resp::{ProtocolError, Reply, Taken, WholeReplies};
use crate::sys::{self, EventFlags};
use crate::verify::Moment;

/// The maximum number of redirects that a request follows.
const HOPS: u8 = 5;

/// Consecutive reads of one connection, before the others have their turn.
const READS: usize = 16;

impl Worker {
    /// Handles the events of a connection.
    #[inline]
    pub(super) fn happened(&mut self, index: usize, events: EventFlags) {
        let hangup = events.intersects(sys::HANGUP);
        let writable = events.contains(EventFlags::OUT);
        let connection = &mut self.connections[index];
        match connection.link() {
            Link::Connecting { .. } if !hangup && !writable => {}
            Link::Connecting { .. } | Link::Securing { .. } => {
                let secured = self.connections.secure(index);
                self.made(index, secured);
            }
            _ if writable && connection.has_unsent() => match connection.send_rest() {
                Ok(Sent::Blocked) => {}
                Ok(Sent::All) => {
                    self.fill(index);
                    self.list_if_room(index);
                }
                Err(error) => return self.broken(index, &error),
            },
            _ => {}
        }
        if hangup || events.contains(EventFlags::IN) {
            self.receive(index, hangup);
        }
    }

    /// Reads the available data. A read that does not fill the buffer has emptied the socket, and later data is a new event. Only after a
    /// hang-up must it read on, to the end of the stream.
    pub(super) fn receive(&mut self, index: usize, hangup: bool) {
        for _ in 0..READS {
            let Some(stream) = self.connections[index].stream() else { return };
            match stream.read(&mut self.read_buffer) {
                Ok(Received { count: 0, .. }) => {
                    return self.lost(index, "ConnectionClosed", "the server closed the connection");
                }
                Ok(Received { count, emptied }) => {
                    self.now = sys::monotonic_nanoseconds();
                    self.recording.come_to(self.now);
                    self.replies(index, count);
                    if emptied && !hangup {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.broken(index, &error),
            }
        }
        self.again.push((index as u32, hangup));
    }

    /// Takes the replies in the first `count` bytes of the read buffer.
    fn replies(&mut self, index: usize, count: usize) {
        // Taken out of the worker while it is read, so that replies can be acted on.
        let buffer = std::mem::take(&mut self.read_buffer);
        let mut input = &buffer[..count];
        self.recording.read(count, self.load.class_at(self.now) == Some(Class::Measured));
        let mut successes = 0;
        loop {
            successes += self.plain_replies(index, &mut input);
            if input.is_empty() {
                break;
            }
            if self.caching.is_some() {
                match self.pushed(index, &mut input) {
                    Ok(true) if !input.is_empty() => {}
                    Ok(_) => break,
                    Err(error) => {
                        self.lost(index, "Protocol", &error.to_string());
                        break;
                    }
                }
            }
            let before = input;
            let connection = &mut self.connections[index];
            let decoded = match &self.compounds {
                None => connection.decoder.next(&mut input),
                Some(_) => connection.decoder.next_noted(&mut input),
            };
            if let Some(request) = connection.pipeline.oldest_request().filter(|request| request.class.is_load()) {
                self.recording.read_of(request.operation, before.len() - input.len());
            }
            let reply = match decoded {
                Ok(Some(reply)) => reply,
                Ok(None) => {
                    self.checker.iter_mut().for_each(|checker| checker.verifier.hold(index, before));
                    break;
                }
                Err(error) => {
                    self.lost(index, "Protocol", &error.to_string());
                    break;
                }
            };
            if let Link::Greeting { .. } = connection.link() {
                let greeted = self.connections.greeted(index, reply);
                self.made(index, greeted);
                continue;
            }
            if let Some(trial) = &self.compounds
                && let Some(taken) = compound::take(connection, trial, reply)
            {
                match taken {
                    Ok(None) => {}
                    Ok(Some(outcome)) => successes += self.compound_answered(index, outcome),
                    Err(strange) => {
                        self.lost(index, "Protocol", strange);
                        break;
                    }
                }
                continue;
            }
            if let Some(caching) = &mut self.caching
                && caching.takes(index, connection.pipeline.oldest_request(), reply)
            {
                self.checker.iter_mut().for_each(|checker| checker.verifier.forget(index));
                continue;
            }
            let Some((request, sent)) = connection.pipeline.answered() else {
                if connection.stream().is_some() {
                    self.lost(index, "Protocol", "received a reply without a request");
                }
                break;
            };
            let tracked = self.caching.as_mut().is_some_and(|caching| caching.replied(index));
            if reply == Reply::Error {
                self.error_reply(index, request, sent);
            } else {
                if self.checker.is_some() {
                    self.check(index, &request, reply, &before[..before.len() - input.len()]);
                }
                if self.caching.is_some() {
                    self.cache(index, Answered { request: &request, sent, now: self.now, reply, tracked });
                }
                successes += self.success(index, request, sent, reply);
            }
        }
        self.read_buffer = buffer;
        if successes > 0 {
            self.recording.completed(self.now, successes);
            self.router.answered(self.connections[index].node(), &self.load, self.now);
        }
        if self.connections[index].is_worn_out() && self.load.class_at(self.now).is_some() {
            return self.renew(index);
        }
        self.fill(index);
        // Writes that were staged while replies were read, unless an earlier flush already sent them.
        if self.load.fills && self.connections[index].pipeline.staged_count() > 0 {
            self.flush(index);
        }
        self.list_if_room(index);
    }

    /// Takes push messages, if `input` is between two replies. Returns false if the rest of one has not arrived.
    fn pushed(&mut self, index: usize, input: &mut &[u8]) -> Result<bool, ProtocolError> {
        let counts = self.load.has_measured_by(self.now);
        match &mut self.caching {
            Some(caching) if self.connections[index].decoder.is_between_replies() => {
                caching.pushes(index, input, self.now, counts)
            }
            _ => Ok(true),
        }
    }

    /// Passes a reply without an error to the caches.
    fn cache(&mut self, index: usize, answered: Answered<'_>) {
        let of_trial = matches!(answered.request.class, Class::Warmup | Class::Measured | Class::Fill);
        let counts = self.load.has_measured_by(self.now);
        if let Some(caching) = self.caching.as_mut().filter(|_| of_trial && self.load.caches) {
            caching.answered(index, answered, &self.load.workload, counts);
        }
    }

    /// Takes replies up to the first that needs individual handling, because of its content or of its request. Nothing else happens
    /// between them, so they are counted together.
    #[inline]
    fn plain_replies(&mut self, index: usize, input: &mut &[u8]) -> u64 {
        let connection = &mut self.connections[index];
        if connection.link() != Link::Ready || !connection.decoder.is_between_replies() || self.one_by_one {
            return 0;
        }
        let (node, pipeline) = (connection.node() as u32, &mut connection.pipeline);
        let mut count = 0;
        while let Some((flight, requests)) = pipeline.oldest() {
            let all = requests.len();
            let (replies, recording) = (&mut self.whole_replies, &mut self.recording);
            let answered = count_plain(flight, requests, replies, input, node, self.now, recording);
            pipeline.drop_oldest(answered);
            count += answered as u64;
            if answered < all {
                break;
            }
        }
        self.load.finished(count, self.now);
        count
    }

    /// Counts a reply without an error. Returns what it adds to the series.
    #[inline]
    fn success(&mut self, index: usize, request: Request, sent: u64, reply: Reply) -> u64 {
        let Request { operation, class, due, hops, .. } = request;
        let nil = reply == Reply::Nil;
        match class {
            Class::Measured => {
                let node = self.connections[index].node() as u32;
                self.recording.responded(operation, self.now.saturating_sub(due), 1);
                self.recording.served(operation, node, self.now.saturating_sub(sent), 1);
                self.trace(node, &request, Some(sent), None);
            }
            Class::Preload => {
                self.preloaded.keys += u64::from(self.load.writes_keys);
                self.preloaded.commands += 1;
            }
            Class::Fill => {
                self.load.filled(&request, false, &mut self.recording);
                return 0;
            }
            Class::Warmup | Class::Check => {}
            Class::Undecided | Class::Orphan | Class::OrphanOfTrial | Class::Ping | Class::Asking => return 0,
        }
        self.load.finished(1, self.now);
        let Some(period) = class.period() else { return 0 };
        self.recording.succeeded(period, operation, 1, u64::from(nil));
        if hops.redirects() > 0 {
            self.recording.followed(period, operation);
        }
        if self.load.fills
            && nil
            && let Some(fill) = self.load.missed(request)
        {
            self.connections[index].pipeline.stage(fill);
        }
        1
    }

    /// Keeps the time stamps of a measured request that has its outcome, if it is traced.
    #[inline]
    fn trace(&mut self, node: u32, request: &Request, sent: Option<u64>, error: Option<&str>) {
        let &Request { k, operation, due, hops, .. } = request;
        if self.recording.traces(k) {
            let (redirects, error) = (hops.redirects(), error.map(str::to_owned));
            self.recording.trace(Span { k, operation, node: Some(node), due, sent, ended: self.now, redirects, error });
        }
    }

    /// Handles the outcome of a compound request. Returns what it adds to the series.
    #[cold]
    fn compound_answered(&mut self, index: usize, outcome: CompoundOutcome) -> u64 {
        let CompoundOutcome { request, sent, reply, error, under_replicated } = outcome;
        if let Some(Error { text, executed }) = error {
            self.refused(index, request, sent, &text, executed);
            return 0;
        }
        if let Some(period) = request.class.period().filter(|_| under_replicated) {
            self.recording.under_replicated(period, request.operation);
        }
        self.success(index, request, sent, reply)
    }

    /// Checks a reply without an error. `piece` is the last part of it, or all of it.
    #[cold]
    fn check(&mut self, index: usize, request: &Request, reply: Reply, piece: &[u8]) {
        let Some(checker) = &mut self.checker else { return };
        let moment = Moment { node: &self.router.nodes()[self.connections[index].node()].server.label, at: self.now };
        let free = checker.check(index, request, reply, piece, moment);
        self.release(free);
    }

    #[cold]
    fn error_reply(&mut self, index: usize, request: Request, sent: u64) {
        self.checker.iter_mut().for_each(|checker| checker.verifier.forget(index));
        let text = self.connections[index].decoder.error_text().to_vec();
        self.refused(index, request, sent, &text, false);
    }

    /// Handles an error reply to a command sent at `sent`. An `executed` request is never sent again.
    #[cold]
    fn refused(&mut self, index: usize, request: Request, sent: u64, text: &[u8], executed: bool) {
        if !request.class.is_load() {
            return;
        }
        if let Some(caching) = self.caching.as_mut().filter(|_| self.load.caches) {
            caching.refused(&request, sent, &self.load.workload);
        }
        let node = self.connections[index].node();
        if self.router.has_slots()
            && !executed
            && let Some(redirect) = Redirect::parse(text)
        {
            return self.redirected(node, request, redirect);
        }
        let deferral = Deferral::parse(text).filter(|_| !executed);
        if matches!(deferral, Some(Deferral::ClusterDown | Deferral::Loading)) {
            self.unanswered(node, sent);
        }
        if let Some(why) = deferral {
            if let Some(period) = request.class.period() {
                self.recording.deferred(period, request.operation, why);
            }
            if self.hold(request) {
                return;
            }
            if request.class == Class::Preload {
                // Sent again, as after no reply: only the time to prepare bounds a preload.
                return self.fail(node, &request, "", "", false);
            }
        }
        let text = String::from_utf8_lossy(text);
        let kind = text.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("ERR");
        // The former primary is now a replica: the sentinels know the new primary.
        if kind == "READONLY" && self.common.plan.target.topology == Topology::Sentinel {
            self.outbox.topology_is_stale();
            self.unanswered(node, sent);
        }
        // A replica took over, or a server restarted: discovering the topology loads the scripts again.
        if kind == "NOSCRIPT" && !self.common.plan.workload.options.scripts.is_empty() {
            self.outbox.topology_is_stale();
        }
        // The number of kinds is bounded, and so is their length.
        let kind: String = kind.chars().take(32).collect();
        self.fail(node, &request, &kind, &text, true);
    }

    /// Holds a request for a pause. Returns false if its pauses would exceed the request timeout: then it has failed.
    #[cold]
    fn hold(&mut self, request: Request) -> bool {
        let patience = self.common.plan.timeouts.request_nanoseconds;
        let Some(ends) = self.router.hold(request, patience, self.now) else { return false };
        // A cluster that was down may have other owners afterwards.
        if self.router.has_slots() {
            self.outbox.topology_is_stale();
        }
        self.tick_by(ends);
        true
    }

    /// Ends a request with an error.
    #[cold]
    pub(super) fn fail(&mut self, node: usize, request: &Request, kind: &str, message: &str, answered: bool) {
        if let Some(checker) = &mut self.checker {
            let free = checker.failed(request, kind, answered);
            self.release(free);
        }
        if let Some(period) = request.class.period() {
            let &Request { operation, due, hops, .. } = request;
            let (node, redirected) = (node as u32, hops.redirects() > 0);
            self.recording.failed(period, &Completion { operation, node, due, now: self.now, redirected }, answered);
        }
        if request.class == Class::Measured {
            self.trace(node as u32, request, None, Some(kind));
        }
        let label = &self.router.nodes()[node].server.label;
        match request.class {
            Class::Measured => self.recording.error(kind, || format!("{message} ({label})")),
            Class::Preload => {
                self.load.finished(1, self.now);
                if answered {
                    self.preloaded.commands += 1;
                    return self.preload_failed(format!("{message} ({label})"));
                }
                // Writing a key twice does no harm.
                return self.load.redo(request.k);
            }
            Class::Warmup | Class::Check => {}
            Class::Fill => return self.load.filled(request, true, &mut self.recording),
            Class::Undecided | Class::Orphan | Class::OrphanOfTrial | Class::Ping | Class::Asking => return,
        }
        self.load.finished(1, self.now);
    }

    #[cold]
    fn redirected(&mut self, node: usize, mut request: Request, redirect: Redirect<'_>) {
        if let Some(period) = request.class.period() {
            self.recording.redirected(period, request.operation, node as u32);
        }
        let (asking, slot, address) = match redirect {
            Redirect::Moved { slot, address } => (false, slot, address),
            Redirect::Ask { slot, address } => (true, slot, address),
        };
        let target = match self.common.plan.target.reachable(address) {
            None => match resolve(address, self.router.nodes()[node].server.address) {
                Some(resolved) => self.router.find(|server| server.address == resolved).or_else(|| self.join(resolved)),
                None => self.router.find(|server| server.label == address),
            },
            Some(reachable) => self.router.find(|server| server.label == reachable),
        };
        if !asking {
            self.outbox.topology_is_stale();
            if let Some(target) = target {
                self.router.moved(slot, target, &request);
                self.uncache_node(node);
            }
        }
        // A name that needs a resolver: the next topology has it, and until then the request waits.
        let Some(target) = target else {
            self.outbox.topology_is_stale();
            if request.hops.redirects() == 0 {
                request.hops.redirect();
            }
            if !self.hold(request) {
                let message = format!("redirected to an unknown address, {address}");
                self.fail(node, &request, "RedirectLimit", &message, true);
            }
            return;
        };
        if self.router.begin_to_use(target) {
            self.follow_router();
        }
        request.hops.redirect();
        if request.hops.redirects() > HOPS {
            return self.fail(node, &request, "RedirectLimit", "redirected more than 5 times", true);
        }
        self.router.resend(usize::from(target), Resend { request, since: self.now, asking });
    }

    /// Adds the server of a redirect. `None` at the limit of nodes.
    fn join(&mut self, address: SocketAddr) -> Option<u16> {
        let node = self.router.join(&address.into());
        self.follow_router();
        node
    }

    pub(super) fn broken(&mut self, index: usize, error: &io::Error) {
        self.lost(index, "ConnectionReset", &error.to_string());
    }
}

/// The maximum number of requests that are counted together, because they are compared before it is known how many have a reply.
const TOGETHER: usize = 64;

/// Counts the replies in `input` that answer `requests`, the commands of one send in order, up to the first that needs individual
/// handling. Consecutive requests that are alike are counted together, and those with one due time also in the response times. Returns
/// how many were answered.
// Out of line, so that it has the registers to itself.
#[inline(never)]
fn count_plain(
    flight: Flight,
    requests: &[Request],
    replies: &mut WholeReplies,
    input: &mut &[u8],
    node: u32,
    now: u64,
    recording: &mut Recording,
) -> usize {
    let service = now.saturating_sub(flight.sent);
    let mut rest = requests;
    while let Some(first) = rest.first()
        && flight.is_plain(first)
        && WholeReplies::may_take(input)
    {
        let (operation, unread) = (first.operation, input.len());
        let alike = rest.iter().take(TOGETHER).take_while(|request| request.is_like(first)).count();
        let Taken { count, nil } = replies.take(input, alike);
        let (answered, unanswered) = rest.split_at(count);
        // Undecided requests are due when they are sent, whatever their field holds.
        let undecided = first.class == Class::Undecided;
        for same in answered.chunk_by(|one, next| undecided || one.due == next.due) {
            recording.responded(operation, now.saturating_sub(flight.due(&same[0])), same.len() as u64);
        }
        let counts = (count as u64, count as u64);
        recording.plain(operation, node, service, counts, nil, unread - input.len());
        rest = unanswered;
        if count < alike {
            break;
        }
    }
    requests.len() - rest.len()
}

/// The address of a redirect. A missing host means that of the answering server.
fn resolve(address: &str, answered_by: SocketAddr) -> Option<SocketAddr> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok()?;
    if host.is_empty() {
        return Some(SocketAddr::new(answered_by.ip(), port));
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse().ok().map(|host| SocketAddr::new(host, port))
}
