//! The client's count of requests against the server's.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use redisbench_e2e::json::count;
use serde_json::Value;

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
pub fn sent(object: &Value) -> Result<u64> {
    let result = &object["status"]["result"];
    for part in ["/requests", "/warmup"] {
        ensure!(count(result, &format!("{part}/errors"))? == 0, "a server may have counted failed requests: {result}");
    }
    let preload = count(result, "/preload/commands")?;
    Ok(count(result, "/requests/succeeded")? + count(result, "/warmup/succeeded")? + preload)
}
