//! Makes connections, and makes them again.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use redisbench_wire::limits;

use super::Worker;
use super::dispatch::Readers;
use crate::cluster::{Topology, UNIX};
use crate::engine::api::{ConnectFailure, EngineEvent};
use crate::engine::connection::{Connection, Link, Node};
use crate::engine::pipeline::{Class, Request};
use crate::engine::stream::Stream;
use crate::engine::sys;
use crate::resp::{self, Reply};

/// The maximum number of concurrent connection attempts, so that a server's accept backlog is not overrun.
const AT_ONCE: usize = 64;

const BACKOFF_FIRST: u64 = 50_000_000;
const BACKOFF_LONGEST: u64 = 2_000_000_000;

/// Interval of a scout's attempts in nanoseconds: at least the first, and the second times the workers of all shards. All workers
/// together make at most 500 attempts per second.
const SCOUT_FIRST: u64 = 30_000_000;
const SCOUT_SHARE: u64 = 2_000_000;

/// One connection in this many records how long replies waited in the kernel.
const STAMPED: usize = 16;

/// How long servers are given to close connections that were shut down.
const PARTING: Duration = Duration::from_millis(500);

/// Interval of pings on idle connections, in nanoseconds.
const PING_EVERY: u64 = 5_000_000_000;

impl Worker {
    /// Adds a server with `count` connections, which [`Self::make_connections`] makes.
    pub(super) fn add_node(&mut self, id: &str, address: SocketAddr, label: &str, count: u32) -> u16 {
        let index = self.nodes.len();
        let mut node = Node::new(id, address, label);
        self.recording.add_node(id, label);
        for _ in 0..count {
            node.connections.push(self.connections.len() as u32);
            self.connections.push(Connection::new(index as u32, self.common.plan.pipeline as usize));
        }
        self.nodes.push(node);
        self.connect_soon = true;
        index as u16
    }

    /// The server at `address`, added if it is new. `None` at the limit of nodes.
    pub(super) fn node_at(&mut self, address: SocketAddr) -> Option<u16> {
        if let Some(known) = self.nodes.iter().position(|node| node.address == address) {
            self.revive(known);
            return Some(known as u16);
        }
        if self.nodes.len() >= limits::NODES {
            return None;
        }
        let label = address.to_string();
        let count = self.share();
        self.common.wanted.fetch_add(count, Relaxed);
        Some(self.add_node(&label, address, &label, count))
    }

    /// Number of connections for a server that joins later.
    fn share(&self) -> u32 {
        let active = self.nodes.iter().filter(|node| !node.retired).count().max(1);
        let connections: usize =
            self.nodes.iter().filter(|node| !node.retired).map(|node| node.connections.len()).sum();
        (connections / active).max(1) as u32
    }

    fn revive(&mut self, node: usize) {
        if !std::mem::take(&mut self.nodes[node].retired) {
            return;
        }
        for connection in &self.nodes[node].connections {
            let connection = &mut self.connections[*connection as usize];
            if connection.link == Link::Retired {
                connection.link = Link::Down { retry: self.now };
            }
        }
        self.common.wanted.fetch_add(self.nodes[node].connections.len() as u32, Relaxed);
        self.connect_soon = true;
    }

    /// Applies a new topology. Servers that left keep their counts and lose their connections.
    pub(super) fn update_topology(&mut self, topology: &Topology) {
        self.topology_stale = false;
        self.told_stale = false;
        self.silent_nodes_fail();
        let share = self.share();
        let mut indices = Vec::with_capacity(topology.nodes.len());
        for node in &topology.nodes {
            let known = self.nodes.iter().position(|known| known.id == node.id && known.address == node.address);
            // A node known only from a redirect has its address as id.
            let known = known.or_else(|| self.nodes.iter().position(|known| known.address == node.address));
            indices.push(if let Some(known) = known {
                self.revive(known);
                if self.nodes[known].id != node.id {
                    self.nodes[known].id.clone_from(&node.id);
                    self.nodes[known].label.clone_from(&node.label);
                    self.recording.rename_node(known, &node.id, &node.label);
                }
                known as u16
            } else if self.nodes.len() >= limits::NODES {
                // Nodes that left keep their places, and a report with more nodes than the limit is invalid. The slots of this one count
                // as not covered.
                crate::cluster::UNCOVERED
            } else {
                self.common.wanted.fetch_add(share, Relaxed);
                self.add_node(&node.id, node.address, &node.label, share)
            });
        }
        for (index, node) in self.nodes.iter_mut().enumerate() {
            if !node.retired && !indices.contains(&(index as u16)) {
                node.retired = true;
                self.common.wanted.fetch_sub(node.connections.len() as u32, Relaxed);
            }
        }
        if let Some(slots) = &topology.slots {
            let map = |slot: u16| indices.get(usize::from(slot)).copied().unwrap_or(crate::cluster::UNCOVERED);
            let mut mapped = slots.clone();
            mapped.iter_mut().for_each(|slot| *slot = map(*slot));
            self.slots = Some(mapped);
            self.update_readers(topology, map);
        } else if let Some(sole) = indices.first() {
            self.sole = usize::from(*sole);
            self.leave_retired();
        }
        self.note_replicas(topology, indices.into_iter().map(usize::from));
        self.hand_over_outages();
        self.reroute();
    }

    /// Replaces the map of nodes to read from. Slots without a reader keep the previous one.
    fn update_readers(&mut self, topology: &Topology, map: impl Fn(u16) -> u16) {
        let Some(mut slots) = topology.readers.clone() else { return };
        slots.iter_mut().for_each(|slot| *slot = map(*slot));
        if let Some(before) = &self.readers {
            let gone = slots.iter_mut().zip(before.slots.iter()).filter(|(now, _)| **now == crate::cluster::UNCOVERED);
            gone.for_each(|(now, before)| *now = *before);
        }
        self.readers = Some(Readers { slots, operations: self.common.reads.clone() });
    }

    /// Marks the nodes that serve reads only. `indices` are the positions of the topology's nodes in `self.nodes`.
    pub(super) fn note_replicas(&mut self, topology: &Topology, indices: impl IntoIterator<Item = usize>) {
        for (place, index) in indices.into_iter().take(topology.nodes.len()).enumerate() {
            if let Some(node) = self.nodes.get_mut(index) {
                node.replica = topology.is_replica(place);
            }
        }
    }

    /// Closes the connections to the previous server after the only server was replaced. Requests in flight there fail: it may not reply
    /// any more, or only as a replica.
    fn leave_retired(&mut self) {
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            if !self.nodes[connection.node as usize].retired {
                continue;
            }
            if connection.link.is_in_the_making() {
                connection.close(Link::Down { retry: self.now });
            } else {
                self.lost(index, "ConnectionClosed", "the target is now another server");
            }
        }
    }

    /// Begins as many connections as the limits allow.
    pub(super) fn make_connections(&mut self) {
        if self.ready == self.connections.len() && self.nodes.iter().all(|node| !node.retired) {
            return;
        }
        let making = |connection: &&Connection| connection.link.is_in_the_making();
        let mut free = AT_ONCE.saturating_sub(self.connections.iter().filter(making).count());
        for index in 0..self.connections.len() {
            if free == 0 {
                break;
            }
            let retired = self.nodes[self.connections[index].node as usize].retired;
            match self.connections[index].link {
                Link::Ready if retired && self.connections[index].pipeline.is_empty() => self.retire(index),
                Link::Down { .. } if retired => self.connections[index].link = Link::Retired,
                // A scout does not wait for the tick.
                Link::Down { retry } if retry > self.now && self.is_scout(index) => {
                    self.next_tick = self.next_tick.min(retry);
                }
                Link::Down { retry } if retry <= self.now => {
                    if let Err(next) = self.connect_rate.take(self.now) {
                        self.next_tick = self.next_tick.min(next);
                        break;
                    }
                    free -= 1;
                    self.begin(index);
                }
                _ => {}
            }
        }
    }

    /// Closes all connections and makes none until asked to. The servers get a moment to close theirs first, so that none still counts a
    /// connection when its successor arrives.
    pub(super) fn disconnect(&mut self) {
        self.connecting = false;
        self.parting.get_or_insert((self.found(), self.receive_delay()));
        let streams = || self.connections.iter().filter_map(|connection| connection.stream.as_ref());
        // A socket that cannot be shut down is closed below.
        streams().for_each(|stream| drop(stream.socket().shutdown(Shutdown::Write)));
        let until = Instant::now() + PARTING;
        streams().for_each(|stream| sys::await_end(stream.socket(), until));
        for connection in &mut self.connections {
            let retired = connection.link == Link::Retired;
            connection.close(if retired { Link::Retired } else { Link::Down { retry: 0 } });
        }
        self.common.ready.fetch_sub(self.ready as u32, Relaxed);
        self.ready = 0;
        self.tell();
    }

    fn retire(&mut self, index: usize) {
        self.connections[index].close(Link::Retired);
        self.ready -= 1;
        self.common.ready.fetch_sub(1, Relaxed);
        self.connections_change(false);
    }

    fn begin(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let node = &self.nodes[connection.node as usize];
        let deadline = self.now.saturating_add(self.common.plan.timeouts.connect_nanoseconds);
        let stream = match node.label.strip_prefix(UNIX) {
            None => sys::connect(node.address, self.common.plan.timeouts.request_nanoseconds),
            Some(path) => sys::connect_to_file(path),
        };
        let stream = stream.and_then(|stream| {
            self.poller.add(&stream, index as u64)?;
            Stream::new(stream, &node.label, self.access.tls.as_ref(), index.is_multiple_of(STAMPED))
        });
        match stream {
            Ok(stream) => {
                connection.stream = Some(stream);
                connection.link = Link::Connecting { deadline };
            }
            Err(error) => self.failed_to_connect(index, failure(&error), &error.to_string()),
        }
    }

    /// Called when the kernel has finished connecting, successfully or not.
    pub(super) fn connected(&mut self, index: usize, deadline: u64) {
        let connection = &mut self.connections[index];
        let error = match &connection.stream {
            Some(stream) => stream.take_error().unwrap_or_else(Some),
            None => Some(io::ErrorKind::NotConnected.into()),
        };
        if let Some(error) = error {
            return self.failed_to_connect(index, failure(&error), &error.to_string());
        }
        connection.link = Link::Securing { deadline };
        self.secure(index, deadline);
    }

    /// Completes the TLS handshake if there is one, then sends the first commands.
    pub(super) fn secure(&mut self, index: usize, deadline: u64) {
        let connection = &mut self.connections[index];
        let Some(stream) = &mut connection.stream else { return };
        match stream.secure() {
            Err(error) => return self.failed_to_connect(index, not_secure(&error), &error.to_string()),
            Ok(false) => return,
            Ok(true) => {}
        }
        let handshake = &self.access.handshake;
        connection.link = Link::Greeting { deadline, replies: handshake.replies };
        let sent = connection.send(&handshake.bytes);
        match sent {
            Err(error) => self.failed_to_connect(index, failure(&error), &error.to_string()),
            Ok(_) if self.access.handshake.replies == 0 => self.ready(index),
            Ok(_) => {}
        }
    }

    /// Handles one reply to the handshake commands.
    pub(super) fn greeted(&mut self, index: usize, reply: Reply, deadline: u64, replies: u32) {
        if reply == Reply::Error {
            let text = String::from_utf8_lossy(self.connections[index].decoder.error_text()).into_owned();
            return self.failed_to_connect(index, ConnectFailure::HandshakeRefused, resp::without_arguments(&text));
        }
        if replies <= 1 {
            self.ready(index);
        } else {
            self.connections[index].link = Link::Greeting { deadline, replies: replies - 1 };
        }
    }

    fn ready(&mut self, index: usize) {
        self.forget_pieces(index);
        let connection = &mut self.connections[index];
        connection.link = Link::Ready;
        connection.failures = 0;
        let node = connection.node as usize;
        self.ready += 1;
        self.reconnects += u64::from(std::mem::replace(&mut connection.known, true));
        self.common.ready.fetch_add(1, Relaxed);
        self.connections_change(true);
        self.connect_soon = true;
        if std::mem::take(&mut self.nodes[node].unreachable) || self.nodes[node].out {
            self.follow_scout(node);
        }
        self.has_room(index);
        self.fill(index);
    }

    /// Lets the other connections of a recovered node connect at once.
    #[cold]
    fn follow_scout(&mut self, node: usize) {
        for index in &self.nodes[node].connections {
            let connection = &mut self.connections[*index as usize];
            if let Link::Down { retry } = &mut connection.link {
                *retry = self.now;
                connection.failures = 0;
            }
        }
    }

    /// Returns whether a connection is its node's scout: the first one, which retries often while a load runs.
    fn is_scout(&self, index: usize) -> bool {
        let node = &self.nodes[self.connections[index].node as usize];
        let running = self.run.as_ref().is_some_and(|run| run.is_active() && !run.preload);
        running && node.connections.first() == Some(&(index as u32))
    }

    pub(super) fn failed_to_connect(&mut self, index: usize, reason: ConnectFailure, why: &str) {
        let retry = self.retry(index);
        let connection = &mut self.connections[index];
        connection.close(Link::Down { retry });
        let label = &self.nodes[connection.node as usize].label;
        let message = format!("failed to connect to {label}: {why}");
        // The next attempt reports again, so a full channel loses nothing.
        let _ = self.common.events.try_send(EngineEvent::ConnectFailed { reason, message });
        self.connect_soon = true;
        let node = connection.node as usize;
        self.note_unreachable(node);
    }

    /// When to retry: the backoff doubles with each failure up to 2 s, with a jitter of a quarter either way, so that connections that
    /// broke together do not return together. A scout retries at the rate that all workers of the benchmark share.
    pub(super) fn retry(&mut self, index: usize) -> u64 {
        let scout = self.is_scout(index);
        let connection = &mut self.connections[index];
        let backoff = if scout {
            SCOUT_FIRST.max(SCOUT_SHARE.saturating_mul(self.seat.step()))
        } else {
            (BACKOFF_FIRST << connection.failures.min(6)).min(BACKOFF_LONGEST)
        };
        connection.failures += 1;
        let spread = backoff / 2;
        let noise = (self.now ^ index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) % spread.max(1);
        self.now + backoff - spread / 2 + noise
    }

    /// Pings idle connections when no load runs, to keep them alive and to find dead ones.
    pub(super) fn ping(&mut self, busy: bool) {
        if self.now < self.next_ping {
            return;
        }
        self.next_ping = self.now + PING_EVERY;
        if !busy {
            self.ping_at_rest(|_| true);
        }
    }

    /// Pings idle connections of nodes that left a request unanswered. Otherwise each dead connection would cost a request.
    pub(super) fn test_suspects(&mut self) {
        if self.nodes.iter().any(|node| node.suspect) {
            self.ping_at_rest(|node| node.suspect);
            self.nodes.iter_mut().for_each(|node| node.suspect = false);
        }
    }

    fn ping_at_rest(&mut self, of: impl Fn(&Node) -> bool) {
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            let at_rest = connection.link == Link::Ready && connection.pipeline.is_empty();
            if at_rest && of(&self.nodes[connection.node as usize]) {
                self.stage(index as u32, Request::bare(Class::Ping));
            }
        }
        self.flush_dirty();
    }

    /// Closes connections whose oldest command or whose setup takes too long.
    pub(super) fn check_timeouts(&mut self) {
        let patience = self.common.plan.timeouts.request_nanoseconds;
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            match connection.link {
                Link::Securing { deadline } if deadline <= self.now => {
                    let timeout = self.common.plan.timeouts.connect_nanoseconds / 1_000_000;
                    let why = format!("TLS: no reply within {timeout} ms; does the server use TLS on this port?");
                    self.failed_to_connect(index, ConnectFailure::NotSecure, &why);
                }
                Link::Connecting { deadline } | Link::Greeting { deadline, .. } if deadline <= self.now => {
                    let timeout = self.common.plan.timeouts.connect_nanoseconds / 1_000_000;
                    self.failed_to_connect(index, ConnectFailure::TimedOut, &format!("no reply within {timeout} ms"));
                }
                Link::Ready => {
                    let late = |sent: u64| sent.saturating_add(patience) <= self.now;
                    let (node, oldest) = (connection.node as usize, connection.pipeline.oldest_sent());
                    if oldest.is_some_and(late) {
                        self.lost(index, "ConnectionClosed", "closed after a request timed out");
                    } else if oldest.is_some_and(|sent| self.is_silent(node, sent)) {
                        self.note_silence();
                    }
                }
                _ => {}
            }
        }
    }
}

fn not_secure(error: &io::Error) -> ConnectFailure {
    if error.kind() == io::ErrorKind::InvalidData { ConnectFailure::NotSecure } else { failure(error) }
}

fn failure(error: &io::Error) -> ConnectFailure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ConnectFailure::Refused,
        io::ErrorKind::TimedOut => ConnectFailure::TimedOut,
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EADDRNOTAVAIL)) => {
            ConnectFailure::Resources
        }
        _ => ConnectFailure::Broken,
    }
}
