//! The client's count of requests against the server's.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::json::count;

/// Commands that set up, watch and end a benchmark, and are no requests of its workload.
const HOUSEKEEPING: [&str; 13] = [
    "info", "ping", "hello", "auth", "select", "dbsize", "role", "readonly", "command", "quit", "asking", "psync",
    "replconf",
];

/// Calls of the workload's and the preload's commands that a server counted.
pub fn served(calls: &BTreeMap<String, u64>) -> u64 {
    let workload = |command: &&String| !command.contains('|') && !HOUSEKEEPING.contains(&command.as_str());
    calls.iter().filter(|(command, _)| workload(command)).map(|(_, calls)| calls).sum()
}

/// Requests of one finished benchmark, none of which may have failed, that the servers must have counted: measured,
/// warm-up and preload.
///
/// # Errors
/// If a request failed, so that nobody knows whether a server counted it.
pub fn sent(object: &Value) -> Result<u64> {
    let result = &object["status"]["result"];
    for part in ["/requests", "/warmup"] {
        ensure!(count(result, &format!("{part}/errors"))? == 0, "a server may have counted failed requests: {result}");
    }
    // Left out where nothing is preloaded.
    let preload = result.pointer("/preload/commands").and_then(Value::as_u64).unwrap_or(0);
    Ok(count(result, "/requests/succeeded")? + count(result, "/warmup/succeeded")? + preload)
}

/// What the servers may have counted of a finished benchmark: at least what succeeded, at most that and every request
/// of which nobody knows whether it arrived.
///
/// # Errors
/// If there is no result.
pub fn bounds(object: &Value) -> Result<RangeInclusive<u64>> {
    let result = &object["status"]["result"];
    let optional = |pointer: &str| result.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let mut least = count(result, "/requests/succeeded")? + optional("/preload/commands");
    least += optional("/warmup/succeeded");
    let open = |part: &str| ["errors", "inFlight", "unknown"].map(|kind| optional(&format!("/{part}/{kind}")));
    let most = least + open("requests").iter().chain(&open("warmup")).sum::<u64>();
    Ok(least..=most)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_knows_widens_the_bounds() {
        let requests = json!({"scheduled": 10, "succeeded": 7, "errors": 1, "unsent": 1, "unknown": 1});
        let object = json!({"status": {"result": {"requests": requests, "preload": {"commands": 5}}}});
        assert_eq!(bounds(&object).unwrap(), 12..=14);
    }
}
