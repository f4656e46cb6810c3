//! The connections of one worker: which are kept up, which of them have room, and which have something to send.

mod connection;
mod lifetime;
mod making;
mod rate;
mod renewal;
mod retry;

use std::collections::VecDeque;
use std::net::Shutdown;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use redisbench_wire::snapshot::{ReceiveDelay, Sending};

use super::api::Access;
use super::common::Common;
use super::depth::Depth;
use super::integral::Integral;
use super::links::Links;
use super::pipeline::{Class, Pipeline, Request};
use super::stream::Stream;
use crate::record::{ChurnCounts, Delays};
use crate::schedule::Seat;
use crate::sys::{self, SendTimes};
use lifetime::Lives;
use rate::ConnectRate;
use retry::Retries;

pub(super) use connection::{Connection, Link, Sent};
pub(super) use making::Failure;

const BACKOFF_FIRST: u64 = 50_000_000;
const BACKOFF_LONGEST: u64 = 2_000_000_000;

/// The maximum number of connections sampled, because each costs a system call.
const SAMPLED: usize = 64;

/// The time that servers are given to close connections that were shut down.
const PARTING: Duration = Duration::from_millis(500);

/// Interval of pings on idle connections, in nanoseconds.
const PING_EVERY: u64 = 5_000_000_000;

/// The connections of one worker.
#[derive(Debug)]
pub(super) struct Connections {
    common: Arc<Common>,
    /// Credentials and TLS settings of new connections.
    access: Arc<Access>,
    /// The turns for a server that was always there.
    retries: Retries,
    all: Vec<Connection>,
    /// By server.
    pools: Vec<Pool>,
    /// Number of ready connections.
    ready: usize,
    /// That number over time.
    ready_time: Integral,
    /// Connections with staged commands.
    dirty: VecDeque<u32>,
    /// Connections are made and kept up.
    connecting: bool,
    pub rate: ConnectRate,
    /// A connection may be begun before the next tick.
    soon: bool,
    next_ping: u64,
    /// Connections that broke and were made again during the load.
    reconnects: u64,
    /// Where connections have a lifetime.
    lives: Option<Box<Lives>>,
    /// Indices of sampled connections, with TCP's counters when the load was started.
    sampled: Vec<(u32, SendTimes)>,
    /// The time for which replies had waited in the kernel when the connections of the finished load were closed.
    parting: Option<ReceiveDelay>,
}

/// The connections to one server.
#[derive(Debug)]
struct Pool {
    members: Vec<u32>,
    /// Those that may have room, the next to use first.
    open: VecDeque<u32>,
    /// The times at which connections are tried again.
    retries: Retries,
    /// The server has left the target.
    retired: bool,
    /// The last connection broke, or none could be made: nothing can be sent.
    unreachable: bool,
    /// A request got no reply, so idle connections may be dead too and must be tested.
    suspect: bool,
}

impl Pool {
    /// One without connections.
    fn new(retries: Retries, retired: bool) -> Self {
        Self { members: Vec::new(), open: VecDeque::new(), retries, retired, unreachable: false, suspect: false }
    }
}

impl Deref for Connections {
    type Target = [Connection];

    fn deref(&self) -> &[Connection] {
        &self.all
    }
}

impl DerefMut for Connections {
    fn deref_mut(&mut self) -> &mut [Connection] {
        &mut self.all
    }
}

impl Links for Connections {
    fn usable(&self) -> usize {
        self.all.iter().filter(|connection| connection.link != Link::Retired).count()
    }

    fn ready_time(&self, now: u64) -> u128 {
        self.ready_time.until(now)
    }

    /// A connection that was made again contributes only its later part.
    fn sending(&self, elapsed: u64) -> Sending {
        let mut sending = Sending::default();
        for (index, before) in &self.sampled {
            let Some(now) = self.send_times(*index as usize) else { continue };
            let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
            sending.connections += 1;
            sending.connection_nanoseconds += elapsed;
            sending.busy_nanoseconds += since(now.busy, before.busy);
            sending.peer_limited_nanoseconds += since(now.peer_limited, before.peer_limited);
            sending.buffer_limited_nanoseconds += since(now.buffer_limited, before.buffer_limited);
        }
        sending
    }
}

impl Connections {
    /// `counts`: connections by server.
    pub(super) fn new(common: Arc<Common>, access: Arc<Access>, seat: Seat, counts: &[u32]) -> Self {
        let mut connections = Self {
            access,
            retries: Retries::of(seat),
            all: Vec::new(),
            pools: Vec::new(),
            ready: 0,
            ready_time: Integral::default(),
            dirty: VecDeque::new(),
            connecting: false,
            rate: ConnectRate::of(common.plan.connect_rate, seat),
            soon: true,
            next_ping: 0,
            reconnects: 0,
            lives: common.plan.connection_lifetime.map(|of| Box::new(Lives::new(of, (seat.first(), seat.step())))),
            sampled: Vec::new(),
            parting: None,
            common,
        };
        for (node, count) in counts.iter().enumerate() {
            connections.pools.push(Pool::new(connections.retries, false));
            connections.add(node, *count);
        }
        connections
    }

    /// Adds `count` connections to a server that has none.
    fn add(&mut self, node: usize, count: u32) {
        let first = self.all.len() as u32;
        self.pools[node].members = (first..first + count).collect();
        let window = self.common.plan.pipeline as usize;
        self.all.extend((0..count).map(|_| Connection::new(node as u32, window)));
    }

    /// Number of connections for a server that joins later.
    pub(super) fn share(&self) -> u32 {
        let pools = self.pools.iter().filter(|pool| !pool.retired);
        let (count, connections) = pools.fold((0, 0), |(count, sum), pool| (count + 1, sum + pool.members.len()));
        (connections / count.max(1)).max(1) as u32
    }

    /// Notes whether a server is part of the target and used. One without connections gets `share` of them.
    pub(super) fn want(&mut self, node: usize, wanted: bool, share: u32, now: u64) {
        if node == self.pools.len() {
            self.pools.push(Pool::new(self.retries, true));
        }
        if wanted && self.pools[node].members.is_empty() {
            self.add(node, share);
        }
        let pool = &mut self.pools[node];
        let count = pool.members.len() as u32;
        match (std::mem::replace(&mut pool.retired, !wanted), wanted) {
            (true, true) => {
                self.common.wanted.fetch_add(count, Relaxed);
                self.soon = true;
                pool.retries.succeeded();
                self.retry_at_once(node, now);
            }
            (false, false) => {
                self.common.wanted.fetch_sub(count, Relaxed);
            }
            _ => {}
        }
    }

    /// Lets the connections to a server that is back be made at the next turns.
    #[cold]
    fn retry_at_once(&mut self, node: usize, now: u64) {
        for index in &self.pools[node].members {
            let connection = &mut self.all[*index as usize];
            if let Link::Down { .. } | Link::Retired = connection.link {
                (connection.link, connection.failures) = (Link::Down { retry: now }, 1);
            }
        }
    }

    /// Number of connections that are kept to a server.
    pub(super) fn kept(&self, node: usize) -> u32 {
        let pool = &self.pools[node];
        if pool.retired { 0 } else { pool.members.len() as u32 }
    }

    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    pub(super) fn reconnects(&self) -> u64 {
        self.reconnects
    }

    pub(super) fn has_ready(&self, node: usize) -> bool {
        self.pools[node].members.iter().any(|index| self.all[*index as usize].link == Link::Ready)
    }

    /// Returns whether a server had no connection left. Only once: the next failed attempt notes it again.
    pub(super) fn take_unreachable(&mut self, node: usize) -> bool {
        std::mem::take(&mut self.pools[node].unreachable)
    }

    pub(super) fn use_access(&mut self, access: Arc<Access>) {
        self.access = access;
    }

    /// Makes connections and keeps them up, until [`Self::disconnect`].
    pub(super) fn connect(&mut self, now: u64) {
        self.connecting = true;
        self.pools.iter_mut().for_each(|pool| pool.retries = self.retries);
        self.rate.begin(now);
        self.soon = true;
    }

    /// Returns whether a connection may be begun before the next tick.
    pub(super) fn is_soon(&self) -> bool {
        self.soon
    }

    /// Begins a tick. Returns whether connections are to be kept up.
    pub(super) fn tick(&mut self) -> bool {
        self.soon = false;
        self.connecting
    }

    /// A complete connection can take requests. If its server was `out` or unreachable, the other connections follow. `measuring` counts
    /// it.
    pub(super) fn complete(&mut self, index: usize, out: bool, measuring: bool, now: u64) {
        let count = self.all.len();
        let connection = &mut self.all[index];
        if let Some(lives) = &mut self.lives {
            connection.life = lives.of(index, count, false, now);
            if measuring {
                let handshake = connection.tls_handshake.map(|(_, length)| length);
                // Not until `now`: the handshake's last step may have run since.
                lives.counts.made(sys::monotonic_nanoseconds().saturating_sub(connection.began), handshake);
            }
        }
        let node = connection.node();
        (connection.link, connection.failures) = (Link::Ready, 0);
        self.reconnects += u64::from(std::mem::replace(&mut connection.known, true));
        self.ready += 1;
        self.ready_time.rise(1, now);
        self.common.ready.fetch_add(1, Relaxed);
        self.soon = true;
        let was_down = self.pools[node].retries.succeeded();
        if self.take_unreachable(node) || was_down || out {
            self.retry_at_once(node, now);
        }
    }

    /// Closes a connection, to be made again. Returns the commands without a reply, each with the time it was sent.
    ///
    /// The backoff doubles with each failure up to 2 s, with a jitter of a quarter either way, so that connections that broke together do
    /// not return together. If none is left, they have turns instead.
    pub(super) fn lose(&mut self, index: usize, now: u64) -> Vec<(Request, u64)> {
        let connection = &mut self.all[index];
        let node = connection.node();
        let backoff = (BACKOFF_FIRST << connection.failures.min(6)).min(BACKOFF_LONGEST);
        connection.failures += 1;
        let spread = backoff / 2;
        let noise = (now ^ index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) % spread.max(1);
        let was_ready = connection.link == Link::Ready;
        let commands = connection.close(Link::Down { retry: now + backoff - spread / 2 + noise });
        if was_ready {
            self.count_lost(1, now);
        } else {
            self.soon = true;
        }
        let unreachable = !self.has_ready(node);
        let pool = &mut self.pools[node];
        if unreachable {
            pool.unreachable = true;
            pool.retries.failed();
        }
        pool.suspect |= commands.iter().any(|(request, _)| request.class.is_load());
        commands
    }

    /// Closes the connections to servers that have left, once nothing is in flight.
    pub(super) fn retire(&mut self, now: u64) {
        let mut closed = 0;
        for index in self.pools.iter().filter(|pool| pool.retired).flat_map(|pool| &pool.members) {
            let connection = &mut self.all[*index as usize];
            closed += usize::from(connection.is_at_rest());
            if connection.is_at_rest() || matches!(connection.link, Link::Down { .. }) {
                connection.close(Link::Retired);
            }
        }
        self.count_lost(closed, now);
    }

    /// Closes all connections and makes none until asked to. The servers get a moment to close theirs first, so that none still counts a
    /// connection when its successor arrives.
    pub(super) fn disconnect(&mut self, now: u64) {
        self.connecting = false;
        self.parting = Some(self.receive_delay());
        let streams = || self.all.iter().filter_map(|connection| connection.stream.as_ref());
        // A socket that cannot be shut down is closed below.
        streams().for_each(|stream| drop(stream.socket().shutdown(Shutdown::Write)));
        let until = Instant::now() + PARTING;
        streams().for_each(|stream| sys::await_end(stream.socket(), until));
        for connection in &mut self.all {
            let retired = connection.link == Link::Retired;
            connection.close(if retired { Link::Retired } else { Link::Down { retry: 0 } });
            connection.failures = 0;
        }
        self.count_lost(self.ready, now);
    }

    fn count_lost(&mut self, count: usize, now: u64) {
        self.ready -= count;
        self.ready_time.fall(count as u64, now);
        self.common.ready.fetch_sub(count as u32, Relaxed);
    }

    /// Turns the requests of a load into orphans. `compounds` if requests of the trial may get several replies each.
    pub(super) fn orphan(&mut self, compounds: bool) {
        self.all.iter_mut().for_each(|connection| connection.pipeline.orphan(compounds));
    }

    /// Stages pings on idle connections: on all of them at intervals unless a load is running, to keep them alive, and on those to
    /// servers that left a request unanswered. Otherwise each dead one would cost a request.
    pub(super) fn ping(&mut self, running: bool, now: u64) {
        let due = now >= self.next_ping;
        if due {
            self.next_ping = now + PING_EVERY;
        }
        let all = due && !running;
        if !all && self.pools.iter().all(|pool| !pool.suspect) {
            return;
        }
        for index in 0..self.all.len() {
            let connection = &self.all[index];
            if connection.is_at_rest() && (all || self.pools[connection.node()].suspect) {
                self.stage(index as u32, Request::bare(Class::Ping));
            }
        }
        self.pools.iter_mut().for_each(|pool| pool.suspect = false);
    }

    /// Notes that a connection may take requests from queues.
    #[inline]
    pub(super) fn list(&mut self, index: usize, depth: Depth) {
        let connection = &mut self.all[index];
        if !connection.listed && connection.room(depth) > 0 {
            connection.listed = true;
            self.pools[connection.node()].open.push_back(index as u32);
        }
    }

    /// A connection of `node` with room.
    #[inline]
    pub(super) fn with_room(&mut self, node: usize, depth: Depth) -> Option<u32> {
        let open = &mut self.pools[node].open;
        while let Some(index) = open.front() {
            let connection = &mut self.all[*index as usize];
            if connection.room(depth) > 0 {
                return Some(*index);
            }
            connection.listed = false;
            open.pop_front();
        }
        None
    }

    /// The connection of `node` that sends all requests of `lane`, if it has room.
    #[inline]
    pub(super) fn of_lane(&self, node: usize, lane: u64, depth: Depth) -> Option<u32> {
        let members = &self.pools[node].members;
        let index = *members.get(usize::try_from(lane.checked_rem(members.len() as u64)?).ok()?)?;
        (self.all[index as usize].room(depth) > 0).then_some(index)
    }

    /// Lets another connection of the same server be the next.
    #[inline]
    pub(super) fn pass_over(&mut self, index: u32) {
        let open = &mut self.pools[self.all[index as usize].node()].open;
        if open.front() == Some(&index) {
            open.rotate_left(1);
        }
    }

    /// Adds a command to the next send of a connection.
    #[inline]
    pub(super) fn stage(&mut self, index: u32, request: Request) {
        self.stage_with(index).stage(request);
    }

    /// The pipeline of a connection that gets commands for its next send.
    #[inline]
    pub(super) fn stage_with(&mut self, index: u32) -> &mut Pipeline {
        let pipeline = &mut self.all[index as usize].pipeline;
        if pipeline.staged_count() == 0 {
            self.dirty.push_back(index);
        }
        pipeline
    }

    #[inline]
    pub(super) fn next_dirty(&mut self) -> Option<u32> {
        self.dirty.pop_front()
    }

    /// Begins to count for a load. Chooses the connections to sample and reads their counters, because earlier activity does not count.
    pub(super) fn sample(&mut self) {
        (self.reconnects, self.parting) = (0, None);
        self.end_lives();
        if let Some(lives) = &mut self.lives {
            lives.counts = ChurnCounts::default();
        }
        let step = self.all.len().div_ceil(SAMPLED).max(1);
        let indices = (0..self.all.len()).step_by(step);
        self.sampled = indices.filter_map(|index| Some((index as u32, self.send_times(index)?))).collect();
        self.all.iter_mut().filter_map(|connection| connection.stream.as_mut()).for_each(Stream::forget_delays);
    }

    fn send_times(&self, index: usize) -> Option<SendTimes> {
        sys::send_times(self.all.get(index)?.stream.as_ref()?.socket())
    }

    /// The time for which replies waited in the kernel since the load began. Delays of closed connections are lost.
    pub(super) fn receive_delay(&self) -> ReceiveDelay {
        if let Some(parting) = &self.parting {
            return parting.clone();
        }
        let mut sum = ReceiveDelay { connections: 0, counts: vec![0; Delays::STEPS] };
        let streams = self.all.iter().filter_map(|connection| connection.stream.as_ref());
        for delays in streams.filter_map(Stream::delays) {
            sum.connections += 1;
            sum.counts.iter_mut().zip(delays.counts()).for_each(|(sum, count)| *sum += count);
        }
        sum
    }
}
