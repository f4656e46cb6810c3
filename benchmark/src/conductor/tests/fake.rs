//! Fake shards in memory, on virtual time: each with its own clock, plan, trial and faults.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::{Bound, ShardPlan};
use redisbench_wire::snapshot::{Latency, Series, Snapshot, Stage, Tally, Window};
use redisbench_wire::timeline::{Coarse, NodePart, Outcomes, Span, SpanPart, Timeline};
use redisbench_wire::{
    AbortThen, AcceptedStart, CleanupState, ClockReading, Detail, Preparation, Probe, ProbeState, Refusal, RefusalCode,
    ShardFailure, ShardPhase, ShardState,
};

use crate::conductor::{Call, CallError, Endpoint, Reply, Unreachable};
use crate::sample;

/// Requests per second of every fake shard.
pub const RATE: u64 = 1_000;

/// A fake shard. Tests change it while it runs.
#[derive(Default)]
pub struct FakeShard {
    pub incarnation: String,
    /// Its clock minus virtual time.
    pub clock_offset: Duration,
    pub round_trip: Duration,
    pub reachable: bool,
    /// Drops `PUT abort`.
    pub deaf_to_aborts: bool,
    /// If set, `PUT measure` hangs this long and then fails without effect.
    pub deaf_to_measuring: Option<Duration>,
    /// Ordered beginning of the measurement, after the start.
    pub measures_after: Option<u64>,
    /// Ordered beginning of a probe, after the start.
    pub probed_after: Option<u64>,
    /// The result that it reports for the probe.
    pub probe: Option<Probe>,
    /// From the plan until it is armed; none means never.
    pub arms_after: Option<Duration>,
    /// The obstacle that it reports until it is armed.
    pub waiting_for: Option<String>,
    /// Until it is armed.
    pub preloads_per_second: u64,
    pub failure: Option<ShardFailure>,
    /// Attempts whose start it does not acknowledge.
    pub misses: Vec<u32>,
    /// Delay of its first request.
    pub starts_late_by: Duration,
    /// Time from the end of its load until it has finished.
    pub drains_for: Duration,
    /// Maximum number of seconds in one answer.
    pub seconds_in_an_answer: usize,

    pub epoch: u64,
    /// Its plan, and the time since it has that.
    pub plan: Option<(ShardPlan, Duration)>,
    pub accepted: Option<AcceptedStart>,
    pub aborted_at: Option<u64>,
    /// Set like `aborted_at` if a signal to terminate stopped it.
    pub terminated_at: Option<u64>,
    pub rearmed: u32,
    pub released: bool,
    /// Number of calls of `PUT cleanup`.
    pub cleanups: u32,
    /// Keys, of 1,000, that it deletes between two calls; none drops `PUT cleanup`.
    pub removes: Option<u64>,
    /// The trial after which it has closed its connections.
    pub drained: Option<u32>,
    /// Number of calls of `PUT drain`.
    pub drains: u32,
    /// Number of full snapshots that it sent.
    pub fulls: u32,
    /// Time of the last call for its state, and the longest time between two.
    pub asked_at: Option<Duration>,
    pub longest_silence: Duration,
    sequence: u64,
}

/// Virtual time is set from outside.
pub struct FakeShards {
    now: Mutex<Duration>,
    shards: Vec<Mutex<FakeShard>>,
}

impl FakeShard {
    pub fn new(index: u32) -> Self {
        Self {
            incarnation: format!("pod-{index}"),
            clock_offset: Duration::from_secs(1_000) * (index + 1),
            round_trip: Duration::from_millis(2),
            reachable: true,
            arms_after: Some(Duration::from_secs(1)),
            seconds_in_an_answer: usize::MAX,
            removes: Some(1_000),
            ..Self::default()
        }
    }

    fn virtual_time(&self, now: u64) -> Duration {
        Duration::from_nanos(now).saturating_sub(self.clock_offset)
    }

    fn window(&self) -> Window {
        let (Some((plan, _)), Some(accepted)) = (&self.plan, self.accepted) else { return Window::default() };
        let start = accepted.start_nanoseconds;
        let from = start + self.measures_after.unwrap_or(plan.warmup_nanoseconds);
        let Bound::Duration { nanoseconds } = plan.bound else { panic!("fakes run for a time") };
        let to = from + nanoseconds;
        Window {
            start_nanoseconds: start,
            first_due_nanoseconds: start,
            first_send_nanoseconds: start + u64::try_from(self.starts_late_by.as_nanos()).unwrap(),
            measure_from_nanoseconds: from,
            measure_to_nanoseconds: self.aborted_at.map_or(to, |at| at.min(to)),
            drained_nanoseconds: 0,
        }
    }

    fn phase(&self, now: u64) -> ShardPhase {
        let Some((_, planned_at)) = &self.plan else { return ShardPhase::Idle };
        if self.failure.is_some() {
            ShardPhase::Failed
        } else if self.aborted_at.is_some() {
            ShardPhase::Finished
        } else if self.accepted.is_some() {
            let drains_for = u64::try_from(self.drains_for.as_nanos()).unwrap();
            let end = self.window().measure_to_nanoseconds + drains_for;
            if now < end { ShardPhase::Running } else { ShardPhase::Finished }
        } else if self.arms_after.is_some_and(|after| self.virtual_time(now) >= *planned_at + after) {
            ShardPhase::Armed
        } else {
            ShardPhase::Preparing
        }
    }

    fn state(&self, now: u64) -> ShardState {
        let phase = self.phase(now);
        let preloading = self.plan.as_ref().filter(|_| phase == ShardPhase::Preparing);
        ShardState {
            phase,
            failure: self.failure.clone().filter(|_| phase == ShardPhase::Failed),
            plan_hash: self.plan.as_ref().map(|(plan, _)| plan.hash(&plan.run, plan.trial)),
            accepted: self.accepted,
            epoch: self.epoch,
            preparation: Preparation {
                waiting_for: preloading.and(self.waiting_for.clone()),
                preload_done: preloading.map_or(0, |(_, at)| {
                    self.virtual_time(now).saturating_sub(*at).as_secs() * self.preloads_per_second
                }),
                ..Preparation::default()
            },
        }
    }

    fn snapshot(&mut self, shard: u32, now: u64, detail: Detail, second: u32) -> Result<Snapshot, CallError> {
        let phase = self.phase(now);
        let Some(accepted) = self.accepted else { return Err(refused(RefusalCode::WrongPhase)) };
        if phase == ShardPhase::Failed || (detail == Detail::Full && phase != ShardPhase::Finished) {
            return Err(refused(RefusalCode::WrongPhase));
        }
        self.sequence += 1;
        self.fulls += u32::from(detail == Detail::Full);
        let window = self.window();
        let until = now.min(window.measure_to_nanoseconds);
        let sent = |from: u64, to: u64| to.saturating_sub(from) * RATE / 1_000_000_000;
        let tally = |count| Tally { scheduled: count, succeeded: count, sent_bytes: count * 10, ..Tally::default() };
        let total = tally(sent(window.measure_from_nanoseconds, until));
        let mut response = Kind::Request.empty();
        response.record_n(1_000_000 * u64::from(shard + 1), total.succeeded).unwrap();
        let timeline = self.timeline(shard, until, second);
        let bare = bare_snapshot(shard, accepted.attempt, 0);
        Ok(Snapshot {
            sequence: self.sequence,
            attempt: accepted.attempt,
            taken_nanoseconds: now,
            stage: match phase {
                ShardPhase::Finished => Stage::Done,
                _ if now < window.start_nanoseconds => Stage::Waiting,
                _ if now < window.measure_from_nanoseconds => Stage::Warmup,
                _ if now < window.measure_to_nanoseconds => Stage::Measuring,
                _ => Stage::Draining,
            },
            aborted: self.aborted_at.is_some(),
            terminated: self.terminated_at.is_some(),
            window: Window {
                first_send_nanoseconds: if now < window.start_nanoseconds { 0 } else { window.first_send_nanoseconds },
                ..window
            },
            total,
            warmup: tally(sent(window.start_nanoseconds, until.min(window.measure_from_nanoseconds))),
            latency: Latency { response: EncodedHistogram::encode(&response).unwrap(), ..bare.latency },
            timeline,
            ..bare
        })
    }
}

impl FakeShard {
    /// Requests sent in every second from `from` on, up to `until`, which is now.
    fn timeline(&self, shard: u32, until: u64, from: u32) -> Timeline {
        let window = self.window();
        let since = until.saturating_sub(window.start_nanoseconds);
        let sent = |from: u64, to: u64| to.saturating_sub(from) * RATE / 1_000_000_000;
        let at = |second: u32| {
            let at = window.start_nanoseconds + (u64::from(second) * 1_000_000_000).min(since);
            let warm = sent(window.start_nanoseconds, at.min(window.measure_from_nanoseconds));
            (warm, sent(window.measure_from_nanoseconds, at))
        };
        let counts = |count| Outcomes { scheduled: count, succeeded: count, ..Outcomes::default() };
        let last = u32::try_from(since / 1_000_000_000).unwrap();
        let spans = (from..=last).map(|second| {
            let ((warm_before, before), (warm, total)) = (at(second), at(second + 1));
            let mut response = Coarse::default();
            response.record(1_000_000 * u64::from(shard + 1), total - before);
            let part = SpanPart { counts: counts(total - before), response: response.buckets(), ..SpanPart::default() };
            let warmup = counts(warm - warm_before);
            let node = NodePart {
                address: "redis:6379".to_owned(),
                requests: total - before,
                errors: 0,
                service: response.buckets(),
            };
            let asked = self.plan.as_ref().is_some_and(|(plan, _)| plan.node_seconds);
            let nodes = if asked { vec![node] } else { Vec::new() };
            let sent_bytes = (total - before) * 10;
            Span { second, seconds: 1, warmup, sent_bytes, parts: vec![part], nodes, ..Span::default() }
        });
        let over = until >= window.measure_to_nanoseconds || self.aborted_at.is_some();
        let spans: Vec<Span> = spans.take(self.seconds_in_an_answer).collect();
        let told = spans.last().map_or(from, Span::end);
        let complete = (last + u32::from(over)).min(told).max(from);
        Timeline { from, complete, more: told <= last, spans }
    }
}

pub fn bare_snapshot(shard: u32, attempt: u32, sequence: u64) -> Snapshot {
    let full = sample::snapshot(shard, &[]);
    Snapshot {
        sequence,
        attempt,
        taken_nanoseconds: 0,
        stage: Stage::Measuring,
        window: Window::default(),
        latency: Latency { service: None, ..full.latency },
        series: Series::default(),
        operations: Vec::new(),
        nodes: Vec::new(),
        ..full
    }
}

fn refused(code: RefusalCode) -> CallError {
    CallError::Refused(Refusal { code, message: "so it is".to_owned() })
}

impl FakeShards {
    pub fn new(count: u32) -> Self {
        Self { now: Mutex::default(), shards: (0..count).map(|index| Mutex::new(FakeShard::new(index))).collect() }
    }

    pub fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    pub fn set_now(&self, now: Duration) {
        *self.now.lock().unwrap() = now;
    }

    pub fn shard(&self, index: u32) -> MutexGuard<'_, FakeShard> {
        self.shards[usize::try_from(index).unwrap()].lock().unwrap()
    }

    pub fn endpoint(&self, shard: u32) -> Endpoint {
        Endpoint {
            shard,
            incarnation: self.shard(shard).incarnation.clone(),
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            host: format!("node-{shard}"),
        }
    }

    /// Puts another process in the shard's place, like a replaced pod.
    pub fn replace(&self, shard: u32) {
        *self.shard(shard) = FakeShard { incarnation: format!("pod-{shard}-again"), ..FakeShard::new(shard) };
    }

    /// Returns whether the shard sends requests now or will later.
    pub fn has_load(&self, shard: u32) -> bool {
        let (shard, now) = (self.shard(shard), self.now());
        shard.phase(shard.clock(now)) == ShardPhase::Running
    }

    /// The accepted start of `shard`, in virtual time.
    pub fn true_start(&self, shard: u32) -> Duration {
        let shard = self.shard(shard);
        Duration::from_nanos(shard.accepted.unwrap().start_nanoseconds).abs_diff(shard.clock_offset)
    }

    /// Time of a call's way there, which is as long as that back. If the call fails on the way: when, and how.
    pub fn way(&self, endpoint: &Endpoint, call: &Call) -> Result<Duration, (Duration, CallError)> {
        let shard = self.shard(endpoint.shard);
        let hangs = match call {
            Call::Measure(..) => shard.deaf_to_measuring,
            Call::Abort(..) => shard.deaf_to_aborts.then_some(Duration::from_secs(8)),
            Call::Cleanup(_) => shard.removes.is_none().then_some(Duration::from_secs(8)),
            _ => None,
        };
        if let Some(hangs) = hangs {
            return Err((hangs, Unreachable::TimedOut(hangs).into()));
        }
        match call {
            Call::Start(_, request) if shard.misses.contains(&request.attempt) => {
                Err((Duration::ZERO, Unreachable::Connection("reset".to_owned()).into()))
            }
            _ if !shard.reachable => Err((Duration::from_secs(3), Unreachable::DialTimedOut(endpoint.address).into())),
            _ => Ok(shard.round_trip / 2),
        }
    }

    /// Delivers a call.
    pub fn answer(&self, endpoint: &Endpoint, call: &Call) -> Result<Reply, CallError> {
        let (mut shard, now) = (self.shard(endpoint.shard), self.now());
        if shard.incarnation != endpoint.incarnation {
            return Err(Unreachable::Foreign(shard.incarnation.clone()).into());
        }
        if matches!(call, Call::State) {
            let silence = shard.asked_at.replace(now).map_or(Duration::ZERO, |at| now.saturating_sub(at));
            shard.longest_silence = shard.longest_silence.max(silence);
        }
        let clock = shard.clock(now);
        let reply = shard.answer(endpoint.shard, now, call)?;
        Ok(reply.unwrap_or_else(|| Reply::State(Box::new(shard.state(clock)))))
    }
}

impl FakeShard {
    fn clock(&self, now: Duration) -> u64 {
        u64::try_from((now + self.clock_offset).as_nanos()).unwrap()
    }

    /// Its reply; none is its state.
    fn answer(&mut self, index: u32, virtual_now: Duration, call: &Call) -> Result<Option<Reply>, CallError> {
        let now = self.clock(virtual_now);
        if let Some(epoch) = call.epoch() {
            if epoch < self.epoch {
                return Err(refused(RefusalCode::StaleEpoch));
            }
            self.epoch = epoch;
        }
        Ok(match call {
            Call::Clock => Some(Reply::Clock(ClockReading { monotonic_nanoseconds: now })),
            Call::State => None,
            Call::Plan(trial, request) => {
                if let Some((plan, _)) = &self.plan
                    && plan.trial < *trial
                {
                    if self.drained != Some(plan.trial) {
                        return Err(refused(RefusalCode::WrongPhase));
                    }
                    (self.plan, self.accepted, self.aborted_at) = (None, None, None);
                }
                if self.plan.as_ref().is_some_and(|(plan, _)| plan.hash("run", *trial) != request.hash) {
                    return Err(refused(RefusalCode::PlanConflict));
                }
                self.plan.get_or_insert_with(|| (request.plan.part(&"run".into(), *trial, index), virtual_now));
                None
            }
            Call::Start(_, request) => {
                if let Some(accepted) = self.accepted.filter(|accepted| accepted.attempt == request.attempt) {
                    return Ok(Some(Reply::Start(accepted)));
                }
                if self.phase(now) != ShardPhase::Armed {
                    return Err(refused(RefusalCode::WrongPhase));
                }
                if request.start_nanoseconds <= now {
                    return Err(refused(RefusalCode::InstantPassed));
                }
                let accepted = AcceptedStart { attempt: request.attempt, start_nanoseconds: request.start_nanoseconds };
                self.accepted = Some(accepted);
                Some(Reply::Start(accepted))
            }
            Call::Measure(_, request) => {
                let accepted = self.accepted_in(request.attempt)?;
                if accepted.start_nanoseconds + request.after_nanoseconds <= now {
                    return Err(refused(RefusalCode::InstantPassed));
                }
                self.measures_after = Some(request.after_nanoseconds);
                None
            }
            Call::Probe(_, request) => {
                let accepted = self.accepted_in(request.attempt)?;
                if self.phase(now) != ShardPhase::Finished {
                    return Err(refused(RefusalCode::WrongPhase));
                }
                let asked = *self.probed_after.get_or_insert(request.after_nanoseconds);
                let (plan, _) = self.plan.as_ref().unwrap();
                let measured = plan.measurement.probe_nanoseconds;
                let end = accepted.start_nanoseconds + asked + Probe::WARMUP_NANOSECONDS + measured;
                let over = now >= end;
                let probe = self.probe.filter(|_| over);
                Some(Reply::Probe(Box::new(ProbeState { after_nanoseconds: asked, over, probe })))
            }
            Call::Snapshot(_, detail, from) => {
                Some(Reply::Snapshot(Box::new(self.snapshot(index, now, *detail, *from)?)))
            }
            Call::Abort(trial, request) => {
                if self.plan.as_ref().is_none_or(|(plan, _)| plan.trial != *trial) {
                    return Err(refused(RefusalCode::Unknown));
                }
                match request.then {
                    // A finished trial does not change.
                    AbortThen::Stop if self.phase(now) == ShardPhase::Finished => {}
                    AbortThen::Stop => self.aborted_at = Some(now),
                    AbortThen::Rearm => {
                        (self.accepted, self.aborted_at, self.measures_after) = (None, None, None);
                        self.rearmed += 1;
                    }
                }
                None
            }
            Call::Cleanup(_) => {
                assert_ne!(self.phase(now), ShardPhase::Running, "keys are deleted under load");
                self.cleanups += 1;
                let removed_keys = (u64::from(self.cleanups) * self.removes.unwrap()).min(1_000);
                Some(Reply::Cleanup(CleanupState { removed_keys, done: removed_keys == 1_000, failure: None }))
            }
            Call::Drain(_) => {
                if self.plan.is_some() && self.phase(now) != ShardPhase::Finished {
                    return Err(refused(RefusalCode::WrongPhase));
                }
                self.drained = self.plan.as_ref().map(|(plan, _)| plan.trial);
                self.drains += 1;
                None
            }
            Call::Release(_) => {
                self.released = true;
                None
            }
        })
    }

    fn accepted_in(&self, attempt: u32) -> Result<AcceptedStart, CallError> {
        self.accepted.filter(|accepted| accepted.attempt == attempt).ok_or_else(|| refused(RefusalCode::WrongPhase))
    }
}
