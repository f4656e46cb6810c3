//! Invalid manifests and wrong usage: exit code 2.

use std::path::Path;
use std::process::Command;

use crate::support::{program, run, run_with};

pub const GOOD: &str = "
apiVersion: redisbench.dev/v1alpha1
kind: RedisBenchmark
metadata: {name: tiny}
spec:
  targets: [{name: redis, type: Standalone, endpoints: ['redis:6379']}]
  workload: {operations: [{name: get, command: GET __key__}]}
  load: {type: ClosedLoop, duration: 1s}
";

fn validate(manifest: &str) -> (Option<i32>, String, String) {
    run(&["validate", "-f", "-"], manifest)
}

#[test]
fn good_manifest_passes() {
    let (code, stdout, stderr) = validate(GOOD);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(stdout, "standard input: RedisBenchmark tiny is valid\n");
}

#[test]
fn a_unix_socket_is_for_local_runs_only() {
    let manifest = GOOD.replace("redis:6379", "unix:/run/redis.sock");
    let (code, stdout, stderr) = validate(&manifest);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let why = "spec.targets[0].endpoints: unix:/run/redis.sock: a UNIX socket is local to one machine";
    assert!(stdout.contains(&format!("is valid, but for `local` only: {why}")), "{stdout}");
    // Refused without contacting a cluster.
    let (code, _, stderr) = run(&["run", "-f", "-"], &manifest);
    assert!(code == Some(2) && stderr.contains(why), "{code:?} {stderr}");
}

#[test]
fn every_example_with_a_benchmark_is_valid() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut seen = 0;
    for example in std::fs::read_dir(examples).unwrap() {
        let path = example.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") || path.ends_with("redis.yaml") {
            continue;
        }
        let (code, _, stderr) = run(&["validate", "-f", path.to_str().unwrap()], "");
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 9, "only {seen} examples");
}

#[test]
fn each_problem_has_its_line_with_file_and_field() {
    let bad = GOOD
        .replace("command: GET", "weight: 0, command: GET")
        .replace("duration: 1s", "duration: 1s, connections: 2, speed: 9")
        .replace("metadata: {name: tiny}", "metadata: {name: tiny}\nspce: {}");
    let (code, stdout, stderr) = validate(&bad);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(lines.iter().all(|line| line.starts_with("standard input: ")), "{stderr}");
    for field in ["spce: ", "spec.workload.operations[0].weight: ", "spec.load.speed: "] {
        assert!(lines.iter().any(|line| line.contains(&format!("standard input: {field}"))), "{field} in\n{stderr}");
    }
}

#[test]
fn one_bad_file_among_good_ones_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let [good, bad] = ["good.yaml", "bad.yaml"].map(|name| directory.path().join(name));
    std::fs::write(&good, GOOD).unwrap();
    std::fs::write(&bad, GOOD.replace("duration: 1s", "duration: 1s, connections: 0")).unwrap();
    let (code, stdout, stderr) = run(&["validate", "-f", good.to_str().unwrap(), "-f", bad.to_str().unwrap()], "");
    assert_eq!(code, Some(2));
    assert!(stdout.starts_with(good.to_str().unwrap()), "{stdout}");
    assert!(stderr.starts_with(&format!("{}: spec.load.connections: ", bad.display())), "{stderr}");
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_starts() {
    let (code, stdout, stderr) = run(
        &["local", "-f", "-", "--with-redis", "--shards", "4"],
        &GOOD.replace("duration: 1s", "duration: 1s, connections: 3"),
    );
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("spec.load.connections"), "{stderr}");
    // The option allows what the field allows.
    let (code, _, stderr) = run(&["local", "-f", "-", "--with-redis", "--shards", "5001"], GOOD);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("spec.shards.count: 5001: "), "{stderr}");
    let (code, _, stderr) = run(&["local", "-f", "-"], &GOOD.replace("spec:", "spec:\n  suspend: true"));
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("standard input: spec.suspend: true: "), "{stderr}");
    let with_auth = GOOD.replace("'redis:6379']", "'redis:6379'], auth: {secretRef: {name: login}}");
    let (code, _, stderr) = run(&["local", "-f", "-", "--with-redis"], &with_auth);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("spec.targets[0].auth.secretRef.name: ") && stderr.contains("--secret login=DIR"),
        "{stderr}"
    );
}

#[test]
fn missing_files_and_wrong_arguments() {
    let (code, _, stderr) = run(&["validate", "-f", "/does/not/exist.yaml"], "");
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("/does/not/exist.yaml: cannot be read: "), "{stderr}");
    for arguments in [&["local"][..], &["validate"], &["frob"], &[], &["local", "-f", "-", "--shards", "0"]] {
        assert_eq!(run(arguments, "").0, Some(2), "{arguments:?}");
    }
    let (_, _, stderr) = run(&["local"], "");
    assert!(stderr.starts_with("error: no target: give one with --target HOST:PORT"), "{stderr}");
    for command in [&["export", "--format", "csv"][..], &["report"]] {
        let (code, _, stderr) = run(command, "");
        assert!(code == Some(2) && stderr.contains("<NAME|--file <FILE>>"), "{stderr}");
    }
    let (code, stdout, _) = run(&["--version"], "");
    assert_eq!((code, stdout.as_str()), (Some(0), concat!("kubectl-redisbench ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn words_of_a_status_are_explained() {
    let (code, stdout, _) = run(&["explain", "shardlost"], "");
    assert_eq!(code, Some(0));
    assert!(stdout.contains("ShardLost (reason of a verdict)") && stdout.contains("fix the cause"), "{stdout}");
    let (code, _, stderr) = run(&["explain", "ShardLots"], "");
    assert_eq!((code, stderr.contains("did you mean ShardLost?")), (Some(2), true), "{stderr}");
}

#[test]
fn a_file_that_is_no_result_is_not_compared() {
    let (code, _, stderr) = run(&["compare", "/does/not/exist.json", "/does/not/exist.json"], "");
    assert_eq!((code, stderr.lines().count()), (Some(2), 1), "{stderr}");
    assert!(stderr.starts_with("error: /does/not/exist.json: cannot be read: "), "{stderr}");
}

#[test]
fn a_cluster_that_is_not_there_is_an_error_without_a_trace() {
    let nowhere = [("KUBECONFIG", "/does/not/exist"), ("HOME", "/does/not/exist")];
    for arguments in [&["list"][..], &["status", "a"], &["watch", "a"], &["abort", "a", "--yes"], &["logs", "a"]] {
        let (code, _, stderr) = run_with(arguments, "", &nowhere).finish();
        assert_eq!((code, stderr.lines().count()), (Some(1), 1), "{stderr}");
    }
    let (code, stdout, _) = run_with(&["version"], "", &nowhere).finish();
    assert_eq!(code, Some(0));
    assert!(
        stdout.starts_with(concat!("client    ", env!("CARGO_PKG_VERSION"))) && stdout.contains("operator  unknown: "),
        "{stdout}"
    );
}

#[test]
fn a_load_generator_that_is_not_there_is_named() {
    let (code, _, stderr) = run(&["local", "-f", "-", "--loadgen", "/does/not/exist"], GOOD);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("/does/not/exist"), "{stderr}");
}

#[test]
fn the_program_is_useful_under_its_own_name() {
    let directory = tempfile::tempdir().unwrap();
    let alone = directory.path().join("redisbench");
    std::os::unix::fs::symlink(program(), &alone).unwrap();
    let output = |arguments: &[&str]| {
        let output = Command::new(&alone).args(arguments).output().unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), stdout + &stderr)
    };
    for arguments in
        [&["--help"][..], &["local", "--help"], &["local", "--frob"], &["init", "--from", "redis-benchmark -t get"]]
    {
        let (_, text) = output(arguments);
        assert!(text.contains("redisbench") && !text.contains("kubectl redisbench"), "{text}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let (code, script) = output(&["completion", shell]);
        assert!(code == Some(0) && script.contains("print-manifest"), "{shell}: {script}");
    }
}

#[test]
fn kubectl_completes_the_plugin() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("kubectl_complete-redisbench");
    let path = format!("{}:{}", program().parent().unwrap().display(), std::env::var("PATH").unwrap());
    for (words, completed) in [
        (&["val"][..], &["validate", ":0"][..]),
        (&["local", "--print"], &["--print-manifest", ":0"]),
        (&["local", "--color", "al"], &["always", ":0"]),
        (&["local", "--frob"], &[":0"]),
    ] {
        let output = Command::new(&script).args(words).env("PATH", &path).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        assert_eq!(lines.lines().collect::<Vec<_>>(), completed, "{words:?}");
    }
}

#[test]
fn colours_are_for_terminals_unless_chosen() {
    let has_colours = |arguments: &[&str]| run(arguments, "").1.contains('\x1b');
    assert!(!has_colours(&["local", "--help"]));
    assert!(has_colours(&["local", "--help", "--color", "always"]));
    assert!(!has_colours(&["local", "--color=never", "--help"]));
}
