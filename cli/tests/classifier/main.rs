//! The verdict as a classifier: real situations with the built programs and real servers, each with its expected verdict. `make verdict`
//! runs each of them several times and writes docs/evidence/verdict.md. It needs root, for cgroups, networks and a file system, and takes
//! about an hour.
//!
//! Each run is a process of its own. Runs are not repeated, and their own output is no excuse: only the kernel's counters and a thread that
//! sleeps and wakes can show that a situation did not occur ([`watch`]).
//!
//! `make record-evidence` stores each verdict's input in `benchmark/tests/evidence`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests end at the first surprise, and clippy's own exception ends at test functions"
)]

mod bad;
mod clean;
mod cluster;
mod disk;
mod group;
mod limits;
mod matrix;
mod memory;
mod network;
mod persistence;
mod processors;
mod proxy;
mod recording;
mod search;
mod situation;
mod start;
#[path = "../suite/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;
mod table;
mod watch;

use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use redisbench_testkit::network::{Link, inside};

use self::matrix::{Matrix, Run};
use self::recording::{Recording, Recordings};
use self::situation::{EVIDENCE, Situation, go_first};
use self::table::SITUATIONS;

/// The situation for a child process, and the file for its result.
const ONE: &str = "VERDICT_SITUATION";
const TOLD: &str = "VERDICT_TOLD";

#[test]
#[ignore = "takes an hour and the whole machine: make verdict"]
fn every_situation() {
    let setting = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let runs: u32 = setting("RUNS").map_or(10, |runs| runs.parse().expect("RUNS is a number"));
    let only = setting("ONLY").unwrap_or_default();
    let situations: Vec<_> = SITUATIONS.iter().filter(|situation| situation.key.contains(&only)).collect();
    assert!(!situations.is_empty(), "ONLY={only}: no situation has that in its key");
    let recordings = setting("RECORD").map(Recordings::of);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let written = setting("WRITE").map(|path| root.join(path));
    let mut matrix = Matrix::begin();
    // In turns, so that changes of the machine's state affect all situations equally.
    for turn in 1..=runs {
        for situation in &situations {
            let run = made(situation, recordings.as_ref().and_then(|all| all.file(situation, turn)));
            println!("{turn}/{runs} | {} | {run}", situation.key);
            matrix.add(situation, run);
        }
        // After every turn, so that an interrupted run leaves its results.
        if let Some(path) = &written {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, matrix.to_string()).unwrap();
        }
    }
    println!("{matrix}");
    matrix.assert_good();
}

/// Runs a situation once, in a process of its own: priority, cgroups and networks end with it.
fn made(situation: &Situation, recording: Option<Recording>) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let [told, log, evidence] = ["told", "log", "evidence"].map(|name| folder.path().join(name));
    let output = File::create(&log).unwrap();
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "one_situation", "--ignored", "--nocapture"]).env(ONE, situation.key).env(TOLD, &told);
    if let Some(server) = situation.server {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/servers").join(server);
        assert!(programs.join("redis-server").exists(), "{} is not built: make servers", programs.display());
        child.env("PATH", format!("{}:{}", programs.display(), env::var("PATH").unwrap()));
    }
    child.stdout(output.try_clone().unwrap()).stderr(output);
    if recording.is_some() {
        child.env(EVIDENCE, &evidence);
    }
    let good = child.status().unwrap().success();
    match fs::read(&told) {
        Ok(text) if good => {
            let run = Run::of(situation, serde_json::from_slice(&text).unwrap());
            // If the situation did not occur, its recording is no evidence.
            if let Some(recording) = recording.filter(|_| run.is_made() && evidence.exists()) {
                recording.keep(&evidence);
            }
            run
        }
        _ => Run::broken(&fs::read_to_string(&log).unwrap()),
    }
}

#[test]
#[ignore = "what every_situation starts"]
fn one_situation() {
    let Ok(key) = env::var(ONE) else { return };
    let situation = SITUATIONS.iter().find(|situation| situation.key == key).expect("a key of the table");
    let link = |shaped| Link { shaped, megabits: 20, burst_kib: 32 };
    if situation.link.is_some_and(|shaped| !inside("one_situation", link(shaped))) {
        return;
    }
    if situation.first {
        go_first();
    }
    let given = (situation.make)();
    println!("{:#}\n{}", given.finished.object["status"], given.finished.stderr);
    fs::write(env::var(TOLD).unwrap(), serde_json::to_vec(&given.told).unwrap()).unwrap();
}
