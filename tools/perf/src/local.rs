//! Runs of `kubectl redisbench local`, as a user makes them.

use std::fmt::Display;
use std::path::Path;

use anyhow::Context as _;
use redisbench_testkit::status::ending;
use serde_json::{Value, json};

use crate::bench::Bench;

/// Lines of a program's output in an error.
const LAST: usize = 6;

/// A manifest that reads a thousand preloaded keys from the server at `port` with this `spec.load`.
pub fn reads(port: u16, load: &Value) -> Value {
    json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "reads"},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": [format!("127.0.0.1:{port}")]}],
            "workload": {
                "operations": [{"name": "get", "command": "GET __key__"}],
                "keys": {"count": 1_000},
                "values": {"size": {"type": "Fixed", "fixed": {"bytes": 100}}},
            },
            "preload": {"mode": "FillMissing"},
            "load": load,
            "measurement": {"probe": false},
        },
    })
}

/// Runs the manifest in `file` on the processors `cpus` for at most `limit` seconds. Returns the finished object.
pub fn run(bench: &Bench, cpus: &str, file: &Path, options: &str, limit: u32) -> anyhow::Result<Value> {
    let line = format!(
        "timeout --foreground --signal=INT --kill-after=30 {limit} kubectl-redisbench local --plain -o json {options} -f"
    );
    let output = bench.command(&line, cpus)?.arg(file).output().with_context(|| format!("failed to run {line}"))?;
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    finished(&stdout, &stderr, output.status).with_context(|| format!("not usable (124 is a timeout of {limit} s)"))
}

/// The object that a run printed, which must have succeeded.
fn finished(stdout: &str, stderr: &str, status: impl Display) -> anyhow::Result<Value> {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST)..].join(" / ");
    let object: Option<Value> = serde_json::from_str(stdout).ok();
    let object = object.with_context(|| format!("{status}, and it printed no result; its last lines: {last}"))?;
    let phase = &object["status"]["phase"];
    anyhow::ensure!(phase == "Succeeded", "{status}, and it ended as {}: {last}", ending(&object["status"]));
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_did_not_succeed_is_an_error_with_its_last_lines() {
        let good = r#"{"status": {"phase": "Succeeded"}}"#;
        assert!(finished(good, "", "exit status: 0").is_ok());
        // An Invalid trial makes the exit code 1, and the comparison leaves it out.
        assert!(finished(good, "", "exit status: 1").is_ok());
        let said =
            |stdout| format!("{:#}", finished(stdout, "first\n\nerror: no port\n", "exit status: 1").unwrap_err());
        assert_eq!(said(""), "exit status: 1, and it printed no result; its last lines: first / error: no port");
        let failed = said(r#"{"status": {"phase": "Failed"}}"#);
        assert!(failed.starts_with("exit status: 1, and it ended as Failed"), "{failed}");
        assert!(failed.ends_with("first / error: no port"), "{failed}");
    }
}
