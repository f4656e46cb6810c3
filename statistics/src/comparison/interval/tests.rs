#![allow(clippy::float_cmp, reason = "what is the same computation is the same number")]

use serde_json::Value;

use super::*;
use crate::summary::tests::{confidence, known};

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn logarithms(value: &Value) -> Vec<f64> {
    numbers(value).into_iter().map(f64::ln).collect()
}

#[track_caller]
fn assert_same(case: &Value, name: &str, ours: f64, tolerance: f64) {
    let theirs = case[name].as_f64().unwrap();
    assert!((ours - theirs).abs() <= tolerance * theirs.abs(), "{case}: {name} {ours}");
}

fn assert_as_scipy(case: &Value, evidence: &Evidence) {
    let interval = evidence.interval(confidence(case));
    assert_same(case, "lower", interval.lower.exp(), 1e-9);
    assert_same(case, "upper", interval.upper.exp(), 1e-9);
    assert_same(case, "pValue", evidence.p_value(), 1e-9);
}

#[test]
fn pairs_are_judged_as_by_scipy() {
    for case in known("paired") {
        let (baseline, candidate) = (logarithms(&case["baseline"]), logarithms(&case["candidate"]));
        let differences: Vec<_> = candidate.iter().zip(&baseline).map(|(one, other)| one - other).collect();
        let evidence = Evidence::of_pairs(&differences, 0).unwrap();
        assert_same(&case, "ratio", evidence.mean.exp(), 1e-9);
        assert_as_scipy(&case, &evidence);
    }
}

#[test]
fn samples_are_judged_as_by_scipy() {
    for case in known("welch") {
        let (baseline, candidate) = (logarithms(&case["baseline"]), logarithms(&case["candidate"]));
        assert_as_scipy(&case, &Evidence::of_samples(&baseline, &candidate).unwrap());
    }
}

/// Compares two million resamples in the reference with ten thousand here, forty times.
#[test]
fn the_bootstrap_is_that_of_its_definition() {
    for case in known("bootstrapT") {
        let differences = numbers(&case["differences"]);
        let evidence = (0..40).map(|seed| Evidence::of_pairs(&differences, seed).unwrap());
        let ends: Vec<_> = evidence.map(|evidence| evidence.interval(confidence(&case))).collect();
        let width = case["upper"].as_f64().unwrap() - case["lower"].as_f64().unwrap();
        let widths: Vec<_> = ends.iter().map(|interval| interval.upper - interval.lower).collect();
        assert!((mean(&widths) / width - 1.0).abs() < 0.01, "{case}: {widths:?}");
        let middle = ends[0].lower.midpoint(ends[0].upper);
        assert!((middle - mean(&differences)).abs() < 1e-12, "{case}: {middle}");
    }
}

#[test]
fn the_same_seed_is_the_same_bootstrap() {
    let differences: Vec<_> = (0..12).map(|step| f64::from(step * step % 7) / 100.0).collect();
    let interval = |seed| Evidence::of_pairs(&differences, seed).unwrap().interval(Confidence::USUAL);
    assert_eq!(interval(7), interval(7));
    assert_ne!(interval(7), interval(8));
}

#[test]
fn the_bootstraps_p_value_agrees_with_its_interval() {
    let spread: Vec<f64> = (0..15).map(|step| f64::from(step * 7 % 15) / 100.0).collect();
    for shift in 0..30 {
        let differences: Vec<_> = spread.iter().map(|part| part - f64::from(shift) / 200.0).collect();
        let evidence = Evidence::of_pairs(&differences, 1).unwrap();
        let excluded = !evidence.interval(Confidence::USUAL).contains(0.0);
        // At the border the ranks may differ by one.
        if (evidence.p_value() - 0.05).abs() > 0.001 {
            assert_eq!(excluded, evidence.p_value() < 0.05, "shift {shift}: {}", evidence.p_value());
        }
    }
}

#[test]
fn nothing_but_one_value_is_certain() {
    for count in [2, 5, 20] {
        let same = Evidence::of_pairs(&vec![0.02; count], 0).unwrap();
        assert_eq!(same.interval(Confidence::USUAL), Interval { lower: 0.02, upper: 0.02 });
        assert_eq!(same.p_value(), 0.0);
        let none = Evidence::of_pairs(&vec![0.0; count], 0).unwrap();
        assert_eq!(none.p_value(), 1.0);
    }
    assert!(Evidence::of_pairs(&[0.02], 0).is_none());
    assert!(Evidence::of_samples(&[0.02], &[0.1, 0.2]).is_none());
}

/// All but one equal: most resamples have no spread.
#[test]
fn a_bootstrap_of_nearly_one_value_has_an_interval() {
    let mut differences = vec![0.0; 10];
    differences[3] = 0.01;
    let interval = Evidence::of_pairs(&differences, 0).unwrap().interval(Confidence::USUAL);
    assert!(interval.contains(0.0) && !interval.lower.is_nan(), "{interval:?}");
}
