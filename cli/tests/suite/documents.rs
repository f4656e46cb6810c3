//! Runs the commands of the documents that need no cluster, page by page and in order, in a directory with what the pages name: shortened
//! manifests and a result. `e2e/tests/kubernetes/documents.rs` runs those that need one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use redisbench_testkit::documents::root;
use redisbench_testkit::examples::shortened;
use redisbench_testkit::markdown::{self, Runner, commands, runner};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{load_generator, program};

/// In place of a load's own length.
const SHORT: [&str; 4] = ["-n", "400", "--warmup", "0"];

/// A result that pages name, as a directory of `--output-dir` and as a saved object.
fn result(directory: &Path) {
    let arguments = ["--with-redis", "-n", "400", "--warmup", "0", "-c", "4", "--output-dir", "results"];
    let (code, stdout, stderr) = run(directory, &[&["redisbench", "local", "-o", "json"], &arguments[..]].concat());
    assert!([0, 1].contains(&code), "{stderr}");
    fs::write(directory.join("saved.json"), stdout).unwrap();
}

/// The manifests of `examples/`, shortened, the programs, and the manifests that a user of `examples/ci` has.
fn workplace() -> TempDir {
    load_generator();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for folder in ["bin", "benchmark", "examples"] {
        fs::create_dir(at(folder)).unwrap();
    }
    symlink(program(), at("bin/redisbench")).unwrap();
    // kubectl calls its plugin with the words behind the plugin's name.
    fs::write(at("bin/kubectl"), "#!/bin/sh\nshift\nexec redisbench \"$@\"\n").unwrap();
    fs::set_permissions(at("bin/kubectl"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let copy = |from: &str, to: &str| {
        let manifest = shortened(&fs::read_to_string(root().join(from)).unwrap());
        if let Some(manifest) = manifest {
            fs::write(at(to), manifest).unwrap();
        }
    };
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = format!("examples/{}", path.file_name().unwrap().display());
            copy(&name, &name);
        }
    }
    copy("examples/ci/load.yaml", "benchmark/load.yaml");
    copy("examples/compare.yaml", "benchmark/compare.yaml");
    directory
}

/// Runs a program with a password in the environment. Returns its exit code, and its output and errors.
fn run(directory: &Path, words: &[&str]) -> (i32, String, String) {
    let path = format!("{}:{}", directory.join("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new("env")
        .arg(format!("PATH={path}"))
        .args(words)
        .current_dir(directory)
        .env("REDISCLI_AUTH", "correct-horse")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), stdout, stderr)
}

/// Shorter, and on a throwaway server with the password from the environment.
fn of_a_run<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut changed = Vec::new();
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        match word {
            "-n" | "--duration" => drop(rest.next()),
            "--askpass" => {}
            _ => changed.push(word),
        }
    }
    if !words.contains(&"-f") {
        changed.extend(SHORT);
    }
    for missing in [&["--with-redis"][..], &["-o", "json"]] {
        if !words.contains(&missing[0]) {
            changed.extend(missing);
        }
    }
    changed
}

/// Runs one command as it is written, but shorter.
fn type_in(directory: &Path, command: &markdown::Typed) {
    let words = shlex::split(&command.text).unwrap();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let into = words.iter().position(|word| *word == ">").map(|at| words.split_off(at)[1]);
    let is_run = words.contains(&"local") && !words.contains(&"--baseline");
    let words = if is_run { of_a_run(&words) } else { words };
    let written = words.iter().position(|word| *word == "-o").map(|at| directory.join(words[at + 1]));
    if let Some(file) = &written {
        // Pages write alternatives to one file.
        let _ = fs::remove_file(file);
    }
    let (code, stdout, stderr) = run(directory, &words);
    let place = format!("{}, line {}: {words:?}: exit {code}\n{stdout}{stderr}", command.page, command.line);
    if is_run {
        // The verdict and its exit code depend on the machine.
        let object: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error} in {place}"));
        assert_eq!(object["status"]["phase"], "Succeeded", "{place}");
    } else if words[0] == "jq" {
        // The answer too: false is 1, and other codes are errors.
        assert!([0, 1].contains(&code), "{place}");
    } else {
        assert_eq!(code, 0, "{place}");
    }
    if let Some(file) = into {
        fs::write(directory.join(file), stdout).unwrap();
    }
    if let Some(file) = written.filter(|_| !is_run) {
        assert!(fs::metadata(&file).is_ok_and(|file| file.len() > 0), "no {}: {place}", file.display());
    }
}

#[test]
fn commands_that_need_no_cluster_run() {
    let typed: Vec<_> =
        commands().into_iter().filter(|command| runner(&command.text) == Some(Runner::CommandLine)).collect();
    assert!(typed.len() > 20, "only {} commands", typed.len());
    // Pages at once, because most of the time is the wait for starts.
    thread::scope(|scope| {
        for page in typed.chunk_by(|one, next| one.page == next.page) {
            scope.spawn(move || {
                let place = workplace();
                if page.iter().any(|command| ["results/", "saved.json"].iter().any(|file| command.text.contains(file)))
                {
                    result(place.path());
                }
                for command in page {
                    type_in(place.path(), command);
                }
            });
        }
    });
}
