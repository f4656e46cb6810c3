//! Commands from the cold side, and reports to it.

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::mpsc::TryRecvError;

use redisbench_wire::Detail;
use redisbench_wire::snapshot::{Stage, Window};

use super::Worker;
use crate::cluster::UNCOVERED;
use crate::engine::api::EngineEvent;
use crate::engine::mailbox::Command;
use crate::engine::run::{Found, Run, Source, Together};
use crate::engine::sys;
use crate::record::{Delays, Recording, WorkerReport};
use crate::selfcheck::RunQueue;

impl Worker {
    pub(super) fn read_mail(&mut self) {
        loop {
            match self.mail.try_recv() {
                Ok(command) => self.obey(command),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.stopped = true;
                    return;
                }
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Connect => {
                self.connecting = true;
                self.connect_rate.begin(self.now);
                self.connect_soon = true;
            }
            Command::Preload(together) => self.start_preload(together),
            Command::Start { start, attempt, together } => {
                self.abort();
                self.fresh_recording();
                self.forget_outages();
                self.reconnects = 0;
                self.recording.begin(start);
                let (plan, trial) = (&self.common.plan, Arc::clone(&self.common.trial));
                self.run = Some(Run::trial(plan, self.seat, trial, start, attempt, together));
                self.sample();
            }
            Command::MeasureFrom(from) => {
                if let Some(run) = &mut self.run {
                    run.measure_sooner(from, self.now);
                    // The tick begins the measurement.
                    self.next_tick = self.next_tick.min(from);
                }
            }
            Command::Abort => self.abort(),
            Command::Rearm => {
                self.abort();
                self.run = None;
                self.fresh_recording();
            }
            Command::Disconnect { done } => {
                self.disconnect();
                // The caller may have given up.
                let _ = done.send(());
            }
            Command::Topology(topology) => self.update_topology(&topology),
            Command::Access(access) => self.access = access,
            // A failed send means that the caller has given up.
            Command::Snapshot { detail, from, answer } => drop(answer.send(Box::new(self.report(detail, from)))),
        }
    }

    fn fresh_recording(&mut self) {
        if let Some(verified) = &mut self.verified {
            verified.verifier.forget_findings();
        }
        self.parting = None;
        self.recording = Recording::new(&self.common.plan);
        for node in &self.nodes {
            self.recording.add_node(&node.id, &node.label);
        }
    }

    fn start_preload(&mut self, together: Arc<Together>) {
        self.abort();
        self.preloaded_keys = 0;
        self.preload_commands = 0;
        self.told_progress = 0;
        if let Some(workload) = &self.common.preload {
            let workload = Arc::clone(workload);
            self.run = Some(Run::preload(&self.common.plan, self.seat, workload, self.now, together));
        } else {
            self.preloaded(&together);
        }
    }

    fn preloaded(&mut self, together: &Together) {
        if together.remaining.fetch_sub(1, AcqRel) == 1 {
            self.outbox.push_back(EngineEvent::Preloaded { keys: together.keys.load(Relaxed) });
        }
    }

    /// Stops the load at once. Requests in flight stay counted as such, and late replies are not counted.
    fn abort(&mut self) {
        let Some(run) = &mut self.run else { return };
        if run.stage == Stage::Done {
            return;
        }
        // Counted as scheduled, and in flight forever.
        self.take_backlog(|_, _| ());
        for node in &mut self.nodes {
            node.waiting.clear();
            node.resends.clear();
        }
        self.deferred.clear();
        if let Some(verified) = &mut self.verified {
            verified.abandon();
        }
        for connection in &mut self.connections {
            connection.pipeline.orphan(self.exchanges);
        }
        if let Some(run) = &mut self.run {
            run.aborted = true;
            run.ends = run.ends.min(self.now);
            run.outstanding = 0;
        }
        self.end();
    }

    /// Aborts the preload of all workers after an error.
    pub(super) fn preload_failed(&mut self, message: String) {
        if let Some(run) = &mut self.run {
            run.together.failed.store(true, Relaxed);
            if !run.aborted {
                self.outbox.push_back(EngineEvent::PreloadFailed { message });
                self.abort();
            }
        }
    }

    pub(super) fn end_if_drained(&mut self) {
        let holds = self.verified.as_ref().is_some_and(|verified| verified.holds());
        let waits = holds || self.nodes.iter().any(|node| !node.waiting.is_empty());
        let drained = self.run.as_ref().is_some_and(|run| run.outstanding == 0 && !waits);
        if drained {
            self.end();
        }
    }

    /// Ends the load: every request has its outcome, or will never have one.
    fn end(&mut self) {
        self.settle();
        if self.begin_last_read() {
            return;
        }
        let had_drained = self.end_last_read();
        self.end_outages();
        let Some(run) = &mut self.run else { return };
        run.stage = Stage::Done;
        if !had_drained {
            run.drained = self.now;
            run.cpu = sys::thread_cpu_nanoseconds().saturating_sub(run.cpu_before);
            run.waited = self.run_queue.waited_nanoseconds().saturating_sub(run.waited_before);
        }
        let (together, attempt, preload, aborted) = (Arc::clone(&run.together), run.attempt, run.preload, run.aborted);
        if preload {
            self.tell_progress();
            self.run = None;
            if !aborted {
                self.preloaded(&together);
            }
        } else if together.remaining.fetch_sub(1, AcqRel) == 1 {
            self.outbox.push_back(EngineEvent::Finished { attempt, aborted });
        }
        self.tell();
    }

    /// Offers pending events to the cold side. Events that find the channel full are offered again.
    pub(super) fn tell(&mut self) {
        let events = &self.common.events;
        while let Some(event) = self.outbox.pop_front() {
            if let Err(error) = events.try_send(event) {
                self.outbox.push_front(error.into_inner());
                break;
            }
        }
        let (ready, wanted) = (self.common.ready.load(Relaxed), self.common.wanted.load(Relaxed));
        if (ready, wanted) != self.told_ready && events.try_send(EngineEvent::Connected { ready, wanted }).is_ok() {
            self.told_ready = (ready, wanted);
        }
        if self.topology_stale && !self.told_stale && events.try_send(EngineEvent::TopologyStale).is_ok() {
            self.told_stale = true;
        }
        if self.run.as_ref().is_some_and(|run| run.preload) {
            self.tell_progress();
        }
    }

    fn tell_progress(&mut self) {
        let Some(run) = &self.run else { return };
        let news = self.preloaded_keys - self.told_progress;
        if news > 0 {
            self.told_progress = self.preloaded_keys;
            let keys = run.together.keys.fetch_add(news, Relaxed) + news;
            let _ = self.common.events.try_send(EngineEvent::PreloadProgress { keys });
        }
        if run.together.failed.load(Relaxed) && run.stage != Stage::Done {
            self.abort();
        }
    }

    fn report(&mut self, detail: Detail, from: u32) -> WorkerReport {
        self.now = sys::monotonic_nanoseconds();
        self.recording.come_to(self.now);
        let measured = self.verified.as_ref().and_then(|verified| verified.measured());
        let run = measured.or(self.run.as_ref().filter(|run| !run.preload));
        let (backlog, warmup_backlog) = run.map_or((0, 0), |run| backlog(run, self.now));
        let (found, receive_delay) = match &self.parting {
            Some(parting) => parting.clone(),
            None => (if run.is_some() { self.found() } else { Found::default() }, self.receive_delay()),
        };
        let (outages, outages_left_out) = self.told_outages();
        WorkerReport {
            taken_nanoseconds: self.now,
            recording: self.recording.summary(detail),
            seconds: self.recording.seconds_since(from),
            stage: run.map_or(Stage::Waiting, |run| run.stage),
            aborted: run.is_some_and(|run| run.aborted),
            window: run.map(window).unwrap_or_default(),
            backlog,
            warmup_backlog,
            preloaded_keys: self.preloaded_keys,
            preload_commands: self.preload_commands,
            cpu_nanoseconds: run.map_or(0, cpu),
            run_queue_nanoseconds: run.map_or(0, |run| waited(run, &self.run_queue)),
            wall_nanoseconds: run.map_or(0, |run| wall(run, self.now)),
            delayed_nanoseconds: run.map_or(0, |run| run.delayed),
            longest_delay_nanoseconds: run.map_or(0, |run| run.longest_delay),
            send_delays: run.map_or_else(Delays::default, |run| run.delays.clone()),
            waited_for_room: run.map_or(0, |run| run.waited_for_room),
            in_flight: found.in_flight,
            room: found.room,
            sending: found.sending,
            receive_delay,
            reconnects: self.reconnects,
            slots: self.slot_counts(),
            verification: self.verified.as_ref().map(|verified| verified.verifier.found().clone()),
            replicas: self.nodes.iter().map(|node| node.replica).collect(),
            outages,
            outages_left_out,
        }
    }

    fn slot_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.nodes.len()];
        let mut count = |slots: &[u16], replicas: bool| {
            for node in slots.iter().filter(|node| **node != UNCOVERED).map(|node| usize::from(*node)) {
                counts[node] += u32::from(self.nodes[node].replica == replicas);
            }
        };
        self.slots.iter().for_each(|slots| count(&slots[..], false));
        self.readers.iter().for_each(|readers| count(&readers.slots[..], true));
        counts
    }
}

/// Requests that are due and were not drawn, of the measurement and of the warm-up.
fn backlog(run: &Run, now: u64) -> (u64, u64) {
    let Source::Open(schedule) = &run.source else { return (0, 0) };
    if !run.is_active() {
        return (0, 0);
    }
    let all = schedule.due_before(run.ends.min(now + 1));
    let warmup = schedule.due_before(run.measure_from.min(now + 1));
    ((all - warmup).min(run.quota.unwrap_or(u64::MAX)), warmup)
}

fn window(run: &Run) -> Window {
    let measure_to = match (run.quota, run.dry) {
        (_, Some(dry)) => dry.min(run.ends),
        (None, None) => run.ends,
        (Some(_), None) if run.stage >= Stage::Draining && !run.idle => run.ends,
        (Some(_), None) => u64::MAX,
    };
    Window {
        start_nanoseconds: run.start,
        first_due_nanoseconds: run.first_due,
        first_send_nanoseconds: run.first_send,
        measure_from_nanoseconds: run.measure_from,
        measure_to_nanoseconds: measure_to,
        drained_nanoseconds: run.drained,
    }
}

fn cpu(run: &Run) -> u64 {
    match run.stage {
        Stage::Waiting => 0,
        Stage::Done => run.cpu,
        _ => sys::thread_cpu_nanoseconds().saturating_sub(run.cpu_before),
    }
}

fn waited(run: &Run, run_queue: &RunQueue) -> u64 {
    match run.stage {
        Stage::Waiting => 0,
        Stage::Done => run.waited,
        _ => run_queue.waited_nanoseconds().saturating_sub(run.waited_before),
    }
}

fn wall(run: &Run, now: u64) -> u64 {
    match run.stage {
        Stage::Waiting => 0,
        Stage::Done => run.drained.saturating_sub(run.start),
        _ => now.saturating_sub(run.start),
    }
}
