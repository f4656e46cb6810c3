//! Compares several targets whose trials ran in turns, only from the lines of `status.trials`.

use redisbench_statistics::comparison::{Estimate, Outcome, Place, Question, Trial, compare};
use redisbench_statistics::{Confidence, Direction};

use super::search;
use super::size_budget::SizeBudget;
use crate::api::comparison::{ComparisonMetric, ComparisonSpec};
use crate::api::status::{
    ComparisonOutcome, ComparisonResult, LimitedBy, MetricComparison, TrialLine, TrialOutcome, VerdictValue,
};
use crate::api::{RedisBenchmarkSpec, RedisBenchmarkStatus};
use crate::human;

const MILLION: f64 = 1_000_000.0;
const BASIS_POINTS: f64 = 10_000.0;

/// Sets the comparison of a finished `status` for the targets of `spec`.
pub(super) fn set_comparison(status: &mut RedisBenchmarkStatus, spec: &RedisBenchmarkSpec) {
    list(status, comparisons(spec, &status.trials));
}

/// Lists as many of `results` as `status` has room for, and counts the rest.
pub fn list(status: &mut RedisBenchmarkStatus, results: Vec<ComparisonResult>) {
    (status.comparison, status.comparison_left_out) = (Vec::new(), 0);
    (status.comparison, status.comparison_left_out) = SizeBudget::of(status).fill(results);
}

/// Compares the targets of `spec` at each setting of `trials`; empty without a comparison.
pub fn comparisons(spec: &RedisBenchmarkSpec, trials: &[TrialLine]) -> Vec<ComparisonResult> {
    let Some((comparison, baseline)) =
        spec.comparison.as_ref().and_then(|comparison| Some((comparison, comparison.baseline.as_deref()?)))
    else {
        return Vec::new();
    };
    let names = spec.subjects();
    // Searches are compared by the rates found.
    let trials = search::answers(spec, trials);
    let metrics =
        if spec.search.is_some() { vec![ComparisonMetric::Throughput] } else { metrics(comparison, trials.iter()) };
    let of_setting =
        |lines: Vec<&TrialLine>| results(comparison, (baseline, &metrics), &names, spec.workload.seed, &lines);
    settings(&trials).into_iter().flat_map(of_setting).collect()
}

/// Groups trials by setting: a preset and the values of the swept fields.
pub(super) fn settings(trials: &[TrialLine]) -> Vec<Vec<&TrialLine>> {
    let mut settings: Vec<Vec<&TrialLine>> = Vec::new();
    for line in trials {
        let same = |known: &&mut Vec<&TrialLine>| known.first().is_some_and(|first| is_of_setting(first, line));
        match settings.iter_mut().find(same) {
            Some(lines) => lines.push(line),
            None => settings.push(vec![line]),
        }
    }
    // Cells of one setting are consecutive, so this is the order of the settings.
    settings.sort_by_key(|lines| lines.iter().map(|line| line.cell).min());
    settings
}

/// Returns whether two trials have the same setting.
pub(super) fn is_of_setting(one: &TrialLine, other: &TrialLine) -> bool {
    let (one, other) = (&one.setting, &other.setting);
    (&one.parameters, &one.preset) == (&other.parameters, &other.preset)
}

/// The metrics that `lines` have, the requested one first.
pub(super) fn metrics<'a>(
    spec: &ComparisonSpec,
    mut lines: impl Iterator<Item = &'a TrialLine>,
) -> Vec<ComparisonMetric> {
    let with_processor = lines.any(|line| line.cpu_per_request_nanoseconds.is_some());
    let others = ComparisonMetric::ALL
        .into_iter()
        .filter(|metric| *metric != spec.metric && (with_processor || *metric != ComparisonMetric::CpuPerRequest));
    std::iter::once(spec.metric).chain(others).collect()
}

pub(super) fn question<'a>(spec: &ComparisonSpec, directions: &'a [Direction], seed: u64) -> Question<'a> {
    Question {
        metrics: directions,
        primary: 0,
        confidence: Confidence::of_basis_points(spec.confidence_basis_points).unwrap_or(Confidence::USUAL),
        minimum_effect: f64::from(spec.minimum_effect_basis_points) / BASIS_POINTS,
        seed,
    }
}

/// Maximum comparisons in a sentence.
const TOLD: usize = 3;

/// Summarizes `results` in a sentence; none if there are none.
pub fn sentence(results: &[ComparisonResult]) -> Option<String> {
    let tell = |result: &ComparisonResult| {
        let parameters = result.parameters.iter().map(|(field, value)| format!("{field}={value}"));
        let setting: String = result.preset.iter().cloned().chain(parameters).map(|part| format!(", {part}")).collect();
        let change =
            result.metrics.first().and_then(|first| Some((first.metric, human::change(first.ratio_millionths?))));
        let change = change.map(|(metric, change)| format!(" ({metric:?} {change})")).unwrap_or_default();
        format!("{} against {}{setting}: {:?}{change}", result.target, result.baseline, result.outcome)
    };
    let more = results.len().saturating_sub(TOLD);
    let more = (more > 0).then(|| format!("{more} more in status.comparison"));
    let told: Vec<String> = results.iter().take(TOLD).map(tell).chain(more).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn results(
    spec: &ComparisonSpec,
    (baseline_name, metrics): (&str, &[ComparisonMetric]),
    names: &[&str],
    seed: u64,
    lines: &[&TrialLine],
) -> Vec<ComparisonResult> {
    let Some(baseline) = names.iter().position(|name| *name == baseline_name) else { return Vec::new() };
    let directions: Vec<_> = metrics.iter().map(|metric| direction(*metric)).collect();
    let question = question(spec, &directions, seed);
    let trials: Vec<_> = lines.iter().filter_map(|line| trial(line, names, metrics)).collect();
    compare(&question, baseline, &trials)
        .into_iter()
        .filter_map(|found| {
            let target = *names.get(found.subject)?;
            let metrics: Vec<_> =
                metrics.iter().zip(&found.metrics).map(|(metric, found)| estimate(*metric, found)).collect();
            let counted = |name: &str| lines.iter().filter(|line| is_of(line, &[name]) && counts(line)).count();
            let both: Vec<&TrialLine> =
                lines.iter().copied().filter(|line| is_of(line, &[target, baseline_name])).collect();
            Some(ComparisonResult {
                target: target.to_owned(),
                baseline: baseline_name.to_owned(),
                preset: both.first().and_then(|line| line.setting.preset.clone()),
                parameters: both.first().map(|line| line.setting.parameters.clone()).unwrap_or_default(),
                pairs: u32::try_from(found.pairs).unwrap_or(u32::MAX),
                trials: u32::try_from(counted(target)).unwrap_or(u32::MAX),
                baseline_trials: u32::try_from(counted(baseline_name)).unwrap_or(u32::MAX),
                left_out: both.iter().filter(|line| !counts(line)).count() as u64,
                caution: caution(spec, &both),
                outcome: metrics.first().map_or(ComparisonOutcome::Inconclusive, |first| first.outcome),
                metrics,
            })
        })
        .collect()
}

fn is_of(line: &TrialLine, targets: &[&str]) -> bool {
    line.setting.subject().is_some_and(|subject| targets.contains(&subject))
}

/// Returns whether a trial was measured to the end with a usable result.
pub(super) fn counts(line: &TrialLine) -> bool {
    line.state == TrialOutcome::Completed && line.requests.is_some() && line.verdict != Some(VerdictValue::Invalid)
}

/// Why the comparison may not be about the targets.
pub(super) fn caution(spec: &ComparisonSpec, lines: &[&TrialLine]) -> Option<String> {
    let limited = |limits: &[LimitedBy]| {
        let by = |line: &&&TrialLine| counts(line) && line.limited_by.is_some_and(|limit| limits.contains(&limit));
        lines.iter().filter(by).count()
    };
    let (all, generator) = (lines.len(), limited(&[LimitedBy::GeneratorCPU, LimitedBy::GeneratorNetwork]));
    let rate = limited(&[LimitedBy::Rate]);
    if generator > 0 {
        return Some(format!(
            "the load generator was the limit of {generator} of {all} trials, so they do not compare only the targets; see \
             limitedBy of each trial"
        ));
    }
    (spec.metric == ComparisonMetric::Throughput && rate > 0).then(|| {
        format!(
            "the requested rate was the limit of {rate} of {all} trials, so their throughput does not compare the targets; \
             compare a latency, or use a closed loop"
        )
    })
}

pub(super) fn direction(metric: ComparisonMetric) -> Direction {
    match metric {
        ComparisonMetric::Throughput => Direction::HigherIsBetter,
        _ => Direction::LowerIsBetter,
    }
}

/// The trial, if it counts.
fn trial(line: &TrialLine, names: &[&str], metrics: &[ComparisonMetric]) -> Option<Trial> {
    let subject = names.iter().position(|name| Some(*name) == line.setting.subject()).filter(|_| counts(line))?;
    let place = Place { pass: line.repeat.unwrap_or(0) as usize, subject };
    Some(Trial { place, values: values(line, metrics) })
}

/// The values of a trial, in the order of `metrics`.
pub(super) fn values(line: &TrialLine, metrics: &[ComparisonMetric]) -> Vec<Option<f64>> {
    let value = |metric: &ComparisonMetric| {
        let value = match metric {
            ComparisonMetric::Throughput => line.achieved_per_second,
            ComparisonMetric::MeanResponseTime => line.mean_nanoseconds,
            ComparisonMetric::P50 => line.p50_nanoseconds,
            ComparisonMetric::P99 => line.p99_nanoseconds,
            ComparisonMetric::P999 => line.p999_nanoseconds,
            ComparisonMetric::CpuPerRequest => line.cpu_per_request_nanoseconds,
        };
        value.map(|value| value as f64)
    };
    metrics.iter().map(value).collect()
}

pub(super) fn estimate(metric: ComparisonMetric, found: &Estimate) -> MetricComparison {
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

/// The largest integer that JSON parsers keep exactly. Intervals may be arbitrarily wide.
const LARGEST: f64 = 9_007_199_254_740_991.0;

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded just before")]
fn whole(value: f64) -> u64 {
    value.round().clamp(0.0, LARGEST) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Ten trials of two targets. The first has 1000 requests per second with a p99 of 1 ms, the second has these values.
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

    fn all(comparison: &serde_json::Value, lines: &[TrialLine]) -> Vec<ComparisonResult> {
        let mut object = crate::sample::object();
        let mut target = object["spec"]["targets"][0].clone();
        target["name"] = json!("direct");
        object["spec"]["targets"] = json!([target, target]);
        object["spec"]["targets"][1]["name"] = json!("proxy");
        object["spec"]["comparison"] = comparison.clone();
        comparisons(&crate::api::read(&object).unwrap().spec, lines)
    }

    fn compared(metric: ComparisonMetric, lines: &[TrialLine]) -> ComparisonResult {
        let spec = json!({"baseline": "direct", "metric": metric});
        let found = all(&json!(spec), lines);
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
        let metrics: Vec<_> = found.metrics.iter().map(|metric| metric.metric).collect();
        assert_eq!(metrics, ComparisonMetric::ALL[..5], "processor time is measured only with clients");
    }

    #[test]
    fn what_is_the_same_within_what_matters_is_no_difference() {
        let found = compared(ComparisonMetric::Throughput, &lines(&[1_001, 1_000, 1_003, 999, 1_004], None));
        assert_eq!(found.outcome, ComparisonOutcome::NoDifference);
        // A p99 with only a bound has no ratio.
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
        lines[0].verdict = Some(VerdictValue::Invalid);
        let found = all(&json!({"baseline": "direct"}), &lines);
        assert_eq!((found[0].pairs, found[0].left_out, &found[0].caution), (3, 2, &None));
    }

    #[test]
    fn each_setting_is_compared_by_itself() {
        let set = |value: &str, cell: u32, throughput| {
            let mut lines = lines(throughput, None);
            for line in &mut lines {
                line.setting.parameters = [("load.pipeline".to_owned(), value.to_owned())].into();
                line.cell += cell;
            }
            lines
        };
        // They ran in another order than the sweep's list.
        let mut lines = set("10", 2, &[900; 5]);
        lines.extend(set("1", 0, &[1_100; 5]));
        let found = all(&json!({"baseline": "direct"}), &lines);
        let settings: Vec<_> =
            found.iter().map(|one| (one.parameters["load.pipeline"].as_str(), one.pairs, one.outcome)).collect();
        assert_eq!(settings, [("1", 5, ComparisonOutcome::Faster), ("10", 5, ComparisonOutcome::Slower)]);
        let said = sentence(&found).unwrap();
        assert!(said.starts_with("proxy against direct, load.pipeline=1: Faster (Throughput +9."), "{said}");
        assert!(said.contains("; proxy against direct, load.pipeline=10: Slower (Throughput -10."), "{said}");
        assert!(sentence(&[found.clone(), found].concat()).unwrap().ends_with("; 1 more in status.comparison"));
    }

    #[test]
    fn what_was_not_limited_by_the_targets_is_said() {
        let mut lines = lines(&[1_000; 5], None);
        lines[3].limited_by = Some(LimitedBy::Rate);
        let caution = |lines: &[TrialLine], metric| {
            all(&json!({"baseline": "direct", "metric": metric}), lines)[0].caution.clone()
        };
        let said = caution(&lines, "Throughput").unwrap();
        assert!(said.starts_with("the requested rate was the limit of 1 of 10 trials"), "{said}");
        assert_eq!(caution(&lines, "P50"), None);
        lines[4].limited_by = Some(LimitedBy::GeneratorCPU);
        let said = caution(&lines, "P50").unwrap();
        assert!(said.starts_with("the load generator was the limit of 1 of 10 trials"), "{said}");
        assert!(said.len() <= 256);
    }
}
