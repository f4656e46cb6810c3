//! Everything received: replies, redirects, and the ends of connections.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use redisbench_wire::plan::Topology;
use redisbench_wire::snapshot::Stage;

use super::Worker;
use super::transaction::GivenUp;
use crate::cluster::{Deferral, Redirect};
use crate::engine::api::{ConnectFailure, EngineEvent};
use crate::engine::connection::{Link, Resend, Sent};
use crate::engine::pipeline::{Class, Flight, Request};
use crate::engine::stream::Received;
use crate::engine::sys;
use crate::record::{Completion, Recording};
use crate::resp::{Reply, WholeReplies};

/// The maximum number of redirects that a request follows.
const HOPS: u8 = 5;

/// Consecutive reads of one connection, before the others have their turn.
const READS: usize = 16;

impl Worker {
    /// Handles the events of a connection.
    #[inline]
    pub(super) fn happened(&mut self, index: usize, events: u32) {
        let hangup = events & sys::HANGUP != 0;
        let Some(connection) = self.connections.get_mut(index) else { return };
        if let Link::Connecting { deadline } = connection.link {
            if hangup || events & sys::WRITABLE != 0 {
                self.connected(index, deadline);
            }
        } else if events & sys::WRITABLE != 0 && connection.has_unsent() {
            match connection.send_rest() {
                Ok(Sent::Blocked) => {}
                Ok(Sent::All) => {
                    self.fill(index);
                    self.has_room(index);
                }
                Err(error) => return self.broken(index, &error),
            }
        }
        if let Link::Securing { deadline } = self.connections[index].link {
            self.secure(index, deadline);
        }
        if hangup || events & sys::READABLE != 0 {
            self.receive(index, hangup);
        }
    }

    /// Reads the available data. A read that does not fill the buffer has emptied the socket, and later data is a new event. Only after a
    /// hang-up must it read on, to the end of the stream.
    pub(super) fn receive(&mut self, index: usize, hangup: bool) {
        for _ in 0..READS {
            let Some(stream) = &mut self.connections[index].stream else { return };
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
        let measuring = self.run.as_ref().is_some_and(|run| run.class_at(self.now) == Some(Class::Measured));
        if measuring {
            self.recording.received_bytes += count as u64;
        }
        let mut successes = 0;
        loop {
            successes += self.plain_replies(index, &mut input);
            if input.is_empty() {
                break;
            }
            let before = input;
            let connection = &mut self.connections[index];
            let decoded = if self.exchanges {
                connection.decoder.next_noted(&mut input)
            } else {
                connection.decoder.next(&mut input)
            };
            let reply = match decoded {
                Ok(Some(reply)) => reply,
                Ok(None) => {
                    self.hold_piece(index, before);
                    break;
                }
                Err(error) => {
                    self.lost(index, "Protocol", &error.to_string());
                    break;
                }
            };
            if let Link::Greeting { deadline, replies } = connection.link {
                self.greeted(index, reply, deadline, replies);
                continue;
            }
            if self.exchanges {
                match self.exchange(index, reply) {
                    Some(Ok(count)) => {
                        successes += count;
                        continue;
                    }
                    Some(Err(GivenUp)) => break,
                    None => {}
                }
            }
            let connection = &mut self.connections[index];
            let Some((request, sent)) = connection.pipeline.answered() else {
                if connection.stream.is_some() {
                    self.lost(index, "Protocol", "received a reply without a request");
                }
                break;
            };
            if reply == Reply::Error {
                self.error_reply(index, request, sent);
            } else {
                if self.verified.is_some() {
                    self.check(index, &request, reply, &before[..before.len() - input.len()]);
                }
                successes += self.success(index, request, sent, reply);
                if self.fills && reply == Reply::Nil {
                    self.missed(index, request);
                }
            }
        }
        self.read_buffer = buffer;
        if successes > 0 {
            self.recording.series.add(self.now, successes);
            let node = self.connections[index].node as usize;
            self.nodes[node].answered = self.now;
            if self.nodes[node].out {
                self.answered_again(node);
            }
        }
        self.fill(index);
        if self.fills {
            self.send_fills(index);
        }
        self.has_room(index);
    }

    /// Takes replies up to the first that needs individual handling, because of its content or of its request. Nothing else happens
    /// between them, so they are counted together.
    #[inline]
    fn plain_replies(&mut self, index: usize, input: &mut &[u8]) -> u64 {
        let connection = &self.connections[index];
        if connection.link != Link::Ready || !connection.decoder.is_between_replies() || self.one_by_one {
            return 0;
        }
        let connection = &mut self.connections[index];
        let mut count = 0;
        while let Some((flight, requests)) = connection.pipeline.oldest() {
            let (all, node) = (requests.len(), connection.node);
            let (replies, recording) = (&mut self.whole_replies, &mut self.recording);
            let answered = count_plain(flight, requests, replies, input, node, self.now, recording);
            connection.pipeline.drop_oldest(answered);
            count += answered as u64;
            if answered < all {
                break;
            }
        }
        self.finished(count);
        count
    }

    /// Counts a reply without an error. Returns what it adds to the series.
    #[inline]
    pub(super) fn success(&mut self, index: usize, request: Request, sent: u64, reply: Reply) -> u64 {
        match request.class {
            Class::Measured => {
                let (operation, node) = (request.operation, self.connections[index].node);
                self.recording.responded(operation, self.now.saturating_sub(request.due), 1);
                self.recording.succeeded(operation, 1, u64::from(reply == Reply::Nil));
                self.recording.served(operation, node, self.now.saturating_sub(sent), 1);
                if request.hops.redirects() > 0 {
                    self.recording.followed(operation);
                }
            }
            Class::Warmup => {
                self.recording.warmup.succeeded += 1;
                self.recording.warmup.redirected += u64::from(request.hops.redirects() > 0);
            }
            Class::Preload => {
                self.preloaded_keys += 1;
                self.preload_commands += 1;
                self.finished(1);
                return 0;
            }
            Class::Check => {
                self.finished(1);
                return 0;
            }
            Class::Fill => {
                self.filled(&request, false);
                return 0;
            }
            Class::Undecided | Class::Orphan | Class::OrphanOfTrial | Class::Ping | Class::Asking => return 0,
        }
        self.finished(1);
        1
    }

    /// Accounts for `count` requests of the load that have their outcome.
    #[inline]
    fn finished(&mut self, count: u64) {
        if let Some(run) = &mut self.run {
            run.outstanding -= count;
            run.in_flight.fall(count, self.now);
            run.tokens += count;
        }
    }

    #[cold]
    pub(super) fn error_reply(&mut self, index: usize, request: Request, sent: u64) {
        self.forget_pieces(index);
        let text = self.connections[index].decoder.error_text().to_vec();
        self.refused(index, request, sent, &text, false);
    }

    /// Handles an error reply to a command sent at `sent`. An `executed` request is never sent again.
    #[cold]
    pub(super) fn refused(&mut self, index: usize, request: Request, sent: u64, text: &[u8], executed: bool) {
        if !request.class.is_load() {
            return;
        }
        if self.slots.is_some()
            && !executed
            && let Some(redirect) = Redirect::parse(text)
        {
            return self.redirected(index, request, redirect);
        }
        let node = self.connections[index].node;
        let deferral = Deferral::parse(text).filter(|_| !executed);
        if matches!(deferral, Some(Deferral::ClusterDown | Deferral::Loading)) {
            self.unanswered(node as usize, sent);
        }
        if deferral.is_some_and(|why| self.defer(request, why)) {
            return;
        }
        let text = String::from_utf8_lossy(text);
        let kind = text.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("ERR");
        // The former primary is now a replica: the sentinels know the new primary.
        if kind == "READONLY" && self.common.plan.target.topology == Topology::Sentinel {
            self.topology_stale = true;
            self.unanswered(node as usize, sent);
        }
        // A replica took over, or a server restarted: discovering the topology loads the scripts again.
        if kind == "NOSCRIPT" && !self.common.plan.workload.options.scripts.is_empty() {
            self.topology_stale = true;
        }
        // The number of kinds is bounded, and so is their length.
        let kind: String = kind.chars().take(32).collect();
        self.fail(node, &request, &kind, &text, true);
    }

    /// Ends a request with an error.
    #[cold]
    pub(super) fn fail(&mut self, node: u32, request: &Request, kind: &str, message: &str, answered: bool) {
        self.check_failed(request, kind, answered);
        match request.class {
            Class::Measured => {
                let completion = completion(node, request, self.now);
                self.recording.failed(&completion, answered);
                let label = &self.nodes[node as usize].label;
                self.recording.error(kind, || format!("{message} ({label})"));
            }
            Class::Warmup => {
                self.recording.warmup.errors += 1;
                self.recording.warmup.unanswered += u64::from(!answered);
                self.recording.warmup.redirected += u64::from(request.hops.redirects() > 0);
            }
            Class::Preload => {
                self.finished(1);
                if answered {
                    self.preload_commands += 1;
                    let label = &self.nodes[node as usize].label;
                    return self.preload_failed(format!("{message} ({label})"));
                }
                // Writing a key twice does no harm.
                if let Some(run) = &mut self.run {
                    run.redo.push(request.k);
                    run.stage = Stage::Measuring;
                }
                return;
            }
            Class::Check => {}
            Class::Fill => return self.filled(request, true),
            Class::Undecided | Class::Orphan | Class::OrphanOfTrial | Class::Ping | Class::Asking => return,
        }
        self.finished(1);
    }

    #[cold]
    fn redirected(&mut self, index: usize, mut request: Request, redirect: Redirect<'_>) {
        let node = self.connections[index].node;
        match request.class {
            Class::Measured => self.recording.redirected(request.operation, node),
            Class::Warmup => self.recording.warmup.redirect_hops += 1,
            _ => {}
        }
        let (asking, slot, address) = match redirect {
            Redirect::Moved { slot, address } => (false, slot, address),
            Redirect::Ask { slot, address } => (true, slot, address),
        };
        let answered_by = self.nodes[node as usize].address;
        let target = match self.common.plan.target.reachable(address) {
            None => match resolve(address, answered_by) {
                Some(resolved) => self.node_at(resolved),
                None => self.node_called(address),
            },
            Some(reachable) => self.node_called(reachable),
        };
        if !asking {
            self.topology_stale = true;
            if let (Some(target), Some(slots)) = (target, &mut self.slots) {
                slots[usize::from(slot)] = target;
                // The next topology names the replicas of that node.
                if let Some(readers) = self
                    .readers
                    .as_mut()
                    .filter(|readers| request.class != Class::Preload && readers.take(request.operation))
                {
                    readers.slots[usize::from(slot)] = target;
                }
            }
        }
        // A name that needs a resolver: the next topology has it, and until then the request waits.
        let Some(target) = target else {
            self.topology_stale = true;
            if request.hops.redirects() == 0 {
                request.hops.redirect();
            }
            if !self.hold(request) {
                let message = format!("redirected to an unknown address, {address}");
                self.fail(node, &request, "RedirectLimit", &message, true);
            }
            return;
        };
        request.hops.redirect();
        if request.hops.redirects() > HOPS {
            return self.fail(node, &request, "RedirectLimit", "redirected more than 5 times", true);
        }
        self.nodes[usize::from(target)].resend(Resend { request, since: self.now, asking });
    }

    /// The node that has this label.
    fn node_called(&self, label: &str) -> Option<u16> {
        self.nodes.iter().position(|node| !node.retired && node.label == label).map(|node| node as u16)
    }

    pub(super) fn broken(&mut self, index: usize, error: &io::Error) {
        let link = self.connections[index].link;
        if link.is_in_the_making() {
            return self.failed_to_connect(index, ConnectFailure::Broken, &error.to_string());
        }
        self.lost(index, "ConnectionReset", &error.to_string());
    }

    /// Handles a lost connection: requests in flight fail, nothing is sent again, and the connection is made anew.
    pub(super) fn lost(&mut self, index: usize, kind: &str, why: &str) {
        let link = self.connections[index].link;
        if link.is_in_the_making() {
            return self.failed_to_connect(index, ConnectFailure::Broken, why);
        }
        if link != Link::Ready {
            return;
        }
        let retry = self.retry(index);
        let connection = &mut self.connections[index];
        let node = connection.node as usize;
        let commands = connection.close(Link::Down { retry });
        self.ready -= 1;
        self.common.ready.fetch_sub(1, Relaxed);
        self.connections_change(false);
        let of_load = commands.iter().filter(|(request, _)| request.class.is_load());
        if let Some(first) = of_load.map(|(_, sent)| *sent).min() {
            self.unanswered(node, first);
            self.nodes[node].suspect = true;
        }
        self.note_unreachable(node);
        let patience = self.common.plan.timeouts.request_nanoseconds;
        for (request, sent) in commands {
            if sent.saturating_add(patience) <= self.now {
                let message = format!("no reply within {} ms", patience / 1_000_000);
                self.fail(node as u32, &request, "Timeout", &message, false);
            } else {
                self.fail(node as u32, &request, kind, why, false);
            }
        }
        let message = format!("lost the connection to {}: {why}", self.nodes[node].label);
        let _ = self.common.events.try_send(EngineEvent::ConnectionLost { message });
    }
}

/// Counts the replies in `input` that answer `requests`, the commands of one send in order, up to the first that needs individual
/// handling. Consecutive requests with the same operation or due time are counted together. Returns how many were answered.
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
    while let Some(first) = rest.first() {
        let operation = first.operation;
        let (mut count, mut nil) = (0, 0);
        let (mut due, mut alike) = (flight.due(first), 0);
        for request in rest {
            if request.operation != operation || !flight.is_plain(request) {
                break;
            }
            let Some(reply) = replies.next(input) else { break };
            if flight.due(request) != due {
                recording.responded(operation, now.saturating_sub(due), std::mem::take(&mut alike));
                due = flight.due(request);
            }
            alike += 1;
            count += 1;
            nil += u64::from(reply == Reply::Nil);
        }
        if count == 0 {
            break;
        }
        recording.responded(operation, now.saturating_sub(due), alike);
        recording.succeeded(operation, count as u64, nil);
        recording.served(operation, node, service, count as u64);
        rest = &rest[count..];
    }
    requests.len() - rest.len()
}

#[inline]
fn completion(node: u32, request: &Request, now: u64) -> Completion {
    Completion { operation: request.operation, node, due: request.due, now, redirected: request.hops.redirects() > 0 }
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
