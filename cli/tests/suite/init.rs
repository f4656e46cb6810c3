//! `init`: manifests from flags, from other tools and from questions.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::support::{program, run};

const LINE: &str = "memtier_benchmark -s redis -a bob:hunter2 -t 2 -c 25 --test-time 60 --hide-histogram";

#[test]
fn what_is_translated_is_a_valid_manifest() {
    let (code, manifest, stderr) = run(&["init", "--from", LINE, "--name", "moved", "--shards", "2"], "");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!manifest.contains("hunter2") && !stderr.contains("hunter2"), "{manifest}\n{stderr}");
    for line in [
        "# No counterpart of --hide-histogram: ",
        "# Needs the Secret redis-auth.",
        "    connections: 50\n",
        "  name: moved\n",
    ] {
        assert!(manifest.contains(line), "{line} in\n{manifest}");
    }
    assert!(
        stderr.contains("No counterpart of --hide-histogram") && stderr.contains("Needs the Secret redis-auth"),
        "{stderr}"
    );
    let (code, stdout, stderr) = run(&["validate", "-f", "-"], &manifest);
    assert_eq!((code, stdout.as_str()), (Some(0), "standard input: RedisBenchmark moved is valid\n"), "{stderr}");
    let (code, stdout, stderr) = run(&["init", "--from", "memtier_benchmark --frob"], "");
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert_eq!(stderr, "error: --from: memtier_benchmark has no option --frob; remove it\n");
}

#[test]
fn a_file_is_replaced_on_request_only() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    let path = file.to_str().unwrap();
    let init = |rate: &str, more: &[&str]| {
        run(&[&["init", "--target", "redis", "--rate", rate, "-o", path], more].concat(), "")
    };
    let (code, stdout, stderr) = init("100", &[]);
    assert_eq!((code, stdout.as_str()), (Some(0), ""), "{stderr}");
    assert!(stderr.contains(&format!("run it with: kubectl redisbench local -f {path}")), "{stderr}");
    let first = std::fs::read_to_string(&file).unwrap();
    let (code, _, stderr) = init("200", &[]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("exists: add --force"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first);
    assert_eq!(init("200", &["--force"]).0, Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first.replace("rate: 100", "rate: 200"));
}

#[test]
fn questions_take_a_terminal() {
    let (code, stdout, stderr) = run(&["init"], "");
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(
        stderr.contains("takes a terminal") && stderr.contains("--target") && stderr.contains("--from"),
        "{stderr}"
    );
}

/// A terminal whose user takes each default with Return.
#[test]
fn answers_on_a_terminal_make_a_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.yaml");
    let command = format!("{} init -o {}", program().display(), file.display());
    let mut terminal = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = terminal.stdin.take().unwrap();
    let screen = BufReader::new(terminal.stdout.take().unwrap());
    // More than there are questions; the terminal drops the rest.
    keyboard.write_all(&[b'\r'; 20]).unwrap();
    let lines: Vec<String> =
        screen.split(b'\n').map(|line| String::from_utf8_lossy(&line.unwrap()).into_owned()).collect();
    assert!(terminal.wait().unwrap().success(), "{lines:?}");
    let manifest = std::fs::read_to_string(&file).unwrap();
    for line in
        ["    endpoints: [\"127.0.0.1:6379\"]\n", "      rate: 5000\n", "    connections: 50\n", "    duration: 1m\n"]
    {
        assert!(manifest.contains(line), "{line} in\n{manifest}");
    }
    assert_eq!(run(&["validate", "-f", file.to_str().unwrap()], "").0, Some(0));
}
