use serde_json::{Value, json};

use super::*;
use crate::api;

/// The values of shards, and the problems of a spec with these values.
fn checked(values: Value) -> (plan::Values, Vec<String>) {
    let mut object = crate::sample::object();
    let expiry = if values["ttl"].is_object() { " EX __ttl__" } else { "" };
    let command = format!("SET __key__ __data__{expiry}");
    object["spec"]["workload"] = json!({"operations": [{"name": "set", "command": command}]});
    object["spec"]["workload"]["values"] = values;
    let spec = api::read(&object).unwrap().spec;
    let problems = api::validate(&spec, "sample").err().unwrap_or_default();
    (to_plan(&spec.workload.values), problems.iter().map(ToString::to_string).collect())
}

#[test]
fn sizes_and_contents_are_read() {
    use plan::{ValueContent, ValueSize, WeightedSize};
    let size = |size: Value| checked(json!({"size": size})).0.size;
    assert_eq!(checked(json!({})).0, plan::Values::fixed(100));
    assert_eq!(size(json!({"fixed": {"bytes": 7}})), ValueSize::Fixed { bytes: 7 });
    assert_eq!(
        size(json!({"type": "Range", "range": {"minBytes": 1, "maxBytes": 9}})),
        ValueSize::Range { least_bytes: 1, most_bytes: 9 }
    );
    assert_eq!(
        size(json!({"type": "Weighted", "weighted": [{"bytes": 1, "weight": 3}, {"bytes": 9}]})),
        ValueSize::Weighted(vec![WeightedSize { bytes: 1, weight: 3 }, WeightedSize { bytes: 9, weight: 1 }])
    );
    assert_eq!(checked(json!({"content": {"type": "Zero"}})).0.content, ValueContent::Zero);
    assert_eq!(
        checked(json!({"content": {"compressibilityPercent": 40}})).0.content,
        ValueContent::Random { compressibility_percent: 40 }
    );
}

#[test]
fn each_problem_names_field_value_and_way_out() {
    let cases = [
        (
            json!({"size": {"type": "Range", "fixed": {"bytes": 1}, "range": {"minBytes": 1, "maxBytes": 2}}}),
            "spec.workload.values.size.fixed: is only valid for type Fixed: remove it, or set type to Fixed",
        ),
        (
            json!({"size": {"type": "Range"}}),
            "spec.workload.values.size.range: must be set for type Range, such as range: {minBytes: 10, maxBytes: 1000}",
        ),
        (
            json!({"size": {"type": "Weighted"}}),
            "spec.workload.values.size.weighted: must be set for type Weighted, such as weighted: [{bytes: 100, weight: \
             9}, {bytes: 10000, weight: 1}]",
        ),
        (
            json!({"size": {"type": "Range", "range": {"minBytes": 3, "maxBytes": 2}}}),
            "spec.workload.values.size.range.maxBytes: is 2, and must be at least minBytes, which is 3",
        ),
        (
            json!({"content": {"type": "Zero", "compressibilityPercent": 1}}),
            "spec.workload.values.content.compressibilityPercent: is only valid for type Random: remove it, or set type to \
             Random",
        ),
        (
            json!({"ttl": {"min": "2s", "max": "1s"}}),
            "spec.workload.values.ttl.max: 1s: must be at least min, which is 2s",
        ),
        (
            json!({"ttl": {"min": "1500ms", "max": "2s"}}),
            "spec.workload.values.ttl.min: 1500ms: must be in whole seconds",
        ),
        (json!({"ttl": {"min": "0s", "max": "2s"}}), "spec.workload.values.ttl.min: 0s: must be from 1s to 87600h"),
    ];
    for (values, expected) in cases {
        assert_eq!(checked(values).1, [expected]);
    }
}

#[test]
fn times_to_live_are_seconds() {
    let ttl = TtlSpec { min: GoDuration::new("1m"), max: GoDuration::new("24h") };
    assert_eq!(check_ttl(&ttl, &mut Vec::new()), (60, 86_400));
}
