//! Input that cannot be used: each message has the place, the field, the value and what to do, on one line and without a trace.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{program, run, run_with};

/// A saved object in this phase.
fn object(phase: &str) -> Value {
    json!({
        "apiVersion": "redisbench.dev/v1alpha1", "kind": "RedisBenchmark", "metadata": {"name": "tiny"},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
            "load": {"type": "ClosedLoop", "duration": "1s"},
        },
        "status": {"phase": phase, "runId": "run", "conditions": [{
            "type": "Failed", "status": if phase == "Failed" { "True" } else { "False" }, "reason": "ConnectFailed",
            "message": "no server at redis:6379", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    })
}

/// A file with this content.
fn saved(content: &str) -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("saved.json");
    fs::write(&file, content).unwrap();
    (directory, file.display().to_string())
}

/// Asserts that `arguments` fail with `code` and one line, which begins with `begin` and has `way_out`.
fn assert_refused(arguments: &[&str], code: i32, begin: &str, way_out: &str) {
    let (exit, stdout, stderr) = run_with(arguments, "", &[("RUST_BACKTRACE", "1")]).finish();
    assert_eq!((exit, stdout.as_str()), (Some(code), ""), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.starts_with(&format!("error: {begin}")), "{arguments:?}: {begin}\n{stderr}");
    assert!(stderr.contains(way_out), "{arguments:?}: {way_out}\n{stderr}");
}

#[test]
fn what_is_no_finished_result_is_not_read() {
    let mut newer = object("Succeeded");
    newer["apiVersion"] = "redisbench.dev/v2".into();
    let foreign = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "redis"}});
    let unfinished = object("Running").to_string();
    let version = "use the version that wrote the file, or a newer one";
    for (content, problem, way_out) in [
        (
            unfinished.clone(),
            "status.phase: is Running, so there is no result yet",
            "wait with kubectl wait --for=condition=Finished --timeout=1h redisbenchmark/tiny",
        ),
        (
            foreign.to_string(),
            "kind: is \"Deployment\", and must be RedisBenchmark",
            "save one object with `local -o json`",
        ),
        (newer.to_string(), "apiVersion: is \"redisbench.dev/v2\"", version),
        (json!({"format": "redisbench.dev/result/v2"}).to_string(), "format: is \"redisbench.dev/result/v2\"", version),
        (object("Hibernating").to_string(), "is not a RedisBenchmark of a supported version: unknown variant", version),
        (unfinished[..unfinished.len() / 2].to_owned(), "is not a complete result: EOF", "copy or download it again"),
        ("a: [1".to_owned(), "is not YAML: ", "line "),
        (String::new(), "is empty", "copy or download it again"),
    ] {
        let (_directory, file) = saved(&content);
        let begin = format!("{file}: {problem}");
        assert_refused(&["report", "-f", &file], 2, &begin, way_out);
        assert_refused(&["export", "-f", &file, "--format", "csv"], 2, &begin, way_out);
        assert_refused(&["compare", &file, &file], 2, &begin, way_out);
    }
}

#[test]
fn a_failed_run_is_reported_but_has_no_numbers() {
    let (_directory, file) = saved(&object("Failed").to_string());
    let begin = "nothing was measured: status.phase is Failed, no server at redis:6379; ";
    assert_refused(&["export", "-f", &file, "--format", "csv"], 2, begin, "fix the cause and run it again");
    assert_refused(
        &["compare", &file, &file],
        1,
        &format!("{file} is Failed: "),
        "run it again, or give another result",
    );
    let (code, page, stderr) = run(&["report", "-f", &file], "");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(page.contains("ConnectFailed: no server at redis:6379"), "{page}");
}

#[test]
fn an_option_of_another_tool_that_does_not_exist_is_named() {
    for (line, problem, way_out) in [
        ("memtier_benchmark --frob", "memtier_benchmark has no option --frob", "; remove it"),
        ("redis-benchmark --trheads 3", "redis-benchmark has no option --trheads", "; did you mean --threads?"),
        ("ycsb run", "must begin with the name of a tool, one of: redis-benchmark, ", "; it begins with \"ycsb\""),
    ] {
        assert_refused(&["init", "--from", line], 2, &format!("--from: {problem}"), way_out);
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for (arguments, code) in [
        (&["--help"][..], 0),
        (&["local", "--help"], 0),
        (&["local", "--frob"], 2),
        (&["completion", "bash"], 0),
        (&["init", "--target", "redis"], 0),
        (&["local", "--target", "redis", "--print-manifest"], 0),
        (&["explain"], 0),
        (&["explain", "ShardLots"], 2),
        (&["validate", "-f", "/does/not/exist"], 2),
    ] {
        let [stdout, stderr] = [&writer, &writer].map(|writer| writer.try_clone().unwrap());
        let status =
            Command::new(program()).args(arguments).stdin(Stdio::null()).stdout(stdout).stderr(stderr).status();
        assert_eq!(status.unwrap().code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(program()).arg("explain").stdout(full).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: failed to write to standard output: No space left on device"), "{stderr}");
}
