//! Colours and widths on a terminal of 40 columns, which `script` of util-linux makes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::program;

/// Environment variables, an option, and whether there are colours.
type Case = (&'static [(&'static str, &'static str)], &'static str, bool);

/// Output of the program with these arguments and environment variables.
fn on_a_terminal(arguments: &str, environment: &[(&str, &str)]) -> String {
    let command = format!("stty cols 40 rows 10; {} {arguments}", program().display());
    let mut script = Command::new("script");
    // The user's own choice, which some of these make.
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "COLUMNS"] {
        script.env_remove(name);
    }
    let output = script
        .args(["--quiet", "--flush", "--command", &command, "/dev/null"])
        .envs([("TERM", "xterm"), ("SHELL", "/bin/sh")])
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.trim().is_empty(), "{arguments} prints nothing");
    text
}

/// A finished benchmark with five trials of about this rate.
fn finished(rate: u64) -> Value {
    let line = |index: u64| {
        json!({"index": index, "cell": 0, "repeat": index, "state": "Completed", "attempt": 1, "achievedPerSecond": rate + index,
            "requests": {"scheduled": 10, "succeeded": 10, "errors": 0, "unsent": 0}})
    };
    json!({
        "apiVersion": "redisbench.dev/v1alpha1", "kind": "RedisBenchmark", "metadata": {"name": "a"},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
            "load": {"type": "ClosedLoop", "duration": "10s"},
        },
        "status": {"phase": "Succeeded", "trials": (0..5).map(line).collect::<Vec<_>>()},
    })
}

fn saved(directory: &Path, name: &str, rate: u64) -> String {
    let file = directory.join(name);
    fs::write(&file, finished(rate).to_string()).unwrap();
    file.display().to_string()
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let directory = tempfile::tempdir().unwrap();
    let [before, now] =
        [("before.json", 10_000), ("now.json", 5_000)].map(|(name, rate)| saved(directory.path(), name, rate));
    let table = format!("compare {before} {now}");
    let cases: [Case; 6] = [
        (&[], "", true),
        (&[("NO_COLOR", "")], "", true),
        (&[("NO_COLOR", "1")], "", false),
        (&[("TERM", "dumb")], "", false),
        (&[], "--color never", false),
        (&[("NO_COLOR", "1"), ("TERM", "dumb")], "--color always", true),
    ];
    for (environment, option, coloured) in cases {
        // Help, an error, and a table of our own.
        for (arguments, part) in [("local --help", "Usage:"), ("local --frob", "--frob"), (table.as_str(), "Slower")] {
            let text = on_a_terminal(&format!("{option} {arguments}"), environment);
            assert!(text.contains(part), "{part} in\n{text}");
            assert_eq!(text.contains('\x1b'), coloured, "{option} {arguments} with {environment:?}:\n{text}");
        }
    }
}

#[test]
fn help_fits_into_a_narrow_terminal() {
    for command in ["", "local", "compare", "export", "abort"] {
        let text = on_a_terminal(&format!("{command} --help"), &[("NO_COLOR", "1")]);
        assert!(text.contains("Examples:"), "{text}");
        // Usage is one line, and a word is not cut.
        let cut = |line: &&str| !line.starts_with("Usage:") && line.trim().contains(' ');
        for line in text.lines().map(str::trim_end).filter(cut) {
            assert!(line.chars().count() <= 40, "{line:?} in\n{text}");
        }
    }
}
