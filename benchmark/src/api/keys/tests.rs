use serde_json::{Value, json};

use super::*;
use crate::sample;

fn pattern(pattern: &Value) -> plan::KeyPattern {
    let keys =
        json!({"load": {"connections": 3000}, "workload": {"keys": {"start": 100, "count": 3000, "pattern": pattern}}});
    assert_eq!(sample::problems(sample::object(), &keys), [""; 0]);
    let keys: KeysSpec = serde_json::from_value(keys["workload"]["keys"].clone()).unwrap();
    check(&keys, "keys", &mut Vec::new()).pattern
}

#[test]
fn patterns_are_read() {
    use plan::{HotKeys, KeyPattern};
    let cases = [
        (json!({}), KeyPattern::Uniform),
        (json!({"type": "Sequential"}), KeyPattern::Sequential),
        (json!({"type": "Sequential", "perConnection": true}), KeyPattern::PerConnection { partitioned: false }),
        (json!({"type": "Partitioned", "perConnection": true}), KeyPattern::PerConnection { partitioned: true }),
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
fn tags_are_read() {
    let of = |tags: &Value| {
        let keys = json!({"workload": {"keys": {"count": 3000, "tags": tags}}});
        assert_eq!(sample::problems(sample::object(), &keys), [""; 0]);
        let keys: KeysSpec = serde_json::from_value(keys["workload"]["keys"].clone()).unwrap();
        check(&keys, "keys", &mut Vec::new()).tags
    };
    assert_eq!(of(&json!({"count": 100})), Some(plan::Tags { count: 100, hot: None }));
    let hot = Some(plan::HotTags { count: 1, percent_millionths: 80_000_000 });
    assert_eq!(of(&json!({"count": 100, "hot": {"requestsPercent": "80"}})), Some(plan::Tags { count: 100, hot }));
}

#[test]
fn an_operation_has_of_the_workloads_keys_what_it_does_not_set() {
    let keys = json!({"prefix": "a:", "start": 5, "count": 9, "width": 4, "tags": {"count": 3}});
    let keys: KeysSpec = serde_json::from_value(keys).unwrap();
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
fn keys_per_connection_are_those_of_all_operations_that_walk() {
    let own = |count: u64, pattern: &Value| {
        let operations = json!([
            {"name": "set", "command": "SET __key__ x"},
            {"name": "get", "command": "GET __key__", "keys": {"count": count, "pattern": pattern}},
        ]);
        let keys = json!({"count": 4000, "pattern": {"type": "Partitioned", "perConnection": true}});
        sample::problems(sample::object(), &json!({"workload": {"operations": operations, "keys": keys}}))
    };
    let whole = json!({"type": "Sequential", "perConnection": true});
    let part = json!({"type": "Partitioned", "perConnection": true});
    for (count, pattern) in [(1, &json!({"type": "Uniform"})), (1, &whole), (4000, &part)] {
        assert_eq!(own(count, pattern), [""; 0], "{count} {pattern}");
    }
    let few = "spec.workload.operations[1].keys.count: is 3999, and must be at least load.connections, which is 4000: every \
               connection needs one";
    assert_eq!(own(3999, &part), [few]);
    let found = own(4000, &json!({"type": "Sequential"}));
    assert!(
        found[0].starts_with("spec.workload.operations[1].keys.pattern.perConnection: false: must be true if"),
        "{found:?}"
    );
}

#[test]
fn numbers_of_connections_leave_room_for_their_transactions() {
    let found = |size: u32| {
        sample::problems(
            sample::object(),
            &json!({
                "workload": {"keys": {"pattern": {"type": "Sequential", "perConnection": true}}, "transaction": {"size": size}},
                "load": {"connections": 100_000},
            }),
        )
    };
    assert_eq!(found(335), [""; 0]);
    let message =
        "spec.workload.transaction.size: 336: times load.connections, which is 100000, must be at most 33554432";
    assert!(found(336)[0].starts_with(message), "{:?}", found(336));
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
