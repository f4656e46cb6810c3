//! Runs the manifests of `examples/` with `--with-redis`: shortened, and unchanged.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redisbench_testkit::examples::shortened;
use serde_json::{Value, json};

use crate::drivers::small;
use crate::seeds::RUN_HERE;
use crate::support::{Run, list, load_generator, program};

/// Runs in parallel. Each mostly waits for its start.
const AT_ONCE: usize = 8;

/// The longest run of an unchanged example.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Examples that take more than ten minutes, and why. They only run shortened.
const TOO_LONG: [(&str, &str); 5] = [
    ("proxy-cost.yaml", "60 trials of 12 s"),
    ("redis-client-table.yaml", "six searches of up to 16 steps of 12 s"),
    ("redishappy.yaml", "210 trials"),
    ("search-cells.yaml", "three searches of up to 18 steps of 12 s"),
    ("sweep.yaml", "27 trials of 23 s"),
];

/// The drivers that examples name, for which the small one stands in.
const DRIVERS: [&str; 2] = ["go-redis", "redis-py"];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// All manifests below `directory`.
fn manifests(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            manifests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
}

/// Returns whether the verdict allows the use of the result.
fn is_trusted(status: &Value) -> bool {
    ["Valid", "Degraded"].iter().any(|value| status["verdict"]["value"] == *value)
}

/// Runs a shortened example. Returns the problem, if any.
fn run(path: &Path, manifest: &str) -> Option<String> {
    let drivers = DRIVERS.map(|name| small(name, ""));
    let arguments = drivers.iter().flat_map(|driver| ["--driver", driver.as_str()]).chain(["--with-redis"]);
    let finished = Run::local(manifest, &arguments.collect::<Vec<_>>()).finish();
    let status = &finished.object["status"];
    (status["phase"] != "Succeeded" || !is_trusted(status))
        .then(|| format!("{}: {:#}\n{}", path.display(), status, finished.stderr))
}

/// Runs an example as it is, and prints its outcome in a line. Returns the problem, if any.
fn run_unchanged(path: &Path) -> Option<String> {
    let began = Instant::now();
    // In the foreground, so that Ctrl-C reaches the program too.
    let output = Command::new("timeout")
        .args(["--foreground", "--signal", "INT", "--kill-after", "60", &LONGEST.as_secs().to_string()])
        .arg(program())
        .args(["local", "-o", "json", "--with-redis"])
        .args(DRIVERS.iter().flat_map(|name| ["--driver".to_owned(), small(name, "")]))
        .arg("-f")
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let object: Value = serde_json::from_str(&stdout).unwrap_or_default();
    let (status, code) = (&object["status"], output.status.code());
    let reasons = list(&status["verdict"]["reasons"]).iter().filter_map(|reason| reason["reason"].as_str());
    println!(
        "{} | {} s | exit {} | {} {} | {}",
        path.strip_prefix(examples()).unwrap_or(path).display(),
        began.elapsed().as_secs(),
        code.unwrap_or(-1),
        status["phase"].as_str().unwrap_or("no phase"),
        status["verdict"]["value"].as_str().unwrap_or("no verdict"),
        reasons.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    );
    // A search may end at the load generator, or below its range.
    let codes: &[i32] = if object["spec"]["search"].is_object() { &[0, 1, 4] } else { &[0] };
    let is_good =
        status["phase"] == "Succeeded" && is_trusted(status) && code.is_some_and(|code| codes.contains(&code));
    (!is_good).then(|| format!("{}: exit {code:?}: {status:#}\n{stderr}", path.display()))
}

#[test]
fn every_example_finishes_with_a_result_that_can_be_trusted() {
    let mut paths = Vec::new();
    manifests(&examples(), &mut paths);
    let examples = paths.into_iter().filter_map(|path| Some((shortened(&fs::read_to_string(&path).unwrap())?, path)));
    let mut examples: Vec<_> = examples.collect();
    assert!(examples.len() > 30, "{examples:?}");
    // Long ones start first.
    examples.sort_by_key(|(manifest, _)| {
        !["comparison", "search", "warmupEnds"].iter().any(|long| manifest.contains(long))
    });
    let next = AtomicUsize::new(0);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let example = || examples.get(next.fetch_add(1, Relaxed));
            std::iter::from_fn(example).filter_map(|(manifest, path)| run(path, manifest)).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The examples that `every_example_runs_unchanged` runs: all except `TOO_LONG`, and those that `seeds.rs` runs with servers of its own.
fn run_unchanged_here() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    manifests(&examples(), &mut paths);
    paths.retain(|path| fs::read_to_string(path).unwrap().contains("\nkind: RedisBenchmark\n"));
    paths.sort();
    let seeds = examples().join("seeds");
    for name in RUN_HERE {
        assert!(paths.contains(&seeds.join(name)), "seeds.rs runs {name}, which is no benchmark of examples/seeds");
    }
    for (name, _) in TOO_LONG {
        let count = paths.iter().filter(|path| path.ends_with(name)).count();
        assert_eq!(count, 1, "TOO_LONG has {name}, which {count} benchmarks are called");
    }
    let is_run_elsewhere = |path: &PathBuf| RUN_HERE.iter().any(|name| *path == seeds.join(name));
    let is_too_long = |path: &PathBuf| TOO_LONG.iter().any(|(name, _)| path.ends_with(name));
    paths.retain(|path| !is_run_elsewhere(path) && !is_too_long(path));
    paths
}

/// No example is in two of the lists, and each of the folder is in one.
#[test]
fn every_example_has_a_test_or_is_too_long() {
    let mut all = Vec::new();
    manifests(&examples().join("seeds"), &mut all);
    let here = run_unchanged_here();
    for path in all {
        let name = path.file_name().unwrap().to_str().unwrap();
        let places = [here.contains(&path), RUN_HERE.contains(&name), TOO_LONG.iter().any(|(long, _)| *long == name)];
        assert_eq!(places.iter().filter(|place| **place).count(), 1, "{name}: {places:?}");
    }
}

/// One after the other, because each has the machine to itself. `seeds.rs` runs the others of `examples/seeds`.
#[test]
#[ignore = "takes two hours and an otherwise idle machine: make test-examples"]
fn every_example_runs_unchanged() {
    load_generator();
    let paths = run_unchanged_here();
    assert!(paths.len() > 40, "{paths:?}");
    for (name, why) in TOO_LONG {
        println!("{name} | skipped: {why}");
    }
    let wrong: Vec<String> = paths.iter().filter_map(|path| run_unchanged(path)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The required servers are started and reported on one line, and requests find the keys there.
#[test]
fn replicas_sentinels_and_tls_are_started() {
    let example = |name: &str| {
        let path = examples().join(name);
        let finished = Run::local(&shortened(&fs::read_to_string(path).unwrap()).unwrap(), &["--with-redis"]).finish();
        assert_eq!(finished.result()["requests"]["errors"], 0, "{}", finished.stderr);
        finished
    };
    let waited = example("seeds/redis-benchmark-go.yaml");
    assert_eq!(waited.result()["requests"]["underReplicated"].as_u64().unwrap_or(0), 0, "{:#}", waited.result());
    assert!(waited.stderr.contains("a throwaway redis-server with a replica at 127.0.0.1:"), "{}", waited.stderr);
    let watched = example("sentinel.yaml");
    assert!(watched.stderr.contains("behind three sentinels at 127.0.0.1:"), "{}", watched.stderr);
    assert_eq!(watched.object["spec"]["targets"][0]["type"], "Sentinel");
    let secured = example("tls.yaml");
    assert!(secured.stderr.contains("with TLS from a throwaway CA"), "{}", secured.stderr);
    assert_eq!(secured.object["spec"]["targets"][0]["tls"]["minimumVersion"], "TLS13");
}

/// Combines users of the servers, other users of the sentinels, and client certificates.
#[test]
fn sentinels_and_servers_have_their_own_users_and_certificates() {
    let secret = |name: &str, password: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"username": "bench", "password": password}})
    };
    let auth = |name: &str| json!({"secretRef": {"name": name, "usernameKey": "username"}});
    let tls = json!({"serverName": "redis.example", "clientCertificateSecretRef": {"name": "not-there"}});
    let benchmark = json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "all"},
        "spec": {
            "targets": [{
                "name": "redis",
                "type": "Sentinel",
                "endpoints": ["sentinel:26379"],
                "database": 20,
                "auth": auth("servers"),
                "tls": tls,
                "sentinel": {"masterName": "main", "auth": auth("sentinels"), "transport": {"type": "Plain"}},
            }],
            "workload": {
                "operations": [{"name": "set", "command": "SET __key__ __data__"}],
                "wait": {"replicas": 2, "timeout": "10s"},
            },
            "load": {"type": "ClosedLoop", "connections": 2, "requests": 50, "warmup": "0s", "timeouts": {"request": "30s"}},
        },
    });
    let documents = [secret("servers", "a b\"c"), secret("sentinels", "own"), benchmark];
    let finished =
        Run::local(&documents.map(|document| document.to_string()).join("\n---\n"), &["--with-redis"]).finish();
    let status = finished.succeeded();
    assert_eq!(finished.result()["requests"]["succeeded"], 50, "{status:#}");
    assert_eq!(finished.result()["requests"]["underReplicated"].as_u64().unwrap_or(0), 0, "{status:#}");
    let said = "a throwaway redis-server with 2 replicas, behind three sentinels, with TLS from a throwaway CA, at";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
}
