//! Reads the status of a benchmark as its user does: as JSON. Checks the sums that hold in every result.

use std::iter::once;

use serde_json::Value;

/// Every scheduled request has one of these outcomes.
pub const OUTCOMES: [&str; 5] = ["succeeded", "errors", "unsent", "inFlight", "unknown"];

/// A count; 0 if it is missing.
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// The elements of a list; none if it is missing.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[][..], Vec::as_slice)
}

/// The reason of condition Failed; empty unless it is true.
pub fn failed(status: &Value) -> &str {
    let is_failed = |condition: &&Value| condition["type"] == "Failed" && condition["status"] == "True";
    list(&status["conditions"]).iter().find(is_failed).and_then(|failed| failed["reason"].as_str()).unwrap_or_default()
}

/// The end of a benchmark in a line of a summary: its phase, the reason of a failure, and its verdict.
pub fn ending(status: &Value) -> String {
    let text = |value: &'static str| status.pointer(value).and_then(Value::as_str).unwrap_or_default();
    let mut parts = vec![text("/phase"), failed(status), text("/verdict/value")];
    parts.dedup();
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// The sums of requests that do not hold in a result: over the outcomes, in total and in each of `parts`, which are "shards" or
/// "operations", and over each of these lists.
pub fn imbalances(result: &Value, parts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let all = parts.iter().flat_map(|part| list(&result[*part]).iter().map(move |one| (*part, one)));
    for (part, whole) in once(("total", result)).chain(all) {
        let requests = &whole["requests"];
        let outcomes: u64 = OUTCOMES.iter().map(|outcome| number(&requests[*outcome])).sum();
        let unanswered = number(&requests["unanswered"]);
        if number(&requests["scheduled"]) != outcomes || unanswered > number(&requests["errors"]) {
            found.push(format!("{part} does not add up: {requests}"));
        }
    }
    let lost = list(&result["shards"]).iter().any(|shard| shard["state"] == "Lost");
    for part in parts {
        for field in ["scheduled", "redirectHops", "unanswered"].into_iter().chain(OUTCOMES) {
            let sum: u64 = list(&result[*part]).iter().map(|part| number(&part["requests"][field])).sum();
            let total = number(&result["requests"][field]);
            // The last snapshot of a lost shard has no breakdown by operation.
            if sum != total && !(lost && *part == "operations" && sum < total) {
                found.push(format!("{field} is {total}, but the sum of the {part} is {sum}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_ending_is_phase_reason_and_verdict() {
        let condition = |status: &str| json!({"type": "Failed", "status": status, "reason": "ShardLost"});
        let status = |failed: &str| json!({"phase": "Failed", "conditions": [condition(failed)], "verdict": {"value": "Invalid"}});
        assert_eq!(ending(&status("True")), "Failed ShardLost Invalid");
        assert_eq!(ending(&status("False")), "Failed Invalid");
        assert_eq!(ending(&Value::Null), "");
    }

    #[test]
    fn sums_that_do_not_hold_are_found() {
        let half = json!({"scheduled": 500, "succeeded": 490, "errors": 10, "unanswered": 10});
        let whole = json!({"scheduled": 1_000, "succeeded": 980, "errors": 20, "unanswered": 20});
        let shard = json!({"requests": half});
        let result = json!({"requests": whole, "shards": [shard, shard], "operations": [{"requests": whole}]});
        let found = |path: &str, value: Value| {
            let mut result = result.clone();
            *result.pointer_mut(path).unwrap() = value;
            imbalances(&result, &["shards", "operations"]).join("\n")
        };
        assert_eq!(imbalances(&result, &["shards", "operations"]), [""; 0]);
        assert!(found("/requests/succeeded", json!(979)).contains("total does not add up"));
        assert!(found("/requests/unanswered", json!(21)).contains("total does not add up"));
        assert!(found("/shards/1/requests/succeeded", json!(400)).contains("shards does not add up"));
        assert!(found("/operations/0/requests/scheduled", json!(900)).contains("the sum of the operations is 900"));
        assert!(found("/shards/0", json!({"state": "Lost"})).contains("the sum of the shards is 500"));
        let lost = json!({"state": "Lost", "requests": whole});
        assert_eq!(found("/shards", json!([lost])), "");
        let mut less = result.clone();
        (less["shards"], less["operations"][0]["requests"]) = (json!([lost]), half);
        assert_eq!(imbalances(&less, &["shards", "operations"]), [""; 0], "a lost shard has no operations");
    }
}
