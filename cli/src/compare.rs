//! `compare`: two finished benchmarks, with the statistics of `spec.comparison`.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use redisbench_benchmark::api::comparison::ComparisonMetric;
use redisbench_benchmark::api::status::{ComparisonOutcome, ComparisonResult, MetricComparison, Phase, TrialOutcome};
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkStatus};
use redisbench_benchmark::report::historical;
use serde_json::json;

use crate::arguments::{ClusterArguments, CompareArguments};
use crate::exit::{GOOD, NOT_JUDGED, NOT_MET};
use crate::reading::{self, Reading};
use crate::render::trials::comparison_title;
use crate::render::{self, Paint};

/// A ratio of 1 in millionths.
const EQUAL: i64 = 1_000_000;
const MILLIONTHS_PER_PERCENT: i64 = 10_000;

/// Prints the comparison.
///
/// # Errors
/// If one of the two cannot be read, or they must not be compared.
pub async fn compare(arguments: &CompareArguments) -> anyhow::Result<u8> {
    let baseline = find(&arguments.baseline, &arguments.cluster).await?;
    let subject = find(&arguments.subject, &arguments.cluster).await?;
    let results = compared((&arguments.baseline, &baseline), (&arguments.subject, &subject))?;
    render::write(render::comparison(&results, Paint::for_stream(io::stdout().is_terminal())))?;
    for result in &results {
        if let Some(slowdown) = Slowdown::of(result, arguments.tolerance) {
            eprintln!("{}: {}", comparison_title(result), slowdown.text());
        }
    }
    Ok(code(&results, arguments.tolerance))
}

/// A benchmark by the name of a file or directory, or of an object on the cluster.
#[cfg_attr(not(feature = "cluster"), expect(clippy::unused_async, reason = "no cluster is read"))]
async fn find(name: &str, cluster: &ClusterArguments) -> anyhow::Result<RedisBenchmark> {
    // Names of objects have neither.
    let is_path = name.contains('/') || [".json", ".yaml", ".yml"].iter().any(|end| name.ends_with(end));
    if is_path || Path::new(name).exists() {
        return with_trials(name, reading::of_files(&[name.into()])?);
    }
    #[cfg(feature = "cluster")]
    {
        let cluster = crate::cluster::Cluster::connect(cluster).await?;
        Ok(reading::cluster::object(&cluster, name).await?)
    }
    #[cfg(not(feature = "cluster"))]
    {
        let _ = cluster;
        Err(reading::no_cluster(name).into())
    }
}

/// The object, or what a directory of `local --output-dir` has of it.
fn with_trials(name: &str, reading: Reading) -> anyhow::Result<RedisBenchmark> {
    let Reading { object, measurements, experiment } = reading;
    if let Some(object) = object {
        return Ok(object);
    }
    let spec = measurements.into_iter().next().and_then(|first| first.spec);
    let (Some(spec), Some(experiment)) = (spec, experiment) else {
        anyhow::bail!("{name}: has a single trial, which has nothing to compare; set repeats.count to at least 5");
    };
    // The spec of a trial has only its own target.
    if experiment.trials.iter().any(|line| line.setting.target.is_some()) {
        anyhow::bail!("{name}: has several targets, which it compares itself; give benchmarks with one target");
    }
    let complete = experiment.trials.iter().all(|line| line.state == TrialOutcome::Completed);
    let phase = if complete { Phase::Succeeded } else { Phase::Aborted };
    let mut benchmark = RedisBenchmark::new(&experiment.benchmark, *spec);
    benchmark.status =
        Some(RedisBenchmarkStatus { phase, trials: experiment.trials, ..RedisBenchmarkStatus::default() });
    Ok(benchmark)
}

/// The comparison of `subject` with `baseline` at each setting that both have.
fn compared(
    (baseline_name, baseline): (&str, &RedisBenchmark),
    (name, subject): (&str, &RedisBenchmark),
) -> anyhow::Result<Vec<ComparisonResult>> {
    for (name, benchmark) in [(baseline_name, baseline), (name, subject)] {
        let phase = benchmark.status.as_ref().map(|status| status.phase).unwrap_or_default();
        anyhow::ensure!(
            phase == Phase::Succeeded,
            "{name} is {phase:?}: only benchmarks that Succeeded can be compared; run it again, or give another result"
        );
    }
    for ((name, one), (_, other)) in
        [((baseline_name, baseline), (name, subject)), ((name, subject), (baseline_name, baseline))]
    {
        historical::check(&other.spec, name, Some(one))
            .map_err(|problem| anyhow::anyhow!("{name} {}", problem.message))?;
    }
    let mut spec = subject.spec.clone();
    if spec.comparison.as_ref().is_none_or(|comparison| comparison.baseline.is_some()) {
        spec.comparison = Some(serde_json::from_value(json!({"benchmark": baseline_name}))?);
    }
    let trials = |benchmark: &RedisBenchmark| benchmark.status.clone().unwrap_or_default().trials;
    let mut results = historical::compare(&spec, &trials(subject), baseline_name, &trials(baseline));
    for result in &mut results {
        name.clone_into(&mut result.target);
    }
    Ok(results)
}

/// Slower at one setting is slower.
fn code(results: &[ComparisonResult], tolerance: u32) -> u8 {
    let any = |code| results.iter().any(|result| code_of(result, tolerance) == code);
    match () {
        () if any(NOT_MET) => NOT_MET,
        () if results.is_empty() || any(NOT_JUDGED) => NOT_JUDGED,
        () => GOOD,
    }
}

fn code_of(result: &ComparisonResult, tolerance: u32) -> u8 {
    match (result.outcome, Slowdown::of(result, tolerance)) {
        (_, Some(slowdown)) => slowdown.code(),
        (ComparisonOutcome::Slower, None) => NOT_MET,
        (ComparisonOutcome::Inconclusive, None) => NOT_JUDGED,
        (ComparisonOutcome::Faster | ComparisonOutcome::NoDifference, None) => GOOD,
    }
}

/// The confidence interval of the requested metric as a slowdown, against what is tolerated. In millionths of the baseline.
struct Slowdown {
    /// Negative if it may be faster.
    least: i64,
    most: i64,
    tolerated: i64,
}

impl Slowdown {
    /// None without a tolerance or an interval, and if there surely is no slowdown.
    fn of(result: &ComparisonResult, tolerance: u32) -> Option<Self> {
        let doubtful = matches!(result.outcome, ComparisonOutcome::Slower | ComparisonOutcome::Inconclusive);
        let metric = result.metrics.first().filter(|_| doubtful && tolerance > 0)?;
        let (least, most) = Self::interval(metric)?;
        Some(Self { least, most, tolerated: i64::from(tolerance) * MILLIONTHS_PER_PERCENT })
    }

    fn interval(metric: &MetricComparison) -> Option<(i64, i64)> {
        let signed = |ratio: u64| i64::try_from(ratio).unwrap_or(i64::MAX);
        let (low, high) = (signed(metric.low_millionths?), signed(metric.high_millionths?));
        Some(match metric.metric {
            ComparisonMetric::Throughput => (EQUAL - high, EQUAL - low),
            _ => (low - EQUAL, high - EQUAL),
        })
    }

    fn code(&self) -> u8 {
        match self {
            Self { least, tolerated, .. } if least > tolerated => NOT_MET,
            Self { most, tolerated, .. } if most <= tolerated => GOOD,
            _ => NOT_JUDGED,
        }
    }

    fn text(&self) -> String {
        let percent = |millionths: i64| format!("{:.1} %", millionths as f64 / MILLIONTHS_PER_PERCENT as f64);
        let [least, most] = [self.least, self.most].map(percent);
        let tolerated = self.tolerated / MILLIONTHS_PER_PERCENT;
        match self.code() {
            NOT_MET => format!("slower by at least {least}, beyond --tolerance {tolerated}"),
            GOOD => format!("slower by at most {most}, within --tolerance {tolerated}"),
            _ => {
                let range =
                    if self.least > 0 { format!("{least} to {most}") } else { format!("up to {most}, or not at all") };
                format!(
                    "slower by {range}, which does not decide for --tolerance {tolerated}; more or longer trials \
                     (spec.repeats.count, spec.load.duration) narrow the interval"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use redisbench_benchmark::report::repeats::{self, ExperimentDocument};

    use super::*;
    use crate::export::sample;

    /// A finished benchmark with five trials of these rates.
    fn finished(rates: [u64; 5], connections: u32) -> RedisBenchmark {
        let line = |(index, rate): (usize, u64)| {
            json!({
                "index": index, "cell": 0, "repeat": index, "state": "Completed", "attempt": 1, "achievedPerSecond": rate,
                "requests": {"scheduled": 10, "succeeded": 10, "errors": 0, "unsent": 0},
            })
        };
        let lines: Vec<_> = rates.into_iter().enumerate().map(line).collect();
        serde_json::from_value(json!({
            "apiVersion": "redisbench.dev/v1alpha1", "kind": "RedisBenchmark", "metadata": {"name": "a"},
            "spec": {
                "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
                "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
                "load": {"type": "ClosedLoop", "duration": "10s", "connections": connections},
            },
            "status": {"phase": "Succeeded", "trials": lines},
        }))
        .unwrap()
    }

    fn of(baseline: &RedisBenchmark, subject: &RedisBenchmark) -> Result<u8, String> {
        tolerating(baseline, subject, 0)
    }

    fn tolerating(baseline: &RedisBenchmark, subject: &RedisBenchmark, tolerance: u32) -> Result<u8, String> {
        let found = compared(("before.json", baseline), ("now.json", subject));
        found.map(|results| code(&results, tolerance)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_setting() {
        let before = finished([1_000, 1_004, 998, 1_002, 996], 4);
        assert_eq!(of(&before, &finished([900, 903, 901, 902, 899], 4)), Ok(NOT_MET));
        assert_eq!(of(&finished([900, 903, 901, 902, 899], 4), &before), Ok(GOOD));
        assert_eq!(of(&before, &before), Ok(GOOD));
        assert_eq!(of(&before, &finished([700, 1_400, 900, 1_200, 800], 4)), Ok(NOT_JUDGED));
    }

    #[test]
    fn with_a_tolerance_the_whole_interval_decides() {
        let before = finished([1_000, 1_004, 998, 1_002, 996], 4);
        let slower = finished([900, 903, 901, 902, 899], 4);
        for (tolerance, code) in [(0, NOT_MET), (5, NOT_MET), (10, NOT_JUDGED), (25, GOOD)] {
            assert_eq!(tolerating(&before, &slower, tolerance), Ok(code), "{tolerance} %");
        }
        // Inconclusive without a tolerance.
        let unsteady = finished([950, 1_050, 980, 1_020, 990], 4);
        for (tolerance, code) in [(0, NOT_JUDGED), (1, NOT_JUDGED), (25, GOOD)] {
            assert_eq!(tolerating(&before, &unsteady, tolerance), Ok(code), "{tolerance} %");
        }
        for tolerance in [0, 25] {
            assert_eq!(tolerating(&slower, &before, tolerance), Ok(GOOD), "faster");
            assert_eq!(tolerating(&before, &before, tolerance), Ok(GOOD), "equal");
        }
    }

    #[test]
    fn more_latency_is_a_slowdown_like_less_throughput() {
        let result = |metric: &str, low: u32, high: u32, outcome: &str| -> ComparisonResult {
            let metric = json!({"metric": metric, "outcome": outcome, "lowMillionths": low, "highMillionths": high,
                "confidenceBasisPoints": 9_500});
            let result = json!({"target": "now", "baseline": "before", "pairs": 0, "trials": 5, "baselineTrials": 5,
                "outcome": outcome, "metrics": [metric]});
            serde_json::from_value(result).unwrap()
        };
        let text = |result: &ComparisonResult| Slowdown::of(result, 25).map(|slowdown| slowdown.text());
        let throughput = result("Throughput", 600_000, 700_000, "Slower");
        assert_eq!(code_of(&throughput, 25), NOT_MET);
        assert_eq!(text(&throughput).as_deref(), Some("slower by at least 30.0 %, beyond --tolerance 25"));
        let latency = result("P99", 1_100_000, 1_200_000, "Slower");
        assert_eq!(code_of(&latency, 25), GOOD);
        assert_eq!(text(&latency).as_deref(), Some("slower by at most 20.0 %, within --tolerance 25"));
        let both = result("P99", 900_000, 1_500_000, "Inconclusive");
        assert_eq!(code_of(&both, 25), NOT_JUDGED);
        let told = text(&both).unwrap();
        assert!(
            told.starts_with("slower by up to 50.0 %, or not at all, which does not decide for --tolerance 25; more"),
            "{told}"
        );
        let faster = result("P99", 500_000, 600_000, "Faster");
        assert_eq!((code_of(&faster, 25), text(&faster)), (GOOD, None));
    }

    #[test]
    fn both_names_are_in_the_table() {
        let one = finished([1_000; 5], 4);
        let results = compared(("before.json", &one), ("now.json", &one)).unwrap();
        let text = render::comparison(&results, Paint::none());
        assert!(text.contains("now.json against before.json"), "{text}");
    }

    #[test]
    fn what_must_not_be_compared_is_refused_with_the_reason() {
        let one = finished([1_000; 5], 4);
        let why = of(&one, &finished([1_000; 5], 8)).unwrap_err();
        assert!(why.contains("spec.load.connections is 4 there and 8 here"), "{why}");
        let mut few = finished([1_000; 5], 4);
        few.status.as_mut().unwrap().trials.truncate(1);
        assert!(of(&one, &few).unwrap_err().starts_with("now.json has fewer than 5 usable trials"));
        few.status.as_mut().unwrap().phase = Phase::Running;
        assert!(of(&few, &one).unwrap_err().starts_with("before.json is Running"));
    }

    #[test]
    fn a_directory_of_trials_can_be_compared() {
        let read = |change: fn(&mut ExperimentDocument)| {
            let mut all = ExperimentDocument {
                format: repeats::FORMAT.to_owned(),
                benchmark: "a".to_owned(),
                run_id: "run".to_owned(),
                trials: finished([1_000, 1_004, 998, 1_002, 996], 4).status.unwrap().trials,
                cells: Vec::new(),
                comparison: Vec::new(),
            };
            change(&mut all);
            with_trials("a", Reading { object: None, measurements: vec![sample::trial()], experiment: Some(all) })
        };
        let whole = read(|_| {}).unwrap();
        assert_eq!(of(&whole, &whole), Ok(GOOD));
        let aborted = read(|all| all.trials[4].state = TrialOutcome::Aborted).unwrap();
        assert!(of(&whole, &aborted).unwrap_err().starts_with("now.json is Aborted"));
        let several = read(|all| all.trials[0].setting.target = Some("other".to_owned()));
        assert!(several.unwrap_err().to_string().starts_with("a: has several targets"));
        assert!(with_trials("a", sample::reading()).unwrap_err().to_string().starts_with("a: has a single trial"));
    }
}
