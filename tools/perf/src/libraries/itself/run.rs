//! One comparison of a client with itself.

use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::comparison::{self, Comparison};
use crate::local;

/// The fewest that a comparison may have.
pub const PAIRS: u64 = 5;

/// Seconds after which a comparison is stopped. Its ten trials take half a minute.
const LIMIT: u32 = 180;

/// A client that is compared with itself, its load, and the requested metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Subject {
    pub name: &'static str,
    client: &'static str,
    /// The pool of connections, if it is not the client's own.
    pool: Option<&'static str>,
    is_open: bool,
    pub metric: &'static str,
}

/// In turns.
pub static SUBJECTS: [Subject; 7] = [
    Subject::open("redis-rs, open loop", "RedisRs"),
    Subject::open("Null, open loop", "Null"),
    Subject::closed("redis-rs, closed loop", "RedisRs", None),
    Subject::open("fred, open loop", "Fred"),
    Subject::closed("redis-rs in bb8, closed loop", "RedisRs", Some("Bb8")),
    Subject::open("engine, open loop", "Engine"),
    Subject::closed("smart batching, closed loop", "SmartBatching", None),
];

impl Subject {
    const fn open(name: &'static str, client: &'static str) -> Self {
        Self { name, client, pool: None, is_open: true, metric: "CpuPerRequest" }
    }

    const fn closed(name: &'static str, client: &'static str, pool: Option<&'static str>) -> Self {
        Self { name, client, pool, is_open: false, metric: "Throughput" }
    }

    /// Enough requests for a p99 in an open loop, and for a p99.9 in a closed one.
    fn manifest(&self, seed: u32) -> Value {
        let mut load = if self.is_open {
            json!({"type": "OpenLoop", "openLoop": {"rate": 3_000}, "connections": 2, "pipeline": 8, "requests": 1_000})
        } else {
            json!({"type": "ClosedLoop", "connections": 1, "pipeline": 8, "requests": 10_000})
        };
        load["warmup"] = json!("100ms");
        let client = |name: &str| {
            let mut client = json!({"name": name, "type": self.client});
            if let Some(pool) = self.pool {
                client["pool"] = json!({"type": pool});
            }
            client
        };
        load["clients"] = ["a", "b"].map(client).into_iter().collect();
        json!({
            "apiVersion": "redisbench.dev/v1alpha1",
            "kind": "RedisBenchmark",
            "metadata": {"name": "itself"},
            "spec": {
                "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
                // The others delay the calls that measure a shard's clock.
                "shards": {"maxStartSkew": "1s"},
                "workload": {
                    "seed": seed,
                    "operations": [{"name": "get", "command": "GET __key__"}],
                    "keys": {"count": 100},
                },
                "preload": {"mode": "FillMissing"},
                "load": load,
                "repeats": {"count": PAIRS},
                "comparison": {"baseline": "a", "metric": self.metric},
            },
        })
    }

    fn compare(&self, bench: &Bench, cpus: &str, file: &Path, seed: u32) -> anyhow::Result<Comparison> {
        std::fs::write(file, self.manifest(seed).to_string()).context("failed to write a manifest")?;
        let object = local::run(bench, cpus, file, "--with-redis", LIMIT)?;
        let found = comparison::all(&object["status"]).into_iter().next().context("the status has no comparison")?;
        anyhow::ensure!(
            found.metrics.first().is_some_and(|first| first.name == self.metric),
            "another metric: {found:?}"
        );
        anyhow::ensure!(found.pairs > 1, "{} of {PAIRS} pairs count, because trials were Invalid", found.pairs);
        Ok(found)
    }
}

/// A comparison, or why there is none.
#[derive(Debug)]
pub struct Run {
    pub subject: &'static Subject,
    pub outcome: Result<Comparison, String>,
}

impl Run {
    /// Makes comparison `number`, with files in `folder`.
    pub fn make(bench: &Bench, cpus: &str, folder: &Path, number: u32) -> Self {
        let subject = &SUBJECTS[number as usize % SUBJECTS.len()];
        let file = folder.join(format!("{number}.yaml"));
        let outcome = subject.compare(bench, cpus, &file, number + 1).map_err(|error| format!("{error:#}"));
        Self { subject, outcome }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Err(why) => write!(formatter, "{} | {why}", self.subject.name),
            Ok(found) => {
                let different: Vec<&str> = found
                    .metrics
                    .iter()
                    .filter(|metric| metric.is_finding())
                    .map(|metric| metric.name.as_str())
                    .collect();
                let different = if different.is_empty() { "nothing".to_owned() } else { different.join(", ") };
                write!(formatter, "{} | {} pairs | called different: {different}", self.subject.name, found.pairs)
            }
        }
    }
}
