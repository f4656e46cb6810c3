use serde_json::json;

use crate::sample::{assert_problems, object, problems};

#[test]
fn what_can_be_judged_is_accepted() {
    for threshold in [
        json!({"name": "p99", "metric": "ResponseTime", "quantile": "0.99", "max": "2ms", "operation": "get"}),
        json!({"name": "max", "metric": "ServiceTime", "quantile": "1", "max": "1s", "eachNode": true, "window": "2s"}),
        json!({"name": "errors", "metric": "ErrorRate", "maxBasisPoints": 0, "abortOnFail": true}),
        json!({"name": "rate", "metric": "Throughput", "minPerSecond": 1_000_000}),
    ] {
        assert_eq!(problems(object(), &json!({"thresholds": [threshold]})), [""; 0], "{threshold}");
    }
}

#[test]
fn what_contradicts_itself_is_refused_with_the_way_out() {
    assert_problems(problems, &object(), include_str!("cases.txt"));
}
