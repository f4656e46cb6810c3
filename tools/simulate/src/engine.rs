//! A simulated engine: the number of finished requests at any time is plain arithmetic, also in a closed loop, and every request has an
//! identity.
//!
//! Identities are transferred as a sum: `redirect_hops`, which the merge only adds up, is the sum of k + 1 over all measured requests k. A
//! request that is lost or counted twice changes it.

use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::{Bound, Load, ShardPlan, Verify};
use redisbench_wire::snapshot::{
    Generator, Latency, Series, Snapshot, Stage, Tally, Verification, VerificationCounts, Window,
};
use redisbench_wire::timeline::{Coarse, Outcomes, Span, SpanPart, Timeline};
use redisbench_wire::{AcceptedStart, Detail, Probe};

use crate::ground_truth::Try;
use crate::search::OVERLOAD;

/// The load of one attempt. Times are on the shard's own clock.
#[derive(Clone, Debug)]
pub struct Engine {
    plan: ShardPlan,
    /// Length of the warm-up, planned or actual.
    warmup: u64,
    pub start: AcceptedStart,
    /// True if the rate exceeds the target's capacity.
    overloaded: bool,
    stopped_at: Option<u64>,
    pub ended: bool,
}

impl Engine {
    pub fn new(plan: ShardPlan, start: AcceptedStart, overloaded: bool) -> Self {
        Self { warmup: plan.warmup_nanoseconds, plan, start, overloaded, stopped_at: None, ended: false }
    }

    pub fn of_try(&self) -> Try {
        (self.plan.trial, self.start.attempt)
    }

    pub fn stop(&mut self, now: u64) {
        self.stopped_at.get_or_insert(now);
    }

    /// Ends the warm-up at `from`.
    pub fn measure_from(&mut self, from: u64) {
        self.warmup = from.saturating_sub(self.start.start_nanoseconds);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped_at.is_some()
    }

    fn rate(&self) -> u64 {
        match self.plan.load {
            Load::OpenLoop { rate_per_second, .. } => rate_per_second,
            // The pace of the simulated target.
            Load::ClosedLoop | Load::Recorded { .. } => 500,
        }
    }

    fn measured(&self) -> u64 {
        match self.plan.bound {
            Bound::Duration { nanoseconds } => nanoseconds,
            Bound::Requests { count, max_nanoseconds } => {
                let last = self.due_before(self.warmup) + count.saturating_sub(1);
                let request = u128::from(last) * u128::from(self.plan.shards) + u128::from(self.plan.shard);
                let due = request * 1_000_000_000 / u128::from(self.rate());
                let due = u64::try_from(due).unwrap_or(u64::MAX);
                due.saturating_add(1).saturating_sub(self.warmup).min(max_nanoseconds)
            }
        }
    }

    /// The due time of the last request.
    pub fn planned_end(&self) -> u64 {
        self.start.start_nanoseconds + self.warmup + self.measured()
    }

    /// The number of this shard's requests due before `elapsed` nanoseconds after the start.
    fn due_before(&self, elapsed: u64) -> u64 {
        let all = (u128::from(elapsed) * u128::from(self.rate())).div_ceil(1_000_000_000);
        let (shard, shards) = (u128::from(self.plan.shard), u128::from(self.plan.shards));
        u64::try_from(all.saturating_sub(shard).div_ceil(shards)).unwrap_or(u64::MAX)
    }

    /// The sum of the identities of this shard's requests `from..to`.
    fn identities(&self, from: u64, to: u64) -> u64 {
        let first = |j: u64| j * u64::from(self.plan.shards) + u64::from(self.plan.shard) + 1;
        let count = to.saturating_sub(from);
        if count == 0 { 0 } else { (first(from) + first(to - 1)) * count / 2 }
    }

    fn tally(&self, from: u64, to: u64, in_flight: u64) -> Tally {
        let scheduled = to.saturating_sub(from);
        let in_flight = in_flight.min(scheduled);
        Tally {
            scheduled,
            succeeded: scheduled - in_flight,
            in_flight,
            redirect_hops: self.identities(from, to),
            sent_bytes: scheduled * 30,
            received_bytes: scheduled * 100,
            ..Tally::default()
        }
    }

    /// The measured requests at `now`.
    pub fn total(&self, now: u64) -> Tally {
        let elapsed = self.elapsed(now);
        let warmup = self.due_before(self.warmup);
        self.tally(warmup, self.due_before(elapsed).max(warmup), if self.ended { 0 } else { 2 })
    }

    /// The requests of a load that is never stopped.
    pub fn whole(plan: &ShardPlan) -> Tally {
        let start = AcceptedStart { attempt: 1, start_nanoseconds: 0 };
        let engine = Self { ended: true, ..Self::new(plan.clone(), start, false) };
        engine.total(u64::MAX)
    }

    fn elapsed(&self, now: u64) -> u64 {
        self.elapsed_of(now.saturating_sub(self.start.start_nanoseconds))
    }

    /// The part of this time since the start that has load.
    fn elapsed_of(&self, since: u64) -> u64 {
        let until = self.planned_end().min(self.stopped_at.unwrap_or(u64::MAX));
        since.min(until.saturating_sub(self.start.start_nanoseconds))
    }

    /// The seconds from `from` on.
    fn timeline(&self, now: u64, from: u32) -> Timeline {
        const SECOND: u64 = 1_000_000_000;
        let since = now.saturating_sub(self.start.start_nanoseconds);
        let second = u32::try_from(since / SECOND).unwrap_or(u32::MAX);
        let at = |second: u64| {
            let warmup = self.due_before(self.warmup.min(self.elapsed_of(second * SECOND)));
            let of = Self { ended: self.ended && second > since / SECOND, ..self.clone() };
            (warmup, of.total(self.start.start_nanoseconds + (second * SECOND).min(since)))
        };
        let spans = (from..=second).map(|second| {
            let ((warm_before, before), (warm, total)) = (at(second.into()), at(u64::from(second) + 1));
            let succeeded = total.succeeded - before.succeeded;
            let mut response = Coarse::default();
            response.record(self.latency(), succeeded);
            let scheduled = total.scheduled - before.scheduled;
            let counts = Outcomes { scheduled, succeeded, ..Outcomes::default() };
            let warmup = warm - warm_before;
            Span {
                second,
                seconds: 1,
                warmup: Outcomes { scheduled: warmup, succeeded: warmup, ..Outcomes::default() },
                sent_bytes: total.sent_bytes - before.sent_bytes,
                received_bytes: total.received_bytes - before.received_bytes,
                parts: vec![SpanPart { counts, response: response.buckets(), ..SpanPart::default() }],
                nodes: Vec::new(),
            }
        });
        let complete = if self.ended { second + 1 } else { second };
        Timeline { from, complete, more: false, spans: spans.collect() }
    }

    fn latency(&self) -> u64 {
        1_000_000 * u64::from(self.plan.shard + 1) + if self.overloaded { OVERLOAD } else { 0 }
    }

    pub fn snapshot(&self, now: u64, sequence: u64, (detail, second): (Detail, u32), host: &str) -> Snapshot {
        let plan = &self.plan;
        let start = self.start.start_nanoseconds;
        let from = start + self.warmup;
        let elapsed = self.elapsed(now);
        let warmup_due = self.due_before(self.warmup);
        let total = self.total(now);
        let warmup = self.tally(0, warmup_due.min(self.due_before(elapsed)), 0);
        // The lost writes equal the sum of identities too, so that none can be merged twice or not at all.
        let verification = (plan.verify != Verify::None).then(|| Verification {
            counts: VerificationCounts {
                checked: total.succeeded + warmup.succeeded,
                lost_writes: total.redirect_hops,
                ..VerificationCounts::default()
            },
            findings: Vec::new(),
        });
        let mut response = Kind::Request.empty();
        response.saturating_record_n(self.latency(), total.succeeded);
        let encoded = |histogram| EncodedHistogram::encode(&histogram).unwrap_or_else(|_| unreachable!("in memory"));
        let response = encoded(response);
        let first_due = match plan.load {
            Load::OpenLoop { .. } => u64::from(plan.shard) * 1_000_000_000 / self.rate().max(1),
            Load::ClosedLoop | Load::Recorded { .. } => 0,
        };
        Snapshot {
            sequence,
            shard: plan.shard,
            attempt: self.start.attempt,
            taken_nanoseconds: now,
            stage: match now {
                _ if self.ended => Stage::Done,
                _ if self.is_stopped() || now >= self.planned_end() => Stage::Draining,
                _ if now < start => Stage::Waiting,
                _ if now < from => Stage::Warmup,
                _ => Stage::Measuring,
            },
            aborted: self.is_stopped(),
            terminated: false,
            window: Window {
                start_nanoseconds: start,
                first_due_nanoseconds: start + first_due,
                first_send_nanoseconds: if elapsed > first_due { start + first_due } else { 0 },
                measure_from_nanoseconds: from,
                measure_to_nanoseconds: self.planned_end().min(self.stopped_at.unwrap_or(u64::MAX)),
                drained_nanoseconds: if self.ended { now } else { 0 },
            },
            total,
            warmup,
            preloaded_keys: 0,
            preload_commands: 0,
            latency: Latency {
                service: None,
                response,
                error_replies: None,
                lateness: (detail == Detail::Full).then(|| encoded(Kind::Request.empty())),
            },
            series: if detail == Detail::Full { self.series(elapsed) } else { Series::default() },
            timeline: self.timeline(now, second),
            operations: Vec::new(),
            nodes: Vec::new(),
            errors: Vec::new(),
            verification,
            cache: None,
            churn: None,
            client: None,
            generator: Generator { host: host.to_owned(), workers: 1, ..Generator::default() },
            topology: redisbench_wire::topology::TopologyReport::default(),
            servers: None,
        }
    }

    /// The probe with half of the connections achieves half of the rate.
    pub fn probe(&self) -> Probe {
        let nanoseconds = self.plan.measurement.probe_nanoseconds;
        let both = u128::from(self.rate()) * u128::from(nanoseconds) / 1_000_000_000;
        let succeeded = u64::try_from(both).unwrap_or(u64::MAX) / u64::from(self.plan.shards) / 2;
        let room = u64::from(self.plan.connections / 2);
        let tally = Tally { scheduled: succeeded, succeeded, ..Tally::default() };
        Probe { room, of_room: room * 2, nanoseconds, succeeded, mean_nanoseconds: 1_000_000, tally }
    }

    fn series(&self, elapsed: u64) -> Series {
        const POINT: u64 = 100_000_000;
        let points = elapsed.div_ceil(POINT);
        let due = |point: u64| self.due_before((point * POINT).min(elapsed));
        Series {
            interval_nanoseconds: POINT,
            completed: (0..points).map(|point| due(point + 1) - due(point)).collect(),
        }
    }
}
