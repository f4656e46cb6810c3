//! Judges whether throughput and latency were steady at a constant load. Pure arithmetic over ten parts of the measurement, or of a stage.

use std::time::Duration;

use redisbench_statistics::steady::{self, Rule};
use redisbench_wire::plan::{Arrival, Load};

use super::plateau::{self, Plateau};
use super::rate;
use super::reason::reason;
use super::thresholds::{
    PAUSE, PAUSE_RATE, STANDSTILL, STANDSTILL_LEAST, STANDSTILL_SHORTEST, STEADY, STEADY_LATENCY_LEAST, STEADY_P50,
    STEADY_P99,
};
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::api::{GoDuration, Validated};
use crate::measurement::Outcome;
use crate::measurement::merge::{Completions, Merged, common_seconds};
use crate::quantile::Quantile;
use crate::{human, measurement::seconds};

/// Reported if the longest allowed warm-up ended before the throughput was steady.
pub(super) fn not_settled(spec: &Validated, merged: &Merged) -> Option<VerdictReason> {
    if !spec.plan.settle || merged.topology.measured_from < spec.plan.warmup_nanoseconds {
        return None;
    }
    let message = format!(
        "the throughput had not settled after the longest warm-up of {}, and the measurement began anyway: raise \
         load.warmup",
        GoDuration::from(Duration::from_nanos(spec.plan.warmup_nanoseconds))
    );
    Some(reason(ReasonKind::Unsteady, VerdictValue::Degraded, &message))
}

/// Latency follows from throughput, so it is judged only where the throughput was steady.
pub(super) fn unsteady(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let plateaus = plateau::all(spec, outcome);
    let message = throughput(spec, outcome, &plateaus).or_else(|| latency(spec, outcome, merged, &plateaus))?;
    Some(reason(ReasonKind::Unsteady, VerdictValue::Degraded, &message))
}

/// Skips rates that change by plan or by chance. A window that is too short gives no result.
fn throughput(spec: &Validated, outcome: &Outcome, plateaus: &[Plateau]) -> Option<String> {
    let closed = match &spec.plan.load {
        Load::ClosedLoop => true,
        Load::OpenLoop { arrival: Arrival::Constant, .. } => false,
        Load::OpenLoop { .. } | Load::Recorded { .. } => return None,
    };
    let completions = Completions::of(outcome);
    plateaus.iter().find_map(|plateau| {
        let (points, parts) = (completions.within(&plateau.within), completions.tenths(&plateau.within));
        let paused = || standstill(completions.interval(), points).or_else(|| pause(&parts));
        drift(&parts, plateau).or_else(|| if closed { paused() } else { None })
    })
}

/// Skips latencies that change by plan or grow with a reported backlog. A lost shard's requests are missing from some seconds.
fn latency(spec: &Validated, outcome: &Outcome, merged: &Merged, plateaus: &[Plateau]) -> Option<String> {
    let told = match &spec.plan.load {
        Load::ClosedLoop => false,
        Load::OpenLoop { .. } => !rate::is_met(spec, merged) || rate::backlog_growth(spec, outcome, merged).is_some(),
        // A recorded rate changes.
        Load::Recorded { .. } => true,
    };
    if told || outcome.lost().next().is_some() {
        return None;
    }
    plateaus.iter().find_map(|plateau| {
        let of = |quantile, rule| latency_over(outcome, plateau, quantile, rule);
        of(Quantile::P50, &STEADY_P50).or_else(|| of(Quantile::P99, &STEADY_P99))
    })
}

fn latency_over(outcome: &Outcome, plateau: &Plateau, quantile: Quantile, rule: &Rule) -> Option<String> {
    let (spans, window) = common_seconds(outcome, &plateau.within)?;
    let index = |second: u32| usize::try_from(second.saturating_sub(window.start)).unwrap_or(usize::MAX);
    let mut known = vec![None; index(window.end)];
    for span in spans {
        let found = seconds::quantile(span, quantile).map(|nanoseconds| nanoseconds as f64);
        if let Some(within) = known.get_mut(index(span.second)..index(span.end())) {
            within.fill(found);
        }
    }
    let shift = steady::shift(&known, rule)?;
    if (shift.last - shift.first).abs() < STEADY_LATENCY_LEAST {
        return None;
    }
    let [first, last] =
        [shift.first, shift.last].map(|nanoseconds| human::latency(crate::measurement::latencies::round(nanoseconds)));
    Some(format!(
        "{} of response time {} from {first} in the first tenth of {} to {last} in the last at a constant load: {}data may \
         grow, a cache may fill, a server may warm up or slow down; {}",
        quantile.name(),
        if shift.last > shift.first { "rose" } else { "fell" },
        plateau.name(),
        plateau.cause(),
        plateau.remedy(),
    ))
}

/// The longest time in which hardly anything completed, from points of the measurement.
fn standstill(interval: Duration, points: &[u64]) -> Option<String> {
    let mut sorted = points.to_vec();
    sorted.sort_unstable();
    let middle = *sorted.get(points.len() / 2)?;
    if middle < STANDSTILL_LEAST {
        return None;
    }
    let (mut longest, mut at, mut length) = (0, 0, 0_u32);
    for (index, point) in (0_u32..).zip(points) {
        length = if u128::from(*point) * 100 < u128::from(middle) * u128::from(STANDSTILL) { length + 1 } else { 0 };
        if length > longest {
            (longest, at) = (length, index + 1 - length);
        }
    }
    let stood = interval * longest;
    if stood < STANDSTILL_SHORTEST {
        return None;
    }
    Some(format!(
        "almost no replies arrived for {}, {} after the measurement began: a closed loop sends nothing while the target \
         pauses, so few of its latencies show it; use an open loop (load.type), or find what pauses the target",
        human::latency(nanoseconds(stood)),
        human::latency(nanoseconds(interval * at))
    ))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn drift(parts: &[u64], plateau: &Plateau) -> Option<String> {
    let numbers: Vec<f64> = parts.iter().map(|part| *part as f64).collect();
    steady::drift(&numbers, &STEADY)?;
    let (first, last) = (parts.first()?, parts.last()?);
    Some(format!(
        "the throughput went from {} in the first tenth of {} to {} in the last without settling: {}a cache may fill, a \
         server may slow down; {}",
        human::rate(*first),
        plateau.name(),
        human::rate(*last),
        plateau.cause(),
        plateau.remedy()
    ))
}

fn pause(parts: &[u64]) -> Option<String> {
    let mut sorted = parts.to_vec();
    sorted.sort_unstable();
    let middle = *sorted.get(parts.len() / 2)?;
    let (at, least) = parts.iter().enumerate().min_by_key(|(_, part)| **part)?;
    if middle < PAUSE_RATE || u128::from(*least) * 100 >= u128::from(middle) * u128::from(PAUSE) {
        return None;
    }
    Some(format!(
        "the throughput was {} in tenth {} of the measurement, and at least {} in half of the tenths: a closed loop sends \
         fewer requests while the target pauses, so its latencies hide the pause",
        human::rate(*least),
        at + 1,
        human::rate(middle)
    ))
}

#[cfg(test)]
mod tests {
    use redisbench_wire::timeline::{Buckets, Coarse, Outcomes, Span, SpanPart};

    use super::*;
    use crate::sample::{self, SECOND, snapshot};

    const MICROSECOND: u64 = 1_000;

    /// The reasons for 30 s at 1,000 requests per second, all completed in time, except `missing` in each second. `latencies` gives, per
    /// second, the latency of the faster 60 % and of the others.
    fn judged(load: &serde_json::Value, missing: u64, latencies: impl Fn(u64) -> (u64, u64)) -> Vec<VerdictReason> {
        judged_at(load, |point| if point % 10 == 0 { 100 - missing } else { 100 }, latencies)
    }

    /// The same with the number of completed requests in each tenth of a second.
    fn judged_at(
        load: &serde_json::Value,
        completed: impl Fn(u64) -> u64,
        latencies: impl Fn(u64) -> (u64, u64),
    ) -> Vec<VerdictReason> {
        let spec = sample::spec(1, load);
        let mut snapshot = snapshot(0, &vec![1_000 * MICROSECOND; 30_000]);
        snapshot.window.measure_to_nanoseconds = snapshot.window.start_nanoseconds + 30 * SECOND;
        snapshot.window.drained_nanoseconds = snapshot.window.measure_to_nanoseconds;
        snapshot.taken_nanoseconds = snapshot.window.drained_nanoseconds;
        snapshot.series.completed = (0..300).map(completed).collect();
        let mut outcome = sample::outcome(vec![snapshot]);
        let second = |at: u32| {
            let mut response = Coarse::default();
            let (short, long) = latencies(at.into());
            response.record(short, 600);
            response.record(long, 400);
            let counts = Outcomes { scheduled: 1_000, succeeded: 1_000, ..Outcomes::default() };
            let response = response.buckets();
            let part = SpanPart { counts, service: response.clone(), response, error_replies: Buckets::default() };
            Span { second: at, seconds: 1, parts: vec![part], ..Span::default() }
        };
        outcome.timeline = (0..30).map(second).collect();
        sample::verdict_on(&spec, &outcome).reasons
    }

    fn open(arrival: &str) -> serde_json::Value {
        serde_json::json!({"type": "OpenLoop", "openLoop": {"rate": 1_000, "arrival": arrival}, "duration": "30s"})
    }

    #[test]
    fn a_latency_that_rises_at_the_same_rate_is_told() {
        let rising = |at: u64| ((1_000 + 20 * at) * MICROSECOND, 9_000 * MICROSECOND);
        let closed = serde_json::json!({"type": "ClosedLoop", "duration": "30s"});
        for load in [open("Constant"), open("Poisson"), closed] {
            let reasons = judged(&load, 0, rising);
            let [reason] = reasons.as_slice() else { panic!("{reasons:?}") };
            assert_eq!((reason.reason, reason.severity), (ReasonKind::Unsteady, VerdictValue::Degraded));
            let begin =
                "p50 of response time rose from 1.03 ms in the first tenth of the measurement to 1.57 ms in the last";
            assert!(reason.message.starts_with(begin), "{}", reason.message);
        }
        let falling = |at: u64| rising(29 - at);
        let message = judged(&open("Constant"), 0, falling)[0].message.clone();
        assert!(message.starts_with("p50 of response time fell from 1.57 ms"), "{message}");
        let tail = |at: u64| (1_000 * MICROSECOND, (9_000 + 200 * at) * MICROSECOND);
        let message = judged(&open("Constant"), 0, tail)[0].message.clone();
        assert!(message.starts_with("p99 of response time rose from"), "{message}");
    }

    #[test]
    fn a_latency_that_stays_or_must_change_is_not() {
        let stays = |at: u64| ((1_000 + at % 7 * 20) * MICROSECOND, (9_000 + at % 5 * 900) * MICROSECOND);
        assert_eq!(judged(&open("Constant"), 0, stays), []);
        // By more than a third, but less than a waking processor adds.
        assert_eq!(judged(&open("Constant"), 0, |at| ((80 + at) * MICROSECOND, 9_000 * MICROSECOND)), []);
        let rising = |at: u64| ((1_000 + 20 * at) * MICROSECOND, 9_000 * MICROSECOND);
        let stage = |from: u64, to: u64| serde_json::json!({"duration": "15s", "rate": {"from": from, "to": to}});
        let ramp = serde_json::json!({"type": "OpenLoop", "stages": [stage(900, 1_100), stage(1_100, 900)]});
        assert_eq!(judged(&ramp, 0, rising), []);
        // A growing backlog or a missed rate is reported instead.
        let kinds = |missing| {
            let reasons = judged(&open("Constant"), missing, rising);
            reasons.into_iter().map(|reason| reason.reason).collect::<Vec<_>>()
        };
        assert_eq!(kinds(5), [ReasonKind::Backlog]);
        assert_eq!(kinds(50), [ReasonKind::RateMissed]);
    }

    /// A stage that climbs from this rate to as far above 1,000 per second, and one of constant rate.
    fn staged(arrival: &str, from: u64) -> serde_json::Value {
        let stages = serde_json::json!([
            {"name": "low", "duration": "15s", "rate": {"from": from, "to": 2_000 - from}},
            {"duration": "15s", "rate": {"from": 1_000, "to": 1_000}},
        ]);
        serde_json::json!({"type": "OpenLoop", "openLoop": {"arrival": arrival}, "stages": stages})
    }

    /// The message of the only reason.
    fn told(mut reasons: Vec<VerdictReason>) -> String {
        let reason = reasons.pop().unwrap();
        assert_eq!(
            (reasons, reason.reason, reason.severity),
            (Vec::new(), ReasonKind::Unsteady, VerdictValue::Degraded)
        );
        reason.message
    }

    #[test]
    fn a_latency_that_rises_in_a_stage_is_told_with_its_name() {
        let first = |at: u64| ((1_000 + 40 * at.min(15)) * MICROSECOND, 9_000 * MICROSECOND);
        let second = |at: u64| first(at.saturating_sub(15));
        for arrival in ["Constant", "Poisson"] {
            let both = staged(arrival, 1_000);
            let message = told(judged(&both, 0, first));
            assert!(message.starts_with("p50 of response time rose from"), "{message}");
            assert!(
                message.contains("in the first tenth of stage low to") && message.contains("lengthen"),
                "{message}"
            );
            let message = told(judged(&both, 0, second));
            assert!(message.contains("in the first tenth of stages[1] to"), "{message}");
            assert!(message.contains("the queue of an earlier stage may drain, data may grow"), "{message}");
            // A latency that rises while the rate does is judged in no stage.
            assert_eq!(judged(&staged(arrival, 900), 0, first), []);
        }
    }

    #[test]
    fn a_throughput_that_falls_in_a_stage_is_told_with_its_name() {
        let stays = |_: u64| (1_000 * MICROSECOND, 9_000 * MICROSECOND);
        let falls = |point: u64| if point < 150 { 107 - point / 10 } else { 100 };
        let message = told(judged_at(&staged("Constant", 1_000), falls, stays));
        assert!(message.starts_with("the throughput went from"), "{message}");
        assert!(message.contains("in the first tenth of stage low to"), "{message}");
        assert_eq!(judged_at(&staged("Poisson", 1_000), falls, stays), []);
    }

    #[test]
    fn a_drift_is_found_and_noise_is_not() {
        let drift = |parts: &[u64]| drift(parts, &Plateau::whole(None));
        let rising: Vec<u64> = (0..10).map(|part| 1_000 + 30 * part).collect();
        assert!(drift(&rising).unwrap().contains("1.00k/s"), "{:?}", drift(&rising));
        // The same trend, but too small to report.
        let slightly: Vec<u64> = (0..10).map(|part| 1_000 + 10 * part).collect();
        assert_eq!(drift(&slightly), None);
        let falling: Vec<u64> = rising.iter().rev().copied().collect();
        assert!(drift(&falling).is_some());
        assert_eq!(drift(&[1_000, 1_300, 900, 1_250, 1_100, 950, 1_280, 1_010, 1_190, 1_060]), None);
        assert_eq!(drift(&[]), None);
        assert_eq!(drift(&[0; 10]), None);
    }

    #[test]
    fn what_a_pause_would_hide_is_told() {
        let mut parts = [1_000; 10];
        parts[4] = 499;
        assert!(pause(&parts).unwrap().contains("tenth 5"));
        parts[4] = 501;
        assert_eq!(pause(&parts), None);
    }

    #[test]
    fn a_closed_loop_that_stands_still_is_told_with_its_length() {
        let (tenth, mut points) = (Duration::from_millis(100), vec![3_800; 120]);
        assert_eq!(standstill(tenth, &points), None);
        points[40..42].fill(0);
        assert_eq!(standstill(tenth, &points), None, "200 ms");
        points[70..73].fill(379);
        let message = standstill(tenth, &points).unwrap();
        assert!(message.starts_with("almost no replies arrived for 300 ms, 7.00 s after"), "{message}");
        points[72] = 380;
        assert_eq!(standstill(tenth, &points), None, "a tenth is something");
        assert!(standstill(Duration::from_secs(1), &[900, 900, 900, 10, 900]).unwrap().contains("1.00 s"));
        // Points with too few requests may be empty by chance.
        assert_eq!(standstill(tenth, &[9, 9, 9, 0, 0, 0, 0, 9, 9, 9]), None);
        assert_eq!(standstill(tenth, &[]), None);
    }
}
