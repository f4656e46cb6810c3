#![allow(clippy::float_cmp, reason = "what is the same computation is the same number")]

use serde_json::Value;

use super::*;
use crate::student::{quantile, two_sided};

/// Reference values from scipy and numpy: `statistics/tests/known.py`.
pub(crate) fn known(of: &str) -> Vec<Value> {
    let known: Value = serde_json::from_str(include_str!("../../tests/known.json")).unwrap();
    known[of].as_array().unwrap().clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn same(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-3)
}

pub(crate) fn confidence(case: &Value) -> Confidence {
    Confidence::of_basis_points(case["confidenceBasisPoints"].as_u64().unwrap().try_into().unwrap()).unwrap()
}

#[test]
fn students_t_is_that_of_scipy() {
    for case in known("quantiles") {
        let ours = quantile(number(&case["degrees"]), number(&case["probability"]));
        assert!(same(ours, number(&case["t"])), "{case}: {ours}");
    }
    for case in known("twoSided") {
        let ours = two_sided(number(&case["degrees"]), -number(&case["t"]));
        assert!(same(ours, number(&case["p"])), "{case}: {ours}");
    }
}

#[test]
fn summaries_are_those_of_scipy() {
    for case in known("summaries") {
        let values: Vec<f64> = case["values"].as_array().unwrap().iter().map(number).collect();
        let summary = summarize(&values, Direction::HigherIsBetter, confidence(&case)).unwrap();
        let interval = summary.interval.unwrap();
        for (ours, name) in [
            (summary.mean, "mean"),
            (summary.median, "median"),
            (summary.standard_deviation.unwrap(), "standardDeviation"),
            (interval.lower, "lower"),
            (interval.upper, "upper"),
        ] {
            assert!(same(ours, number(&case[name])), "{case}: {name} {ours}");
        }
    }
}

#[test]
fn best_and_worst_are_by_the_direction() {
    let values = [3.0, 9.0, 1.0, 9.0, 1.0];
    let ends =
        |direction| summarize(&values, direction, Confidence::USUAL).map(|summary| (summary.best, summary.worst));
    assert_eq!(ends(Direction::HigherIsBetter), Some((1, 2)));
    assert_eq!(ends(Direction::LowerIsBetter), Some((2, 1)));
}

#[test]
fn what_cannot_be_known_is_not_said() {
    let one = summarize(&[4.0], Direction::LowerIsBetter, Confidence::USUAL).unwrap();
    assert_eq!((one.count, one.mean, one.median, one.best, one.worst), (1, 4.0, 4.0, 0, 0));
    assert_eq!((one.standard_deviation, one.interval), (None, None));
    assert_eq!(summarize(&[], Direction::LowerIsBetter, Confidence::USUAL), None);
    assert_eq!(summarize(&[1.0, f64::NAN], Direction::LowerIsBetter, Confidence::USUAL), None);
    for none in [0, 10_000, u32::MAX] {
        assert_eq!(Confidence::of_basis_points(none), None);
    }
    assert_eq!(quantile(0.0, 0.975), f64::INFINITY);
    assert_eq!(two_sided(4.0, f64::NAN), 1.0);
    assert_eq!(two_sided(4.0, f64::INFINITY), 0.0);
}
