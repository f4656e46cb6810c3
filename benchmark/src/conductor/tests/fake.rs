//! Fake shards in memory, on tokio's clock: each with its own clock, plan, trial and faults.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::{Bound, ShardPlan};
use redisbench_wire::snapshot::{Generator, Latency, Series, Snapshot, Stage, Tally, Window};
use redisbench_wire::timeline::{Coarse, NodePart, Outcomes, Part, Span, Timeline};
use redisbench_wire::{
    AbortRequest, AbortThen, AcceptedStart, CleanupState, ClockReading, Detail, EpochRequest, MeasureRequest,
    PlanRequest, Preparation, Probe, ProbeRequest, ProbeState, Refusal, RefusalCode, ShardFailure, ShardPhase,
    ShardState, StartRequest,
};
use tokio::time::{Instant, sleep};

use crate::conductor::{CallError, Endpoint, ShardCalls, Unreachable};

/// Requests per second of every fake shard.
pub const RATE: u64 = 1_000;

/// A fake shard. Tests change it while it runs.
pub struct FakeShard {
    pub incarnation: String,
    /// Its clock minus the time since the fakes were made.
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
    /// Maximum number of seconds in one answer.
    pub seconds_in_an_answer: usize,

    pub epoch: u64,
    pub plan: Option<(ShardPlan, Instant)>,
    pub accepted: Option<AcceptedStart>,
    pub aborted_at: Option<u64>,
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
    /// Time of the last call for its state, and the longest time between two.
    pub asked_at: Option<Instant>,
    pub longest_silence: Duration,
    sequence: u64,
}

pub struct FakeShards {
    origin: Instant,
    shards: Vec<Mutex<FakeShard>>,
}

impl FakeShard {
    pub fn new(index: u32) -> Self {
        Self {
            incarnation: format!("pod-{index}"),
            clock_offset: Duration::from_secs(1_000) * (index + 1),
            round_trip: Duration::from_millis(2),
            reachable: true,
            deaf_to_aborts: false,
            deaf_to_measuring: None,
            measures_after: None,
            probed_after: None,
            probe: None,
            arms_after: Some(Duration::from_secs(1)),
            waiting_for: None,
            preloads_per_second: 0,
            failure: None,
            misses: Vec::new(),
            starts_late_by: Duration::ZERO,
            seconds_in_an_answer: usize::MAX,
            epoch: 0,
            plan: None,
            accepted: None,
            aborted_at: None,
            rearmed: 0,
            released: false,
            cleanups: 0,
            removes: Some(1_000),
            drained: None,
            drains: 0,
            asked_at: None,
            longest_silence: Duration::ZERO,
            sequence: 0,
        }
    }

    fn take_epoch(&mut self, epoch: u64) -> Result<(), CallError> {
        if epoch < self.epoch {
            return Err(refused(RefusalCode::StaleEpoch));
        }
        self.epoch = epoch;
        Ok(())
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
            if now < self.window().measure_to_nanoseconds { ShardPhase::Running } else { ShardPhase::Finished }
        } else if self.arms_after.is_some_and(|after| planned_at.elapsed() >= after) {
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
                preloaded_keys: preloading.map_or(0, |(_, at)| at.elapsed().as_secs() * self.preloads_per_second),
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
        let window = self.window();
        let until = now.min(window.measure_to_nanoseconds);
        let sent = |from: u64, to: u64| to.saturating_sub(from) * RATE / 1_000_000_000;
        let tally = |count| Tally { scheduled: count, succeeded: count, sent_bytes: count * 10, ..Tally::default() };
        let total = tally(sent(window.measure_from_nanoseconds, until));
        let mut response = Kind::Request.empty();
        response.record_n(1_000_000 * u64::from(shard + 1), total.succeeded).unwrap();
        let timeline = self.timeline(shard, until, second);
        Ok(Snapshot {
            sequence: self.sequence,
            attempt: accepted.attempt,
            taken_nanoseconds: now,
            stage: match phase {
                ShardPhase::Finished => Stage::Done,
                _ if now < window.start_nanoseconds => Stage::Waiting,
                _ if now < window.measure_from_nanoseconds => Stage::Warmup,
                _ => Stage::Measuring,
            },
            aborted: self.aborted_at.is_some(),
            window: Window {
                first_send_nanoseconds: if now < window.start_nanoseconds { 0 } else { window.first_send_nanoseconds },
                ..window
            },
            total,
            warmup: tally(sent(window.start_nanoseconds, until.min(window.measure_from_nanoseconds))),
            latency: Latency { response: EncodedHistogram::encode(&response).unwrap(), ..empty_latency() },
            timeline,
            ..super::snapshot(shard, accepted.attempt, 0)
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
            let part = Part { counts: counts(total - before), response: response.buckets(), ..Part::default() };
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

pub fn empty_latency() -> Latency {
    Latency {
        response: EncodedHistogram::encode(&Kind::Request.empty()).unwrap(),
        service: None,
        error_replies: None,
        lateness: None,
    }
}

pub fn bare_snapshot(shard: u32, attempt: u32, sequence: u64) -> Snapshot {
    Snapshot {
        sequence,
        shard,
        attempt,
        taken_nanoseconds: 0,
        stage: Stage::Measuring,
        aborted: false,
        window: Window::default(),
        total: Tally::default(),
        warmup: Tally::default(),
        preloaded_keys: 0,
        preload_commands: 0,
        latency: empty_latency(),
        series: Series::default(),
        timeline: Timeline::default(),
        operations: Vec::new(),
        nodes: Vec::new(),
        errors: Vec::new(),
        verification: None,
        generator: Generator::default(),
        topology: redisbench_wire::topology::TopologyReport::default(),
        servers: None,
    }
}

fn refused(code: RefusalCode) -> CallError {
    CallError::Refused(Refusal { code, message: "so it is".to_owned() })
}

impl FakeShards {
    pub fn new(count: u32) -> Self {
        Self { origin: Instant::now(), shards: (0..count).map(|index| Mutex::new(FakeShard::new(index))).collect() }
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

    /// Whether the shard sends requests now or will later.
    pub fn has_load(&self, shard: u32) -> bool {
        let shard = self.shard(shard);
        let now = u64::try_from((self.origin.elapsed() + shard.clock_offset).as_nanos()).unwrap();
        shard.phase(now) == ShardPhase::Running
    }

    /// The accepted start of `shard`, since the fakes were made.
    pub fn true_start(&self, shard: u32) -> Duration {
        let shard = self.shard(shard);
        Duration::from_nanos(shard.accepted.unwrap().start_nanoseconds).abs_diff(shard.clock_offset)
    }

    /// Adds the time of a call and the faults around `act`.
    async fn call<T>(
        &self,
        endpoint: &Endpoint,
        act: impl FnOnce(&mut FakeShard, u64) -> Result<T, CallError> + Send,
    ) -> Result<T, CallError> {
        let (reachable, way) = {
            let shard = self.shard(endpoint.shard);
            (shard.reachable, shard.round_trip / 2)
        };
        if !reachable {
            sleep(Duration::from_secs(3)).await;
            return Err(Unreachable::DialTimedOut(endpoint.address).into());
        }
        sleep(way).await;
        let answer = {
            let mut shard = self.shard(endpoint.shard);
            if shard.incarnation != endpoint.incarnation {
                return Err(Unreachable::Foreign(shard.incarnation.clone()).into());
            }
            let now = u64::try_from((self.origin.elapsed() + shard.clock_offset).as_nanos()).unwrap();
            act(&mut shard, now)
        };
        sleep(way).await;
        answer
    }
}

impl ShardCalls for FakeShards {
    async fn clock(&self, endpoint: &Endpoint) -> Result<ClockReading, CallError> {
        self.call(endpoint, |_, now| Ok(ClockReading { monotonic_nanoseconds: now })).await
    }

    async fn state(&self, endpoint: &Endpoint) -> Result<ShardState, CallError> {
        self.call(endpoint, |shard, now| {
            let silence = shard.asked_at.replace(Instant::now()).map_or(Duration::ZERO, |at| at.elapsed());
            shard.longest_silence = shard.longest_silence.max(silence);
            Ok(shard.state(now))
        })
        .await
    }

    async fn put_plan(&self, endpoint: &Endpoint, trial: u32, request: &PlanRequest) -> Result<ShardState, CallError> {
        self.call(endpoint, |shard, now| {
            shard.take_epoch(request.epoch)?;
            if let Some((plan, _)) = &shard.plan
                && plan.trial < trial
            {
                if shard.drained != Some(plan.trial) {
                    return Err(refused(RefusalCode::WrongPhase));
                }
                (shard.plan, shard.accepted, shard.aborted_at) = (None, None, None);
            }
            if shard.plan.as_ref().is_some_and(|(plan, _)| plan.hash("run", trial) != request.hash) {
                return Err(refused(RefusalCode::PlanConflict));
            }
            let part = || request.plan.part(&"run".into(), trial, endpoint.shard);
            shard.plan.get_or_insert_with(|| (part(), Instant::now()));
            Ok(shard.state(now))
        })
        .await
    }

    async fn start(&self, endpoint: &Endpoint, _: u32, request: &StartRequest) -> Result<AcceptedStart, CallError> {
        if self.shard(endpoint.shard).misses.contains(&request.attempt) {
            return Err(Unreachable::Connection("reset".to_owned()).into());
        }
        self.call(endpoint, |shard, now| {
            shard.take_epoch(request.epoch)?;
            if let Some(accepted) = shard.accepted.filter(|accepted| accepted.attempt == request.attempt) {
                return Ok(accepted);
            }
            if shard.phase(now) != ShardPhase::Armed {
                return Err(refused(RefusalCode::WrongPhase));
            }
            if request.start_nanoseconds <= now {
                return Err(refused(RefusalCode::InstantPassed));
            }
            let accepted = AcceptedStart { attempt: request.attempt, start_nanoseconds: request.start_nanoseconds };
            shard.accepted = Some(accepted);
            Ok(accepted)
        })
        .await
    }

    async fn measure(&self, endpoint: &Endpoint, _: u32, request: &MeasureRequest) -> Result<ShardState, CallError> {
        let hangs = self.shard(endpoint.shard).deaf_to_measuring;
        if let Some(hangs) = hangs {
            sleep(hangs).await;
            return Err(Unreachable::TimedOut(hangs).into());
        }
        self.call(endpoint, |shard, now| {
            shard.take_epoch(request.epoch)?;
            let accepted = shard.accepted.filter(|accepted| accepted.attempt == request.attempt);
            let Some(accepted) = accepted else { return Err(refused(RefusalCode::WrongPhase)) };
            if accepted.start_nanoseconds + request.after_nanoseconds <= now {
                return Err(refused(RefusalCode::InstantPassed));
            }
            shard.measures_after = Some(request.after_nanoseconds);
            Ok(shard.state(now))
        })
        .await
    }

    async fn probe(&self, endpoint: &Endpoint, _: u32, request: &ProbeRequest) -> Result<ProbeState, CallError> {
        self.call(endpoint, |shard, now| {
            shard.take_epoch(request.epoch)?;
            let accepted = shard.accepted.filter(|accepted| accepted.attempt == request.attempt);
            let Some(accepted) = accepted.filter(|_| shard.phase(now) == ShardPhase::Finished) else {
                return Err(refused(RefusalCode::WrongPhase));
            };
            let asked = *shard.probed_after.get_or_insert(request.after_nanoseconds);
            let (plan, _) = shard.plan.as_ref().unwrap();
            let measured = plan.measurement.probe_nanoseconds;
            let end = accepted.start_nanoseconds + asked + Probe::WARMUP_NANOSECONDS + measured;
            let over = now >= end;
            Ok(ProbeState { after_nanoseconds: asked, over, probe: shard.probe.filter(|_| over) })
        })
        .await
    }

    async fn snapshot(&self, endpoint: &Endpoint, _: u32, detail: Detail, from: u32) -> Result<Snapshot, CallError> {
        self.call(endpoint, |shard, now| shard.snapshot(endpoint.shard, now, detail, from)).await
    }

    async fn abort(&self, endpoint: &Endpoint, trial: u32, request: &AbortRequest) -> Result<ShardState, CallError> {
        if self.shard(endpoint.shard).deaf_to_aborts {
            sleep(Duration::from_secs(8)).await;
            return Err(Unreachable::TimedOut(Duration::from_secs(8)).into());
        }
        self.call(endpoint, |shard, now| {
            shard.take_epoch(request.epoch)?;
            if shard.plan.as_ref().is_none_or(|(plan, _)| plan.trial != trial) {
                return Err(refused(RefusalCode::Unknown));
            }
            match request.then {
                // A finished trial does not change.
                AbortThen::Stop if shard.phase(now) == ShardPhase::Finished => {}
                AbortThen::Stop => shard.aborted_at = Some(now),
                AbortThen::Rearm => {
                    (shard.accepted, shard.aborted_at, shard.measures_after) = (None, None, None);
                    shard.rearmed += 1;
                }
            }
            Ok(shard.state(now))
        })
        .await
    }

    async fn cleanup(&self, endpoint: &Endpoint, request: &EpochRequest) -> Result<CleanupState, CallError> {
        let Some(removes) = self.shard(endpoint.shard).removes else {
            sleep(Duration::from_secs(8)).await;
            return Err(Unreachable::TimedOut(Duration::from_secs(8)).into());
        };
        self.call(endpoint, |shard, now| {
            shard.take_epoch(request.epoch)?;
            assert_ne!(shard.phase(now), ShardPhase::Running, "keys are deleted under load");
            shard.cleanups += 1;
            let removed_keys = (u64::from(shard.cleanups) * removes).min(1_000);
            Ok(CleanupState { removed_keys, done: removed_keys == 1_000, failure: None })
        })
        .await
    }

    async fn drain(&self, endpoint: &Endpoint, request: &EpochRequest) -> Result<ShardState, CallError> {
        self.call(endpoint, |shard, now| {
            shard.take_epoch(request.epoch)?;
            if shard.plan.is_some() && shard.phase(now) != ShardPhase::Finished {
                return Err(refused(RefusalCode::WrongPhase));
            }
            shard.drained = shard.plan.as_ref().map(|(plan, _)| plan.trial);
            shard.drains += 1;
            Ok(shard.state(now))
        })
        .await
    }

    async fn release(&self, endpoint: &Endpoint, request: &EpochRequest) -> Result<ShardState, CallError> {
        self.call(endpoint, |shard, now| {
            shard.take_epoch(request.epoch)?;
            shard.released = true;
            Ok(shard.state(now))
        })
        .await
    }
}
