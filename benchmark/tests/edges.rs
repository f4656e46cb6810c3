//! The edges between the rooms of the workspace: `loadgen -> wire <- benchmark <- operator, cli`, and what the hot path
//! of the load generator must not know.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const WIRE: &str = "redisbench-wire";
const BENCHMARK: &str = "redisbench-benchmark";

/// Which of the workspace's crates a crate may use.
fn allowed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    BTreeMap::from([
        (WIRE, BTreeSet::new()),
        ("redisbench-loadgen", BTreeSet::from([WIRE])),
        (BENCHMARK, BTreeSet::from([WIRE])),
        ("redisbench-operator", BTreeSet::from([BENCHMARK, WIRE])),
        ("kubectl-redisbench", BTreeSet::from([BENCHMARK, WIRE])),
        ("redisbench-e2e", BTreeSet::new()),
    ])
}

/// Crates by whom they may be used directly. `benchmark` knows objects of Kubernetes, and no client.
const RESERVED: [(&str, &[&str]); 5] = [
    ("kube", &["redisbench-operator", "kubectl-redisbench", "redisbench-e2e"]),
    ("k8s-openapi", &["redisbench-operator", "kubectl-redisbench", "redisbench-e2e", BENCHMARK]),
    ("clap", &["redisbench-operator", "kubectl-redisbench", "redisbench-loadgen"]),
    ("prometheus-client", &["redisbench-operator"]),
    ("redis", &["redisbench-loadgen"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The direct dependencies of each crate of the workspace, those of its tests too.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|p| (name(p), p["dependencies"].as_array().unwrap().iter().map(name).collect())).collect()
}

#[test]
fn rooms_use_only_the_rooms_they_may() {
    let allowed = allowed();
    let found = dependencies();
    let rooms: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(rooms, allowed.keys().copied().collect(), "a room was added or taken away: say here what it may use");
    for (room, used) in &found {
        let edges: BTreeSet<&str> = used.iter().map(String::as_str).filter(|name| rooms.contains(name)).collect();
        assert!(edges.is_subset(&allowed[room.as_str()]), "{room} uses {edges:?}");
    }
}

#[test]
fn reserved_crates_stay_in_their_rooms() {
    for (room, used) in dependencies() {
        for (name, rooms) in RESERVED {
            assert!(!used.contains(name) || rooms.contains(&room.as_str()), "{room} uses {name}");
        }
    }
}

/// Source files of a module: `name.rs`, and all in the folder `name`.
fn module(source: &Path, name: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(&source.join(name), &mut files);
    files.extend(Some(source.join(format!("{name}.rs"))).filter(|file| file.exists()));
    files
}

#[test]
fn hot_path_knows_neither_control_nor_tracing() {
    let source = root().join("loadgen/src");
    for name in ["engine", "record", "resp", "workload", "schedule"] {
        let files = module(&source, name);
        assert!(!files.is_empty(), "no module {name} in {}", source.display());
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for word in ["crate::control", "tracing::"] {
                assert!(!text.contains(word), "{} mentions {word}", file.display());
            }
        }
    }
}
