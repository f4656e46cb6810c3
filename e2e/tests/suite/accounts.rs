//! The client's count of requests against the server's.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use redisbench_e2e::json::count;
use serde_json::Value;

/// Commands that set up, watch and end a benchmark, and are no requests of its workload.
const HOUSEKEEPING: [&str; 11] =
    ["info", "ping", "hello", "auth", "select", "dbsize", "role", "readonly", "command", "quit", "asking"];

/// Calls of the workload's and the preload's commands that a server counted.
pub fn served(calls: &BTreeMap<String, u64>) -> u64 {
    let workload = |command: &&String| !command.contains('|') && !HOUSEKEEPING.contains(&command.as_str());
    calls.iter().filter(|(command, _)| workload(command)).map(|(_, calls)| calls).sum()
}

/// Requests of one benchmark that a server must have counted, of which none may have failed: measured, warm-up and
/// preload, out of the full result.
pub fn sent(full: &Value) -> Result<u64> {
    for part in ["/total", "/warmup"] {
        ensure!(count(full, &format!("{part}/errors"))? == 0, "the servers may have counted failed requests: {full}");
    }
    Ok(count(full, "/total/succeeded")? + count(full, "/warmup/succeeded")? + count(full, "/preloadCommands")?)
}
