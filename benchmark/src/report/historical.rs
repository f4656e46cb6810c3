//! Compares a target with a previous benchmark. Their trials did not run in turns, so the difference includes everything else that changed
//! in between.

use redisbench_statistics::comparison::compare_apart;
use serde_json::Value;

use super::comparison::{caution, counts, direction, estimate, is_of_setting, metrics, question, settings, values};
use crate::api::comparison::FEWEST_PAIRS;
use crate::api::status::{ComparisonOutcome, ComparisonResult, Phase, TrialLine};
use crate::api::{Problem, RedisBenchmark, RedisBenchmarkSpec};

const FIELD: &str = "spec.comparison.benchmark";

const APART: &str = "the runs were not interleaved: the difference includes everything that changed between them";

/// Checks that `spec` can be compared with `other`, the benchmark that its comparison names; none if it does not exist.
///
/// # Errors
/// The reason and the remedy.
pub fn check(spec: &RedisBenchmarkSpec, name: &str, other: Option<&RedisBenchmark>) -> Result<(), Problem> {
    let problem = |message: String| Err(Problem::new(FIELD, name, message));
    let Some(other) = other else {
        return problem("does not exist in this namespace: name a benchmark that has Succeeded".to_owned());
    };
    let status = other.status.clone().unwrap_or_default();
    if status.phase != Phase::Succeeded {
        return problem(format!(
            "is {:?}, but a baseline must be Succeeded; this benchmark starts once it is",
            status.phase
        ));
    }
    if other.spec.targets.len() > 1 {
        return problem("has several targets: name a benchmark with one target".to_owned());
    }
    if let Some((field, here, there)) = difference(spec, &other.spec) {
        return problem(format!("has a different load: {field} is {there} there and {here} here; make them equal"));
    }
    let enough = |lines: &Vec<&TrialLine>| lines.iter().filter(|line| counts(line)).count() >= FEWEST_PAIRS as usize;
    if !settings(&status.trials).iter().any(enough) {
        return problem(format!(
            "has fewer than {FEWEST_PAIRS} usable trials: name one with repeats.count of at least {FEWEST_PAIRS}"
        ));
    }
    Ok(())
}

/// Compares `trials` of `spec` with those of `other`, at each setting that both have.
pub fn compare(
    spec: &RedisBenchmarkSpec,
    trials: &[TrialLine],
    name: &str,
    other: &[TrialLine],
) -> Vec<ComparisonResult> {
    let (Some(comparison), Some(target)) = (&spec.comparison, spec.targets.first()) else { return Vec::new() };
    let metrics = metrics(comparison, trials.iter().chain(other));
    let directions: Vec<_> = metrics.iter().map(|metric| direction(*metric)).collect();
    let question = question(comparison, &directions, spec.workload.seed);
    let of_setting = |lines: Vec<&TrialLine>| {
        let first = *lines.first()?;
        let before: Vec<&TrialLine> = other.iter().filter(|line| is_of_setting(line, first)).collect();
        let counted = |lines: &[&TrialLine]| -> Vec<Vec<Option<f64>>> {
            lines.iter().filter(|line| counts(line)).map(|line| values(line, &metrics)).collect()
        };
        let (one, two) = (counted(&before), counted(&lines));
        let found = compare_apart(&question, &one, &two);
        let found: Vec<_> = metrics.iter().zip(&found).map(|(metric, found)| estimate(*metric, found)).collect();
        let both: Vec<&TrialLine> = lines.iter().chain(&before).copied().collect();
        let limited = caution(comparison, &both).map(|why| format!("; {why}")).unwrap_or_default();
        Some(ComparisonResult {
            target: target.name.clone(),
            baseline: name.to_owned(),
            preset: first.setting.preset.clone(),
            parameters: first.setting.parameters.clone(),
            pairs: 0,
            trials: u32::try_from(two.len()).unwrap_or(u32::MAX),
            baseline_trials: u32::try_from(one.len()).unwrap_or(u32::MAX),
            left_out: (both.len() - one.len() - two.len()) as u64,
            caution: Some(format!("{APART}{limited}")),
            outcome: found.first().map_or(ComparisonOutcome::Inconclusive, |first| first.outcome),
            metrics: found,
        })
    };
    settings(trials).into_iter().filter_map(of_setting).collect()
}

/// The first field in which the loads of two benchmarks differ: its path, and both values.
fn difference(one: &RedisBenchmarkSpec, other: &RedisBenchmarkSpec) -> Option<(String, String, String)> {
    let what = |spec: &RedisBenchmarkSpec| {
        let swept: Vec<&str> = spec.sweep.iter().flat_map(|entry| entry.fields().map(|(field, ..)| field)).collect();
        let mut what = serde_json::json!({
            "workload": spec.workload, "load": spec.load, "preload": spec.preload, "shards": {"count": spec.shards.count},
            "sweep": swept,
        });
        // Ignores the base values of swept fields, and the random seed.
        for field in swept.into_iter().chain(["workload.seed"]) {
            // Entries of lists are written as operations[0].
            let pointer = format!("/{}", field.replace('[', ".").replace(']', "").replace('.', "/"));
            if let Some(value) = what.pointer_mut(&pointer) {
                *value = Value::Null;
            }
        }
        what
    };
    first_difference("spec", &what(one), &what(other))
}

fn first_difference(path: &str, one: &Value, other: &Value) -> Option<(String, String, String)> {
    if let (Value::Object(here), Value::Object(there)) = (one, other) {
        let mut keys = here.keys().chain(there.keys().filter(|key| !here.contains_key(*key)));
        let part = |key: &String| {
            let part = |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or(Value::Null);
            first_difference(&format!("{path}.{key}"), &part(here), &part(there))
        };
        return keys.find_map(part);
    }
    let say = |value: &Value| match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    (one != other).then(|| (path.to_owned(), say(one), say(other)))
}

#[cfg(test)]
mod tests;
