use serde_json::json;

use super::*;
use crate::api::status::TrialOutcome;

/// A Succeeded benchmark of one target, with five trials of this throughput.
fn finished(throughput: [u64; 5]) -> RedisBenchmark {
    let mut object = crate::sample::object();
    object["spec"]["repeats"] = json!({"count": 5});
    let line = |(index, rate): (usize, u64)| {
        json!({
            "index": index, "cell": 0, "repeat": index, "state": "Completed", "attempt": 1,
            "requests": {"scheduled": 10, "succeeded": 10, "errors": 0, "unsent": 0},
            "achievedPerSecond": rate, "p99Nanoseconds": 1_000_000 + index,
        })
    };
    let lines: Vec<_> = throughput.into_iter().enumerate().map(line).collect();
    let mut benchmark = crate::api::read(&object).unwrap();
    benchmark.status = serde_json::from_value(json!({"phase": "Succeeded", "trials": lines})).unwrap();
    benchmark
}

fn spec() -> RedisBenchmarkSpec {
    let mut spec = finished([1; 5]).spec;
    spec.comparison = serde_json::from_value(json!({"benchmark": "before"})).unwrap();
    spec
}

fn trials(benchmark: &RedisBenchmark) -> Vec<TrialLine> {
    benchmark.status.clone().unwrap().trials
}

#[test]
fn what_is_slower_than_before_is_called_so() {
    let before = finished([1_000, 1_004, 998, 1_002, 996]);
    let now = finished([900, 903, 901, 902, 899]);
    let spec = spec();
    assert_eq!(check(&spec, "before", Some(&before)), Ok(()));
    let [found] = &compare(&spec, &trials(&now), "before", &trials(&before))[..] else { panic!() };
    assert_eq!((found.outcome, found.baseline.as_str()), (ComparisonOutcome::Slower, "before"));
    assert_eq!((found.pairs, found.trials, found.baseline_trials, found.left_out), (0, 5, 5, 0));
    let ratio = found.metrics[0].ratio_millionths.unwrap();
    assert!((899_000..903_000).contains(&ratio), "{found:?}");
    assert_eq!(found.caution.as_deref(), Some(APART));
}

#[test]
fn a_setting_that_the_other_has_not_is_inconclusive() {
    let before = finished([1_000; 5]);
    let mut now = trials(&finished([1_000; 5]));
    for line in &mut now {
        line.setting.parameters = [("load.pipeline".to_owned(), "8".to_owned())].into();
    }
    let [found] = &compare(&spec(), &now, "before", &trials(&before))[..] else { panic!() };
    assert_eq!((found.outcome, found.trials, found.baseline_trials), (ComparisonOutcome::Inconclusive, 5, 0));
}

fn refused(spec: &RedisBenchmarkSpec, other: Option<&RedisBenchmark>) -> String {
    check(spec, "before", other).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_a_baseline_is_refused_with_the_way_out() {
    let spec = spec();
    assert_eq!(
        refused(&spec, None),
        "spec.comparison.benchmark: before: does not exist in this namespace: name a benchmark that has Succeeded"
    );
    let mut running = finished([1; 5]);
    running.status.as_mut().unwrap().phase = Phase::Running;
    assert!(refused(&spec, Some(&running)).contains("is Running, but a baseline must be Succeeded"));
    let mut few = finished([1; 5]);
    few.status.as_mut().unwrap().trials[2].state = TrialOutcome::Failed;
    assert!(refused(&spec, Some(&few)).contains("has fewer than 5 usable trials"));
    let mut other = finished([1; 5]);
    other.spec.load.pipeline += 1;
    assert!(refused(&spec, Some(&other)).contains("has a different load: spec.load.pipeline is "));
    // The random seed does not matter, nor the base value of a swept field.
    let mut alike = finished([1; 5]);
    alike.spec.workload.seed += 1;
    assert_eq!(check(&spec, "before", Some(&alike)), Ok(()));
    let sweep: Vec<crate::api::sweep::SweepSpec> =
        serde_json::from_value(json!([{"field": "load.pipeline", "values": [1, 2]}])).unwrap();
    let mut swept = (spec.clone(), other);
    (swept.0.sweep, swept.1.spec.sweep) = (sweep.clone(), sweep);
    assert_eq!(check(&swept.0, "before", Some(&swept.1)), Ok(()));
    assert!(refused(&spec, Some(&swept.1)).contains("has a different load: spec."));
    let weights: Vec<crate::api::sweep::SweepSpec> =
        serde_json::from_value(json!([{"field": "workload.operations[0].weight", "values": [1, 2]}])).unwrap();
    let mut weighed = (spec, finished([1; 5]));
    (weighed.0.sweep, weighed.1.spec.sweep) = (weights.clone(), weights);
    weighed.1.spec.workload.operations[0].weight += 1;
    assert_eq!(check(&weighed.0, "before", Some(&weighed.1)), Ok(()));
}
