//! A search for the highest rate, on a cluster.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use redisbench_e2e::benchmark::{SOON, condition, manifest, message};
use redisbench_e2e::json::{count, list, text};
use redisbench_e2e::tools::Running;
use redisbench_e2e::{Benchmark, TestNamespace, redis, run_within};
use serde_json::{Value, json};

/// The capacity that [`SCRIPT`] allows, in requests per second.
const CAPACITY: f64 = 250.0;

/// Occupies the server's main thread until the request's due time: 4 ms after the previous one. So the capacity is the same on every
/// machine. A delayed server may catch up 40 ms.
const SCRIPT: &str = "local function now() local t = redis.call('TIME'); return t[1] * 1000000 + t[2] end \
    local due = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now() - 40000) + 4000 \
    while now() < due do end \
    redis.call('SET', KEYS[1], string.format('%.0f', due)) \
    return 1";

/// Seven steps of 12 s, and twice as many if the server was short of CPU time.
const LIMIT: Duration = Duration::from_secs(300);

/// The lowest rate holds and the highest does not. One halving makes the bracket narrow enough.
fn search() -> Value {
    json!({
        "workload": {
            "operations": [{"name": "paced", "command": "EVALSHA __script:paced__ 1 due"}],
            "scripts": [{"name": "paced", "source": SCRIPT}],
        },
        "preload": {"mode": "None"},
        // If other work delays the server, the probe shows where the queue is, unless it is on a link.
        "measurement": {"linkCapacity": "1Gbit", "probe": true},
        "search": {
            "objective": {"quantile": "0.9", "max": "200ms"},
            "rate": {"min": 217, "max": 260, "toleranceBasisPoints": 2000},
        },
        "load": {"openLoop": null, "duration": null, "warmup": "2s", "pipeline": 16},
    })
}

/// The only rate holds even on a busy machine, and then three more times.
#[test]
fn a_rate_that_holds_is_confirmed_three_times() {
    run_within(LIMIT, |namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let search = json!({
            "search": {"objective": {"quantile": "0.9", "max": "10m"}, "rate": {"min": 100, "max": 100}},
            // So long that a pause at the end of a step delays only a few of its requests.
            "load": {"openLoop": null, "duration": "20s", "warmup": "2s"},
        });
        let manifest = manifest("search", &search).to_string();
        let ended = Running::plugin(&["run", "-f", "-", "-n", &namespace.name], &manifest).await?.ended().await?;
        let object = Benchmark::named(&namespace, "search").succeeded(SOON).await?;
        ensure!(ended.code == 0, "exit {} and {}", ended.code, ended.errors);
        ensure!(object["status"]["search"]["ending"] == "MaxPassed", "{}", object["status"]["search"]);
        ensure!(count(&object, "/status/search/lastGoodPerSecond")? == 100, "{}", object["status"]["search"]);
        let steps = list(&object, "/status/trials");
        let confirmations: Vec<_> = steps.iter().map(|step| step["search"]["confirmation"].as_u64()).collect();
        ensure!(confirmations == [None, Some(1), Some(2), Some(3)], "{}", object["status"]["trials"]);
        Ok(())
    });
}

#[test]
#[ignore = "depends on how busy the machine is: make test-faults"]
fn a_known_capacity_is_found_with_the_target_as_its_limit() {
    run_within(LIMIT, |namespace| async move {
        let one_processor = |pod: &mut Value| pod["containers"][0]["resources"]["requests"]["cpu"] = json!("1");
        redis::standalone_with(&namespace, "redis", one_processor).await?;
        let mut seen = Vec::new();
        for name in ["search", "again"] {
            let object = found(&namespace, name).await?;
            if object["status"]["search"]["limitedBy"] == "Target" {
                // The component is the main thread. If it was short of CPU time, only the probe shows the limit, without a thread.
                let component = &object["status"]["search"]["component"];
                ensure!(component != "Path", "not the server: {}", object["status"]["search"]);
                ensure!(object["status"]["verdict"]["limitedBy"] == "Target", "{}", object["status"]["verdict"]);
                return Ok(());
            }
            // If the limit was not reached, it must not be reported.
            let busy = busiest(&Benchmark::named(&namespace, name), &object).await?;
            ensure!(busy < 9_500, "the server was busy for {busy}/10000: {}", object["status"]["search"]);
            seen.push(format!("the server was busy for {busy}/10000, {}", object["status"]["search"]));
        }
        bail!("the server or the shards had no processor for themselves: {}", seen.join("; "));
    });
}

/// Runs the search with the plugin, and checks everything that does not depend on other work on the machine.
async fn found(namespace: &TestNamespace, name: &str) -> Result<Value> {
    let manifest = manifest(name, &search()).to_string();
    let ended = Running::plugin(&["run", "-f", "-", "-n", &namespace.name], &manifest).await?.ended().await?;
    let object = Benchmark::named(namespace, name).succeeded(SOON).await?;
    let found = &object["status"]["search"];
    // Other work delayed the shards, and the answer reports that.
    if found["ending"] == "GeneratorLimited" {
        return Ok(object);
    }
    ensure!(found["ending"] == "Found", "nothing was found: {}", object["status"]);
    ensure!(ended.code == 0, "exit {} and {}", ended.code, ended.errors);
    let (good, bad) = (count(found, "/lastGoodPerSecond")?, count(found, "/firstBadPerSecond")?);
    ensure!((good as f64 / CAPACITY - 1.0).abs() <= 0.2, "found {good} of {CAPACITY}: {found}");
    ensure!(good < bad && bad as f64 <= good as f64 * 1.1, "{good} and {bad} are too far apart: {found}");
    ensure!(text(found, "/why")?.contains("p90 was"), "no reason: {found}");
    let column = text(&object, "/status/summary/rate")?;
    ensure!(column == format!("{good}/s"), "the column is {column}: {found}");
    ensure!(condition(&object, "Valid") == Some("True"), "{}", object["status"]["conditions"]);
    let sentence = format!("p90 of at most 200 ms holds up to {good}/s; not at {bad}/s");
    ensure!(message(&object, "Finished").starts_with(&sentence), "no {sentence:?}: {}", object["status"]["conditions"]);
    ensure!(ended.output.contains(&format!("up to {good}/s, not {bad}/s")), "not first:\n{}", ended.output);
    let steps = list(&object, "/status/trials");
    let confirmed =
        steps.iter().filter(|step| step["search"]["confirmation"].is_u64() && step["search"]["outcome"] == "Passed");
    ensure!(confirmed.count() >= 3, "not confirmed three times: {}", object["status"]["trials"]);
    let failed = steps.iter().filter(|step| count(&step["search"], "/ratePerSecond").ok() == Some(bad));
    ensure!(failed.count() >= 2, "the first bad rate was not tried again: {}", object["status"]["trials"]);
    Ok(object)
}

/// The server's CPU usage in the busiest of the steps at the first bad rate, in hundredths of a per cent of a processor.
async fn busiest(benchmark: &Benchmark, object: &Value) -> Result<u64> {
    let bad = count(object, "/status/search/firstBadPerSecond")?;
    let mut busiest = 0;
    for step in list(object, "/status/trials") {
        if count(&step["search"], "/ratePerSecond")? == bad {
            let name = format!("trial-{}.result.json", count(step, "/index")?);
            let full: Value = serde_json::from_str(&benchmark.artifact(&name).await?)?;
            busiest = busiest.max(count(&full, "/result/nodes/0/server/cpuMeanBasisPoints")?);
        }
    }
    Ok(busiest)
}
