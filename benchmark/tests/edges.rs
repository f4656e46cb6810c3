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
        // Starts the programs, and reads their output. Two of its own programs are the bare engine.
        ("redisbench-perf", BTreeSet::from(["redisbench-loadgen", STATISTICS, WIRE, TESTKIT])),
        // Everything except the command line, around a simulated world.
        (
            "redisbench-simulate",
            BTreeSet::from(["redisbench-operator", "redisbench-loadgen", BENCHMARK, WIRE, TESTKIT]),
        ),
        // Starts the operator, and serves the control side of many shards.
        ("redisbench-scale", BTreeSet::from(["redisbench-loadgen", BENCHMARK, WIRE, TESTKIT])),
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

/// The crates of the workspace, as cargo describes them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn name(value: &Value) -> String {
    value["name"].as_str().unwrap().to_owned()
}

/// The direct dependencies of each crate of the workspace, including those of its tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let of = |package: &Value| package["dependencies"].as_array().unwrap().iter().map(name).collect();
    packages().iter().map(|package| (name(package), of(package))).collect()
}

/// Rust sources below `folder`, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of_tests = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().ends_with("tests");
    let entries = entries.filter(|path| !of_tests(path));
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// `text` without its comments, and without the items that only tests have.
fn code(text: &str) -> String {
    fn indent(line: &str) -> usize {
        line.len() - line.trim_start().len()
    }
    let mut code = String::new();
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            // Skips to the first line that is indented like it and can end an item.
            lines.find(|end| indent(end) == indent(line) && end.ends_with([';', '}', ',']));
        } else {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// The names after each `crate::` in the code without its tests: one name, or those of a group.
fn imported(text: &str) -> BTreeSet<String> {
    let code = code(text).lines().map(str::trim).collect::<Vec<_>>().join(" ");
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

/// Crates whose modules import each other in no circle, in any of their folders.
const WITHOUT_CIRCLES: [&str; 13] = [
    "wire",
    "statistics",
    "loadgen",
    "clients",
    "testkit",
    "benchmark",
    "operator",
    "cli",
    "e2e",
    "tools/soak",
    "tools/perf",
    "tools/scale",
    "tools/simulate",
];

/// The modules that are in a circle or import from one, of modules with the names that each imports.
fn circle(mut imports: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    // Takes away the ground floor, which imports none of the others; the next floor is then the ground.
    while let Some(ground) = imports.iter().find_map(|(name, imported)| {
        imported.iter().all(|other| other == name || !imports.contains_key(other)).then(|| name.clone())
    }) {
        imports.remove(&ground);
    }
    imports.into_keys().collect()
}

/// The path of a module below its crate, or of a name.
type Names = Vec<String>;

/// Modules of a crate, each with its code.
type Modules = BTreeMap<Names, String>;

fn below(module: &[String], name: &str) -> Names {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

fn modules(source: &Path) -> Modules {
    let mut modules = Modules::new();
    for file in sources(source).into_iter().filter(|file| file.extension().is_some_and(|end| end == "rs")) {
        let path = file.strip_prefix(source).unwrap().with_extension("");
        let mut name: Names = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if name.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
            name.pop();
        }
        modules.entry(name).or_default().push_str(&code(&std::fs::read_to_string(&file).unwrap()));
    }
    modules
}

/// Words, `::`, and other characters one by one.
fn tokens(code: &str) -> Vec<&str> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (mut tokens, mut rest) = (Vec::new(), code.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_of_word(first) => rest.find(|letter: char| !is_of_word(letter)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// True if the word `use` at this place begins a re-export.
fn re_exports(tokens: &[&str], at: usize) -> bool {
    tokens[at] == "use" && at > 0 && ["pub", ")"].contains(&tokens[at - 1])
}

/// A path in the code, and the name that it gets if it is re-exported.
struct Named {
    path: Names,
    exported: Option<String>,
}

/// All paths, those of a group one by one.
fn paths(tokens: &[&str]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_first = at == 0 || tokens[at - 1] != "::";
        if is_first && tokens.get(at + 1) == Some(&"::") {
            let exported = at > 0 && re_exports(tokens, at - 1);
            at = add_paths(tokens, at, Vec::new(), exported, &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// Adds the path at this place, which continues `path`. Returns the place behind it.
fn add_paths(tokens: &[&str], mut at: usize, mut path: Names, exported: bool, found: &mut Vec<Named>) -> usize {
    loop {
        match tokens.get(at) {
            Some(&"{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    let is_between = tokens[at] == ",";
                    at = if is_between { at + 1 } else { add_paths(tokens, at, path.clone(), exported, found) };
                }
                return at + 1;
            }
            Some(&"self") | None => {}
            Some(name) => path.push((*name).to_owned()),
        }
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    let renamed = tokens.get(at) == Some(&"as") && exported;
    let name = if renamed { tokens.get(at + 1).map(|name| (*name).to_owned()) } else { path.last().cloned() };
    found.push(Named { path, exported: name.filter(|_| exported) });
    if renamed { at + 2 } else { at }
}

/// Words other than those of re-exports and of declared modules.
fn used<'a>(tokens: &[&'a str]) -> BTreeSet<&'a str> {
    let mut within = false;
    let mut used = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        within = re_exports(tokens, at) || (within && *token != ";");
        if !within && (at == 0 || tokens[at - 1] != "mod") {
            used.insert(*token);
        }
    }
    used
}

/// The module that defines what `path` names in the module `from`; none outside of the crate. `exports` are the re-exports of modules from
/// modules below them.
fn defines(modules: &Modules, exports: &BTreeMap<Names, Names>, from: &[String], path: &[String]) -> Option<Names> {
    let (first, mut rest) = path.split_first()?;
    let mut module = match first.as_str() {
        "crate" => Names::new(),
        "super" => from.split_last()?.1.to_vec(),
        child => Some(below(from, child)).filter(|child| modules.contains_key(child))?,
    };
    while let Some((name, after)) = rest.split_first() {
        let child = below(&module, name);
        if name == "super" {
            module.pop();
        } else if modules.contains_key(&child) {
            module = child;
        } else if let Some(path) = exports.get(&child) {
            return defines(modules, exports, &[], path);
        } else {
            break;
        }
        rest = after;
    }
    Some(module)
}

/// The folders with a circle of imports between the modules in them, a folder within being one module. `.` is the module of the folder
/// itself. It may re-export from the others, and is in a circle with one only if it also uses it.
fn circles(modules: &Modules) -> Vec<String> {
    let read: BTreeMap<&Names, (Vec<Named>, BTreeSet<&str>)> = modules
        .iter()
        .map(|(module, code)| {
            let tokens = tokens(code);
            (module, (paths(&tokens), used(&tokens)))
        })
        .collect();
    let mut exports = BTreeMap::new();
    for (module, (paths, _)) in &read {
        for Named { path, exported } in paths {
            let child = path.first().is_some_and(|first| modules.contains_key(&below(module, first)));
            if let Some(name) = exported.as_ref().filter(|_| child) {
                let whole = ["crate"].map(str::to_owned).iter().chain(*module).chain(path).cloned().collect::<Names>();
                exports.insert(below(module, name), whole);
            }
        }
    }
    let mut folders: BTreeMap<&[String], BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, (paths, used)) in &read {
        for Named { path, exported } in paths {
            let Some(target) = defines(modules, &exports, module, path).filter(|target| target != *module) else {
                continue;
            };
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            let only_exported = exported.as_ref().is_some_and(|name| !used.contains(name.as_str()));
            if common == module.len() && only_exported {
                continue;
            }
            let [from, to] = [*module, &target].map(|path| path.get(common).map_or(".", String::as_str).to_owned());
            let folder = folders.entry(&module[..common]).or_default();
            folder.entry(to.clone()).or_default();
            folder.entry(from).or_default().insert(to);
        }
    }
    let circles = folders.into_iter().map(|(folder, imports)| (folder.join("/"), circle(imports)));
    circles
        .filter(|(_, left)| !left.is_empty())
        .map(|(folder, left)| format!("{folder}: {}", left.join(", ")))
        .collect()
}

#[test]
fn modules_import_each_other_in_no_circle() {
    for room in WITHOUT_CIRCLES {
        let modules = modules(&root().join(room).join("src"));
        assert!(modules.len() > 1, "{room} has no modules");
        assert_eq!(circles(&modules), [""; 0], "{room}: circles");
    }
}

#[test]
fn circles_are_found() {
    let circles = |files: &[(&str, &str)]| {
        let module = |path: &str| path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Names>();
        circles(&files.iter().map(|&(path, text)| (module(path), code(text))).collect::<Modules>())
    };
    // Siblings, by any kind of path.
    assert_eq!(circles(&[("a", "use super::b::{C, d::E};"), ("b", "fn f() -> u8 { crate::a::G }")]), [": a, b"]);
    assert_eq!(circles(&[("a", "use super::{b, c};"), ("b", "use crate::{c::D, a::E};"), ("c", "")]), [": a, b"]);
    // A folder is one module for its siblings, and has modules of its own.
    assert_eq!(circles(&[("a", "mod x;"), ("a/x", "use crate::b::C;"), ("b", "use super::a::x::Y;")]), [": a, b"]);
    assert_eq!(circles(&[("a", ""), ("a/x", "use super::y::Z;"), ("a/y", "use crate::a::x::W;")]), ["a: x, y"]);
    // A module and those below it.
    assert_eq!(circles(&[("a", "mod x; use x::Y;"), ("a/x", "use super::Z;")]), ["a: ., x"]);
    assert_eq!(circles(&[("a", "mod x; fn f() { x::g() }"), ("a/x", "use super::Z;")]), ["a: ., x"]);
    assert_eq!(circles(&[("a", "mod x; pub use x::Y; fn f() -> Y {}"), ("a/x", "use super::Z;")]), ["a: ., x"]);
    assert_eq!(circles(&[("a", "mod x; pub(crate) use x::{V, Y};"), ("a/x", "use super::Z;")]), [""; 0]);
    // Names that a module re-exports are those of the modules below it.
    let files = [("a", "pub use x::X; pub use y::Y as Z;"), ("a/x", "use super::Z;"), ("a/y", "use super::X;")];
    assert_eq!(circles(&files), ["a: x, y"]);
    // Comments and tests do not import.
    let tested = "// See super::a.\n#[cfg(test)]\nuse super::a::A;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n";
    assert_eq!(circles(&[("a", "use super::b::B;"), ("b", tested)]), [""; 0]);
    let imports = format!("{tested}use super::a::A;");
    assert_eq!(circles(&[("a", "use super::b::B;"), ("b", imports.as_str())]), [": a, b"]);
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

/// The Makefile and what it includes, each command in one line.
fn makefiles() -> String {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap().replace("\\\n", " ");
    read("Makefile") + &read("e2e/cluster/cluster.mk")
}

/// The cargo commands of the Makefile, as words, up to `--`.
fn compiling_commands() -> BTreeSet<Vec<String>> {
    let mut text = makefiles();
    // Last first, because later variables use earlier ones.
    let variables: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once(" := "))
        .map(|(name, value)| (format!("$({name})"), value.to_owned()))
        .collect();
    for (name, value) in variables.iter().rev() {
        text = text.replace(name, value);
    }
    let compiles = |rest: &&str| ["build ", "test "].iter().any(|command| rest.starts_with(command));
    let words = |rest: &str| {
        let own = rest.lines().next().unwrap_or_default().split(" -- ").next().unwrap_or_default();
        let own = own.split(';').next().unwrap_or_default();
        own.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect()
    };
    text.split("cargo ").skip(1).filter(compiles).map(words).collect()
}

/// The third-party units that `command` would compile, with their features.
fn units(command: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(command)
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

/// Clippy sets `mir-opt-level=0` for its lints.
#[test]
fn clippy_compiles_no_optimised_program() {
    let text = makefiles();
    for command in ["cargo build --release", "cargo build --profile", "cargo install"] {
        assert!(!text.contains(command), "the Makefile must use $(PLAIN) in `{command}`");
    }
    assert!(text.matches("$(PLAIN) build --release").count() > 5);
}

/// The Makefile names the programs whose unit tests it runs, so it must not miss one.
#[test]
fn the_makefile_runs_the_unit_tests_of_every_program() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let unit = makefile.lines().find_map(|line| line.strip_prefix("UNIT := --lib ")).unwrap();
    let named: BTreeSet<String> = unit.split_whitespace().filter(|word| *word != "--bin").map(str::to_owned).collect();
    let is_tested = |target: &&Value| target["kind"][0] == "bin" && target["test"] == true;
    let packages = packages();
    let programs = packages.iter().flat_map(|package| package["targets"].as_array().unwrap());
    let tested: BTreeSet<String> = programs.filter(is_tested).map(name).collect();
    assert_eq!(named, tested);
}
