//! Commands from the cold side, and reports to it.

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::mpsc::TryRecvError;

use redisbench_wire::Detail;
use redisbench_wire::snapshot::Stage;

use super::Worker;
use super::preloaded::Preloaded;
use crate::engine::api::EngineEvent;
use crate::engine::kind::Kind;
use crate::engine::links::Links;
use crate::engine::load::Load;
use crate::engine::mailbox::{Asked, Command};
use crate::engine::together::Together;
use crate::record::{Recording, Traced, WorkerReport};
use crate::sys;

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
        if matches!(
            command,
            Command::Preload(_)
                | Command::Start { .. }
                | Command::Abort
                | Command::Rearm
                | Command::Disconnect { .. }
                | Command::Snapshot { detail: Detail::Full, .. }
        ) {
            // Snapshots asked for before are of the load before.
            while self.continue_snapshot() {}
        }
        match command {
            Command::Connect => self.connections.connect(self.now),
            Command::Preload(together) => self.start_preload(together),
            Command::Start { start, together } => {
                self.abort();
                self.fresh_recording();
                self.router.forget_outages();
                self.recording.begin(start);
                let (plan, trial) = (&self.common.plan, Arc::clone(&self.common.trial));
                self.load = Load::trial(plan, self.seat, trial, start, together).on(self.common.own.clone());
            }
            Command::MeasureFrom(from) => {
                self.load.measure_sooner(from, self.now);
                // The tick begins the measurement.
                self.tick_by(from);
            }
            Command::Abort => self.abort(),
            Command::Rearm => {
                self.abort();
                self.load = Load::none(Arc::clone(&self.common.trial));
                self.fresh_recording();
            }
            Command::Disconnect { done } => {
                self.load.settle(&self.connections, self.now);
                self.connections.disconnect(self.now);
                self.caching.iter_mut().for_each(|caching| caching.disconnected());
                self.tell();
                // The caller may have given up.
                let _ = done.send(());
            }
            Command::Topology(topology) => self.update_topology(&topology),
            Command::Access(access) => self.connections.use_access(access),
            Command::Snapshot { detail: Detail::Live, from, answer } => {
                self.asked.push_back(Asked { from, answer, begun: None });
            }
            // A failed send means that the caller has given up.
            Command::Snapshot { detail: Detail::Full, from, answer } => drop(answer.send(Box::new(self.report(from)))),
        }
    }

    fn fresh_recording(&mut self) {
        self.checker.iter_mut().for_each(|checker| checker.verifier.forget_findings());
        self.caching.iter_mut().for_each(|caching| caching.begin());
        self.recording = Recording::new(&self.common.plan);
        self.follow_router();
        self.connections.sample();
    }

    fn start_preload(&mut self, together: Arc<Together>) {
        self.abort();
        self.preloaded = Preloaded::default();
        self.next_preload(together);
    }

    /// Prepares the next step of the preload. After the last one, the preload has finished. Returns whether there is one.
    fn next_preload(&mut self, together: Arc<Together>) -> bool {
        if let Some(walk) = self.common.preload.get(self.preloaded.step) {
            self.preloaded.step += 1;
            let load = Load::preload(&self.common.plan, self.seat, walk, self.now, together);
            self.load = load.on(self.common.own.clone());
            return true;
        }
        self.finish_preload(&together);
        false
    }

    fn finish_preload(&mut self, together: &Together) {
        if together.remaining.fetch_sub(1, AcqRel) == 1 {
            self.outbox.keep(EngineEvent::Preloaded { keys: together.keys.load(Relaxed) });
        }
    }

    /// Stops the load at once. Requests in flight stay counted as such, and late replies are not counted.
    fn abort(&mut self) {
        if self.load.stage == Stage::Done {
            return;
        }
        // Counted as scheduled, and in flight forever.
        while self.load.take_backlog(self.now, &mut self.recording).is_some() {}
        self.router.clear();
        self.checker.iter_mut().for_each(|checker| checker.abandon());
        let prefixes = self.caching.as_ref().is_some_and(|caching| caching.has_prefixes());
        self.connections.orphan(self.compounds.is_some() || prefixes);
        self.load.abort(self.now);
        self.end();
    }

    /// Aborts the preload of all workers after an error.
    pub(super) fn preload_failed(&mut self, message: String) {
        self.load.together.failed.store(true, Relaxed);
        if !self.load.aborted {
            self.outbox.keep(EngineEvent::PreloadFailed { message });
            self.abort();
        }
    }

    pub(super) fn end_if_drained(&mut self) {
        let holds = self.checker.as_ref().is_some_and(|checker| checker.holds());
        let waits = holds || self.router.nodes().iter().any(|node| !node.waiting.is_empty());
        if self.load.has_drained() && !waits {
            self.end();
        }
    }

    /// Ends the load: every request has its outcome, or will never have one.
    fn end(&mut self) {
        self.load.settle(&self.connections, self.now);
        self.connections.end_lives();
        if self.begin_last_read() {
            return;
        }
        if let Some(checker) = self.checker.as_mut().filter(|_| self.load.kind == Kind::LastRead) {
            checker.end_last_read();
        }
        self.router.end_outages(self.load.end(self.now, &self.run_queue));
        let (together, aborted) = (Arc::clone(&self.load.together), self.load.aborted);
        if self.load.kind == Kind::Preload {
            self.tell_progress();
            self.load = Load::none(Arc::clone(&self.common.trial));
            if !aborted && self.next_preload(together) {
                self.begin_load();
                // Continue without waiting for an event.
                self.next_tick = self.now;
            }
        } else if together.remaining.fetch_sub(1, AcqRel) == 1 {
            self.common.meter.end();
            self.outbox.keep(EngineEvent::Finished { attempt: together.attempt, aborted });
        }
        self.tell();
    }

    /// Begins the last read after a verified trial. Returns whether there is anything to read.
    fn begin_last_read(&mut self) -> bool {
        let (Some(checker), Some(workload)) = (&mut self.checker, &self.common.last_read) else { return false };
        if self.load.kind != Kind::Trial || self.load.aborted {
            return false;
        }
        let Some(keys) = checker.begin_last_read() else { return false };
        let (workload, usable) = (Arc::clone(workload), self.connections.usable());
        self.load.begin_last_read(&self.common.plan, workload, keys, usable, self.now, &self.run_queue);
        self.begin_load();
        // Continue without waiting for an event.
        self.next_tick = self.now;
        true
    }

    /// Offers pending events to the cold side.
    pub(super) fn tell(&mut self) {
        let (recording, router) = (&mut self.recording, &self.router);
        self.outbox.offer_made(|| {
            let nodes = || router.nodes().iter().map(|node| node.server.label.clone()).collect();
            recording.take_traced().map(|traced| EngineEvent::Traced(Traced { nodes: nodes(), ..traced }))
        });
        self.outbox.tell((self.common.ready.load(Relaxed), self.common.wanted.load(Relaxed)));
        if self.load.kind == Kind::Preload {
            self.tell_progress();
        }
    }

    fn tell_progress(&mut self) {
        let Preloaded { keys, commands, told, .. } = self.preloaded;
        if commands > told.1 {
            self.preloaded.told = (keys, commands);
            self.load.together.keys.fetch_add(keys - told.0, Relaxed);
            let news = commands - told.1;
            let commands = self.load.together.commands.fetch_add(news, Relaxed) + news;
            self.outbox.offer(EngineEvent::PreloadProgress { commands });
        }
        if self.load.together.failed.load(Relaxed) && self.load.stage != Stage::Done {
            self.abort();
        }
    }

    /// Everything, at once: it is asked for after the load.
    fn report(&mut self, from: u32) -> WorkerReport {
        self.come_to_now();
        let report = WorkerReport {
            recording: self.recording.summary(Detail::Full),
            seconds: self.recording.seconds_since(from),
            slots: self.router.slot_counts(),
            replicas: self.router.nodes().iter().map(|node| node.replica).collect(),
            ..self.report_of_connections()
        };
        self.report_of_load(report)
    }

    /// Makes a slice of the oldest live snapshot, during which nothing is sent. Returns whether there is one.
    #[cold]
    pub(super) fn continue_snapshot(&mut self) -> bool {
        let Some(mut asked) = self.asked.pop_front() else { return false };
        if asked.answer.is_closed() {
            // The caller has given up.
            return true;
        }
        self.come_to_now();
        asked.begun = match asked.begun.take() {
            Some((draft, report, stage)) if stage == self.load.stage && draft.is_whole() => {
                let (recording, seconds) = draft.finish(&self.recording);
                let report = self.report_of_load(WorkerReport { recording, seconds, ..report });
                let _ = asked.answer.send(Box::new(report));
                return true;
            }
            Some((mut draft, report, stage)) if stage == self.load.stage => {
                self.recording.sketch(&mut draft);
                Some((draft, report, stage))
            }
            // At its end a load has an outcome for every request, which an earlier copy does not have.
            _ => Some((self.recording.draft(asked.from), self.report_of_connections(), self.load.stage)),
        };
        self.asked.push_front(asked);
        true
    }

    fn come_to_now(&mut self) {
        self.now = sys::monotonic_nanoseconds();
        self.recording.come_to(self.now);
    }

    fn report_of_connections(&self) -> WorkerReport {
        let (outages, outages_left_out) = self.router.told_outages(self.now);
        WorkerReport {
            preloaded_keys: self.preloaded.keys,
            preload_commands: self.preloaded.commands,
            receive_delay: self.connections.receive_delay(),
            reconnects: self.connections.reconnects(),
            churn: self.connections.churn(),
            cache: self.caching.as_ref().map(|caching| caching.record().clone()),
            verification: self.checker.as_ref().map(|checker| checker.verifier.found().clone()),
            outages,
            outages_left_out,
            ..WorkerReport::default()
        }
    }

    /// Adds the load to `report`, which is of now.
    fn report_of_load(&self, report: WorkerReport) -> WorkerReport {
        let report = WorkerReport { taken_nanoseconds: self.now, ..report };
        self.load.report(&self.connections, self.now, &self.run_queue, report)
    }
}
