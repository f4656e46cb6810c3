//! Benchmarks of one shape: applies them, follows them to their end, and compares each result with the truth.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use redisbench_benchmark::api::status::{Phase, ShardOutcome};
use redisbench_benchmark::api::{RUN_LABEL, RedisBenchmark};
use redisbench_benchmark::report::Measurement;
use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_wire::timeline::Outcomes;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::driver::{Ledger, Truth};

pub const NAMESPACE: &str = "default";
/// Where redis-server listens. The shards look at the target before they are ready; their load is computed.
pub const TARGET: &str = "127.0.0.1:6379";
/// Requests per second of one shard, and the length of the warm-up.
const RATE: u64 = 100;
const WARMUP: u64 = 5;
const SECOND: u64 = 1_000_000_000;

/// What is applied.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub shards: u32,
    pub benchmarks: u32,
    /// Seconds of measurement.
    pub duration: u64,
    /// Shards of each benchmark that are cut off in the middle of the load.
    pub unreachable: u32,
    /// Whether all are aborted then.
    pub abort: bool,
}

impl Shape {
    fn benchmark(self, index: u32) -> Result<RedisBenchmark> {
        let value = json!({
            "apiVersion": "redisbench.dev/v1alpha1",
            "kind": "RedisBenchmark",
            "metadata": {"name": format!("scale-{index}"), "namespace": NAMESPACE},
            "spec": {
                "targets": [{"name": "redis", "type": "Standalone", "endpoints": [TARGET]}],
                "workload": {
                    "operations": [
                        {"name": "get", "weight": 1, "command": "GET __key__"},
                        {"name": "set", "weight": 1, "command": "SET __key__ __data__"},
                    ],
                    "keys": {"count": 10_000},
                },
                "load": {
                    "type": "OpenLoop", "openLoop": {"rate": u64::from(self.shards) * RATE},
                    "connections": self.shards, "warmup": format!("{WARMUP}s"), "duration": format!("{}s", self.duration),
                },
                "shards": {"count": self.shards, "prepareTimeout": "30m", "placement": "Any"},
            },
        });
        serde_json::from_value(value).context("the benchmark does not fit its type")
    }
}

/// One benchmark that has ended.
#[derive(Debug)]
pub struct Ended {
    pub phase: Phase,
    pub truth: Truth,
    pub seconds_to_armed: f64,
    pub seconds_to_result: f64,
    /// How the result differs from the truth.
    pub differences: Vec<String>,
    /// The last shard's time from the abort on, of those that can be reached.
    pub abort_seconds: Option<f64>,
}

/// A benchmark that is under way. Times are those of the machine's monotonic clock.
#[derive(Debug, Default)]
struct UnderWay {
    applied_at: u64,
    aborted_at: Option<u64>,
    ended: Option<(u64, Box<RedisBenchmark>)>,
}

/// Runs the benchmarks of `shape` to their ends. `progress` counts them.
///
/// # Errors
/// If the API server refuses, or they take far too long.
pub async fn run(client: Client, shape: Shape, progress: &watch::Sender<usize>) -> Result<Vec<Ended>> {
    let api: Api<RedisBenchmark> = Api::namespaced(client.clone(), NAMESPACE);
    let mut all = BTreeMap::<String, UnderWay>::new();
    for index in 0..shape.benchmarks {
        let benchmark = shape.benchmark(index)?;
        let applied_at = monotonic_nanoseconds();
        all.insert(benchmark.name_any(), UnderWay { applied_at, ..UnderWay::default() });
        api.create(&PostParams::default(), &benchmark).await.context("failed to create a benchmark")?;
    }
    let mut events = std::pin::pin!(watcher(api.clone(), watcher::Config::default()));
    while all.values().any(|one| one.ended.is_none()) {
        let Some(event) = events.try_next().await.context("failed to watch the benchmarks")? else { break };
        let (Event::Apply(benchmark) | Event::InitApply(benchmark)) = event else { continue };
        let Some(one) = all.get_mut(&benchmark.name_any()) else { continue };
        let Some(status) = benchmark.status.as_ref().filter(|_| one.ended.is_none()) else { continue };
        if status.phase.is_terminal() {
            one.ended = Some((monotonic_nanoseconds(), Box::new(benchmark)));
            progress.send_modify(|ended| *ended += 1);
        } else if status.phase == Phase::Running && one.aborted_at.is_none() && (shape.abort || shape.unreachable > 0) {
            let run = status.run_id.clone().unwrap_or_default();
            one.aborted_at = Some(disturb(&client, &api, shape, &benchmark.name_any(), &run).await?);
        }
    }
    let mut ended = Vec::new();
    for (name, one) in all {
        let Some((at, benchmark)) = one.ended else { bail!("the watch ended before {name} did") };
        ended.push(judge(&client, shape, one.aborted_at, (one.applied_at, at), &benchmark).await?);
    }
    Ok(ended)
}

/// In the middle of the load, cuts shards off and aborts the benchmark, as far as `shape` asks for it. Returns when.
async fn disturb(client: &Client, api: &Api<RedisBenchmark>, shape: Shape, name: &str, run: &str) -> Result<u64> {
    let starts = || Ledger::of(run).starts.into_values().max().unwrap_or(u64::MAX);
    let middle = || starts().saturating_add((WARMUP + shape.duration / 2) * SECOND);
    while monotonic_nanoseconds() < middle() {
        sleep(Duration::from_millis(20)).await;
    }
    if shape.unreachable > 0 {
        let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        let pods = pods.list(&ListParams::default().labels(&format!("{RUN_LABEL}={run}"))).await?;
        let addresses = pods.items.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone());
        // The first by index: those that every round of calls begins with.
        let mut addresses: Vec<_> = addresses.collect();
        addresses
            .sort_by_key(|address| address.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>());
        cut_off(&addresses[..addresses.len().min(shape.unreachable as usize)])?;
    }
    if shape.abort {
        let patch = Patch::Merge(json!({"spec": {"abort": true}}));
        api.patch(name, &PatchParams::default(), &patch).await.context("failed to abort")?;
    }
    Ok(monotonic_nanoseconds())
}

/// Drops every packet to and from `addresses`.
fn cut_off(addresses: &[String]) -> Result<()> {
    let set = addresses.join(", ");
    let rules = format!(
        "table ip scale {{\nchain in {{\ntype filter hook input priority 0;\n\
         ip daddr {{ {set} }} drop\nip saddr {{ {set} }} drop\n}}\n}}\n"
    );
    let status = Command::new("nft").arg(rules).status().context("failed to start nft")?;
    ensure!(status.success(), "nft refused the rules");
    Ok(())
}

async fn judge(
    client: &Client,
    shape: Shape,
    aborted_at: Option<u64>,
    (applied_at, ended_at): (u64, u64),
    benchmark: &RedisBenchmark,
) -> Result<Ended> {
    let status = benchmark.status.clone().unwrap_or_default();
    let truth = Ledger::of(&status.run_id.unwrap_or_default());
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    let load_ended_at = truth.ends.values().copied().max().unwrap_or(ended_at);
    let mut differences = Vec::new();
    let mut pieces = Vec::new();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    for artifact in &status.artifacts {
        let map = maps.get(&artifact.config_map).await.context("failed to read a piece of the result")?;
        pieces.push(map.data.unwrap_or_default().remove(&artifact.name).unwrap_or_default());
    }
    let expected = if shape.abort { Phase::Aborted } else { Phase::Succeeded };
    if status.phase == expected {
        let whole = Measurement::read(pieces.iter().map(String::as_str)).context("failed to read the result")?;
        differences.extend(compare(shape, &truth, &whole));
    } else {
        let why = status.conditions.iter().find(|condition| condition.type_ == "Failed");
        differences.push(format!("{:?}: {}", status.phase, why.map_or("", |condition| &condition.message)));
    }
    let abort_seconds = aborted_at.filter(|_| shape.abort).map(|at| {
        let last = truth.aborts.values().copied().max().unwrap_or(u64::MAX);
        let heard = truth.aborts.len() + shape.unreachable as usize;
        if heard < shape.shards as usize {
            differences.push(format!("{} shards heard of the abort", truth.aborts.len()));
        }
        seconds(at, last)
    });
    Ok(Ended {
        phase: status.phase,
        seconds_to_armed: seconds(applied_at, truth.ready_at),
        seconds_to_result: seconds(load_ended_at.min(ended_at), ended_at),
        truth,
        differences,
        abort_seconds,
    })
}

/// Compares counts: of every shard, in all, by operation, and in every second.
fn compare(shape: Shape, truth: &Truth, whole: &Measurement) -> Vec<String> {
    let mut differences = Vec::new();
    let mut equal = |what: &str, found: u64, expected: u64| {
        if found != expected {
            differences.push(format!("{what}: {found}, not {expected}"));
        }
    };
    let (mut lost, mut counted, mut finished) = (0, 0, 0);
    for shard in &whole.result.shards {
        let measured = truth.measured.get(&shard.index).copied().unwrap_or_default();
        counted += shard.requests.succeeded;
        if shard.state == ShardOutcome::Finished {
            finished += shard.requests.succeeded;
            equal(&format!("shard {}", shard.index), shard.requests.succeeded, measured);
        } else {
            // What it reported before it was cut off. Its load goes on.
            lost += 1;
            let most = shard.requests.succeeded.min(RATE * shape.duration);
            equal(&format!("lost shard {}", shard.index), shard.requests.succeeded, most);
        }
    }
    equal("shards", whole.result.shards.len() as u64, shape.shards.into());
    equal("lost shards", lost, shape.unreachable.into());
    equal("succeeded", whole.result.requests.succeeded, counted);
    let operations = whole.result.operations.iter().map(|operation| operation.requests.succeeded).sum();
    // Only final snapshots have operations.
    equal("succeeded by operation", operations, finished);
    let by_second = whole.seconds.iter().map(|second| second.total.counts.succeeded).sum();
    equal("succeeded by the second", by_second, counted);
    if shape.unreachable > 0 {
        return differences;
    }
    equal("scheduled", whole.result.requests.scheduled, counted);
    if shape.abort {
        return differences;
    }
    let all = u64::from(shape.shards) * RATE;
    equal("truth", counted, all * shape.duration);
    let seconds: BTreeMap<u32, (u64, Outcomes)> = whole
        .seconds
        .iter()
        .map(|second| (second.second, (second.total.counts.succeeded, second.warmup.unwrap_or_default())))
        .collect();
    for second in 0..u32::try_from(WARMUP + shape.duration).unwrap_or(u32::MAX) {
        let (succeeded, warmup) = seconds.get(&second).copied().unwrap_or_default();
        let (of_warmup, of_load) = if u64::from(second) < WARMUP { (all, 0) } else { (0, all) };
        equal(&format!("second {second}"), succeeded, of_load);
        equal(&format!("second {second} of the warm-up"), warmup.succeeded, of_warmup);
    }
    differences
}
