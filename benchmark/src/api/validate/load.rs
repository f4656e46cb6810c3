//! Validation of `spec.load`.

use std::time::Duration;

use redisbench_wire::plan::{self, Bound};
use redisbench_wire::rate::CumulativeRate;

use super::trace;
use crate::api::duration::{Durations, GoDuration, HOUR, MILLISECOND, MINUTE, SECOND, nanoseconds};
use crate::api::load::{LoadSpec, LoadType, WarmupEnds};
use crate::api::problem::Problem;
use crate::api::settling::least_warmup;
use crate::api::spec::RedisBenchmarkSpec;
use crate::api::workload::PreloadMode;

/// The longest measurement: a throughput series holds no more.
const LONGEST: Duration = Duration::from_secs(48 * 3600);

/// The longest preload. A Job that runs a day longer than planned is terminated.
const LONGEST_PRELOAD: Duration = Duration::from_secs(24 * 3600);

impl LoadSpec {
    /// Mean rate of the measurement; none in a closed loop. The result is arbitrary for a spec that was not validated.
    pub fn mean_rate(&self) -> Option<u64> {
        let mut ignored = Vec::new();
        let stages = check_stages(self, &mut ignored);
        match (self.kind, stages.is_empty()) {
            (LoadType::ClosedLoop, _) => None,
            (LoadType::OpenLoop, true) => self.open_loop.as_ref().and_then(|open| open.rate),
            (LoadType::OpenLoop, false) => {
                let length = stages.iter().fold(0_u64, |sum, stage| sum.saturating_add(stage.nanoseconds));
                Some(CumulativeRate::new(1, 0, &stages).mean_per_second(0, length))
            }
        }
    }
}

/// Open or closed loop. None only if a rule is broken.
pub(super) fn check_load(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) -> Option<plan::Load> {
    let load = &spec.load;
    let stages = check_stages(load, problems);
    if load.kind == LoadType::ClosedLoop {
        return Some(plan::Load::ClosedLoop);
    }
    let open = load.open_loop.clone().unwrap_or_default();
    let mut durations = Durations { problems, within: "spec.load.openLoop" };
    let mut between = |name, text, least, most| nanoseconds(durations.between(name, text, least, most));
    let pacing_grid_nanoseconds = between("pacingGrid", &open.pacing_grid, Duration::ZERO, 100 * MILLISECOND);
    let unsent_after_nanoseconds = between("unsentAfter", &open.unsent_after, MILLISECOND, 10 * MINUTE);
    if let Some(pace_millionths) = trace::pace(spec) {
        return Some(plan::Load::Recorded { pace_millionths, pacing_grid_nanoseconds, unsent_after_nanoseconds });
    }
    let none = spec.workload.has_no_mix().then_some(0);
    let rate_per_second = open.rate.or(stages.first().map(|first| first.from_per_second)).or(none)?;
    let arrival = open.arrival;
    Some(plan::Load::OpenLoop { rate_per_second, stages, arrival, pacing_grid_nanoseconds, unsent_after_nanoseconds })
}

/// Checks that `connectRate` allows all connections within `prepareTimeout`.
pub(super) fn check_connect_rate(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) {
    let Some(rate) = spec.load.connect_rate.filter(|rate| *rate > 0) else { return };
    let Ok(prepare_timeout) = spec.shards.prepare_timeout.parse() else { return };
    let connections = spec.load.connections;
    let needed = Duration::from_secs(u64::from(connections.div_ceil(rate)));
    if needed > prepare_timeout {
        let message = format!(
            "takes {} for {connections} connections, longer than shards.prepareTimeout, which is {}: raise one of the two",
            GoDuration::from(needed),
            GoDuration::from(prepare_timeout)
        );
        problems.push(Problem::new("spec.load.connectRate", rate, message));
    }
}

/// Checks that the preload finishes, at its rate, before its pods are terminated.
pub(super) fn check_preload_rate(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) {
    if spec.preload.mode != PreloadMode::None {
        problems.extend(preload_rate(spec, spec.workload.keys.count, "keys", "have fewer keys"));
    }
}

/// A problem if `count` of `what` take too long at the preload's rate. `else_` is the alternative fix in the message.
pub(crate) fn preload_rate(spec: &RedisBenchmarkSpec, count: u64, what: &str, else_: &str) -> Option<Problem> {
    let rate = spec.preload.rate.filter(|rate| *rate > 0)?;
    let needed = Duration::from_secs(count.div_ceil(rate));
    let (long, most) = (GoDuration::from(needed), GoDuration::from(LONGEST_PRELOAD));
    (needed > LONGEST_PRELOAD).then(|| {
        let message = format!("takes {long} for {count} {what}, longer than {most}: raise it, or {else_}");
        Problem::new("spec.preload.rate", rate, message)
    })
}

fn check_stages(load: &LoadSpec, problems: &mut Vec<Problem>) -> Vec<plan::RateStage> {
    let stages = load.stages.iter().enumerate();
    stages
        .map(|(index, stage)| {
            let within = format!("spec.load.stages[{index}]");
            let mut durations = Durations { problems, within: &within };
            plan::RateStage {
                nanoseconds: nanoseconds(durations.between("duration", &stage.duration, MILLISECOND, LONGEST)),
                from_per_second: stage.rate.from,
                to_per_second: stage.rate.to,
            }
        })
        .collect()
}

/// The end of the measurement.
pub(super) fn check_bound(load: &LoadSpec, problems: &mut Vec<Problem>) -> Bound {
    let mut durations = Durations { problems, within: "spec.load" };
    if let Some(count) = load.requests_in_all() {
        let limit = load.max_duration.as_ref();
        let at_most = limit.map_or(HOUR, |limit| durations.between("maxDuration", limit, SECOND, LONGEST));
        return Bound::Requests { count, max_nanoseconds: nanoseconds(at_most) };
    }
    let timed = |length| Bound::Duration { nanoseconds: nanoseconds(length) };
    if let Some(duration) = &load.duration {
        return timed(durations.between("duration", duration, SECOND, LONGEST));
    }
    // Problems of a single stage were reported before.
    let stages = check_stages(load, &mut Vec::new());
    if stages.is_empty() {
        return timed(LONGEST);
    }
    let length = Duration::from_nanos(stages.iter().fold(0_u64, |sum, stage| sum.saturating_add(stage.nanoseconds)));
    if !(SECOND..=LONGEST).contains(&length) {
        let (least, most) = (GoDuration::from(SECOND), GoDuration::from(LONGEST));
        let message = format!("must total {least} to {most}: change their durations");
        problems.push(Problem::new("spec.load.stages", GoDuration::from(length), message));
    }
    timed(length)
}

pub(super) fn check_times(load: &LoadSpec, mut durations: Durations<'_>) -> (Duration, plan::Timeouts) {
    let warmup = durations.between("warmup", &load.warmup, Duration::ZERO, HOUR);
    let mut timeout = |name, duration| nanoseconds(durations.between(name, duration, MILLISECOND, 10 * MINUTE));
    let timeouts = plan::Timeouts {
        connect_nanoseconds: timeout("timeouts.connect", &load.timeouts.connect),
        request_nanoseconds: timeout("timeouts.request", &load.timeouts.request),
    };
    (warmup, timeouts)
}

/// Checks that a warm-up that may end early is long enough to do so.
pub(super) fn check_settling(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) {
    let (load, shards) = (&spec.load, spec.shards.count);
    let least = least_warmup(shards);
    let is_short = load.warmup.parse().is_ok_and(|warmup| warmup < least);
    if load.warmup_ends == WarmupEnds::WhenSettled && is_short {
        let message = format!(
            "must be at least {} with warmupEnds WhenSettled and shards.count {shards}: raise it, or set warmupEnds to ByTime",
            GoDuration::from(least)
        );
        problems.push(Problem::new("spec.load.warmup", &load.warmup, message));
    }
}

/// Checks that an open loop has a request for every shard, and enough time for `requests`.
pub(super) fn check_amount(spec: &RedisBenchmarkSpec, bound: Bound, problems: &mut Vec<Problem>) {
    let (load, shards) = (&spec.load, u64::from(spec.shards.count));
    let longest = Duration::from_nanos(bound.longest_nanoseconds());
    let stages = check_stages(load, &mut Vec::new());
    if !stages.is_empty() {
        let due = CumulativeRate::new(1, 0, &stages).count_before(nanoseconds(longest));
        if due < shards {
            let message = format!(
                "make {due} requests in {}, fewer than shards.count, which is {shards}: raise rates or durations",
                GoDuration::from(longest)
            );
            problems.push(Problem::new("spec.load.stages", "", message));
        }
        return;
    }
    if load.kind == LoadType::ClosedLoop {
        return;
    }
    // The shards take turns in each of the rates, so the highest one reaches the most of them.
    let mix = load.open_loop.as_ref().and_then(|open| open.rate).unwrap_or(0);
    let own = spec.workload.operations.iter().filter_map(|operation| operation.rate).max().unwrap_or(0);
    let field = if own > mix { "spec.workload.operations" } else { "spec.load.openLoop.rate" };
    let rate = u128::from(own.max(mix));
    let due = rate * longest.as_nanos() / SECOND.as_nanos();
    match bound {
        Bound::Duration { .. } if due < u128::from(shards) && rate > 0 => {
            let message = format!(
                "makes {due} requests in {}, fewer than shards.count, which is {shards}: raise it or duration",
                GoDuration::from(longest)
            );
            problems.push(Problem::new(field, rate, message));
        }
        Bound::Requests { count, .. } if due < u128::from(count) && rate > 0 => {
            let message = format!(
                "would take {} s at {rate} requests per second, longer than maxDuration, which is {}: raise maxDuration",
                u128::from(count) / rate,
                GoDuration::from(longest)
            );
            let (field, value) = match load.requests_per_connection {
                Some(each) => ("spec.load.requestsPerConnection", each),
                None => ("spec.load.requests", count),
            };
            problems.push(Problem::new(field, value, message));
        }
        _ => {}
    }
}
