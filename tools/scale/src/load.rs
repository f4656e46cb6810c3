//! The load of a shard as arithmetic: how many requests it has sent by a time, and their latencies.
//!
//! A shard sends its part of an open loop exactly on time, and every request succeeds. The latencies of consecutive requests of an
//! operation go round a fixed list, so any range of requests has a known histogram.

use std::ops::Range;

use hdrhistogram::Histogram;
use redisbench_wire::Detail;
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::{Bound, Load as Kinds, ShardPlan};
use redisbench_wire::snapshot::{Generator, Latency, OperationTally, Series, Snapshot, Stage, Tally, Window};
use redisbench_wire::timeline::{Coarse, Outcomes, Span, SpanPart, Timeline};
use redisbench_wire::topology::TopologyReport;

const SECOND: u64 = 1_000_000_000;
/// Length of a point of the series.
const POINT: u64 = SECOND / 10;

/// Number of different latencies: as many as fill a histogram like those of real servers.
const LATENCIES: u64 = 200;

/// From 0.2 to 39.8 ms, denser at the low end.
fn latency(index: u64) -> u64 {
    200_000 + index * index * 1_000
}

/// The load of one attempt. Times are on the shard's clock.
#[derive(Clone, Debug)]
pub struct Load {
    pub plan: ShardPlan,
    pub attempt: u32,
    pub start: u64,
    /// Length of the warm-up, planned or actual.
    pub warmup: u64,
    pub stopped_at: Option<u64>,
    pub ended: bool,
}

impl Load {
    pub fn new(plan: ShardPlan, attempt: u32, start: u64) -> Self {
        Self { warmup: plan.warmup_nanoseconds, plan, attempt, start, stopped_at: None, ended: false }
    }

    /// The end of the load, planned or actual.
    pub fn end(&self) -> u64 {
        let (Bound::Duration { nanoseconds } | Bound::Requests { max_nanoseconds: nanoseconds, .. }) = self.plan.bound;
        let planned = self.start + self.warmup + nanoseconds;
        planned.min(self.stopped_at.unwrap_or(u64::MAX))
    }

    fn operations(&self) -> u64 {
        self.plan.workload.operations.len() as u64
    }

    /// The number of this shard's requests due before `elapsed` nanoseconds after the start.
    fn due_before(&self, elapsed: u64) -> u64 {
        let Kinds::OpenLoop { rate_per_second, .. } = self.plan.load else { return 0 };
        let all = (u128::from(elapsed) * u128::from(rate_per_second)).div_ceil(SECOND.into());
        let (shard, shards) = (u128::from(self.plan.shard), u128::from(self.plan.shards));
        u64::try_from(all.saturating_sub(shard).div_ceil(shards)).unwrap_or(u64::MAX)
    }

    /// The requests sent in a range of nanoseconds after the start, as long as there is load.
    fn sent(&self, within: Range<u64>) -> Range<u64> {
        let length = self.end().saturating_sub(self.start);
        self.due_before(within.start.min(length))..self.due_before(within.end.min(length))
    }

    /// The warm-up's requests in a range of time, and the measured ones.
    fn split(&self, within: &Range<u64>) -> (Range<u64>, Range<u64>) {
        let at = self.warmup.clamp(within.start, within.end);
        (self.sent(within.start..at), self.sent(at..within.end))
    }

    /// The frequency of each latency among the requests of `operation` in `range`.
    fn latencies(&self, range: &Range<u64>, operation: u64) -> impl Iterator<Item = (u64, u64)> {
        let of = |request: u64| (request + self.operations() - 1 - operation) / self.operations();
        let (from, to) = (of(range.start), of(range.end));
        (0..LATENCIES).filter_map(move |index| {
            let before = |count: u64| (count + LATENCIES - 1 - index) / LATENCIES;
            let times = before(to) - before(from);
            (times > 0).then(|| (latency(index), times))
        })
    }

    fn count(&self, range: &Range<u64>, operation: u64) -> u64 {
        self.latencies(range, operation).map(|(_, times)| times).sum()
    }

    fn histogram(&self, range: &Range<u64>, operations: Range<u64>) -> EncodedHistogram {
        let mut sum = Kind::Request.empty();
        for (latency, times) in operations.flat_map(|operation| self.latencies(range, operation)) {
            sum.saturating_record_n(latency, times);
        }
        encoded(&sum)
    }

    fn latency_of(&self, range: &Range<u64>, operations: Range<u64>, detail: Detail) -> Latency {
        let response = self.histogram(range, operations);
        let lateness = (detail == Detail::Full).then(|| encoded(&Kind::Request.empty()));
        Latency { service: Some(response.clone()), response, error_replies: None, lateness }
    }

    fn second(&self, second: u32, until: u64) -> Span {
        let begin = u64::from(second) * SECOND;
        let (warmup, measured) = self.split(&(begin..(begin + SECOND).min(until)));
        let part = |operation| {
            let succeeded = self.count(&measured, operation);
            let mut latencies = Coarse::default();
            self.latencies(&measured, operation).for_each(|(latency, times)| latencies.record(latency, times));
            let counts = Outcomes { scheduled: succeeded, succeeded, ..Outcomes::default() };
            let response = latencies.buckets();
            SpanPart { counts, service: response.clone(), response, ..SpanPart::default() }
        };
        let scheduled = warmup.end - warmup.start;
        let bytes = tally(&measured);
        Span {
            second,
            seconds: 1,
            warmup: Outcomes { scheduled, succeeded: scheduled, ..Outcomes::default() },
            sent_bytes: bytes.sent_bytes,
            received_bytes: bytes.received_bytes,
            parts: (0..self.operations()).map(part).collect(),
            nodes: Vec::new(),
        }
    }

    fn timeline(&self, elapsed: u64, from: u32) -> Timeline {
        let second = u32::try_from(elapsed / SECOND).unwrap_or(u32::MAX);
        let last = u32::try_from(self.end().saturating_sub(self.start) / SECOND).unwrap_or(u32::MAX);
        let complete = if self.ended { second.max(last) + 1 } else { second };
        let spans = (from..=second.min(last)).map(|second| self.second(second, elapsed));
        Timeline { from, complete, more: false, spans: spans.collect() }
    }

    fn series(&self, elapsed: u64) -> Series {
        let points = elapsed.min(self.end().saturating_sub(self.start)).div_ceil(POINT);
        let sent = |point: u64| self.sent(point * POINT..((point + 1) * POINT).min(elapsed));
        let completed = (0..points).map(sent).map(|range| range.end - range.start).collect();
        Series { interval_nanoseconds: POINT, completed }
    }

    /// The measured requests at `now`.
    pub fn total(&self, now: u64) -> Tally {
        tally(&self.split(&(0..now.saturating_sub(self.start))).1)
    }

    pub fn snapshot(&self, now: u64, sequence: u64, (detail, from): (Detail, u32), host: &str) -> Snapshot {
        let elapsed = now.saturating_sub(self.start);
        let (warmup, measured) = self.split(&(0..elapsed));
        let (full, all) = (detail == Detail::Full, 0..self.operations());
        let operation = |(index, name): (u64, String)| OperationTally {
            name,
            tally: tally_of(self.count(&measured, index)),
            nil_replies: 0,
            latency: self.latency_of(&measured, index..index + 1, detail),
        };
        let names = self.plan.workload.operations.iter().map(|operation| operation.name.clone());
        let measure_from = self.start + self.warmup;
        let first_due = self.start + self.first_due();
        Snapshot {
            sequence,
            shard: self.plan.shard,
            attempt: self.attempt,
            taken_nanoseconds: now,
            stage: match now {
                _ if self.ended => Stage::Done,
                _ if now >= self.end() => Stage::Draining,
                _ if now < self.start => Stage::Waiting,
                _ if now < measure_from => Stage::Warmup,
                _ => Stage::Measuring,
            },
            aborted: self.stopped_at.is_some(),
            terminated: false,
            window: Window {
                start_nanoseconds: self.start,
                first_due_nanoseconds: first_due,
                first_send_nanoseconds: if now > first_due { first_due } else { 0 },
                measure_from_nanoseconds: measure_from,
                measure_to_nanoseconds: self.end(),
                drained_nanoseconds: if self.ended { self.end() } else { 0 },
            },
            total: tally(&measured),
            warmup: tally_of(warmup.end - warmup.start),
            preloaded_keys: 0,
            preload_commands: 0,
            latency: self.latency_of(&measured, all, detail),
            series: if full { self.series(elapsed) } else { Series::default() },
            timeline: self.timeline(elapsed, from),
            operations: if full { (0..).zip(names).map(operation).collect() } else { Vec::new() },
            nodes: Vec::new(),
            errors: Vec::new(),
            verification: None,
            cache: None,
            churn: None,
            client: None,
            generator: Generator {
                host: host.to_owned(),
                workers: 1,
                load_nanoseconds: elapsed,
                ..Generator::default()
            },
            topology: TopologyReport::default(),
            servers: None,
        }
    }

    fn first_due(&self) -> u64 {
        let Kinds::OpenLoop { rate_per_second, .. } = self.plan.load else { return 0 };
        u64::from(self.plan.shard) * SECOND / rate_per_second.max(1)
    }
}

fn tally(requests: &Range<u64>) -> Tally {
    let count = requests.end - requests.start;
    Tally { sent_bytes: count * 30, received_bytes: count * 100, ..tally_of(count) }
}

fn tally_of(count: u64) -> Tally {
    Tally { scheduled: count, succeeded: count, ..Tally::default() }
}

fn encoded(histogram: &Histogram<u64>) -> EncodedHistogram {
    EncodedHistogram::encode(histogram).unwrap_or_else(|_| unreachable!("in memory"))
}
