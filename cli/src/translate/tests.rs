use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::*;
use crate::manifest::{Manifest, written};
use tables::{Meaning, Part, Row};

fn draft(line: &str) -> Draft {
    translate(line, "a").unwrap_or_else(|problem| panic!("{line}: {problem}"))
}

fn manifest(line: &str) -> Manifest {
    draft(line).manifest(Vec::new()).unwrap_or_else(|problems| panic!("{line}: {problems:?}"))
}

fn spec(line: &str) -> Value {
    manifest(line).document["spec"].clone()
}

fn problem(line: &str) -> String {
    translate(line, "a").unwrap_err().to_string()
}

fn rows(tool: &Tool) -> impl Iterator<Item = &'static Row> {
    tool.tables.iter().copied().flatten()
}

/// Options that the option of `row` needs beside it: in both lines, and only in that with the option.
fn company(row: &Row) -> (&'static str, &'static str) {
    match row.meaning {
        Meaning::Part(Part::User) => ("", "-a x"),
        Meaning::Part(Part::Certificate) => ("", "--key client.key"),
        Meaning::Part(Part::Key) => ("", "--cert client.pem"),
        Meaning::Part(Part::CommandRatio | Part::CommandPattern) => ("--command 'SET __key__ __data__'", ""),
        Meaning::Part(Part::KeyDeviation | Part::KeyMedian) => ("--key-pattern G:G", ""),
        Meaning::Part(Part::ZipfExponent) => ("--key-pattern Z:Z", ""),
        _ => ("", ""),
    }
}

#[test]
fn every_option_is_translated_or_named() {
    for Translator { tool, .. } in &TRANSLATORS {
        let base = if tool.gnu { "--key-maximum 9000" } else { "-t get" };
        for row in rows(tool) {
            for name in row.names {
                let (both, with) = company(row);
                let value = row.value.map(|value| format!(" '{value}'")).unwrap_or_default();
                let without = format!("{} {base} {both}", tool.name);
                let line = format!("{without} {name}{value} {with}");
                let (without, drafted) = (draft(&without), draft(&line));
                let named = drafted.remarks.iter().any(|remark| remark.contains(*name));
                let changed = drafted.spec() != without.spec();
                match row.meaning {
                    Meaning::Without(_) => assert!(named && !changed, "{line}"),
                    _ => assert!(named || changed, "{line}: {}", drafted.spec()),
                }
                manifest(&line);
                let text = written::write(&manifest(&line), &drafted.instructions(), true);
                assert!(!text.contains("hunter2"), "{line}: {text}");
            }
        }
    }
}

#[test]
fn names_are_in_one_row_and_in_the_documents() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/coming-from.md")).unwrap();
    for Translator { tool, .. } in &TRANSLATORS {
        let (_, chapter) = text.split_once(&format!("\n## {}\n", tool.name)).unwrap();
        let chapter = chapter.split("\n## ").next().unwrap();
        for row in rows(tool) {
            for name in row.names {
                assert_eq!(rows(tool).filter(|row| row.names.contains(name)).count(), 1, "{} {name}", tool.name);
            }
            let documented = row.names.iter().any(|name| chapter.contains(&format!("`{name}`")));
            assert!(documented, "docs/coming-from.md has no row for {} {:?}", tool.name, row.names);
        }
        // The document has every option that the tools' own help lists.
        let cells = chapter.lines().filter(|line| line.starts_with("| ")).filter_map(|line| line.split(" | ").next());
        for option in cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).filter(|word| word.starts_with('-')) {
            assert!(rows(tool).any(|row| row.names.contains(&option)), "{} {option} is not translated", tool.name);
        }
    }
}

#[test]
fn every_option_of_the_installed_redis_benchmark_is_known() {
    let help = Command::new("redis-benchmark").arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let options: Vec<&str> =
        help.lines().filter(|line| line.starts_with(" -")).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(options.len() > 25, "{help}");
    for option in options {
        assert!(rows(&TRANSLATORS[0].tool).any(|row| row.names.contains(&option)), "{option}");
    }
}

#[test]
fn redis_benchmark() {
    let spec = spec("/usr/bin/redis-benchmark -h redis -p 7000 -t set,get -n 5000 -r 1000 -P 16 -c 20 --csv");
    assert_eq!(spec["targets"][0]["endpoints"], json!(["redis:7000"]));
    assert_eq!(
        spec["load"],
        json!({"type": "ClosedLoop", "connections": 20, "pipeline": 16, "pipelineMode": "Batch", "requests": 5000, "warmup": "0s"})
    );
    assert_eq!(
        spec["workload"],
        json!({"preset": ["set", "get"], "keys": {"count": 1000}, "values": {"size": {"fixed": {"bytes": 3}}}})
    );
    // Without options: all tests, with its own defaults.
    let plain = manifest("redis-benchmark").document["spec"].clone();
    assert_eq!((&plain["load"]["requests"], &plain["workload"]["keys"]["count"]), (&json!(100_000), &json!(1)));
    assert!(plain["workload"]["preset"].as_array().is_some_and(|tests| tests.len() > 15), "{plain}");
}

#[test]
fn commands_of_redis_benchmark() {
    let workload = |line: &str| spec(line)["workload"].clone();
    let eval = workload(r#"redis-benchmark -r 10000 -n 10000 eval 'return redis.call("ping")' 0"#);
    assert_eq!(eval["operations"][0]["command"], r#"eval "return redis.call(\"ping\")" 0"#);
    let push = workload("redis-benchmark -r 10000 lpush mylist __rand_int__");
    assert_eq!(push["operations"][0]["command"], "lpush mylist __integer:000000000000:000000009999__");
    let set = workload("redis-benchmark --cluster -r 100 set x:{tag}:__rand_int__ __rand_int__");
    assert_eq!(set["operations"][0]["command"], "set __key__ __integer:000000000000:000000000099__");
    assert_eq!(set["keys"], json!({"count": 100, "prefix": "x::", "width": 12}));
    let sequence = workload("valkey-benchmark -r 9 -n 900 3 get a:__rand_int__ ';' del b:__rand_int__");
    assert_eq!(sequence["mix"], "Ratio");
    assert_eq!(sequence["operations"][0]["weight"], 3);
    assert_eq!(sequence["operations"][1]["keys"], json!({"prefix": "b:"}));
    // A sequence counts as one for -P.
    assert_eq!(spec("valkey-benchmark -P 2 -r 9 3 get a:__rand_int__ ';' del b")["load"]["pipeline"], 8);
}

#[test]
fn valkey_benchmark() {
    let spec = spec("valkey-benchmark --cluster --rfr yes --rps 900 --duration 30 --warmup 4 --seed 42 -t get");
    assert_eq!(spec["load"], json!({"type": "OpenLoop", "openLoop": {"rate": 900}, "duration": "30s", "warmup": "4s"}));
    assert_eq!(
        (&spec["targets"][0]["cluster"]["readFrom"], &spec["workload"]["seed"]),
        (&json!("Replica"), &json!(42))
    );
    let drafted = draft("valkey-benchmark -t get,mget --rfr no");
    assert_eq!(drafted.spec()["workload"]["preset"], json!(["get"]));
    assert!(drafted.remarks.iter().any(|remark| remark.contains("the test mget")), "{:?}", drafted.remarks);
}

#[test]
fn memtier_benchmark() {
    // Aiven's document.
    let spec = spec(
        "memtier_benchmark -a 'bob:hunter2' -s redis -p 6380 --tls --tls-skip-verify -t 4 -n 10000 --ratio 1:1 -c 25 -x 10 -d 100 \
         --key-pattern S:S",
    );
    let target = &spec["targets"][0];
    assert_eq!(target["auth"]["secretRef"], json!({"name": "redis-auth", "usernameKey": "username"}));
    assert_eq!(target["tls"], json!({"insecureSkipVerify": true}));
    assert_eq!((&spec["load"]["connections"], &spec["load"]["requestsPerConnection"]), (&json!(100), &json!(10_000)));
    assert_eq!((&spec["repeats"]["count"], &spec["workload"]["mix"]), (&json!(10), &json!("Ratio")));
    assert_eq!(spec["workload"]["keys"]["pattern"], json!({"type": "Sequential", "perConnection": true}));
    assert_eq!(spec["workload"]["values"]["size"]["fixed"]["bytes"], 100);
}

#[test]
fn spellings_of_memtier_benchmark() {
    let spec = spec("memtier_benchmark --server=redis -c7 -t1 --test-time=5 --rate-lim 10 --key-max=99");
    assert_eq!(spec["targets"][0]["endpoints"], json!(["redis:6379"]));
    assert_eq!(spec["load"]["openLoop"]["rate"], 70);
    assert_eq!(spec["workload"]["keys"]["count"], 100);
    assert!(problem("memtier_benchmark --key-m 3").contains("--key-m of memtier_benchmark is ambiguous"));
    let steps = manifest("memtier_benchmark -t 2 -c 50 --clients-start 10 --clients-step 20 --step-duration 15");
    let spec = &steps.document["spec"];
    assert_eq!(spec["sweep"], json!([{"field": "load.connections", "values": [20, 60, 100]}]));
    assert_eq!(spec["load"]["duration"], "15s");
}

#[test]
fn commands_of_memtier_benchmark() {
    let spec = spec(
        "memtier_benchmark --command='HSET __key__ f __data__' --command-ratio=3 --command='HGET __key__ f' --command-key-pattern=Z \
         --key-zipf-exp=0.9 -n allkeys --key-maximum 99",
    );
    assert_eq!(
        spec["workload"]["operations"],
        json!([
            {"name": "hset", "weight": 3, "command": "HSET __key__ f __data__"},
            {"name": "hget", "weight": 1, "command": "HGET __key__ f", "keys": {
                "pattern": {"type": "Zipf", "zipf": {"exponent": "0.9", "hotKeys": "First"}},
            }},
        ])
    );
    let load = |line: &str| self::spec(line)["load"].clone();
    // Each client sends as many requests as there are keys, unless they divide the keys.
    assert_eq!(spec["load"]["requestsPerConnection"], 100);
    assert_eq!(load("memtier_benchmark -n allkeys --key-maximum 99")["requestsPerConnection"], 100);
    let fill = self::spec("memtier_benchmark -n allkeys --key-maximum 99 --key-pattern P:P --ratio 1:0");
    assert_eq!(
        (&fill["load"]["requests"], &fill["workload"]["keys"]["pattern"]["type"]),
        (&json!(100), &json!("Partitioned"))
    );
    let mixed = self::spec("memtier_benchmark --key-pattern P:P");
    assert_eq!(mixed["workload"]["keys"]["pattern"], json!({"type": "Partitioned", "perConnection": true}));
    // Where keys or the schedule select the connection, or keys are too few, connections cannot walk on their own.
    for elsewhere in ["--key-maximum 99", "--cluster-mode", "--rate-limiting 100", "--data-verify --key-maximum 999"] {
        let mixed = self::spec(&format!("memtier_benchmark --key-pattern P:P {elsewhere}"));
        assert_eq!(mixed["workload"]["keys"]["pattern"], json!({"type": "Sequential"}), "{elsewhere}");
    }
}

#[test]
fn transactions_are_of_one_operation() {
    for line in [
        "valkey-benchmark -P 4 -- multi ';' set a:__rand_int__ __data__ ';' incr b ';' exec",
        "memtier_benchmark --transaction --pipeline 4 --command MULTI --command 'SET __key__ __data__' --command 'INCR b' \
         --command EXEC",
    ] {
        let spec = spec(line);
        assert_eq!(
            (&spec["workload"]["transaction"], &spec["load"]["pipeline"]),
            (&json!({"size": 2}), &json!(4)),
            "{line}"
        );
        let names = spec["workload"]["operations"].as_array().unwrap().iter().map(|operation| &operation["name"]);
        assert_eq!(names.collect::<Vec<_>>(), ["set", "incr"], "{line}");
        let remarks = draft(line).remarks;
        assert!(remarks.iter().any(|remark| remark.contains("MULTI, EXEC and WATCH")), "{remarks:?}");
    }
    let spec = spec("valkey-benchmark --cluster multi ';' set {tag}:__rand_int__ 1 ';' exec");
    assert_eq!(spec["workload"]["transaction"], json!({"size": 1, "keys": "Shared"}));
}

#[test]
fn what_a_cluster_does_not_allow_is_named() {
    for (line, remark, field, value) in [
        ("valkey-benchmark -t get --cluster -P 8", "batches of -P", "load/pipelineMode", Value::Null),
        ("valkey-benchmark -t get --rps 900 -P 8", "batches of -P", "load/pipeline", json!(8)),
        (
            "memtier_benchmark --cluster-mode --ratio 0:1 --multi-key-get 3",
            "--multi-key-get",
            "workload/operations/0/command",
            json!("GET __key__"),
        ),
        (
            "memtier_benchmark --cluster-mode --read-preference nearest",
            "nearest",
            "targets/0/cluster/readFrom",
            json!("PreferReplica"),
        ),
    ] {
        let drafted = draft(line);
        assert!(drafted.remarks.iter().any(|text| text.contains(remark)), "{line}: {:?}", drafted.remarks);
        assert_eq!(
            manifest(line).document["spec"].pointer(&format!("/{field}")).cloned().unwrap_or_default(),
            value,
            "{line}"
        );
    }
}

#[test]
fn mistakes_name_the_option_and_the_tool() {
    assert_eq!(problem("redis-benchmark --frob 3"), "--from: redis-benchmark has no option --frob; remove it");
    assert_eq!(problem("redis-benchmark --rps 3"), "--from: redis-benchmark has no option --rps; remove it");
    assert_eq!(problem("memtier_benchmark --frob"), "--from: memtier_benchmark has no option --frob; remove it");
    assert_eq!(
        problem("redis-benchmark --trheads 3"),
        "--from: redis-benchmark has no option --trheads; did you mean --threads? If not, remove it"
    );
    assert_eq!(problem("redis-benchmark -c"), "--from: -c of redis-benchmark needs a value");
    assert_eq!(problem("redis-benchmark -c many"), "--from: -c of redis-benchmark must be a number, not \"many\"");
    assert_eq!(problem("memtier_benchmark --tls=yes"), "--from: --tls of memtier_benchmark takes no value");
    assert!(problem("memtier_benchmark --ratio 3").contains("--ratio of memtier_benchmark must be SET:GET"));
    assert!(problem("memtier_benchmark -P memcache_text").contains("must be redis, resp2 or resp3"));
    let tool = problem("ycsb -h a");
    assert!(tool.starts_with("--from: must begin with the name of a tool, one of: redis-benchmark, "), "{tool}");
    assert!(tool.ends_with("; it begins with \"ycsb\""), "{tool}");
    assert!(problem("redis-benchmark 'a").contains("quote"));
    assert!(problem("").contains("name of a tool"));
}
