//! The manifests of `examples/seeds` against the documents that they repeat. Each number of a manifest is that of its document, or a line
//! below `What differs` of its header has both, such as `1,000 for 10,000`.

use std::collections::BTreeSet;
use std::fs;

use redisbench_benchmark::{api, human, plan};
use redisbench_testkit::documents::{read, root};
use serde::Deserialize as _;
use serde_json::Value;

/// Command lines of the documents.
const COMMANDS: [&str; 15] = [
    "./run.sh --cluster -c 10000 -n 10000000 -P 15 -h redis-cluster-1 -p 30001 -a bar no-pipeline",
    "./run.sh --cluster -c 10000 -n 10000000 -P 15 -h redis-cluster-1 -p 30001 -a bar pipeline",
    "./run.sh --cluster -c 10000 -n 10000000 -P 15 -h redis-cluster-1 -p 30001 -a bar --replicas pipeline",
    "./run.sh -h redis-main -p 6379 -a bar -n 10000000 -P 15 -c 10000 no-pipeline",
    "USE_REDIS_RS=1 ./run.sh -h redis-main -p 6379 -a bar -n 10000000 -P 15 -c 10000",
    "./run.sh -h redis-main -p 6379 -a bar -n 10000000 -P 15 -c 10000 pipeline",
    "for i in 6379 6380; do docker run --name redis-$i -p $i:$i -d redis --port $i --bind 0.0.0.0; done",
    "redis-benchmark-go -r 1000 -n 100000 --rps 10000 hset __key__ f1 __data__",
    "redis-benchmark-go -p 6379 -r 39000000 -n 500000 -wait-replicas 1 -wait-replicas-timeout-ms 500 --rps 5000 SET __key__ \
     __data__",
    "redis-benchmark-go -p 20000 --debug 1 hset __key__ f1 __data__",
    "redis-benchmark-go -p 20000 --debug 1 -l hset __key__ f1 __data__",
    "./redis-benchmark-go -rueidis -csc -n 2 -r 1 -c 1 -p 6379 GET key",
    "./redis-benchmark-go -p 6379 -rueidis -r 10000 -csc -cmd \"SET __key__ __data__\" -cmd-ratio 0.05 -cmd \"GET __key__\" \
     -cmd-ratio 0.95 --json-out-file results.json",
    "memtier_benchmark -a 'USERNAME:PASSWORD' -s 'HOST' -p 'PORT' --tls --tls-skip-verify -t 4 -n 10000 --ratio 1:1 -c 25 -x 10 \
     -d 100 --key-pattern S:S",
    "redis-benchmark -h <endpoint> -q -t set,get,incr,lpush,lpop,sadd,spop -c 100 -P <num>",
];

/// A manifest, and the values of its document: a JSON pointer below `spec`, and the value as YAML, or `~` where the document has none.
type Seed = (&'static str, &'static [(&'static str, &'static str)]);

const SEEDS: [Seed; 22] = [
    (
        "fred",
        &[
            ("/workload/operations/0/command", "INCR __key__"),
            ("/workload/keys/count", "10000"),
            ("/verify/mode", "Replies"),
            ("/load/closedLoop/concurrency", "10000"),
            // 15 clients with a connection to each of three primaries.
            ("/load/connections", "45"),
            ("/load/pipeline", "~"),
            ("/load/requests", "10000000"),
            ("/load/warmup", "~"),
        ],
    ),
    (
        "fred-no-pipeline",
        &[
            ("/workload/operations/0/command", "INCR __key__"),
            ("/workload/keys/count", "10000"),
            ("/load/closedLoop/concurrency", "10000"),
            ("/load/connections", "15"),
            ("/load/pipeline", "~"),
            ("/load/clients/0/runtime/threads", "32"),
            ("/load/clients/1/pool/sharing", "Exclusive"),
            ("/load/clients/1/runtime/threads", "32"),
            ("/load/requests", "10000000"),
            ("/load/timeouts/request", "~"),
            ("/load/warmup", "~"),
            ("/repeats/count", "1"),
        ],
    ),
    (
        "fred-replicas",
        &[
            ("/targets/0/cluster/readFrom", "Replica"),
            ("/workload/operations/0/command", "GET __key__"),
            ("/workload/keys/count", "10000"),
            ("/workload/values/size/fixed/bytes", "~"),
            ("/load/closedLoop/concurrency", "10000"),
            // 15 clients with a connection to each of six nodes.
            ("/load/connections", "90"),
            ("/load/pipeline", "~"),
            ("/load/requests", "10000000"),
            ("/load/warmup", "~"),
            ("/shards/template/resources/limits/cpu", "32"),
        ],
    ),
    (
        "fred-centralised",
        &[
            ("/workload/operations/0/command", "INCR __key__"),
            ("/workload/keys/count", "10000"),
            ("/load/closedLoop/concurrency", "10000"),
            ("/load/connections", "15"),
            ("/load/pipeline", "~"),
            ("/load/clients/0/runtime/threads", "32"),
            ("/load/clients/1/pool/sharing", "Exclusive"),
            ("/load/clients/1/runtime/threads", "32"),
            ("/load/clients/2/pool/type", "Bb8"),
            ("/load/clients/2/runtime/threads", "32"),
            ("/load/requests", "10000000"),
            ("/load/timeouts/request", "~"),
            ("/load/warmup", "~"),
            ("/repeats/count", "1"),
        ],
    ),
    (
        "fred-libraries",
        &[
            ("/workload/operations/0/command", "INCR __key__"),
            ("/workload/keys/count", "10000"),
            ("/load/closedLoop/concurrency", "10000"),
            ("/load/connections", "1"),
            ("/load/pipeline", "~"),
            ("/load/clients/0/runtime/threads", "32"),
            ("/load/clients/1/runtime/threads", "32"),
            ("/load/clients/2/redisRs/connection", "ConnectionManager"),
            ("/load/clients/2/runtime/threads", "32"),
            ("/load/clients/3/pool/type", "Bb8"),
            ("/load/clients/3/runtime/threads", "32"),
            ("/load/requests", "10000000"),
            ("/load/timeouts/request", "~"),
            ("/load/warmup", "~"),
            ("/repeats/count", "1"),
        ],
    ),
    (
        "fred-sweep",
        &[
            ("/workload/operations/0/command", "INCR __key__"),
            ("/workload/keys/count", "15000"),
            ("/load/closedLoop/concurrency", "100"),
            ("/load/connections", "1"),
            ("/load/pipeline", "~"),
            ("/load/clients/0/runtime/threads", "32"),
            ("/load/requests", "1000000"),
            ("/load/timeouts/request", "~"),
            ("/load/warmup", "~"),
            // Of 100 to 15,000 in steps of 100, and of 1 to 20 in steps of 2.
            ("/sweep/0/values", "[100, 1000, 5000, 15000]"),
            ("/sweep/1/values", "[1, 5, 9, 15]"),
            ("/repeats/count", "1"),
        ],
    ),
    (
        "redis-client",
        &[
            ("/workload/operations/0/command", "GET __key__"),
            ("/workload/operations/0/weight", "80"),
            ("/workload/operations/1/command", "SET __key__ __data__"),
            ("/workload/operations/1/weight", "20"),
            ("/workload/keys", "{prefix: 'client:', count: 100000, width: 13}"),
            ("/workload/values/size/fixed/bytes", "100"),
            ("/preload/rate", "20000"),
            ("/load/openLoop/rate", "600000"),
            ("/load/openLoop/pacingGrid", "~"),
            ("/load/connections", "500"),
            ("/load/pipeline", "16"),
            ("/load/warmup", "12s"),
            ("/load/duration", "120s"),
        ],
    ),
    (
        "redis-client-schedule",
        &[
            ("/workload/operations/0/command", "GET __key__"),
            ("/workload/operations/0/weight", "80"),
            ("/workload/operations/1/command", "SET __key__ __data__"),
            ("/workload/operations/1/weight", "20"),
            ("/workload/keys", "{prefix: 'client:', count: 100000, width: 13}"),
            ("/workload/values/size/fixed/bytes", "100"),
            ("/preload/rate", "20000"),
            ("/load/openLoop/rate", "140000"),
            ("/load/openLoop/pacingGrid", "~"),
            ("/load/connections", "500"),
            ("/load/warmup", "12s"),
            ("/load/duration", "120s"),
            ("/sweep/0/values", "[1, 2, 8, 4, 16, 32]"),
            ("/sweep/0/with/0/values", "[140000, 240000, 480000, 360000, 600000, 750000]"),
            ("/sweepOrder", "Listed"),
        ],
    ),
    (
        "redis-client-table",
        &[
            ("/workload/operations/0/command", "GET __key__"),
            ("/workload/operations/0/weight", "20"),
            ("/workload/operations/1/command", "SET __key__ __data__"),
            ("/workload/operations/1/weight", "80"),
            ("/workload/keys", "{prefix: 'client:', count: 100000, width: 13}"),
            ("/workload/values/size/fixed/bytes", "80"),
            ("/search/objective", "{metric: AchievedRate, minBasisPoints: 9900}"),
            ("/sweep/0/values", "[1, 2, 4, 8, 16, 32]"),
            ("/load/openLoop/pacingGrid", "~"),
            ("/load/connections", "500"),
            ("/load/warmup", "30s"),
            ("/load/duration", "5m"),
        ],
    ),
    (
        "redis-client-smart-batching",
        &[
            ("/workload/operations/0/command", "GET __key__"),
            ("/workload/operations/0/weight", "20"),
            ("/workload/operations/1/command", "SET __key__ __data__"),
            ("/workload/operations/1/weight", "80"),
            ("/workload/keys", "{prefix: 'client:', count: 100000, width: 13}"),
            ("/workload/values/size/fixed/bytes", "80"),
            ("/search/objective", "{metric: AchievedRate, minBasisPoints: 9900}"),
            ("/load/connections", "1"),
            ("/load/pipeline", "~"),
            ("/load/clients/0/type", "SmartBatching"),
            ("/load/warmup", "60s"),
            ("/load/duration", "600s"),
        ],
    ),
    (
        "redis-client-response-times",
        &[
            ("/workload/operations/0/command", "GET __key__"),
            ("/workload/operations/0/weight", "20"),
            ("/workload/operations/1/command", "SET __key__ __data__"),
            ("/workload/operations/1/weight", "80"),
            ("/workload/keys", "{prefix: 'client:', count: 100000, width: 13}"),
            ("/workload/values/size/fixed/bytes", "80"),
            ("/load/openLoop/rate", "1500000"),
            ("/load/connections", "1"),
            ("/load/pipeline", "~"),
            ("/load/clients/0/type", "SmartBatching"),
            ("/load/warmup", "60s"),
            ("/load/duration", "600s"),
            ("/measurement/percentiles", "[50, 75, 95, 99, 99.9, 99.99, 99.999]"),
        ],
    ),
    (
        "redis-client-clients",
        &[
            ("/workload/operations/0/command", "GET __key__"),
            ("/workload/operations/0/weight", "80"),
            ("/workload/operations/1/command", "SET __key__ __data__"),
            ("/workload/operations/1/weight", "20"),
            ("/workload/keys", "{prefix: 'client:', count: 100000, width: 13}"),
            ("/workload/values/size/fixed/bytes", "100"),
            ("/load/openLoop/rate", "640000"),
            ("/load/connections", "200"),
            ("/load/pipeline", "100"),
            ("/load/clients/2/type", "SmartBatching"),
            ("/load/clients/2/pool/size", "1"),
            ("/load/warmup", "18s"),
            ("/load/duration", "180s"),
            ("/repeats/count", "1"),
        ],
    ),
    (
        "redis-client-two-servers",
        &[
            ("/targets/0/endpoints", "['redis:6379']"),
            ("/targets/1/endpoints", "['redis:6379', 'redis:6380']"),
            ("/workload/operations/0/command", "GET __key__"),
            ("/workload/operations/0/weight", "80"),
            ("/workload/operations/1/command", "SET __key__ __data__"),
            ("/workload/operations/1/weight", "20"),
            ("/workload/keys", "{prefix: 'client:', count: 100000, width: 13}"),
            ("/workload/values/size/fixed/bytes", "100"),
            ("/load/openLoop/rate", "750000"),
            ("/load/connections", "500"),
            ("/load/pipeline", "32"),
            ("/load/warmup", "12s"),
            ("/load/duration", "120s"),
            ("/repeats/count", "1"),
        ],
    ),
    (
        "redis-benchmark-go",
        &[
            ("/workload/operations/0/command", "SET __key__ __data__"),
            ("/workload/keys/count", "39000000"),
            ("/workload/values/size/fixed/bytes", "3"),
            ("/workload/wait", "{replicas: 1, timeout: 500ms}"),
            ("/workload/seed", "12345"),
            ("/load/openLoop/rate", "5000"),
            ("/load/connections", "50"),
            ("/load/requests", "500000"),
            ("/load/warmup", "~"),
        ],
    ),
    (
        "redis-benchmark-go-hset-rate",
        &[
            ("/workload/operations/0/command", "HSET __key__ f1 __data__"),
            ("/workload/keys/count", "1000"),
            ("/workload/values/size/fixed/bytes", "3"),
            ("/workload/seed", "12345"),
            ("/load/openLoop/rate", "10000"),
            ("/load/connections", "50"),
            ("/load/requests", "100000"),
            ("/load/warmup", "~"),
        ],
    ),
    (
        "redis-benchmark-go-hset",
        &[
            ("/targets/0/endpoints", "['redis:20000']"),
            ("/workload/operations/0/command", "HSET __key__ f1 __data__"),
            ("/workload/keys/count", "1000000"),
            ("/workload/values/size/fixed/bytes", "3"),
            ("/workload/seed", "12345"),
            ("/load/openLoop/rate", "~"),
            ("/load/connections", "50"),
            ("/load/requests", "10000000"),
            ("/load/warmup", "~"),
        ],
    ),
    (
        "redis-benchmark-go-loop",
        &[
            ("/targets/0/endpoints", "['redis:20000']"),
            ("/workload/operations/0/command", "HSET __key__ f1 __data__"),
            ("/workload/keys/count", "1000000"),
            ("/workload/values/size/fixed/bytes", "3"),
            ("/workload/seed", "12345"),
            ("/load/openLoop/rate", "~"),
            ("/load/connections", "50"),
            ("/load/requests", "~"),
            ("/load/duration", "~"),
            ("/load/warmup", "0s"),
        ],
    ),
    (
        "redis-benchmark-go-caching-two",
        &[
            ("/targets/0/protocol", "RESP3"),
            ("/workload/operations/0/command", "GET __key__"),
            ("/workload/keys/count", "1"),
            ("/workload/caching", "{type: OptIn, scope: Connection, ttl: 60s}"),
            ("/workload/seed", "12345"),
            ("/load/connections", "1"),
            ("/load/requests", "2"),
            ("/load/warmup", "0s"),
        ],
    ),
    (
        "redis-benchmark-go-caching",
        &[
            ("/targets/0/protocol", "RESP3"),
            ("/workload/operations/0/command", "SET __key__ __data__"),
            ("/workload/operations/0/weight", "5"),
            ("/workload/operations/1/command", "GET __key__"),
            ("/workload/operations/1/weight", "95"),
            ("/workload/keys/count", "10000"),
            ("/workload/values/size/fixed/bytes", "3"),
            ("/workload/caching", "{type: OptIn, scope: Connection, ttl: 60s, noLoop: false}"),
            ("/workload/seed", "12345"),
            ("/load/connections", "50"),
            ("/load/requests", "10000000"),
            ("/load/warmup", "0s"),
        ],
    ),
    (
        "memtier",
        &[
            ("/targets/0/tls/insecureSkipVerify", "true"),
            ("/workload/mix", "Ratio"),
            ("/workload/operations/0/command", "SET __key__ __data__"),
            ("/workload/operations/0/weight", "1"),
            ("/workload/operations/1/command", "GET __key__"),
            ("/workload/operations/1/weight", "1"),
            ("/workload/keys/count", "10000000"),
            ("/workload/keys/pattern", "{type: Sequential, perConnection: true}"),
            ("/workload/values/size/fixed/bytes", "100"),
            ("/load/connections", "100"),
            ("/load/connectRate", "300"),
            ("/load/requestsPerConnection", "10000"),
            ("/load/warmup", "0s"),
            ("/repeats/count", "10"),
        ],
    ),
    (
        "redishappy",
        &[
            ("/targets/0/endpoints", "['redis:6379']"),
            ("/targets/1/endpoints", "['haproxy:6379']"),
            ("/workload/preset", "[set, get, incr, lpush, lpop, sadd, spop]"),
            ("/workload/keys/count", "1"),
            ("/workload/values/size/fixed/bytes", "3"),
            ("/load/connections", "100"),
            ("/load/pipelineMode", "Batch"),
            ("/load/requests", "100000"),
            ("/load/warmup", "0s"),
            ("/sweep/0/values", "[1, 10, 100]"),
            ("/repeats/count", "1"),
        ],
    ),
    (
        "redishappy-proxy",
        &[
            ("/workload/preset", "[set, get, incr, lpush, lpop, sadd, spop]"),
            ("/workload/keys/count", "1"),
            ("/workload/values/size/fixed/bytes", "3"),
            ("/load/connections", "100"),
            ("/load/pipeline", "10"),
            ("/load/pipelineMode", "Batch"),
            ("/load/requests", "100000"),
            ("/load/warmup", "0s"),
        ],
    ),
];

/// Fields of `spec` all of whose numbers and commands the documents determine. The range of a search and the pods are ours.
const DETERMINED: [&str; 6] = ["workload", "preload", "load", "measurement", "sweep", "repeats"];

/// The comment that a manifest begins with.
struct Header {
    text: String,
    commands: Vec<String>,
    /// The entries below `What differs`.
    differences: Vec<String>,
}

impl Header {
    fn of(manifest: &str) -> Self {
        let (mut text, mut commands, mut differences) = (String::new(), Vec::<String>::new(), Vec::<String>::new());
        let mut differs = false;
        for line in manifest.lines().map_while(|line| line.strip_prefix('#')) {
            text.push_str(line);
            text.push('\n');
            let Some(part) = line.strip_prefix("   ") else {
                differs = line == " What differs:";
                continue;
            };
            let entries = if differs { &mut differences } else { &mut commands };
            let continued =
                if differs { part.starts_with(' ') } else { entries.last().is_some_and(|last| last.ends_with('\\')) };
            match entries.last_mut().filter(|_| continued) {
                Some(entry) => *entry = format!("{} {part}", entry.trim_end_matches('\\')),
                None => entries.push(part.to_owned()),
            }
        }
        for entry in commands.iter_mut().chain(&mut differences) {
            *entry = entry.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        Self { text, commands, differences }
    }

    /// The differences in numbers: a value of the manifest and that of the document, such as `1,000 for 10,000`.
    fn numbers(&self) -> BTreeSet<String> {
        let is_value = |word: &str| word == "none" || word.starts_with(|first: char| first.is_ascii_digit());
        let words = |entry: &str| {
            entry.split(' ').map(|word| word.trim_end_matches([',', '.', ':', ';']).to_owned()).collect::<Vec<_>>()
        };
        let mut found = BTreeSet::new();
        for entry in &self.differences {
            for three in words(entry).windows(3) {
                if three[1] == "for" && is_value(&three[0]) && is_value(&three[2]) {
                    found.insert(three.join(" "));
                }
            }
        }
        found
    }
}

/// The benchmark of a manifest, which may have a Secret as well.
fn benchmark(text: &str) -> Value {
    let mut documents = serde_yaml::Deserializer::from_str(text).map(|document| Value::deserialize(document).unwrap());
    documents.find(|document| document["kind"] == "RedisBenchmark").unwrap()
}

/// A value as headers write it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), human::count),
        other => other.to_string(),
    }
}

/// Adds the differences between a value of a manifest and that of the document. Lists differ by their entries.
fn add_differences(own: &Value, theirs: &Value, found: &mut BTreeSet<String>) {
    match (own, theirs) {
        (Value::Array(own), Value::Array(theirs)) if own.len() == theirs.len() => {
            own.iter().zip(theirs).for_each(|(own, theirs)| add_differences(own, theirs, found));
        }
        _ if own == theirs => {}
        _ => {
            found.insert(format!("{} for {}", shown(own), shown(theirs)));
        }
    }
}

/// Adds the pointers of all numbers, durations and commands of `value`.
fn add_determined(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| add_determined(field, &format!("{pointer}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| add_determined(item, &format!("{pointer}/{at}"), found));
        }
        Value::String(text)
            if pointer.ends_with("/command") || text.starts_with(|first: char| first.is_ascii_digit()) =>
        {
            found.push(pointer.to_owned());
        }
        Value::Number(_) => found.push(pointer.to_owned()),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[test]
fn every_file_has_its_numbers_in_the_table() {
    let files = fs::read_dir(root().join("examples/seeds")).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(files, SEEDS.iter().map(|(name, _)| format!("{name}.yaml")).collect::<BTreeSet<_>>());
    for (name, fields) in SEEDS {
        let manifest = benchmark(&read(&format!("examples/seeds/{name}.yaml")));
        let mut determined = Vec::new();
        for part in DETERMINED {
            add_determined(&manifest["spec"][part], &format!("/{part}"), &mut determined);
        }
        for pointer in determined {
            let has_row = |(field, _): &(&str, &str)| {
                pointer.strip_prefix(*field).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            assert!(fields.iter().any(has_row), "{name}.yaml: add a row for {pointer}, with the document's value");
        }
    }
}

#[test]
fn headers_have_every_number_that_differs() {
    for (name, fields) in SEEDS {
        let text = read(&format!("examples/seeds/{name}.yaml"));
        let (header, manifest) = (Header::of(&text), benchmark(&text));
        let mut expected = BTreeSet::new();
        for (pointer, value) in fields {
            let theirs: Value = serde_yaml::from_str(value).unwrap();
            add_differences(manifest["spec"].pointer(pointer).unwrap_or(&Value::Null), &theirs, &mut expected);
        }
        assert_eq!(header.numbers(), expected, "{name}.yaml: its header, and its fields against the document");
        assert!(!header.differences.is_empty(), "{name}.yaml says nothing below What differs");
    }
}

#[test]
fn headers_have_the_commands_and_the_number_of_trials() {
    let mut commands = BTreeSet::new();
    for (name, _) in SEEDS {
        let path = format!("examples/seeds/{name}.yaml");
        let text = read(&path);
        let header = Header::of(&text);
        let own = format!("kubectl redisbench local -f {path} --with-redis");
        assert_eq!(header.commands.last(), Some(&own), "{path}");
        commands.extend(header.commands);

        let manifest = benchmark(&text);
        assert_eq!(manifest["metadata"]["name"], name, "{path}");
        let compiled = api::read(&manifest).and_then(|benchmark| plan::compile(&benchmark.spec, name));
        let trials = compiled.unwrap_or_else(|problems| panic!("{path}: {problems:?}")).trials().len();
        // The number of a search's trials is not known.
        if trials > 1 && manifest["spec"]["search"].is_null() {
            assert!(header.text.contains(&format!(" {trials} trials")), "{path} has {trials} trials");
        }
    }
    for command in COMMANDS {
        assert!(commands.contains(command), "no header of examples/seeds has: {command}");
    }
}
