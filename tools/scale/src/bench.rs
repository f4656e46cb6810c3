//! Benchmarks of one shape: applies them, follows them to their end, and compares each result with the truth.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::{Phase, RedisBenchmarkStatus, ShardOutcome};
use redisbench_benchmark::report::Measurement;
use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_wire::timeline::Outcomes;
use serde_json::json;
use tokio::sync::watch;

use crate::driver::{Ledger, Truth};
use crate::fault::{self, Disturbed, Faults, Moment, until};
use crate::operator::Operator;

pub const NAMESPACE: &str = "default";
/// Requests per second of one shard, and the length of the warm-up.
const RATE: u64 = 100;
const WARMUP: u64 = 5;
const SECOND: u64 = 1_000_000_000;
/// Timeout for a load to begin once its phase is Running, and for half of the results.
const PATIENCE: Duration = Duration::from_secs(300);
/// Longest time from the abort or deletion of a benchmark until no shard that can be reached has load, in seconds.
pub const STOPS_WITHIN: f64 = 2.0;
/// Time to wait for it, so that the actual time is known.
const STOPS_AT_LAST: Duration = Duration::from_secs(60);

/// Benchmarks that are applied, and their faults.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub shards: u32,
    pub benchmarks: u32,
    /// Seconds of measurement.
    pub duration: u64,
    pub faults: Faults,
    pub target: SocketAddr,
}

impl Shape {
    fn benchmark(self, index: u32) -> Result<RedisBenchmark> {
        let value = json!({
            "apiVersion": "redisbench.dev/v1alpha1",
            "kind": "RedisBenchmark",
            "metadata": {"name": format!("scale-{index}"), "namespace": NAMESPACE},
            "spec": {
                "targets": [{"name": "redis", "type": "Standalone", "endpoints": [self.target]}],
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
    pub seconds_to_start: f64,
    /// None of a deleted benchmark.
    pub seconds_to_result: Option<f64>,
    /// The differences of the result from the truth.
    pub differences: Vec<String>,
    /// From the abort or the deletion until the last shard stopped, of those that can be reached.
    pub seconds_to_stop: Option<f64>,
}

/// A benchmark that is under way. Times are those of the machine's monotonic clock.
#[derive(Debug, Default)]
struct UnderWay {
    applied_at: u64,
    disturbed: Option<Disturbed>,
    ended: Option<(u64, Box<RedisBenchmark>)>,
}

/// Runs the benchmarks of `shape` to their ends. `progress` counts them.
///
/// # Errors
/// If the API server refuses, or they take far too long.
pub async fn run(
    client: Client,
    shape: Shape,
    operator: &RefCell<Operator>,
    progress: &watch::Sender<usize>,
) -> Result<Vec<Ended>> {
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
        } else if status.phase == Phase::Running && one.disturbed.is_none() && shape.faults.disturb() {
            let run = status.run_id.clone().unwrap_or_default();
            one.disturbed = Some(disturb(&client, &api, shape, operator, (&benchmark.name_any(), &run)).await?);
            if shape.faults.delete.is_some() {
                one.ended = Some((monotonic_nanoseconds(), Box::new(benchmark)));
                progress.send_modify(|ended| *ended += 1);
            }
        }
    }
    let mut ended = Vec::new();
    for (name, one) in all {
        let Some((at, benchmark)) = one.ended else { bail!("the watch ended before {name} did") };
        let disturbed = one.disturbed.unwrap_or_default();
        ended.push(judge(&client, shape, &disturbed, (one.applied_at, at), &benchmark).await?);
    }
    Ok(ended)
}

/// Makes the faults that `shape` asks for, each at its time. A deleted benchmark is followed until its load has stopped.
async fn disturb(
    client: &Client,
    api: &Api<RedisBenchmark>,
    shape: Shape,
    operator: &RefCell<Operator>,
    (name, run): (&str, &str),
) -> Result<Disturbed> {
    let faults = shape.faults;
    let longest = PATIENCE + Duration::from_secs(WARMUP + shape.duration);
    let half_way = || {
        let starts = |truth: &Truth| truth.starts.values().copied().max().unwrap_or(u64::MAX);
        let middle = Ledger::look(run, starts).saturating_add((WARMUP + shape.duration / 2) * SECOND);
        monotonic_nanoseconds() >= middle
    };
    until(longest, "the middle of the load did not come", half_way).await?;
    let mut disturbed = Disturbed::default();
    if faults.unreachable > 0 {
        let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
        disturbed.cut_off = fault::cut_off(&pods, run, faults.unreachable).await?;
    }
    if faults.kill_operator == Some(Moment::Collecting) {
        let half = || Ledger::look(run, |truth| truth.collected.len()) * 2 >= shape.shards as usize;
        until(longest, "half of the results were not collected", half).await?;
    }
    // Once, also for several benchmarks.
    let killed = operator.borrow().seconds_without.is_some();
    if faults.kill_operator.is_some() && !killed {
        let status = api.get(name).await.context("failed to read the benchmark")?.status.unwrap_or_default();
        ensure!(!status.phase.is_terminal(), "the result was there before the operator was killed");
        fault::kill(client, operator).await?;
    }
    if faults.abort {
        disturbed.stopped_at = Some(monotonic_nanoseconds());
        let patch = Patch::Merge(json!({"spec": {"abort": true}}));
        api.patch(name, &PatchParams::default(), &patch).await.context("failed to abort")?;
    }
    if let Some(cascade) = faults.delete {
        disturbed.stopped_at = Some(monotonic_nanoseconds());
        api.delete(name, &cascade.parameters()).await.context("failed to delete the benchmark")?;
        let reachable = reachable(shape, &disturbed);
        let stopped = || Ledger::look(run, |truth| stops(truth, &disturbed).count()) >= reachable;
        // Fails if some do not stop, which is judged later.
        let _ = until(STOPS_AT_LAST, "shards did not stop", stopped).await;
    }
    Ok(disturbed)
}

/// The number of shards that were not cut off.
fn reachable(shape: Shape, disturbed: &Disturbed) -> usize {
    shape.shards as usize - disturbed.cut_off.len()
}

/// The time at which the load of each of these was stopped.
fn stops(truth: &Truth, disturbed: &Disturbed) -> impl Iterator<Item = u64> {
    truth.aborts.iter().filter(move |(shard, _)| !disturbed.cut_off.contains_key(*shard)).map(|(_, at)| *at)
}

async fn judge(
    client: &Client,
    shape: Shape,
    disturbed: &Disturbed,
    (applied_at, ended_at): (u64, u64),
    benchmark: &RedisBenchmark,
) -> Result<Ended> {
    let status = benchmark.status.clone().unwrap_or_default();
    let truth = Ledger::of(status.run_id.as_deref().unwrap_or_default());
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    let load_ended_at = truth.ends.values().copied().max().unwrap_or(ended_at);
    let mut differences = Vec::new();
    let faults = shape.faults;
    if faults.delete.is_none() {
        differences.extend(compare_result(client, shape, &truth, disturbed, &status).await?);
    }
    let seconds_to_stop = disturbed.stopped_at.map(|at| {
        let (reachable, stopped) = (reachable(shape, disturbed), stops(&truth, disturbed).count());
        if stopped < reachable {
            differences.push(format!("{stopped} of {reachable} shards stopped"));
        }
        let took = seconds(at, stops(&truth, disturbed).max().unwrap_or(u64::MAX));
        if faults.delete.is_some() && took > STOPS_WITHIN {
            differences.push(format!("the load stopped after {took:.1} s, not {STOPS_WITHIN} s"));
        }
        took
    });
    Ok(Ended {
        phase: status.phase,
        seconds_to_armed: seconds(applied_at, truth.ready_at),
        seconds_to_start: seconds(applied_at, truth.starts.values().copied().max().unwrap_or(applied_at)),
        seconds_to_result: faults.delete.is_none().then(|| seconds(load_ended_at.min(ended_at), ended_at)),
        truth,
        differences,
        seconds_to_stop,
    })
}

/// Reads the result, and compares it with the truth. Returns the differences.
async fn compare_result(
    client: &Client,
    shape: Shape,
    truth: &Truth,
    disturbed: &Disturbed,
    status: &RedisBenchmarkStatus,
) -> Result<Vec<String>> {
    let expected = if shape.faults.abort { Phase::Aborted } else { Phase::Succeeded };
    if status.phase != expected {
        let why = status.conditions.iter().find(|condition| condition.type_ == "Failed");
        return Ok(vec![format!("{:?}: {}", status.phase, why.map_or("", |condition| &condition.message))]);
    }
    let mut pieces = Vec::new();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    for artifact in &status.artifacts {
        let map = maps.get(&artifact.config_map).await.context("failed to read a piece of the result")?;
        pieces.push(map.data.unwrap_or_default().remove(&artifact.name).unwrap_or_default());
    }
    let whole = Measurement::read(pieces.iter().map(String::as_str)).context("failed to read the result")?;
    Ok(compare(shape, truth, disturbed, &whole))
}

/// Compares counts: of every shard, in all, by operation, and in every second.
fn compare(shape: Shape, truth: &Truth, disturbed: &Disturbed, whole: &Measurement) -> Vec<String> {
    let mut differences = Vec::new();
    let mut equal = |what: &str, found: u64, expected: u64| {
        if found != expected {
            differences.push(format!("{what}: {found}, not {expected}"));
        }
    };
    let (planned, faults) = (RATE * shape.duration, shape.faults);
    let (mut lost, mut counted, mut finished) = (0, 0, 0);
    for shard in &whole.result.shards {
        let (name, succeeded) = (format!("shard {}", shard.index), shard.requests.succeeded);
        counted += succeeded;
        if shard.state == ShardOutcome::Finished {
            finished += succeeded;
            let measured = truth.measured.get(&shard.index).copied().unwrap_or_default();
            equal(&name, succeeded, measured);
        } else {
            // Its newest report, or the one before if the cut came first. Its load goes on.
            lost += 1;
            let [before, newest] = disturbed.cut_off.get(&shard.index).copied().unwrap_or_default();
            equal(&format!("{name}, which was lost"), succeeded, if succeeded == before { before } else { newest });
        }
        if !faults.abort {
            equal(&format!("{name}, with what is unknown"), succeeded + shard.requests.unknown, planned);
        }
    }
    equal("shards", whole.result.shards.len() as u64, shape.shards.into());
    equal("lost shards", lost, disturbed.cut_off.len() as u64);
    equal("succeeded", whole.result.requests.succeeded, counted);
    let operations = whole.result.operations.iter().map(|operation| operation.requests.succeeded).sum();
    // Only final snapshots have operations.
    equal("succeeded by operation", operations, finished);
    let by_second = whole.seconds.iter().map(|second| second.total.counts.succeeded).sum();
    equal("succeeded by the second", by_second, counted);
    let all = u64::from(shape.shards) * RATE;
    if !faults.abort {
        equal("scheduled", whole.result.requests.scheduled, all * shape.duration);
    } else if lost == 0 {
        equal("scheduled", whole.result.requests.scheduled, counted);
    }
    if faults.abort || lost > 0 {
        return differences;
    }
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
