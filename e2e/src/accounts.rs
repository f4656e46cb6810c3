//! Compares the client's count of requests with the server's.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::json::count;
use crate::namespace::TestNamespace;
use crate::redis;

/// Commands that prepare, observe and end a benchmark, and are not requests of its workload.
const HOUSEKEEPING: [&str; 13] = [
    "info", "ping", "hello", "auth", "select", "dbsize", "role", "readonly", "command", "quit", "asking", "psync",
    "replconf",
];

/// The server's count of workload and preload commands.
pub fn served(calls: &BTreeMap<String, u64>) -> u64 {
    let workload = |command: &&String| !command.contains('|') && !HOUSEKEEPING.contains(&command.as_str());
    calls.iter().filter(|(command, _)| workload(command)).map(|(_, calls)| calls).sum()
}

/// Requests of one finished benchmark that the servers must have counted: measured, warm-up and preload. None may have
/// failed, because it is unknown whether a server counted it then.
pub fn sent(object: &Value) -> Result<u64> {
    let result = &object["status"]["result"];
    for part in ["/requests", "/warmup"] {
        ensure!(count(result, &format!("{part}/errors"))? == 0, "a server may have counted failed requests: {result}");
    }
    // Missing if nothing is preloaded.
    let preload = result.pointer("/preload/commands").and_then(Value::as_u64).unwrap_or(0);
    Ok(count(result, "/requests/succeeded")? + count(result, "/warmup/succeeded")? + preload)
}

/// Checks that the server behind the Service `redis` counted exactly the requests of these finished benchmarks.
pub async fn check_served(namespace: &TestNamespace, objects: &[&Value]) -> Result<()> {
    let calls = redis::calls(namespace, "deployment/redis").await?;
    let sent = objects.iter().map(|object| sent(object)).sum::<Result<u64>>()?;
    let served = served(&calls);
    ensure!(served == sent, "the server counted {served} requests, the benchmarks {sent}: {calls:?}, {objects:?}");
    Ok(())
}

/// Bounds of the servers' counts for a finished benchmark: at least the successful requests, at most these and every request that may have
/// arrived.
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
