use serde_json::{Value, json};

use super::*;
use crate::api;

/// The keys of shards, and the problems of a spec with these keys.
fn checked(keys: Value) -> (plan::Keys, Vec<String>) {
    let mut object = crate::sample::object();
    object["spec"]["workload"]["keys"] = keys;
    let spec = api::read(&object).unwrap().spec;
    let problems = api::validate(&spec, "sample").err().unwrap_or_default();
    let keys = check(&spec.workload.keys, "keys", &mut Vec::new());
    (keys, problems.iter().map(ToString::to_string).collect())
}

fn pattern(pattern: &Value) -> plan::KeyPattern {
    let (keys, problems) = checked(json!({"start": 100, "count": 3000, "pattern": pattern}));
    assert_eq!(problems, [""; 0]);
    keys.pattern
}

#[test]
fn patterns_are_read() {
    use plan::{HotKeys, KeyPattern};
    let cases = [
        (json!({}), KeyPattern::Uniform),
        (json!({"type": "Sequential"}), KeyPattern::Sequential),
        (json!({"type": "Gaussian"}), KeyPattern::Gaussian { mean: 1500, standard_deviation: 500 }),
        (
            json!({"type": "Gaussian", "gaussian": {"mean": 100, "standardDeviation": 3000}}),
            KeyPattern::Gaussian { mean: 0, standard_deviation: 3000 },
        ),
        (
            json!({"type": "Zipf", "zipf": {"exponent": "0.99"}}),
            KeyPattern::Zipf { exponent_millionths: 990_000, hot_keys: HotKeys::Scattered },
        ),
        (
            json!({"type": "HotSet", "hotSet": {"requestsPercent": "99.9", "keysPercent": "0.01", "hotKeys": "First"}}),
            KeyPattern::HotSet { keys: 1, percent_millionths: 99_900_000, hot_keys: HotKeys::First },
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(pattern(&spec), expected);
    }
}

#[test]
fn each_problem_of_a_pattern_names_the_way_out() {
    let cases = [
        (
            json!({"zipf": {"exponent": "1"}}),
            "pattern.zipf: is only valid for type Zipf: remove it, or set type to Zipf",
        ),
        (json!({"type": "Zipf"}), "pattern.zipf: must be set for type Zipf, such as zipf: {exponent: \"0.99\"}"),
        (
            json!({"type": "HotSet"}),
            "pattern.hotSet: must be set for type HotSet, such as hotSet: {requestsPercent: \"90\", keysPercent: \
             \"10\"}",
        ),
        (
            json!({"type": "Gaussian", "gaussian": {"mean": 99}}),
            "pattern.gaussian.mean: is 99, and must be the number of a key, 100 to 3099",
        ),
        (
            json!({"type": "Gaussian", "gaussian": {"mean": 3100}}),
            "pattern.gaussian.mean: is 3100, and must be the number of a key, 100 to 3099",
        ),
        (
            json!({"type": "Gaussian", "gaussian": {"standardDeviation": 3001}}),
            "pattern.gaussian.standardDeviation: is 3001, and must be at most keys.count, which is 3000: more is nearly \
             Uniform",
        ),
    ];
    for (pattern, expected) in cases {
        let expected = format!("spec.workload.keys.{expected}");
        assert_eq!(checked(json!({"start": 100, "count": 3000, "pattern": pattern})).1, [expected]);
    }
}

#[test]
fn an_operation_has_of_the_workloads_keys_what_it_does_not_set() {
    let keys: KeysSpec = serde_json::from_value(json!({"prefix": "a:", "start": 5, "count": 9, "width": 4})).unwrap();
    let own: OperationKeysSpec =
        serde_json::from_value(json!({"prefix": "b:", "pattern": {"type": "Sequential"}})).unwrap();
    let expected = KeysSpec {
        prefix: "b:".into(),
        pattern: KeyPatternSpec { kind: KeyPatternType::Sequential, ..KeyPatternSpec::default() },
        ..keys.clone()
    };
    assert_eq!(own.over(&keys), expected);
    assert_eq!(OperationKeysSpec::default().over(&keys), keys);
}

#[test]
fn decimals_are_exact() {
    let cases = [
        ("1", 1_000_000),
        ("0.99", 990_000),
        ("0.000001", 1),
        ("99.99999", 99_999_990),
        ("1.0", 1_000_000),
        ("2.50", 2_500_000),
        ("10", 10_000_000),
    ];
    for (text, expected) in cases {
        assert_eq!(millionths(text), Some(expected), "{text}");
    }
    for text in ["", "0", "0.0", "100", ".5", "1.", "-1", "+1", "1e1", "01", "00.5", "0.0000001", "1,5", " 1"] {
        assert_eq!(millionths(text), None, "{text}");
    }
}
