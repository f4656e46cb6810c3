//! A worker: one thread with one epoll loop, and connections that no other thread touches.
//!
//! Each turn of the loop handles the events of its sockets, answers closed-loop replies with the next send at once, and then sends the
//! requests that became due. Everything slow (timeouts, reconnecting, pings, events for the cold side) happens on a coarse tick.
//!
//! A worker connects components that own their state: [`Connections`], [`Router`], [`Load`], [`Recording`], and where the plan asks for
//! verification [`Checker`], or for client-side caches [`Caching`]. None of them sees another's fields.

mod commands;
mod connect;
mod dispatch;
mod preloaded;
mod receive;
mod send;
mod share;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use bytes::Bytes;
use redisbench_wire::snapshot::Stage;

use self::preloaded::Preloaded;
use self::share::Share;
use super::api::{Access, EngineEvent};
use super::caching::Caching;
use super::checker::Checker;
use super::common::Common;
use super::connections::Connections;
use super::load::Load;
use super::mailbox::{Asked, Command};
use super::outbox::Outbox;
use super::router::Router;
use super::vigil::Vigil;
use crate::cluster::Topology;
use crate::record::Recording;
use crate::resp::{Output, WholeReplies};
use crate::schedule::Seat;
use crate::selfcheck::RunQueue;
use crate::sys::{self, Alarm, Event, NO_EVENT, Poller, Waker};
use crate::workload::Workload;

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

/// The shortest tick of a worker whose connections end by time, in nanoseconds.
const SHORTEST_TICK: u64 = 1_000_000;

/// The wait of a worker for its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// There is work to do.
    NotAtAll,
    /// There will be work soon: polls its sockets.
    Awake,
    /// Until an event or the alarm.
    Asleep,
}

#[derive(Debug)]
pub(super) struct Worker {
    common: Arc<Common>,
    seat: Seat,
    poller: Poller,
    alarm: Alarm,
    /// The alarm is set for a request, and therefore early.
    alarm_is_early: bool,
    vigil: Vigil,
    mail: Receiver<Command>,
    /// Live snapshots in the making, the oldest first.
    asked: VecDeque<Asked>,
    outbox: Outbox,
    connections: Connections,
    router: Router,
    load: Load,
    recording: Recording,
    /// Verifies the replies, if the plan asks for it.
    checker: Option<Box<Checker>>,
    /// Answers reads, if the plan has client-side caches.
    caching: Option<Box<Caching>>,
    /// The workload of the trial, if its requests get several replies each.
    compounds: Option<Arc<Workload>>,
    /// True if every reply is handled individually: for those above, or because a missed key may have to be written, or to trace single
    /// requests.
    one_by_one: bool,
    read_buffer: Vec<u8>,
    whole_replies: WholeReplies,
    output: Output,
    /// Values of the current send that are not copied to its output.
    values: Vec<(usize, Bytes)>,
    /// The bytes of the current send by operation.
    shares: Vec<Share>,
    /// Connections to read again because the reads of one turn did not empty them, and whether to read to the end of the stream, whose
    /// event is not repeated.
    again: Vec<(u32, bool)>,
    preloaded: Preloaded,
    /// The scheduler's statistics of this thread.
    run_queue: RunQueue,
    /// The latest reading of the clock.
    now: u64,
    next_tick: u64,
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
        let checker = Checker::of(&common.plan, common.may_evict);
        let caching = Caching::of(&common.plan);
        let compounds = Some(&common.trial).filter(|trial| trial.has_compounds()).cloned();
        let mut worker = Self {
            seat,
            poller,
            alarm,
            alarm_is_early: false,
            vigil: Vigil::of(&common.plan.load, common.processor),
            mail,
            asked: VecDeque::new(),
            outbox: Outbox::new(common.events.clone()),
            connections: Connections::new(Arc::clone(&common), access, seat, connections),
            load: Load::none(Arc::clone(&common.trial)),
            recording: Recording::new(&common.plan),
            router: Router::new(topology, common.reads.clone(), common.own.clone(), seat),
            one_by_one: compounds.is_some()
                || common.trial.has_fills()
                || checker.is_some()
                || caching.is_some()
                || common.plan.has_traces(),
            checker,
            caching,
            compounds,
            read_buffer: vec![0; READ_BYTES],
            whole_replies: WholeReplies::default(),
            output: Output::default(),
            values: Vec::new(),
            shares: Vec::new(),
            again: Vec::new(),
            preloaded: Preloaded::default(),
            run_queue: RunQueue::default(),
            now: sys::monotonic_nanoseconds(),
            next_tick: 0,
            stopped: false,
            common,
        };
        worker.follow_router();
        Ok(worker)
    }

    pub(super) fn run(mut self) {
        self.run_queue = RunQueue::of_this_thread();
        self.common.threads.add_this();
        let mut events = vec![NO_EVENT; EVENTS];
        while !self.stopped {
            if let Err(error) = self.turn(&mut events) {
                let message = format!("worker {} failed to wait for events: {error}", self.seat.worker);
                self.outbox.keep(EngineEvent::WorkerFailed { message });
                self.tell();
                return;
            }
        }
    }

    fn turn(&mut self, events: &mut [Event]) -> std::io::Result<()> {
        let wait = self.until_next()?;
        let happened = self.poller.wait(events, if wait == Wait::Asleep { None } else { Some(Duration::ZERO) })?;
        let before = std::mem::replace(&mut self.now, sys::monotonic_nanoseconds());
        match (happened.first().map(|event| event.data.u64()), wait) {
            (None, Wait::Awake) => self.vigil.stayed(before, self.now),
            // Only the alarm woke it up.
            (Some(ALARM), Wait::Asleep) if self.alarm_is_early && happened.len() == 1 => {
                self.vigil.woke(self.alarm.instant(), self.now);
            }
            (Some(0..ALARM), _) => self.vigil.came(self.now),
            _ => {}
        }
        self.recording.come_to(self.now);
        self.load.woke(self.now);
        for &Event { flags, data } in happened {
            match data.u64() {
                MAIL => self.read_mail(),
                // The due work is done below, as after every event.
                ALARM => {}
                connection => self.happened(connection as usize, flags),
            }
        }
        for (connection, hangup) in std::mem::take(&mut self.again) {
            self.receive(connection as usize, hangup);
        }
        self.pace();
        if self.now >= self.next_tick || self.connections.is_soon() {
            self.tick();
        }
        if !self.asked.is_empty() {
            // A slice of one, so that the next turn comes soon.
            self.continue_snapshot();
        }
        Ok(())
    }

    /// Sets the alarm to the next work without an event. Returns how to wait for it or an event.
    fn until_next(&mut self) -> std::io::Result<Wait> {
        let (of_load, is_request) = self.load.next(self.now);
        let mut next = self.next_tick.min(of_load);
        self.alarm_is_early = is_request && of_load < self.next_tick;
        if next <= self.now || !self.again.is_empty() || !self.asked.is_empty() {
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

    /// Ticks at `at` or earlier.
    fn tick_by(&mut self, at: u64) {
        self.next_tick = self.next_tick.min(at);
    }

    /// Rare work that need not be punctual.
    fn tick(&mut self) {
        let busy = self.load.stage != Stage::Done;
        let patience = self.common.plan.timeouts.request_nanoseconds.min(self.common.plan.timeouts.connect_nanoseconds);
        let tick = if busy { (patience / 20).clamp(1_000_000, 50_000_000) } else { IDLE_TICK };
        self.next_tick = self.now + tick;
        if self.connections.tick() {
            self.check_timeouts();
            self.age_connections();
            self.make_connections();
            self.connections.ping(busy, self.now);
            self.flush_dirty();
        }
        if busy && self.router.has_slots() {
            self.load.grant_tokens(&self.connections);
        }
        if self.load.is_open() {
            self.vigil.looked(self.run_queue.times().unwrap_or_default(), self.now);
        }
        self.expire(false);
        if let Some(next) = self.router.resume(&self.load, self.now) {
            self.tick_by(next);
        }
        self.pace();
        self.call();
        self.tell();
    }
}
