//! Builds the published progress from the conductor's records of its shards. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use redisbench_wire::histogram::{EncodedHistogram, HistogramError, Kind};
use redisbench_wire::plan::Bound;
use redisbench_wire::snapshot::{Snapshot, Stage, Tally};
use redisbench_wire::timeline::{History, Sum};

use super::clock::{duration, nanoseconds};
use super::seconds;
use super::shards::{Shard, Standing};
use super::{LivePicture, PreparationProgress, RecentLatency};
use crate::measurement::merge;
use crate::measurement::seconds::measured as of_parts;
use crate::measurement::topology::{self, MergedTopology};

/// Rate and latency cover this many whole seconds, the last ones that all shards have completed.
const RECENT_SECONDS: u32 = 5;

/// Merges the newest snapshot of every shard, including lost ones: their counts were measured. None before the first. `history` holds the
/// merged seconds of all shards; `since_start` is in nanoseconds.
pub fn of(shards: &[Shard], history: &History, since_start: i64) -> Option<LivePicture> {
    let (mut total, mut warmup) = (Tally::default(), Tally::default());
    let mut response = Kind::Request.empty();
    let mut errors = BTreeMap::<&str, u64>::new();
    let (mut measured_rate, mut warmup_rate) = (0.0, 0.0);
    let mut measuring = false;
    let mut any = false;
    for snapshot in shards.iter().filter_map(|shard| shard.snapshot.as_ref()) {
        any = true;
        measuring |= snapshot.stage >= Stage::Measuring;
        total.add(&snapshot.total);
        warmup.add(&snapshot.warmup);
        for error in &snapshot.errors {
            let count = errors.entry(&error.kind).or_default();
            *count = count.saturating_add(error.count);
        }
        measured_rate += measured_per_second(snapshot);
        warmup_rate += warmup_per_second(snapshot);
        if let Err(error) = add(&mut response, &snapshot.latency.response) {
            // The final merge fails with a message; until then the rest is shown.
            tracing::warn!(shard = snapshot.shard, %error, "failed to merge a live histogram");
        }
    }
    let mut errors: Vec<_> = errors.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
    errors.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let since_begin: f64 = if measuring { measured_rate } else { warmup_rate };
    let recent = recent(shards, history);
    any.then(|| LivePicture {
        percent: percent(shards, &total, since_start),
        total,
        warmup,
        response,
        errors,
        verification: merge::verification(shards.iter().filter_map(|shard| shard.snapshot.as_ref())),
        achieved_per_second: recent.as_ref().map_or_else(|| round(since_begin), |recent| recent.per_second),
        recent: recent.map(|recent| recent.latency).filter(|latency| !latency.response.is_empty()),
        measuring,
        topology: topology(shards),
    })
}

struct Recent {
    per_second: u64,
    latency: RecentLatency,
}

/// The last whole seconds before the load ends; none before the first.
fn recent(shards: &[Shard], history: &History) -> Option<Recent> {
    let end = history.complete().min(seconds::measured(shards).map_or(u32::MAX, |measured| measured.end));
    let from = end.saturating_sub(RECENT_SECONDS);
    let mut sum = Sum::default();
    let (mut first, mut succeeded) = (from, 0_u64);
    for span in history.since(from).take_while(|span| span.end() <= end) {
        // After a late takeover there may be only a longer span.
        first = first.min(span.second);
        succeeded = succeeded.saturating_add(span.counts().succeeded).saturating_add(span.warmup.succeeded);
        sum.add(span);
    }
    let nanoseconds = u64::from(end - first) * 1_000_000_000;
    let measured = of_parts(sum.span(first, end - first).parts.iter());
    (end > 0).then(|| Recent {
        per_second: merge::per_second(succeeded, nanoseconds),
        latency: RecentLatency { response: measured.response, service: measured.service },
    })
}

fn topology(shards: &[Shard]) -> MergedTopology {
    let snapshots: Vec<&Snapshot> = shards.iter().filter_map(|shard| shard.snapshot.as_ref()).collect();
    topology::merge(&shards[0].plan, &snapshots)
}

fn add(sum: &mut Histogram<u64>, encoded: &EncodedHistogram) -> Result<(), HistogramError> {
    sum.add(encoded.decode(Kind::Request)?).map_err(|_| HistogramError::Malformed("counts beyond its bounds"))
}

/// Successful measured requests per second, until the snapshot was taken or the measurement ended.
fn measured_per_second(snapshot: &Snapshot) -> f64 {
    let window = &snapshot.window;
    let ended = window.measure_to_nanoseconds;
    let until = if ended > 0 { snapshot.taken_nanoseconds.min(ended) } else { snapshot.taken_nanoseconds };
    per_second(snapshot.total.succeeded, until.saturating_sub(window.measure_from_nanoseconds))
}

fn warmup_per_second(snapshot: &Snapshot) -> f64 {
    let elapsed = snapshot.taken_nanoseconds.saturating_sub(snapshot.window.start_nanoseconds);
    per_second(snapshot.warmup.succeeded, elapsed)
}

/// Rate for live display. Below 10 ms it would be mere noise.
fn per_second(count: u64, elapsed_nanoseconds: u64) -> f64 {
    if elapsed_nanoseconds < 10_000_000 {
        return 0.0;
    }
    count as f64 * 1e9 / elapsed_nanoseconds as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn round(rate: f64) -> u64 {
    rate.round() as u64
}

/// Progress of the trial in percent: by time, or by requests if a number of requests ends it.
fn percent(shards: &[Shard], total: &Tally, since_start: i64) -> u8 {
    if shards.iter().all(|shard| matches!(shard.standing, Standing::Finished | Standing::Lost(_))) {
        return 100;
    }
    let (mut planned_requests, mut longest) = (0, 0);
    for shard in shards {
        match shard.plan.bound {
            Bound::Requests { count, .. } => planned_requests += count,
            Bound::Duration { .. } => {
                let drain = shard.plan.timeouts.request_nanoseconds;
                let load = shard.length().saturating_sub(Duration::from_nanos(drain));
                longest = longest.max(nanoseconds(load));
            }
        }
    }
    let share = if planned_requests > 0 {
        u128::from(total.scheduled) * 100 / u128::from(planned_requests)
    } else {
        duration(since_start).as_nanos() * 100 / duration(longest).as_nanos().max(1)
    };
    // 100 is reserved for when all shards have finished.
    u8::try_from(share.min(99)).unwrap_or(99)
}

pub fn preparation(shards: &[Shard]) -> PreparationProgress {
    let mut sum = PreparationProgress::default();
    for shard in shards {
        sum.connected += u64::from(shard.preparation.connected);
        sum.connections += u64::from(shard.plan.connections);
        sum.preloaded_keys += shard.preparation.preloaded_keys;
        sum.preload_keys += shard.preparation.preload_keys;
    }
    sum.waiting_for = shards
        .iter()
        .find(|shard| {
            matches!(shard.standing, Standing::Absent | Standing::Unplanned | Standing::Preparing | Standing::MustRearm)
        })
        .map(|shard| format!("shard {}: {}", shard.index(), shard.obstacle()));
    sum
}

/// Difference between the first and the last shard's first send, each relative to its own schedule.
pub fn start_skew(shards: &[Shard]) -> Option<Duration> {
    let mut sends = shards.iter().filter_map(|shard| shard.first_send.map(|(at, _)| at));
    let first = sends.next()?;
    let second = sends.next()?;
    let (earliest, latest) =
        sends.fold((first.min(second), first.max(second)), |(low, high), send| (low.min(send), high.max(send)));
    Some(duration(latest - earliest))
}

/// The worst uncertainty among the clocks that the start skew is computed from.
pub fn clock_uncertainty(shards: &[Shard]) -> Option<Duration> {
    let clocks = shards.iter().filter_map(|shard| shard.first_send.map(|(_, clock)| clock).or(shard.clock));
    clocks.map(|clock| clock.half_round_trip()).max()
}

/// Highest age of the newest snapshots of running shards.
pub fn oldest_snapshot_age(shards: &[Shard], now: i64) -> Option<Duration> {
    shards
        .iter()
        .filter(|shard| shard.standing == Standing::Running && shard.snapshot.is_some())
        .map(|shard| duration(now - shard.snapshot_at))
        .max()
}
