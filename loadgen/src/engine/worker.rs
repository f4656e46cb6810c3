//! A worker: one thread with one epoll loop, and connections that no other thread touches.
//!
//! Each turn of the loop handles the events of its sockets, answers closed-loop replies with the next send at once, and then sends the
//! requests that became due. Everything slow (timeouts, reconnecting, pings, events for the cold side) happens on a coarse tick.

mod commands;
mod connect;
mod deferred;
mod dispatch;
mod fills;
mod introspect;
mod outage;
mod receive;
mod send;
#[cfg(test)]
mod tests;
mod tokens;
mod transaction;
mod verified;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use redisbench_wire::plan::ShardPlan;
use redisbench_wire::snapshot::{ReceiveDelay, Stage};
use tokio::sync::mpsc;

pub(super) use transaction::Progress;

use self::dispatch::Readers;
use self::outage::Outages;
use super::api::{Access, EngineEvent};
use super::connect_rate::ConnectRate;
use super::connection::{Connection, Node};
use super::mailbox::Command;
use super::pipeline::Request;
use super::run::{Found, Run};
use super::sys::{self, Alarm, Event, Poller, Waker};
use super::vigil::Vigil;
use crate::cluster::{SLOTS, Topology};
use crate::record::Recording;
use crate::resp::{Output, WholeReplies};
use crate::schedule::Seat;
use crate::selfcheck::{RunQueue, Threads};
use crate::verify::Verifier;
use crate::workload::Workload;
use verified::Verified;

/// The epoll token of the eventfd.
const MAIL: u64 = u64::MAX;

/// The epoll token of the alarm.
const ALARM: u64 = u64::MAX - 1;

/// The maximum number of events per turn.
const EVENTS: usize = 256;

/// Size of the shared read buffer. Replies are scanned in place, so it bounds only the work between two reads.
const READ_BYTES: usize = 64 << 10;

/// The tick of a worker without a load, in nanoseconds.
const IDLE_TICK: u64 = 20_000_000;

/// How a worker waits for its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// There is work to do.
    NotAtAll,
    /// There will be work soon: polls its sockets.
    Awake,
    /// Until an event or the alarm.
    Asleep,
}

/// Shared by the workers of an engine. Sending and receiving a request touches none of it.
#[derive(Debug)]
pub(super) struct Common {
    pub plan: ShardPlan,
    pub trial: Arc<Workload>,
    pub preload: Option<Arc<Workload>>,
    pub last_read: Option<Arc<Workload>>,
    pub may_evict: bool,
    /// Each worker's share of a processor, in millionths.
    pub processor: u64,
    /// Per operation, whether a replica may serve it.
    pub reads: Vec<bool>,
    pub events: mpsc::Sender<EngineEvent>,
    /// Ready connections of all workers.
    pub ready: AtomicU32,
    /// Wanted connections of all workers.
    pub wanted: AtomicU32,
    pub threads: Arc<Threads>,
}

#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug)]
pub(super) struct Worker {
    common: Arc<Common>,
    access: Arc<Access>,
    seat: Seat,
    poller: Poller,
    alarm: Alarm,
    vigil: Vigil,
    /// The alarm is set for a request, and therefore early.
    alarm_is_early: bool,
    mail: Receiver<Command>,
    nodes: Vec<Node>,
    /// The node that has all keys if there are no slots.
    sole: usize,
    /// Indices into `nodes`; `None` if standalone.
    slots: Option<Box<[u16; SLOTS]>>,
    /// The nodes to read from, if not the primaries.
    readers: Option<Readers>,
    outages: Outages,
    connections: Vec<Connection>,
    /// Number of ready connections.
    ready: usize,
    read_buffer: Vec<u8>,
    output: Output,
    whole_replies: WholeReplies,
    /// Whether requests of the trial get several replies each.
    exchanges: bool,
    /// Whether keys that reads have missed are written.
    fills: bool,
    /// Whether every reply is handled individually: for `exchanges`, for `fills`, or to be verified.
    one_by_one: bool,
    /// Requests that pause before they are sent again, by the end of the pause and the request number.
    deferred: BTreeMap<(u64, u64), Request>,
    /// Connections with staged commands.
    dirty: Vec<u32>,
    /// Connections to read again because the reads of one turn did not empty them, and whether to read to the end of the stream, whose
    /// event is not repeated.
    again: Vec<(u32, bool)>,
    run: Option<Run>,
    /// Verifies the replies, if the plan asks for it.
    verified: Option<Box<Verified>>,
    recording: Recording,
    /// Counters that the sockets of the finished load had before they were closed.
    parting: Option<(Found, ReceiveDelay)>,
    preloaded_keys: u64,
    preload_commands: u64,
    reconnects: u64,
    /// The scheduler's statistics of this thread.
    run_queue: RunQueue,
    /// The latest reading of the clock.
    now: u64,
    next_tick: u64,
    next_ping: u64,
    connecting: bool,
    connect_rate: ConnectRate,
    /// A connection may be begun before the next tick.
    connect_soon: bool,
    topology_stale: bool,
    told_stale: bool,
    told_ready: (u32, u32),
    told_progress: u64,
    /// Events that must not be lost.
    outbox: VecDeque<EngineEvent>,
    stopped: bool,
}

impl Worker {
    pub(super) fn new(
        common: Arc<Common>,
        access: Arc<Access>,
        seat: Seat,
        topology: &Topology,
        connections: &[u32],
        waker: &Waker,
        mail: Receiver<Command>,
    ) -> std::io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(waker, MAIL)?;
        let alarm = Alarm::new()?;
        poller.add(&alarm, ALARM)?;
        let recording = Recording::new(&common.plan);
        let (exchanges, fills) = (common.trial.has_exchanges(), common.trial.has_fills());
        let vigil = Vigil::of(&common.plan.load, common.processor);
        let connect_rate = ConnectRate::of(common.plan.connect_rate, seat);
        let verified = Verifier::of(&common.plan, common.may_evict)
            .map(|checks| Box::new(Verified::new(checks, common.last_read.clone())));
        let one_by_one = exchanges || fills || verified.is_some();
        let mut worker = Self {
            common,
            access,
            seat,
            poller,
            alarm,
            vigil,
            alarm_is_early: false,
            mail,
            nodes: Vec::new(),
            sole: 0,
            slots: topology.slots.clone(),
            readers: None,
            outages: Outages::default(),
            connections: Vec::new(),
            ready: 0,
            read_buffer: vec![0; READ_BYTES],
            output: Output::default(),
            whole_replies: WholeReplies::default(),
            exchanges,
            fills,
            one_by_one,
            deferred: BTreeMap::new(),
            dirty: Vec::new(),
            again: Vec::new(),
            run: None,
            verified,
            recording,
            parting: None,
            preloaded_keys: 0,
            preload_commands: 0,
            reconnects: 0,
            run_queue: RunQueue::default(),
            now: sys::monotonic_nanoseconds(),
            next_tick: 0,
            next_ping: 0,
            connecting: false,
            connect_rate,
            connect_soon: false,
            topology_stale: false,
            told_stale: false,
            told_ready: (0, 0),
            told_progress: 0,
            outbox: VecDeque::new(),
            stopped: false,
        };
        for (node, count) in topology.nodes.iter().zip(connections) {
            worker.add_node(&node.id, node.address, &node.label, *count);
        }
        worker.readers =
            topology.readers.clone().map(|slots| Readers { slots, operations: worker.common.reads.clone() });
        worker.note_replicas(topology, 0..);
        Ok(worker)
    }

    pub(super) fn run(mut self) {
        self.run_queue = RunQueue::of_this_thread();
        self.common.threads.add_this();
        let mut events = vec![Event { events: 0, u64: 0 }; EVENTS];
        while !self.stopped {
            if let Err(error) = self.turn(&mut events) {
                let message = format!("worker {} failed to wait for events: {error}", self.seat.worker);
                self.outbox.push_back(EngineEvent::WorkerFailed { message });
                self.tell();
                return;
            }
        }
    }

    fn turn(&mut self, events: &mut [Event]) -> std::io::Result<()> {
        let wait = self.until_next()?;
        let happened = self.poller.wait(events, if wait == Wait::Asleep { None } else { Some(Duration::ZERO) })?;
        let before = std::mem::replace(&mut self.now, sys::monotonic_nanoseconds());
        match (happened, wait) {
            ([], Wait::Awake) => self.vigil.stayed(before, self.now),
            // Only the alarm woke it up.
            ([Event { u64: ALARM, .. }], Wait::Asleep) if self.alarm_is_early => {
                self.vigil.woke(self.alarm.instant(), self.now);
            }
            ([Event { u64: 0..ALARM, .. }, ..], _) => self.vigil.came(self.now),
            _ => {}
        }
        self.recording.come_to(self.now);
        if let Some(run) = &mut self.run {
            run.woke(self.now);
        }
        for event in happened {
            match event.u64 {
                MAIL => self.read_mail(),
                // The due work is done below, as after every event.
                ALARM => {}
                connection => self.happened(connection as usize, event.events),
            }
        }
        for (connection, hangup) in std::mem::take(&mut self.again) {
            self.receive(connection as usize, hangup);
        }
        self.pace();
        if self.now >= self.next_tick || self.connect_soon {
            self.tick();
        }
        Ok(())
    }

    /// Sets the alarm to the next work without an event. Returns how to wait for it or an event.
    fn until_next(&mut self) -> std::io::Result<Wait> {
        let mut next = self.next_tick;
        self.alarm_is_early = false;
        if let Some(run) = &mut self.run {
            let of_run = match run.stage {
                Stage::Waiting => run.start,
                Stage::Warmup | Stage::Measuring => run.next(self.now),
                Stage::Draining | Stage::Done => u64::MAX,
            };
            if of_run < next {
                next = of_run;
                self.alarm_is_early = run.planned == next;
            }
        }
        if next <= self.now || !self.again.is_empty() {
            return Ok(Wait::NotAtAll);
        }
        if self.alarm_is_early {
            next = self.vigil.before(next, self.now);
            if next <= self.now || self.vigil.expects(self.now) {
                sys::give_way();
                return Ok(Wait::Awake);
            }
        }
        self.alarm.set(next)?;
        Ok(Wait::Asleep)
    }

    /// Rare work that need not be punctual.
    fn tick(&mut self) {
        let busy = self.run.as_ref().is_some_and(|run| run.stage != Stage::Done);
        let patience = self.common.plan.timeouts.request_nanoseconds.min(self.common.plan.timeouts.connect_nanoseconds);
        let tick = if busy { (patience / 20).clamp(1_000_000, 50_000_000) } else { IDLE_TICK };
        self.next_tick = self.now + tick;
        self.connect_soon = false;
        if self.connecting {
            self.check_timeouts();
            self.make_connections();
            self.test_suspects();
            self.ping(busy);
        }
        if busy && self.slots.is_some() {
            self.grant_tokens();
        }
        if self.run.as_ref().is_some_and(Run::is_open) {
            self.vigil.looked(self.run_queue.times().unwrap_or_default(), self.now);
        }
        self.expire();
        self.resume();
        self.pace();
        self.call();
        self.tell();
    }
}
