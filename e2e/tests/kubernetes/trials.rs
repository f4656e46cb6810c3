//! Several trials of one run, and verification, on a cluster.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use redisbench_e2e::benchmark::{SOON, condition};
use redisbench_e2e::json::{count, list};
use redisbench_e2e::{Benchmark, TestNamespace, redis, run};
use serde_json::{Value, json};

fn check_verified(object: &Value) -> Result<()> {
    ensure!(condition(object, "Verified") == Some("True"), "not verified: {}", object["status"]["conditions"]);
    Ok(())
}

#[test]
fn two_presets_are_two_verified_trials_of_one_run() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let spec = json!({
            "workload": {"operations": null, "preset": ["set", "incr"]},
            "preload": {"mode": "None"},
            "verify": {"mode": "Replies"},
            "load": {"warmup": "0s", "duration": "3s"},
        });
        let benchmark = Benchmark::create(&namespace, "trials", &spec).await?;
        benchmark.running().await?;
        let names = |pods: Vec<Pod>| pods.into_iter().map(|pod| pod.metadata.name).collect::<Vec<_>>();
        let pods = names(benchmark.pods().await?);
        // Job and pods are deleted at the end.
        let second = |object: &Value| object["status"]["trial"]["index"] == 1;
        benchmark.wait("in its second trial", SOON, second).await?;
        let others = names(benchmark.pods().await?).into_iter().any(|pod| !pods.contains(&pod));
        ensure!(!others, "other pods run the second trial");
        let object = benchmark.succeeded(SOON).await?;
        let calls = redis::calls(&namespace, "deployment/redis").await?;
        let trials = list(&object, "/status/trials");
        ensure!(trials.len() == 2, "{} trials of two: {object}", trials.len());
        for ((index, preset), trial) in (0..).zip(["set", "incr"]).zip(trials) {
            ensure!((count(trial, "/index")?, &trial["preset"]) == (index, &json!(preset)), "not in turn: {object}");
            let [scheduled, errors] = ["/requests/scheduled", "/requests/errors"].map(|field| count(trial, field));
            ensure!((scheduled?, errors?) == (3 * 400, 0), "not its requests: {trial}");
            let succeeded = count(trial, "/requests/succeeded")?;
            ensure!(calls.get(preset) == Some(&succeeded), "the server counted {calls:?}, not {succeeded} {preset}");
        }
        check_verified(&object)
    });
}

#[test]
fn values_are_verified() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let spec = json!({"preload": {"mode": "Always"}, "verify": {"mode": "Values"}});
        let benchmark = Benchmark::create(&namespace, "values", &spec).await?;
        let object = benchmark.succeeded(SOON).await?;
        let verification = &object["status"]["result"]["verification"];
        ensure!(verification["mode"] == "Values", "no values were verified: {object}");
        let succeeded = count(&object, "/status/result/requests/succeeded")?;
        ensure!(count(verification, "/checked")? > succeeded, "not every reply was checked: {verification}");
        ensure!(count(verification, "/readKeys")? == 1000, "not every key was read at the end: {verification}");
        check_verified(&object)
    });
}

#[test]
fn a_benchmark_is_compared_with_one_of_before() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        // On a busy machine some trials may be Invalid, which do not count. A comparison needs five.
        let repeated = json!({"load": {"warmup": "0s", "duration": "1s"}, "repeats": {"count": 8}});
        let mut compared = repeated.clone();
        compared["comparison"] = json!({"benchmark": "before", "metric": "P50"});
        // It waits until the other benchmark exists and has finished.
        let benchmark = Benchmark::create(&namespace, "compared", &compared).await?;
        benchmark.wait("refusal", SOON, |object| condition(object, "Accepted") == Some("False")).await?;
        let before = Benchmark::create(&namespace, "before", &repeated).await?;
        before.succeeded(SOON).await?;
        let object = benchmark.succeeded(SOON).await?;
        let [found] = list(&object, "/status/comparison") else {
            anyhow::bail!("no comparison: {object}");
        };
        ensure!((&found["target"], &found["baseline"]) == (&json!("redis"), &json!("before")), "of others: {found}");
        let trials = [count(found, "/trials")?, count(found, "/baselineTrials")?];
        let left_out = found["leftOut"].as_u64().unwrap_or_default();
        ensure!(trials.iter().sum::<u64>() + left_out == 16, "not all trials: {found}");
        ensure!(list(found, "/metrics").len() == 5, "not all metrics: {found}");
        let artifacts = list(&object, "/status/artifacts");
        ensure!(artifacts.iter().any(|one| one["name"] == "experiment.json"), "no document: {object}");
        Ok(())
    });
}

/// Checks that the server counted the successful requests of all trials, and no others.
async fn check_counted(namespace: &TestNamespace, object: &Value) -> Result<()> {
    let succeeded = list(object, "/status/trials").iter().map(|trial| count(trial, "/requests/succeeded"));
    let succeeded = succeeded.sum::<Result<u64>>()?;
    let calls = redis::calls(namespace, "deployment/redis").await?;
    let counted = ["get", "set"].iter().filter_map(|command| calls.get(*command)).sum::<u64>();
    ensure!(succeeded > 0 && counted == succeeded, "the server counted {calls:?}, not {succeeded}: {object}");
    Ok(())
}

/// Pods of the image with client libraries send through each client in turn.
#[test]
fn client_libraries_are_compared_by_what_they_cost() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let clients = [("engine", "Engine"), ("redis-rs", "RedisRs"), ("fred", "Fred")];
        let list_of_clients = clients.map(|(name, type_)| json!({"name": name, "type": type_}));
        let spec = json!({
            "load": {"warmup": "0s", "duration": "1s", "clients": list_of_clients},
            "preload": {"mode": "None"},
            "repeats": {"count": 5},
            "comparison": {"baseline": "engine", "metric": "CpuPerRequest"},
        });
        let object = Benchmark::create(&namespace, "clients", &spec).await?.succeeded(SOON * 3).await?;
        check_counted(&namespace, &object).await?;
        let repeats = list(&object, "/status/repeats");
        ensure!(repeats.len() == clients.len(), "not a cell for each client: {object}");
        for ((name, _), cell) in clients.iter().zip(repeats) {
            let cost = &cell["cost"];
            ensure!(cost["name"] == *name && cost["version"] != "", "the cost is not that of {name}: {cell}");
            ensure!(count(cost, "/cpuPerRequestNanoseconds")? > 0, "{name} cost nothing: {cell}");
        }
        let compared = list(&object, "/status/comparison").iter().map(|one| one["target"].clone());
        ensure!(compared.eq(["redis-rs", "fred"].map(Value::from)), "not compared with the engine: {object}");
        Ok(())
    });
}

/// A shard measures the processor time and memory of the driver in the container beside it.
#[test]
fn a_driver_is_compared_with_the_engine() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let driver = json!({"name": "go", "type": "Driver", "driver": "go-redis", "pool": {"sharing": "Exclusive"}});
        let spec = json!({
            "load": {
                "warmup": "0s",
                "duration": "1s",
                "openLoop": {"rate": 1000},
                "clients": [{"name": "engine", "type": "Engine"}, driver],
            },
            "preload": {"mode": "None"},
            "repeats": {"count": 5},
            "comparison": {"baseline": "engine", "metric": "CpuPerRequest"},
        });
        let object = Benchmark::create(&namespace, "drivers", &spec).await?.succeeded(SOON * 2).await?;
        check_counted(&namespace, &object).await?;
        let [_, driver] = list(&object, "/status/repeats") else {
            anyhow::bail!("not a cell for each client: {object}");
        };
        let cost = &driver["cost"];
        let version = cost["version"].as_str().unwrap_or_default();
        ensure!(cost["name"] == "go" && version.starts_with("go-redis "), "the cost is not that of go-redis: {driver}");
        for field in ["/cpuPerRequestNanoseconds", "/peakBytes"] {
            ensure!(count(cost, field)? > 0, "no {field} of the driver: {driver}");
        }
        let [compared] = list(&object, "/status/comparison") else {
            anyhow::bail!("no comparison: {object}");
        };
        ensure!(compared["target"] == "go", "not compared with the engine: {compared}");
        Ok(())
    });
}
