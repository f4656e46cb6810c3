//! `compare`: two finished benchmarks, with the statistics of `spec.comparison`.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use redisbench_benchmark::api::status::{ComparisonOutcome, ComparisonResult, Phase, TrialOutcome};
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkStatus};
use redisbench_benchmark::report::historical;
use serde_json::json;

use crate::arguments::{ClusterArguments, CompareArguments};
use crate::reading::{self, Reading};
use crate::render::{self, Paint};
use crate::{GOOD, NOT_JUDGED, NOT_MET};

/// Prints the comparison.
///
/// # Errors
/// If one of the two cannot be read, or they must not be compared.
pub async fn compare(arguments: &CompareArguments) -> anyhow::Result<u8> {
    let baseline = find(&arguments.baseline, &arguments.cluster).await?;
    let subject = find(&arguments.subject, &arguments.cluster).await?;
    let results = compared((&arguments.baseline, &baseline), (&arguments.subject, &subject))?;
    render::write(render::comparison(&results, Paint::for_stream(io::stdout().is_terminal())))?;
    Ok(code(&results))
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
    if experiment.trials.iter().any(|line| line.target.is_some()) {
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
            "{name} is {phase:?}: only benchmarks that Succeeded can be compared"
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
fn code(results: &[ComparisonResult]) -> u8 {
    let any = |outcome| results.iter().any(|result| result.outcome == outcome);
    match () {
        () if any(ComparisonOutcome::Slower) => NOT_MET,
        () if results.is_empty() || any(ComparisonOutcome::Inconclusive) => NOT_JUDGED,
        () => GOOD,
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
        let found = compared(("before.json", baseline), ("now.json", subject));
        found.map(|results| code(&results)).map_err(|error| error.to_string())
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
        let several = read(|all| all.trials[0].target = Some("other".to_owned()));
        assert!(several.unwrap_err().to_string().starts_with("a: has several targets"));
        assert!(with_trials("a", sample::reading()).unwrap_err().to_string().starts_with("a: has a single trial"));
    }
}
