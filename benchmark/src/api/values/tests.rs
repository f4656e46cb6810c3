use serde_json::{Value, json};

use super::*;

/// The values of shards.
fn planned(values: Value) -> plan::Values {
    to_plan(&serde_json::from_value(values).unwrap())
}

#[test]
fn sizes_and_contents_are_read() {
    use plan::{ValueContent, ValueSize, WeightedSize};
    let size = |size: Value| planned(json!({"size": size})).size;
    assert_eq!(planned(json!({})), plan::Values::fixed(100));
    assert_eq!(size(json!({"fixed": {"bytes": 7}})), ValueSize::Fixed { bytes: 7 });
    assert_eq!(
        size(json!({"type": "Range", "range": {"minBytes": 1, "maxBytes": 9}})),
        ValueSize::Range { least_bytes: 1, most_bytes: 9 }
    );
    assert_eq!(
        size(json!({"type": "Weighted", "weighted": [{"bytes": 1, "weight": 3}, {"bytes": 9}]})),
        ValueSize::Weighted(vec![WeightedSize { bytes: 1, weight: 3 }, WeightedSize { bytes: 9, weight: 1 }])
    );
    assert_eq!(planned(json!({"content": {"type": "Zero"}})).content, ValueContent::Zero);
    let file = json!({"type": "File", "file": {"configMapRef": {"name": "products", "key": "values.txt"}}});
    assert_eq!(
        planned(json!({"content": file})),
        plan::Values { content: ValueContent::Lines, ..plan::Values::fixed(100) }
    );
    assert_eq!(
        planned(json!({"content": {"compressibilityPercent": 40}})).content,
        ValueContent::Random { compressibility_percent: 40 }
    );
}

#[test]
fn times_to_live_are_seconds() {
    let ttl = TtlSpec { min: GoDuration::new("1m"), max: GoDuration::new("24h") };
    assert_eq!(check_ttl(&ttl, "ttl", &mut Vec::new()), (60, 86_400));
}
