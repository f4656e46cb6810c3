//! What the trials of several targets, run in turns, say of them: from the lines of `status.trials` alone.

use redisbench_statistics::comparison::{Comparison, Estimate, Outcome, Place, Question, Trial, compare};
use redisbench_statistics::{Confidence, Direction};

use crate::api::comparison::{ComparisonMetric, ComparisonSpec};
use crate::api::status::{ComparisonOutcome, ComparisonResult, MetricComparison, TrialLine, TrialOutcome};
use crate::api::{RedisBenchmarkSpec, RedisBenchmarkStatus};

const MILLION: f64 = 1_000_000.0;
const BASIS_POINTS: f64 = 10_000.0;

/// Sets what `status`, which is that of the end, says of the targets of `spec`.
pub(super) fn set_comparison(status: &mut RedisBenchmarkStatus, spec: &RedisBenchmarkSpec) {
    let Some(comparison) = &spec.comparison else { return };
    let names: Vec<&str> = spec.targets.iter().map(|target| target.name.as_str()).collect();
    status.comparison = results(comparison, &names, spec.workload.seed, &status.trials);
}

fn results(spec: &ComparisonSpec, names: &[&str], seed: u64, lines: &[TrialLine]) -> Vec<ComparisonResult> {
    let Some(baseline) = names.iter().position(|name| *name == spec.baseline) else { return Vec::new() };
    // The one that was asked for first.
    let others = ComparisonMetric::ALL.into_iter().filter(|metric| *metric != spec.metric);
    let metrics: Vec<_> = std::iter::once(spec.metric).chain(others).collect();
    let directions: Vec<_> = metrics.iter().map(|metric| direction(*metric)).collect();
    let question = Question {
        metrics: &directions,
        primary: 0,
        confidence: Confidence::of_basis_points(spec.confidence_basis_points).unwrap_or(Confidence::USUAL),
        minimum_effect: f64::from(spec.minimum_effect_basis_points) / BASIS_POINTS,
        seed,
    };
    let trials: Vec<_> = lines.iter().filter_map(|line| trial(line, names, &metrics)).collect();
    compare(&question, baseline, &trials)
        .into_iter()
        .filter_map(|found| Some(result(&found, names.get(found.subject)?, spec, &metrics)))
        .collect()
}

fn direction(metric: ComparisonMetric) -> Direction {
    match metric {
        ComparisonMetric::Throughput => Direction::HigherIsBetter,
        _ => Direction::LowerIsBetter,
    }
}

/// A trial that was measured to its end.
fn trial(line: &TrialLine, names: &[&str], metrics: &[ComparisonMetric]) -> Option<Trial> {
    let completed = line.state == TrialOutcome::Completed && line.requests.is_some();
    let subject = names.iter().position(|name| Some(*name) == line.target.as_deref()).filter(|_| completed)?;
    let value = |metric: &ComparisonMetric| {
        let value = match metric {
            ComparisonMetric::Throughput => line.achieved_per_second,
            ComparisonMetric::MeanResponseTime => line.mean_nanoseconds,
            ComparisonMetric::P50 => line.p50_nanoseconds,
            ComparisonMetric::P99 => line.p99_nanoseconds,
            ComparisonMetric::P999 => line.p999_nanoseconds,
        };
        value.map(|value| value as f64)
    };
    let place = Place { pass: line.repeat.unwrap_or(0) as usize, subject };
    Some(Trial { place, values: metrics.iter().map(value).collect() })
}

fn result(found: &Comparison, target: &str, spec: &ComparisonSpec, metrics: &[ComparisonMetric]) -> ComparisonResult {
    let metrics: Vec<_> = metrics.iter().zip(&found.metrics).map(|(metric, found)| estimate(*metric, found)).collect();
    ComparisonResult {
        target: target.to_owned(),
        baseline: spec.baseline.clone(),
        pairs: u32::try_from(found.pairs).unwrap_or(u32::MAX),
        outcome: metrics.first().map_or(ComparisonOutcome::Inconclusive, |first| first.outcome),
        metrics,
    }
}

fn estimate(metric: ComparisonMetric, found: &Estimate) -> MetricComparison {
    let millionths = |ratio: f64| whole(ratio * MILLION);
    let (outcome, detectable) = match found.outcome {
        Outcome::Faster => (ComparisonOutcome::Faster, None),
        Outcome::Slower => (ComparisonOutcome::Slower, None),
        Outcome::NoDifference => (ComparisonOutcome::NoDifference, None),
        Outcome::Inconclusive { detectable } => (ComparisonOutcome::Inconclusive, detectable),
    };
    MetricComparison {
        metric,
        outcome,
        ratio_millionths: found.ratio.map(millionths),
        low_millionths: found.interval.map(|interval| millionths(interval.lower)),
        high_millionths: found.interval.map(|interval| millionths(interval.upper)),
        confidence_basis_points: u32::try_from(whole(found.confidence.share() * BASIS_POINTS)).unwrap_or(u32::MAX),
        cold_ratio_millionths: found.cold.map(millionths),
        warm_ratio_millionths: found.warm.map(millionths),
        detectable_basis_points: detectable.map(|effect| whole(effect * BASIS_POINTS)),
    }
}

/// The longest number that JSON's readers keep exactly: an interval may be as wide as one likes.
const LARGEST: f64 = 9_007_199_254_740_991.0;

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded just before")]
fn whole(value: f64) -> u64 {
    value.round().clamp(0.0, LARGEST) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Ten trials of two targets, the second of which has these values where the first has 1000 requests per second with a
    /// p99 of 1 ms.
    fn lines(throughput: &[u64; 5], p99: Option<u64>) -> Vec<TrialLine> {
        let line = |index: usize, target: &str, pass: usize, throughput: u64, p99: Option<u64>| {
            let requests = json!({"scheduled": 10, "succeeded": 10, "errors": 0, "unsent": 0});
            let line = json!({
                "index": index, "target": target, "cell": 0, "repeat": pass, "state": "Completed", "attempt": 1,
                "requests": requests, "achievedPerSecond": throughput, "p99Nanoseconds": p99, "meanNanoseconds": 1_000,
                "p50Nanoseconds": 1_000, "p999Nanoseconds": 2_000,
            });
            serde_json::from_value(line).unwrap()
        };
        (0..5)
            .flat_map(|pass| {
                let noise = [0, 3, 1, 2, 4][pass];
                [
                    line(2 * pass, "direct", pass, 1_000 + noise, Some(1_000_000)),
                    line(2 * pass + 1, "proxy", pass, throughput[pass], p99),
                ]
            })
            .collect()
    }

    fn compared(metric: ComparisonMetric, lines: &[TrialLine]) -> ComparisonResult {
        let spec = json!({"baseline": "direct", "metric": metric});
        let found = results(&serde_json::from_value(spec).unwrap(), &["direct", "proxy"], 1, lines);
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!((only.target.as_str(), only.baseline.as_str(), only.pairs), ("proxy", "direct", 5));
        only.clone()
    }

    #[test]
    fn what_is_clearly_slower_is_called_so_with_its_ratio() {
        let found = compared(ComparisonMetric::Throughput, &lines(&[900, 903, 901, 902, 899], Some(1_000_000)));
        assert_eq!(found.outcome, ComparisonOutcome::Slower);
        let first = &found.metrics[0];
        assert_eq!((first.metric, first.confidence_basis_points), (ComparisonMetric::Throughput, 9_500));
        let ratio = first.ratio_millionths.unwrap();
        assert!((898_000..901_000).contains(&ratio), "{first:?}");
        assert!(first.low_millionths < Some(ratio) && Some(ratio) < first.high_millionths);
        assert!(first.cold_ratio_millionths.is_some() && first.warm_ratio_millionths.is_some());
        assert_eq!(first.detectable_basis_points, None);
        assert_eq!(found.metrics.len(), ComparisonMetric::ALL.len());
    }

    #[test]
    fn what_is_the_same_within_what_matters_is_no_difference() {
        let found = compared(ComparisonMetric::Throughput, &lines(&[1_001, 1_000, 1_003, 999, 1_004], None));
        assert_eq!(found.outcome, ComparisonOutcome::NoDifference);
        // A p99 that is beyond what is known has no ratio.
        let p99 = found.metrics.iter().find(|one| one.metric == ComparisonMetric::P99).unwrap();
        assert_eq!((p99.outcome, p99.ratio_millionths), (ComparisonOutcome::Inconclusive, None));
    }

    #[test]
    fn less_latency_is_faster() {
        let found = compared(ComparisonMetric::P99, &lines(&[1_000; 5], Some(800_000)));
        assert_eq!((found.metrics[0].metric, found.outcome), (ComparisonMetric::P99, ComparisonOutcome::Faster));
        assert_eq!(found.metrics[0].ratio_millionths, Some(800_000));
    }

    #[test]
    fn what_scatters_too_much_is_inconclusive_and_says_what_could_have_been_seen() {
        let found = compared(ComparisonMetric::Throughput, &lines(&[700, 1_400, 900, 1_200, 800], Some(1_000_000)));
        assert_eq!(found.outcome, ComparisonOutcome::Inconclusive);
        assert!(found.metrics[0].detectable_basis_points > Some(1_000), "{found:?}");
    }

    #[test]
    fn trials_that_failed_do_not_count() {
        let mut lines = lines(&[900; 5], Some(1_000_000));
        lines[9].state = TrialOutcome::Failed;
        let spec = serde_json::from_value(json!({"baseline": "direct"})).unwrap();
        let found = results(&spec, &["direct", "proxy"], 1, &lines);
        assert_eq!(found[0].pairs, 4);
    }
}
