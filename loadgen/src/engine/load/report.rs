//! A load's report of itself.

use redisbench_wire::snapshot::{Stage, Window};

use super::found::Found;
use super::usage::Usage;
use super::{Filling, Load, Source};
use crate::engine::kind::Kind;
use crate::engine::links::Links;
use crate::record::WorkerReport;
use crate::selfcheck::RunQueue;

impl Load {
    /// Adds the trial to a report at `now`, if this is one or its last read.
    pub(crate) fn report(
        &self,
        connections: &impl Links,
        now: u64,
        run_queue: &RunQueue,
        report: WorkerReport,
    ) -> WorkerReport {
        if let Some(measured) = &self.measured {
            return measured.report(connections, now, run_queue, report);
        }
        if self.kind != Kind::Trial {
            return report;
        }
        let Found { in_flight, room, sending } = self.found(connections, now);
        let (backlog, warmup_backlog) = self.backlog(now);
        let (used, until) = match self.stage {
            Stage::Waiting => (Usage::default(), self.start),
            Stage::Done => (self.used, self.drained),
            _ => (Usage::so_far(run_queue).since(self.used_before), now),
        };
        WorkerReport {
            stage: self.stage,
            aborted: self.aborted,
            window: self.window(),
            backlog,
            warmup_backlog,
            cpu_nanoseconds: used.cpu,
            run_queue_nanoseconds: used.waited,
            wall_nanoseconds: until.saturating_sub(self.start),
            delayed_nanoseconds: self.delayed,
            longest_delay_nanoseconds: self.longest_delay,
            send_delays: self.delays.clone(),
            waited_for_room: self.waited_for_room,
            in_flight,
            room,
            sending,
            ..report
        }
    }

    /// Requests that are due and were not drawn, of the measurement and of the warm-up.
    fn backlog(&self, now: u64) -> (u64, u64) {
        let Source::Open(schedule) = &self.source else { return (0, 0) };
        if !self.is_active() {
            return (0, 0);
        }
        let all = schedule.due_before(self.ends.min(now + 1));
        let warmup = schedule.due_before(self.measure_from.min(now + 1));
        ((all - warmup).min(self.quota.unwrap_or(u64::MAX)), warmup)
    }

    fn window(&self) -> Window {
        let measure_to = match (self.quota, self.dry) {
            (_, Some(dry)) => dry.min(self.ends),
            (None, None) => self.ends,
            (Some(_), None) if self.stage >= Stage::Draining && !self.idle => self.ends,
            (Some(_), None) => u64::MAX,
        };
        Window {
            start_nanoseconds: self.start,
            first_due_nanoseconds: self.first_due,
            first_send_nanoseconds: self.first_send,
            measure_from_nanoseconds: self.measure_from,
            measure_to_nanoseconds: measure_to,
            drained_nanoseconds: self.drained,
        }
    }

    /// The observations so far.
    fn found(&self, connections: &impl Links, now: u64) -> Found {
        let connected = connections.ready_time(now).saturating_sub(self.connected_before);
        self.found.unwrap_or_else(|| Found {
            in_flight: if self.is_open() { 0 } else { self.in_flight.until(now) },
            sending: connections.sending(now.saturating_sub(self.start)),
            // That of the windows of its ready connections, or of the callers that share them.
            room: match self.filling {
                _ if self.is_open() => 0,
                Filling::Callers(callers) => u128::from(callers) * u128::from(now.saturating_sub(self.start)),
                Filling::Windows | Filling::Batches => connected * self.depth.window as u128,
            },
        })
    }

    /// Freezes the observations when the load stops sending.
    pub(crate) fn settle(&mut self, connections: &impl Links, now: u64) {
        self.found = Some(self.found(connections, now));
    }
}
