//! Builds the published progress from the conductor's records of its shards. Pure.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use redisbench_wire::Preparation;
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::Bound;
use redisbench_wire::snapshot::{Snapshot, Stage, Tally};
use redisbench_wire::timeline::{History, NodePart, Sum};

use super::cached::CacheRates;
use super::clock::{duration, nanoseconds};
use super::held::{self, RECENT_SECONDS};
use super::seconds;
use super::shards::{Shard, Standing};
use super::{LivePicture, LiveShard, RecentLatency};
use crate::api::status::NodeProgress;
use crate::measurement::parts::{Parts, histogram_bytes};
use crate::measurement::seconds::{measured as of_parts, service};
use crate::measurement::topology::{self, MergedTopology};
use crate::measurement::{latencies, merge};
use crate::quantile::Quantile;
use crate::verdict::ShardProcessors;

const SECOND: u64 = 1_000_000_000;

/// Merges the newest snapshot of every shard, including lost ones: their counts were measured. None before the first. `history` holds the
/// merged seconds of all shards, `parts` the histograms of final snapshots; `since_start` is in nanoseconds.
pub fn of(shards: &[Shard], parts: &Parts, history: &History, since_start: i64) -> Option<LivePicture> {
    let (mut total, mut warmup) = (Tally::default(), Tally::default());
    let mut response = parts.total.response.clone();
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
        if let Err(error) = snapshot.latency.response.add_to(&mut response, Kind::Request) {
            // The final merge fails with a message; until then the rest is shown.
            tracing::warn!(shard = snapshot.shard, %error, "failed to merge a live histogram");
        }
    }
    let mut errors: Vec<_> = errors.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
    errors.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let since_begin: f64 = if measuring { measured_rate } else { warmup_rate };
    let seconds = recent_seconds(shards, history);
    let mut recent = recent(history, &seconds);
    any.then(|| LivePicture {
        percent: percent(shards, &total, since_start),
        total,
        warmup,
        response,
        errors,
        verification: merge::verification(shards.iter().filter_map(|shard| shard.snapshot.as_ref())),
        achieved_per_second: recent.as_ref().map_or_else(|| round(since_begin), |recent| recent.per_second),
        shards: shards.iter().map(|shard| live_shard(shard, &seconds)).collect(),
        nodes: recent.as_mut().map(|recent| std::mem::take(&mut recent.nodes)).unwrap_or_default(),
        recent: recent.map(|recent| recent.latency).filter(|latency| !latency.response.is_empty()),
        caches: caches(shards),
        measuring,
        complete: shards.iter().all(|shard| shard.snapshot.is_some() || matches!(shard.standing, Standing::Lost(_))),
        snapshot_bytes: shards
            .iter()
            .filter_map(|shard| shard.snapshot.as_ref())
            .map(|kept| histogram_bytes(kept) as u64)
            .sum(),
        topology: topology(shards),
    })
}

struct Recent {
    per_second: u64,
    latency: RecentLatency,
    nodes: Vec<NodeProgress>,
}

/// The last whole seconds before the load ends; empty before the first.
fn recent_seconds(shards: &[Shard], history: &History) -> Range<u32> {
    let end = history.complete().min(seconds::measured(shards).map_or(u32::MAX, |measured| measured.end));
    end.saturating_sub(RECENT_SECONDS)..end
}

/// Rate and latency in `seconds`; none if there are none.
fn recent(history: &History, seconds: &Range<u32>) -> Option<Recent> {
    let Range { start: from, end } = *seconds;
    let mut sum = Sum::default();
    let (mut first, mut succeeded) = (from, 0_u64);
    for span in history.since(from).take_while(|span| span.end() <= end) {
        // After a late takeover there may be only a longer span.
        first = first.min(span.second);
        succeeded = succeeded.saturating_add(held::succeeded(span));
        sum.add(span);
    }
    let nanoseconds = u64::from(end - first) * SECOND;
    let span = sum.span(first, end - first);
    let measured = of_parts(span.parts.iter());
    let node = |node: &NodePart| NodeProgress {
        address: node.address.clone(),
        requests_per_second: merge::per_second(node.requests, nanoseconds),
        errors: node.errors,
        p99_nanoseconds: latencies::known(&service(node), Quantile::P99),
    };
    (end > 0).then(|| Recent {
        per_second: merge::per_second(succeeded, nanoseconds),
        nodes: span.nodes.iter().map(node).collect(),
        latency: RecentLatency { response: measured.response, service: measured.service, span },
    })
}

fn live_shard(shard: &Shard, seconds: &Range<u32>) -> LiveShard {
    let place = LiveShard {
        lost: matches!(shard.standing, Standing::Lost(_)),
        unreachable: shard.unreachable.is_some(),
        ..LiveShard::default()
    };
    let Some(snapshot) = &shard.snapshot else { return place };
    let since_begin =
        || if snapshot.total.succeeded > 0 { measured_per_second(snapshot) } else { warmup_per_second(snapshot) };
    LiveShard {
        achieved_per_second: match seconds.len() as u64 {
            0 => round(since_begin()),
            length => merge::per_second(shard.seconds.succeeded(seconds), length * SECOND),
        },
        failed: snapshot.total.errors.saturating_add(snapshot.total.unsent),
        processors: ShardProcessors {
            host: snapshot.generator.host.clone(),
            processors: snapshot.generator.processors,
            load_nanoseconds: snapshot.generator.load_nanoseconds,
            waited_nanoseconds: snapshot.generator.run_queue_nanoseconds,
            busiest_worker_millionths: snapshot.generator.busiest_worker_millionths,
            run_queue_millionths: snapshot.generator.longest_waiting_worker_millionths,
        },
        ..place
    }
}

/// Like the rate of requests, without the shards that are lost.
fn caches(shards: &[Shard]) -> Option<CacheRates> {
    let running = shards.iter().filter(|shard| !matches!(shard.standing, Standing::Lost(_)));
    running.filter_map(|shard| shard.cached.rates()).reduce(CacheRates::plus)
}

fn topology(shards: &[Shard]) -> MergedTopology {
    let snapshots: Vec<&Snapshot> = shards.iter().filter_map(|shard| shard.snapshot.as_ref()).collect();
    topology::merge(&shards[0].plan, &snapshots)
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

/// 0 without a preload.
pub fn preloaded_percent(shards: &[Shard]) -> u32 {
    let sum =
        |of: fn(&Preparation) -> u64| -> u128 { shards.iter().map(|shard| u128::from(of(&shard.preparation))).sum() };
    let (done, commands) = (sum(|shard| shard.preload_done), sum(|shard| shard.preload_commands));
    u32::try_from(done.min(commands) * 100 / commands.max(1)).unwrap_or(100)
}

/// The first shard that is not armed, and its obstacle.
pub fn waiting_for(shards: &[Shard]) -> Option<String> {
    let unarmed = [Standing::Absent, Standing::Unplanned, Standing::Preparing, Standing::MustRearm];
    let first = shards.iter().find(|shard| unarmed.contains(&shard.standing))?;
    Some(format!("shard {}: {}", first.index(), first.obstacle()))
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

#[cfg(test)]
mod tests {
    use redisbench_wire::snapshot::Generator;

    use super::*;
    use crate::conductor::tests::part;
    use crate::sample;

    #[test]
    fn a_live_shard_has_its_machine_and_the_time_for_which_it_waited() {
        let mut shard = Shard::new(part(0, 1), String::new());
        assert_eq!(live_shard(&shard, &(0..0)), LiveShard::default());
        let mut snapshot = sample::snapshot(0, &[1_000_000; 100]);
        snapshot.generator = Generator {
            host: "n1".into(),
            processors: 4,
            load_nanoseconds: 9,
            run_queue_nanoseconds: 5,
            ..Generator::default()
        };
        shard.keep(snapshot, Duration::ZERO);
        let ShardProcessors { host, processors, load_nanoseconds, waited_nanoseconds, .. } =
            live_shard(&shard, &(0..0)).processors;
        assert_eq!((host.as_str(), processors, load_nanoseconds, waited_nanoseconds), ("n1", 4, 9, 5));
    }
}
