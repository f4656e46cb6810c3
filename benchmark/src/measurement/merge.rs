//! Merges the snapshots of many shards into one measurement: counts are added, histograms bucket by bucket, quantiles never.
//!
//! No sum can overflow: the conductor keeps only snapshots that pass [`Snapshot::check`], which bounds every number.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use hdrhistogram::Histogram;
use redisbench_wire::histogram::HistogramError;
use redisbench_wire::limits;
use redisbench_wire::plan::{Bound, TrialPlan};
use redisbench_wire::rate::CumulativeRate;
use redisbench_wire::snapshot::{ClientUsage, ErrorTally, ServerStats, Snapshot, Tally, VerificationCounts};
use redisbench_wire::timeline::Span;

use crate::measurement::measured::{Measured, MergedCache, MergedChurn, NodeMeasured, OTHER, OperationMeasured};
use crate::measurement::parts::Parts;
use crate::measurement::topology::{self, MergedTopology};
use crate::measurement::{Outcome, ShardEvidence};

const SECOND: u64 = 1_000_000_000;

/// Any time, as a range of nanoseconds after the start.
pub(crate) const ALWAYS: Range<u64> = 0..u64::MAX;

/// Parts of a window whose throughput is compared.
const TENTHS: usize = 10;

/// Shorter parts hold too few requests.
const SHORTEST_TENTH: u64 = SECOND / 2;

/// Bound of error kinds over all shards. Each shard may name [`limits::ERROR_KINDS`].
const ERROR_KINDS: usize = 16 * limits::ERROR_KINDS;

/// Merged measurement of all shards.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// All measured requests.
    pub total: Measured,
    /// Requests of the warm-up.
    pub warmup: Tally,
    /// Keys that preloads wrote or found.
    pub preloaded_keys: u64,
    /// Answered commands of preloads.
    pub preload_commands: u64,
    /// Per shard, requests that it would have sent after its last snapshot: 0 except for lost shards. In index order.
    pub unknown: Vec<u64>,
    /// In the plan's order.
    pub operations: Vec<OperationMeasured>,
    /// In the order of their addresses.
    pub nodes: Vec<NodeMeasured>,
    /// Actual send minus due time; none in a closed loop.
    pub lateness: Option<Histogram<u64>>,
    /// By kind, the most frequent first.
    pub errors: Vec<ErrorTally>,
    /// Counts of checked replies, without the individual findings; none if nothing was checked.
    pub verification: Option<VerificationCounts>,
    /// Client-side caches; none without them.
    pub cache: Option<MergedCache>,
    /// Connections made; none if they have no lifetime.
    pub churn: Option<MergedChurn>,
    /// Cost of the client; none for the engine.
    pub client: Option<MergedClient>,
    /// Succeeded requests over time.
    pub throughput: MergedThroughput,
    /// The target's servers, and their changes and outages.
    pub topology: MergedTopology,
    /// Statistics from the servers; none if they were not asked.
    pub servers: Option<ServerStats>,
}

impl Merged {
    /// Returns whether requests had due times: those of a rate, or recorded ones.
    pub(crate) fn has_due_times(&self) -> bool {
        self.throughput.target.is_some() || self.lateness.is_some()
    }
}

/// Completions of all shards with a series over their common window, in whole points.
#[derive(Debug)]
pub(crate) struct Completions {
    /// Length of a point.
    interval_nanoseconds: u64,
    /// Beginning of the first point, after the start.
    from_nanoseconds: u64,
    points: Vec<u64>,
}

impl Completions {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let snapshots = with_series(outcome);
        let (from, to, interval) = common_window(&snapshots);
        Self {
            interval_nanoseconds: interval,
            from_nanoseconds: from.checked_next_multiple_of(interval).unwrap_or(from),
            points: common_points(&snapshots, interval, from, to),
        }
    }

    /// The length of a point.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_nanoseconds)
    }

    /// The points that lie wholly within a range of nanoseconds after the start.
    pub(crate) fn within(&self, range: &Range<u64>) -> &[u64] {
        let interval = self.interval_nanoseconds.max(1);
        let after = |at: u64| at.saturating_sub(self.from_nanoseconds);
        let index = |points: u64| usize::try_from(points).unwrap_or(usize::MAX).min(self.points.len());
        let (first, end) = (index(after(range.start).div_ceil(interval)), index(after(range.end) / interval));
        self.points.get(first..end).unwrap_or_default()
    }

    /// Completions per second in ten equal parts of that range, in order. Drops the remainder at the end. Empty if a part would be shorter
    /// than half a second.
    pub(crate) fn tenths(&self, range: &Range<u64>) -> Vec<u64> {
        let points = self.within(range);
        let each = points.len() / TENTHS;
        let length = self.interval_nanoseconds.saturating_mul(each as u64);
        if length < SHORTEST_TENTH {
            return Vec::new();
        }
        let parts = points.chunks_exact(each).take(TENTHS);
        parts.map(|part| per_second(sum(part.iter().copied()), length)).collect()
    }
}

/// A client of all shards, from the start to the last outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedClient {
    pub usage: ClientUsage,
    /// Requests that have an outcome, those of the warm-up included.
    pub requests: u64,
}

/// Succeeded requests over the common window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergedThroughput {
    /// Length of the common window.
    pub window_nanoseconds: u64,
    /// Requests per second over the window.
    pub mean: u64,
    /// Requests in its slowest whole second.
    pub slowest: u64,
    /// Requests in its fastest whole second.
    pub fastest: u64,
    /// Rate that an open loop's schedule asks for over the window, per second.
    pub target: Option<u64>,
    /// Number of requests behind the mean.
    pub completed: u64,
    /// Requests that an open loop's schedule had due over the same time, shifted back by the mean response time: this many could have
    /// completed.
    pub due: Option<u64>,
}

/// Merges the snapshots of `outcome`; none if it has no snapshot.
///
/// # Errors
/// If a histogram violates the contract.
pub fn merge(plan: &TrialPlan, outcome: &Outcome) -> Result<Option<Merged>, HistogramError> {
    let snapshots: Vec<&Snapshot> = outcome.snapshots().collect();
    if snapshots.is_empty() {
        return Ok(None);
    }
    let mut warmup = Tally::default();
    for snapshot in &snapshots {
        warmup.add(&snapshot.warmup);
    }
    let mut parts = outcome.parts.clone();
    for shard in outcome.shards.iter().filter(|shard| shard.own_latency.is_none()) {
        shard.snapshot.iter().try_for_each(|snapshot| parts.add(snapshot))?;
    }
    let Parts { mut total, lateness, operations, nodes, cache, churn } = parts;
    let rate = CumulativeRate::of(plan);
    let streams = CumulativeRate::each(plan);
    let unknown: Vec<u64> =
        (0..plan.shards).zip(&outcome.shards).map(|(index, shard)| unknown(plan, &streams, index, shard)).collect();
    total.unknown = sum(unknown.iter().copied());
    let response = crate::measurement::latencies::round(total.response.mean());
    let mut throughput = throughput(&snapshots, rate.as_ref(), response);
    if let Some(cache) = &cache {
        throughput.due = throughput.due.map(|due| without_hits(due, total.tally.scheduled, cache.counts.hits));
    }
    Ok(Some(Merged {
        total,
        unknown,
        warmup,
        preloaded_keys: sum(snapshots.iter().map(|snapshot| snapshot.preloaded_keys)),
        preload_commands: sum(snapshots.iter().map(|snapshot| snapshot.preload_commands)),
        operations,
        nodes: nodes.into_values().collect(),
        lateness,
        errors: errors(&snapshots),
        verification: verification(snapshots.iter().copied()),
        cache,
        churn,
        client: client(&snapshots),
        servers: snapshots.iter().find_map(|snapshot| snapshot.servers.clone()),
        throughput,
        topology: topology::merge(plan, &snapshots),
    }))
}

/// Merged counts of all shards; none if nothing was checked.
pub(crate) fn verification<'a>(snapshots: impl Iterator<Item = &'a Snapshot>) -> Option<VerificationCounts> {
    let mut sum: Option<VerificationCounts> = None;
    for found in snapshots.filter_map(|snapshot| snapshot.verification.as_ref()) {
        sum.get_or_insert_default().add(&found.counts);
    }
    sum
}

/// The part of `due` requests that was scheduled, because a cache answered the rest.
fn without_hits(due: u64, scheduled: u64, hits: u64) -> u64 {
    let all = u128::from(scheduled) + u128::from(hits);
    u64::try_from((u128::from(due) * u128::from(scheduled)).checked_div(all).unwrap_or_default()).unwrap_or(due)
}

fn client(snapshots: &[&Snapshot]) -> Option<MergedClient> {
    let mut sum: Option<MergedClient> = None;
    for (usage, snapshot) in snapshots.iter().filter_map(|snapshot| Some((snapshot.client.as_ref()?, snapshot))) {
        let sum = sum.get_or_insert_with(|| MergedClient { usage: ClientUsage::default(), requests: 0 });
        sum.usage.add(usage);
        for tally in [&snapshot.total, &snapshot.warmup] {
            sum.requests = sum.requests.saturating_add(tally.succeeded).saturating_add(tally.errors);
        }
    }
    sum
}

/// Saturates: shards' counts are untrusted.
fn sum(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0, u64::saturating_add)
}

fn errors(snapshots: &[&Snapshot]) -> Vec<ErrorTally> {
    let mut kinds = BTreeMap::<&str, ErrorTally>::new();
    for part in snapshots.iter().flat_map(|snapshot| &snapshot.errors) {
        let full = kinds.len() >= ERROR_KINDS && !kinds.contains_key(part.kind.as_str());
        let name = if full { OTHER } else { &part.kind };
        let kind = kinds.entry(name).or_insert_with(|| ErrorTally { kind: name.to_owned(), count: 0, ..part.clone() });
        kind.count = kind.count.saturating_add(part.count);
    }
    let mut errors: Vec<ErrorTally> = kinds.into_values().collect();
    errors.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.kind.cmp(&b.kind)));
    errors
}

/// Requests that shard `index`, if lost, would have sent after its last snapshot. Unknowable in a closed loop that ends by time.
fn unknown(plan: &TrialPlan, streams: &[CumulativeRate], index: u32, shard: &ShardEvidence) -> u64 {
    if shard.lost.is_none() {
        return 0;
    }
    let heard = shard.snapshot.as_ref().map_or(0, |snapshot| snapshot.total.scheduled);
    let planned = match plan.bound_of(index) {
        Bound::Requests { count, .. } => count,
        // A recording's commands are divided by their keys.
        Bound::Duration { .. } if streams.is_empty() || plan.trace.is_some() => heard,
        Bound::Duration { nanoseconds } => {
            // The warm-up may have ended early.
            let window = shard.snapshot.as_ref().map(|snapshot| &snapshot.window);
            let begun = window.filter(|window| window.start_nanoseconds > 0);
            let from = begun.map_or(plan.warmup_nanoseconds, |window| {
                window.measure_from_nanoseconds.saturating_sub(window.start_nanoseconds)
            });
            let until = from.saturating_add(nanoseconds);
            sum(streams.iter().map(|rate| due_before(plan, index, rate, until) - due_before(plan, index, rate, from)))
        }
    };
    planned.saturating_sub(heard)
}

/// The number of a stream's requests that are due at shard `index` before `nanoseconds` after the start. For Poisson arrivals this is the
/// mean.
fn due_before(plan: &TrialPlan, index: u32, rate: &CumulativeRate, nanoseconds: u64) -> u64 {
    let all = rate.count_before(nanoseconds);
    all.saturating_sub(index.into()).div_ceil(plan.shards.max(1).into())
}

/// Completions of `outcome` in its common window: the length of a point, and the count of each whole point.
pub(crate) fn completions(outcome: &Outcome) -> (Duration, Vec<u64>) {
    let completions = Completions::of(outcome);
    (completions.interval(), completions.points)
}

/// The spans of `outcome` in the part of its common window that lies within a range of nanoseconds after the start, and the range of whole
/// seconds that they cover, empty seconds included. None if that part holds no whole second.
pub(crate) fn common_seconds<'a>(outcome: &'a Outcome, range: &Range<u64>) -> Option<(&'a [Span], Range<u32>)> {
    let snapshots: Vec<&Snapshot> = outcome.snapshots().collect();
    let (from, to, _) = common_window(&snapshots);
    let part = from.max(range.start)..to.min(range.end);
    whole_seconds(&outcome.timeline, part).filter(|(within, _)| !within.is_empty())
}

/// The time in which all shards with a series were measuring, in nanoseconds after the start.
pub(crate) fn completed_window(outcome: &Outcome) -> Range<u64> {
    let (from, to, _) = common_window(&with_series(outcome));
    from..to
}

/// Excludes the live snapshots of lost shards, which have no series.
fn with_series(outcome: &Outcome) -> Vec<&Snapshot> {
    outcome.snapshots().filter(|snapshot| !snapshot.series.completed.is_empty()).collect()
}

/// The `spans` that lie wholly within a range of nanoseconds after the start, and the range of whole seconds that they cover, empty seconds
/// included. None if the range holds no whole second.
pub(crate) fn whole_seconds(spans: &[Span], within: Range<u64>) -> Option<(&[Span], Range<u32>)> {
    let second = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
    let (mut first, mut end) = (second(within.start.div_ceil(SECOND)), second(within.end / SECOND));
    // A longer span that reaches out of the window cannot be split, so it is left out.
    let over = |at: u32| spans.iter().find(|span| span.second < at && at < span.end());
    first = over(first).map_or(first, Span::end);
    end = over(end).map_or(end, |span| span.second);
    let (start, stop) =
        (spans.partition_point(|span| span.second < first), spans.partition_point(|span| span.second < end));
    (first < end).then_some((spans.get(start..stop)?, first..end))
}

pub(crate) fn since_start(snapshot: &Snapshot, instant: u64) -> u64 {
    instant.saturating_sub(snapshot.window.start_nanoseconds)
}

/// The beginning and end of the time in which all of them measured, after the start, and the longest interval of their series.
fn common_window(snapshots: &[&Snapshot]) -> (u64, u64, u64) {
    let from = snapshots.iter().map(|s| since_start(s, s.window.measure_from_nanoseconds)).max().unwrap_or(0);
    let to = snapshots.iter().map(|snapshot| since_start(snapshot, measured_until(snapshot))).min().unwrap_or(0);
    let interval = snapshots.iter().map(|snapshot| snapshot.series.interval_nanoseconds).max().unwrap_or(0);
    (from, to, interval)
}

/// Completions in the common window, from whole points of the series. Live snapshots of lost shards have no series: window and rate are
/// those of the other shards, unless there are none. `response` is the mean response time.
fn throughput(snapshots: &[&Snapshot], rate: Option<&CumulativeRate>, response: u64) -> MergedThroughput {
    let with_series: Vec<&Snapshot> =
        snapshots.iter().copied().filter(|snapshot| !snapshot.series.completed.is_empty()).collect();
    let snapshots = if with_series.is_empty() { snapshots } else { &with_series };
    let (from, to, interval) = common_window(snapshots);
    let window = to.saturating_sub(from);
    let points = common_points(snapshots, interval, from, to);
    let covered = interval.saturating_mul(points.len() as u64);
    let mut looked_at = (from, to);
    let (completed, mean) = if covered > 0 {
        let first = from.next_multiple_of(interval);
        looked_at = (first, first.saturating_add(covered));
        let completed = sum(points.iter().copied());
        (completed, per_second(completed, covered))
    } else {
        // No point lies within the window. Uses all completions, over the time until the last one.
        let last = |snapshot: &&Snapshot| match snapshot.window.drained_nanoseconds {
            0 => since_start(snapshot, snapshot.taken_nanoseconds),
            drained => since_start(snapshot, drained),
        };
        let taken = snapshots.iter().map(last).max().unwrap_or(0).saturating_sub(from);
        let completed = sum(snapshots.iter().map(|snapshot| snapshot.total.succeeded));
        (completed, per_second(completed, taken))
    };
    let due = |rate: &CumulativeRate| {
        let [from, to] = [looked_at.0, looked_at.1].map(|at| rate.count_before(at.saturating_sub(response)));
        to.saturating_sub(from)
    };
    let per_whole_second = usize::try_from(SECOND.checked_div(interval).unwrap_or(1)).unwrap_or(1).max(1);
    let seconds = points.chunks_exact(per_whole_second).map(|second| sum(second.iter().copied()));
    let seconds: Vec<u64> =
        seconds.map(|count| per_second(count, interval.saturating_mul(per_whole_second as u64))).collect();
    MergedThroughput {
        window_nanoseconds: window,
        mean,
        slowest: seconds.iter().copied().min().unwrap_or(mean),
        fastest: seconds.iter().copied().max().unwrap_or(mean),
        target: rate.map(|rate| rate.mean_per_second(looked_at.0, looked_at.1)),
        completed,
        due: rate.map(due),
    }
}

/// End of a shard's window, or its last snapshot if that is earlier.
pub(crate) fn measured_until(snapshot: &Snapshot) -> u64 {
    match snapshot.window.measure_to_nanoseconds {
        0 => snapshot.taken_nanoseconds,
        end => end.min(snapshot.taken_nanoseconds),
    }
}

/// Length of a shard's own window, as far as it is known.
pub(crate) fn measured_nanoseconds(snapshot: &Snapshot) -> u64 {
    measured_until(snapshot).saturating_sub(snapshot.window.measure_from_nanoseconds)
}

/// All shards' completions in each whole `interval`, the longest of theirs. Shards switch from fine to coarse points independently, so
/// intervals may differ.
fn common_points(snapshots: &[&Snapshot], interval: u64, from: u64, to: u64) -> Vec<u64> {
    let (Some(first), Some(end)) = (from.checked_next_multiple_of(interval), to.checked_div(interval)) else {
        return Vec::new();
    };
    let first = first / interval;
    // Bounded: only a faulty shard can report a window longer than any trial.
    let length = usize::try_from(end.saturating_sub(first)).unwrap_or(usize::MAX).min(limits::SERIES_POINTS);
    let mut points = vec![0_u64; length];
    for series in snapshots.iter().map(|snapshot| &snapshot.series) {
        let finer = interval.checked_div(series.interval_nanoseconds).unwrap_or(1).max(1);
        for (at, completed) in (0..).zip(&series.completed) {
            let at = (at / finer).checked_sub(first).and_then(|at| usize::try_from(at).ok());
            if let Some(point) = at.and_then(|at| points.get_mut(at)) {
                *point = point.saturating_add(*completed);
            }
        }
    }
    points
}

/// Rounded to nearest.
pub(crate) fn per_second(count: u64, nanoseconds: u64) -> u64 {
    let nanoseconds = u128::from(nanoseconds.max(1));
    u64::try_from((u128::from(count) * u128::from(SECOND) + nanoseconds / 2) / nanoseconds).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
