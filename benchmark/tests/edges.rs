//! Checks the edges between the crates of the workspace, `loadgen -> wire <- benchmark <- operator, cli`, and the features that the
//! commands of the Makefile compile with.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const WIRE: &str = "redisbench-wire";
/// Pure functions of numbers.
const STATISTICS: &str = "redisbench-statistics";
const BENCHMARK: &str = "redisbench-benchmark";
/// Only for tests and tools, like any external crate that only these use.
const TESTKIT: &str = "redisbench-testkit";

/// The crates of the workspace that each crate may use.
fn allowed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    BTreeMap::from([
        (TESTKIT, BTreeSet::new()),
        (WIRE, BTreeSet::from([TESTKIT])),
        (STATISTICS, BTreeSet::new()),
        ("redisbench-loadgen", BTreeSet::from([WIRE, TESTKIT])),
        // A shard with other drivers.
        ("redisbench-clients", BTreeSet::from(["redisbench-loadgen", WIRE, TESTKIT])),
        (BENCHMARK, BTreeSet::from([WIRE, STATISTICS, TESTKIT])),
        ("redisbench-operator", BTreeSet::from([BENCHMARK, WIRE, TESTKIT])),
        ("kubectl-redisbench", BTreeSet::from([BENCHMARK, WIRE, TESTKIT])),
        ("redisbench-e2e", BTreeSet::from([TESTKIT])),
        // Starts the programs, and reads histograms in their wire format.
        ("redisbench-soak", BTreeSet::from([WIRE, TESTKIT])),
        // Starts the programs, and reads their output.
        ("redisbench-perf", BTreeSet::from([STATISTICS, TESTKIT])),
        // Everything except the command line, around a simulated world.
        (
            "redisbench-simulate",
            BTreeSet::from(["redisbench-operator", "redisbench-loadgen", BENCHMARK, WIRE, TESTKIT]),
        ),
        // Starts the operator, and serves the control side of many shards.
        ("redisbench-scale", BTreeSet::from(["redisbench-loadgen", BENCHMARK, WIRE])),
    ])
}

/// External crates, and the crates that may use them directly. `benchmark` uses objects of Kubernetes, but no client.
const RESERVED: [(&str, &[&str]); 8] = [
    (
        "kube",
        &["redisbench-operator", "kubectl-redisbench", "redisbench-e2e", "redisbench-simulate", "redisbench-scale"],
    ),
    (
        "k8s-openapi",
        &[
            "redisbench-operator",
            "kubectl-redisbench",
            "redisbench-e2e",
            "redisbench-simulate",
            "redisbench-scale",
            BENCHMARK,
        ],
    ),
    (
        "clap",
        &[
            "redisbench-operator",
            "kubectl-redisbench",
            "redisbench-loadgen",
            "redisbench-clients",
            "redisbench-simulate",
            "redisbench-soak",
            "redisbench-perf",
            "redisbench-scale",
        ],
    ),
    ("parquet", &["kubectl-redisbench"]),
    ("maud", &["kubectl-redisbench"]),
    ("plotters", &["kubectl-redisbench"]),
    ("prometheus-client", &["redisbench-operator"]),
    (
        "redis",
        &[
            "redisbench-loadgen",
            "redisbench-clients",
            "kubectl-redisbench",
            TESTKIT,
            "redisbench-soak",
            "redisbench-perf",
        ],
    ),
];

/// The layers of `benchmark`, each a module of its library. A layer imports only from those before it.
const LAYERS: [&str; 10] =
    ["quantile", "human", "credential", "api", "plan", "measurement", "verdict", "evidence", "conductor", "report"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The direct dependencies of each crate of the workspace, including those of its tests.
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

/// Rust sources below `folder`, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of_tests = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().ends_with("tests");
    let entries = entries.filter(|path| !of_tests(path));
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The names after each `crate::` in the code before its tests: one name, or those of a group.
fn imported(code: &str) -> BTreeSet<String> {
    let code = code.split("#[cfg(test)]").next().unwrap();
    let lines: Vec<&str> = code.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
    let code = lines.join(" ");
    let mut names = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let group = after.strip_prefix('{').and_then(|group| group.split('}').next());
        let parts: Vec<&str> =
            group.map_or_else(|| vec![after], |group| group.trim_end_matches([',', ' ']).split(',').collect());
        let name = |part: &str| -> String {
            part.trim().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
        };
        names.extend(parts.into_iter().map(name));
    }
    names
}

#[test]
fn a_layer_imports_only_from_those_before_it() {
    let source = root().join("benchmark/src");
    for (place, layer) in LAYERS.iter().enumerate() {
        let (file, folder) = (source.join(layer).with_extension("rs"), source.join(layer));
        let mut files = if folder.exists() { sources(&folder) } else { Vec::new() };
        files.extend(file.exists().then_some(file));
        assert!(!files.is_empty(), "{layer} is no module");
        for file in files {
            let imported = imported(&std::fs::read_to_string(&file).unwrap());
            let above: Vec<&str> =
                LAYERS[place + 1..].iter().copied().filter(|layer| imported.contains(*layer)).collect();
            assert!(above.is_empty(), "{} is of the layer {layer} and imports {above:?}", file.display());
        }
    }
    assert_eq!(imported("use crate::{\n    api,\n    plan::Plan,\n};"), ["api", "plan"].map(str::to_owned).into());
    let modules = std::fs::read_to_string(source.join("lib.rs")).unwrap();
    let declared = modules.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    assert_eq!(declared.collect::<BTreeSet<_>>(), LAYERS.into_iter().collect(), "every module is a layer");
}

/// Folders whose modules import each other in no circle. Not `tools/simulate`: its world holds the processes that act in it.
const WITHOUT_CIRCLES: [&str; 12] = [
    "statistics",
    "wire",
    "testkit",
    "benchmark",
    "loadgen",
    "clients",
    "operator",
    "cli",
    "e2e",
    "tools/perf",
    "tools/soak",
    "tools/scale",
];

#[test]
fn modules_import_each_other_in_no_circle() {
    for room in WITHOUT_CIRCLES {
        let entries = std::fs::read_dir(root().join(room).join("src")).unwrap().map(|entry| entry.unwrap().path());
        let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for path in entries {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let files = if path.is_dir() { sources(&path) } else { vec![path] };
            let imports = files.iter().flat_map(|file| imported(&std::fs::read_to_string(file).unwrap()));
            modules.entry(name).or_default().extend(imports);
        }
        // What imports none of the others is the ground floor; without it, the next floor is.
        while let Some(ground) = modules.iter().find_map(|(name, imports)| {
            imports.iter().all(|other| other == name || !modules.contains_key(other)).then(|| name.clone())
        }) {
            modules.remove(&ground);
        }
        assert!(modules.is_empty(), "{room}: a circle among {:?}", modules.keys());
    }
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

/// The cargo commands of the Makefile, as words, up to `--`.
fn compiling_commands() -> BTreeSet<Vec<String>> {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap().replace("\\\n", " ");
    let mut text = read("Makefile") + &read("e2e/cluster/cluster.mk");
    // Last first, because later variables use earlier ones.
    let variables: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once(" := "))
        .map(|(name, value)| (format!("$({name})"), value.to_owned()))
        .collect();
    for (name, value) in variables.iter().rev() {
        text = text.replace(name, value);
    }
    let compiles = |rest: &&str| ["build ", "test ", "clippy "].iter().any(|command| rest.starts_with(command));
    let words = |rest: &str| {
        let own = rest.lines().next().unwrap_or_default().split(" -- ").next().unwrap_or_default();
        let own = own.split(';').next().unwrap_or_default();
        own.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect()
    };
    text.split("cargo ").skip(1).filter(compiles).map(words).collect()
}

/// The third-party units that `command` would compile, with their features.
fn units(command: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    // Clippy compiles the same units as `check`.
    let command = command.iter().map(|word| if word == "clippy" { "check" } else { word });
    let output = Command::new(env!("CARGO"))
        .args(command.clone())
        .args(["--unit-graph", "-Zunstable-options", "--offline"])
        // A stable cargo prints its unit graph only with this. It compiles nothing.
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let graph: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut units: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for unit in graph["units"].as_array().unwrap() {
        // Our own crates are compiled again only if one of these is.
        if unit["pkg_id"].as_str().unwrap().starts_with("path+") {
            continue;
        }
        let profile = &unit["profile"];
        // Tests share their dependencies with the profile that theirs inherits.
        let name = if profile["name"] == "test" { "dev" } else { profile["name"].as_str().unwrap() };
        let kind = ["pkg_id", "target", "mode", "platform"].map(|part| unit[part].to_string()).join(" ");
        let kind = format!("{name} {} {kind}", profile["opt_level"]);
        units.entry(kind).or_default().insert(unit["features"].to_string());
    }
    units
}

#[test]
fn commands_of_the_makefile_resolve_the_same_features() {
    let commands = compiling_commands();
    assert!(commands.len() > 10, "the Makefile's commands were not found: {commands:?}");
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // One command may compile a crate twice: for a macro and for a program.
    let mut most: BTreeMap<String, usize> = BTreeMap::new();
    for command in &commands {
        for (unit, features) in units(command) {
            let most = most.entry(unit.clone()).or_default();
            *most = features.len().max(*most);
            all.entry(unit).or_default().extend(features);
        }
    }
    for (unit, features) in &all {
        assert!(
            features.len() <= most[unit],
            "commands of the Makefile compile this with different features; select the same packages: {unit}\n{features:#?}"
        );
    }
}
