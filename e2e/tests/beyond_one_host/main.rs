//! The use of more than one shard: pods with the same limited bandwidth, and a server with the capacity for about ten of them.
//!
//! `make test-beyond-one-host` runs this, and writes its results to target/e2e-cluster/beyond-one-host.md.

mod wire;

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use redisbench_e2e::benchmark::{SOON, message};
use redisbench_e2e::cluster::{Cluster, repository};
use redisbench_e2e::json::{count, list};
use redisbench_e2e::tools::kubectl_with_input;
use redisbench_e2e::{Benchmark, TestNamespace, redis, run_within};
use redisbench_testkit::api_server::merge;
use serde_json::{Value, json};

/// The bandwidth of every pod in each direction, in bits per second: as in the example.
const BITS: u64 = 20_000_000;
/// The amount transferred to measure the bandwidth.
const BYTES: usize = 8 << 20;
/// The server gets enough CPU time for this number of such pods.
const SHARDS_WORTH: u64 = 10;

#[test]
fn more_shards_than_one_find_the_limit_of_the_target() {
    run_within(Duration::from_secs(600), |namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let (down, up) = prove_the_bandwidth(&namespace).await?;
        let example = fs::read_to_string(repository().join("examples/beyond-one-host.yaml"))?;
        let manifest: Value = serde_yaml::from_str(&example)?;
        let limit = what_shards_ask_for(&namespace, &manifest).await?;
        limit_the_server(&namespace, limit).await?;
        namespace.apply(std::slice::from_ref(&manifest)).await?;
        let benchmark = Benchmark::named(&namespace, "beyond-one-host");
        let object = benchmark.succeeded(Duration::from_secs(420)).await?;
        let trials = by_shards(&benchmark, &object).await?;
        let found = message(&object, "Finished");
        report(&trials, (down, up, limit), found)?;
        check(&trials, found)
    });
}

#[derive(Debug)]
struct Trial {
    shards: u64,
    per_second: u64,
    limited_by: String,
    verdict: String,
    why: String,
    /// CPU time of the busiest worker of all shards, in hundredths of a per cent of the load.
    ran: u64,
    /// Run-queue wait of the longest waiting worker, in the same unit.
    waited: u64,
    /// Throttled time of the most throttled shard, in milliseconds.
    held_back: u64,
}

async fn by_shards(benchmark: &Benchmark, object: &Value) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for line in list(object, "/status/trials") {
        let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
        let shards = line["parameters"]["shards.count"].as_str().context("a trial without its shards")?;
        let generators = generators(benchmark, count(line, "/index")?).await?;
        let most = |field: &str| generators.iter().filter_map(|one| one[field].as_u64()).max().unwrap_or_default();
        trials.push(Trial {
            shards: shards.parse()?,
            per_second: count(line, "/achievedPerSecond")?,
            limited_by: text("limitedBy"),
            verdict: text("verdict"),
            why: text("why"),
            ran: most("busiestWorkerMillionths") / 100,
            waited: most("longestWaitingWorkerMillionths") / 100,
            held_back: most("throttledNanoseconds") / 1_000_000,
        });
    }
    trials.sort_by_key(|trial| trial.shards);
    Ok(trials)
}

/// The shards' measurements of themselves in a trial's full result, which is saved beside the table.
async fn generators(benchmark: &Benchmark, trial: u64) -> Result<Vec<Value>> {
    let named = format!("trial-{trial}.result.json");
    let whole = benchmark.artifact(&named).await?;
    let folder = Cluster::get().cache().join("beyond-one-host");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(named), &whole)?;
    let result: Value = serde_json::from_str(&whole).context("the full result is no JSON")?;
    let of = |shard: &Value| shard.pointer("/snapshot/generator").cloned();
    Ok(list(&result, "/shards").iter().filter_map(of).collect())
}

fn check(trials: &[Trial], found: &str) -> Result<()> {
    let of = |shards: u64| {
        let found = trials.iter().find(|trial| trial.shards == shards);
        found.with_context(|| format!("no trial of {shards} shards: {trials:?}"))
    };
    let one = of(1)?;
    ensure!(one.limited_by == "GeneratorNetwork", "one shard is limited by its network: {one:?}");
    for shards in [2, 4, 8] {
        let trial = of(shards)?;
        let share = trial.per_second as f64 / (one.per_second * shards) as f64;
        ensure!(share >= 0.97, "{shards} shards come to {share:.3} of {shards} times one: {trials:?}");
        ensure!(trial.limited_by == "GeneratorNetwork", "{trial:?}");
    }
    let most = of(16)?;
    ensure!(most.limited_by == "Target", "the target is what limits sixteen shards: {trials:?}");
    ensure!(most.per_second < one.per_second * 13, "the server was to take about ten shards' worth: {trials:?}");
    let says = "up to 8 shards the load generator's network was the limit, from 12 on the target";
    ensure!(found.contains(says), "the sweep was to find by itself where the target is the limit: {found}");
    Ok(())
}

/// A table for the documentation.
fn report(trials: &[Trial], (down, up, limit): (f64, f64, u64), found: &str) -> Result<()> {
    let one = trials.first().context("no trials")?.per_second;
    let mut text = format!(
        "Before the run, {} MiB came at {down:.1} Mbit/s and went at {up:.1} Mbit/s. The server's CPU limit: {limit}m.\n\n\
         | shards | achieved | times one shard | of linear | limited by | verdict | a worker ran | waited | held back |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        BYTES >> 20
    );
    for trial in trials {
        let times = trial.per_second as f64 / one as f64;
        let percent = |share: u64| format!("{}.{:02} %", share / 100, share % 100);
        let _ = writeln!(
            text,
            "| {} | {}/s | {times:.2} | {:.3} | {} | {} {} | {} | {} | {} ms |",
            trial.shards,
            trial.per_second,
            times / trial.shards as f64,
            trial.limited_by,
            trial.verdict,
            trial.why,
            percent(trial.ran),
            percent(trial.waited),
            trial.held_back
        );
    }
    let _ = writeln!(text, "\nThe benchmark says: {found}.");
    println!("{text}");
    fs::write(Cluster::get().cache().join("beyond-one-host.md"), text)?;
    Ok(())
}

/// Measures a pod with the example's annotations: megabits per second to it and from it.
async fn prove_the_bandwidth(namespace: &TestNamespace) -> Result<(f64, f64)> {
    let annotations = json!({"kubernetes.io/ingress-bandwidth": "20M", "kubernetes.io/egress-bandwidth": "20M"});
    redis::standalone(namespace, "probe").await?;
    let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}}).to_string();
    namespace.kubectl(&["patch", "deployment/probe", "-p", &patch]).await?;
    namespace.kubectl(&["rollout", "status", "deployment/probe", "--timeout=60s"]).await?;
    let fill = format!("redis.call('set', 'big', string.rep('x', {BYTES}))");
    redis::cli(namespace, "deployment/redis", &["eval", &fill, "0"]).await?;

    let begin = Instant::now();
    let big = namespace.kubectl(&["exec", "deployment/probe", "--", "redis-cli", "-h", "redis", "get", "big"]).await?;
    let down = megabits(begin.elapsed());
    ensure!(big.len() >= BYTES, "{} bytes came", big.len());

    let exec =
        ["-n", &namespace.name, "exec", "-i", "deployment/probe", "--", "redis-cli", "-h", "redis", "-x", "set", "up"];
    let begin = Instant::now();
    kubectl_with_input(&exec, &"x".repeat(BYTES)).await?;
    let up = megabits(begin.elapsed());
    namespace.kubectl(&["delete", "deployment/probe", "--wait=false"]).await?;
    redis::cli(namespace, "deployment/redis", &["del", "big", "up"]).await?;
    let most = BITS as f64 / 1e6;
    // kubectl adds time, so the measured rate can only be too low; a higher one would be a burst.
    for (what, rate) in [("down", down), ("up", up)] {
        ensure!((0.6 * most..=1.02 * most).contains(&rate), "{what}: {rate:.1} Mbit/s through a network of {most}");
    }
    Ok((down, up))
}

fn megabits(took: Duration) -> f64 {
    (BYTES * 8) as f64 / took.as_secs_f64() / 1e6
}

/// The CPU time that the server needs for [`SHARDS_WORTH`] shards by its own statistics, in thousandths of a processor. Measured, because
/// the cost of a request depends on the machine and its other work.
async fn what_shards_ask_for(namespace: &TestNamespace, example: &Value) -> Result<u64> {
    const SHARDS: u64 = 8;
    let mut manifest = example.clone();
    let name = "beforehand";
    manifest["metadata"]["name"] = json!(name);
    let changes = json!({
        "sweep": null,
        "shards": {"count": SHARDS},
        "measurement": {"probe": false},
        "load": {"duration": "5s", "warmup": "2s"},
    });
    merge(&mut manifest["spec"], changes);
    namespace.apply(&[manifest]).await?;
    let object = Benchmark::named(namespace, name).succeeded(SOON).await?;
    // In hundredths of a per cent of a processor.
    let share = count(&object, "/status/result/nodes/0/server/cpuMeanBasisPoints")?;
    Ok(share * SHARDS_WORTH / SHARDS / 10)
}

async fn limit_the_server(namespace: &TestNamespace, thousandths: u64) -> Result<()> {
    let limits = format!("--limits=cpu={thousandths}m");
    namespace.kubectl(&["set", "resources", "deployment/redis", &limits]).await?;
    namespace.kubectl(&["rollout", "status", "deployment/redis", "--timeout=60s"]).await?;
    redis::available(namespace, "redis").await
}

/// The requests of eight shards arrive at the server together, and the status reports their skew.
#[test]
fn eight_shards_start_together_on_the_wire() {
    run_within(Duration::from_secs(240), |namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let server = redis::pod_of(&namespace, "redis").await?;
        let capture = wire::Capture::begin(&server)?;
        let spec = json!({
            "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
            "load": {"type": "ClosedLoop", "openLoop": null, "connections": 16, "pipeline": 1, "warmup": "0s"},
            "shards": {"count": 8, "placement": "Spread"},
        });
        let benchmark = Benchmark::create(&namespace, "together", &spec).await?;
        let object = benchmark.succeeded(SOON).await?;
        let told = Duration::from_micros(count(&object, "/status/synchronization/startSkewMicroseconds")?);
        let clocks = Duration::from_micros(count(&object, "/status/synchronization/clockUncertaintyMicroseconds")?);
        let first = capture.first_requests(8)?;
        let (earliest, latest) =
            (first.values().min().context("no packets")?, first.values().max().context("no packets")?);
        let seen = latest.saturating_sub(*earliest);
        println!("start skew of 8 shards: {seen:?} on the wire; the status says {told:?}, clocks known to {clocks:?}");
        ensure!(seen < Duration::from_millis(5), "the first requests came {seen:?} apart: {first:?}");
        let apart = seen.abs_diff(told);
        ensure!(apart < Duration::from_millis(1) + clocks, "seen {seen:?}, told {told:?}, clocks known to {clocks:?}");
        Ok(())
    });
}
