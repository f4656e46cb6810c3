use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redisbench_e2e::benchmark::{SOON, manifest, phase};
use redisbench_e2e::tools::Plugin;
use redisbench_e2e::{Benchmark, redis, run};
use serde_json::json;

#[test]
fn the_plugin_runs_a_manifest_to_its_end() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let manifest = manifest("plugged", &json!({"load": {"duration": "3s"}}));
        let ended =
            Plugin::start(&["run", "-f", "-", "-n", &namespace.name], &manifest.to_string()).await?.ended().await?;
        ensure!(ended.code == 0, "exit {} and {}", ended.code, ended.errors);
        let object = Benchmark::named(&namespace, "plugged").succeeded(Duration::from_secs(5)).await?;
        let rate = object["status"]["summary"]["rate"].as_str().context("no rate")?;
        let verdict = object["status"]["summary"]["verdict"].as_str().context("no verdict")?;
        for word in ["plugged", verdict, rate, "response time", "scheduled"] {
            ensure!(ended.output.contains(word), "no {word} in\n{}", ended.output);
        }
        refuses_a_bad_manifest(&namespace.name).await
    });
}

async fn refuses_a_bad_manifest(namespace: &str) -> Result<()> {
    let bad = manifest("bad", &json!({"load": {"connections": 1}}));
    let ended = Plugin::start(&["run", "-f", "-", "-n", namespace], &bad.to_string()).await?.ended().await?;
    ensure!(ended.code == 2, "exit {} for a bad manifest: {}", ended.code, ended.errors);
    ensure!(ended.errors.contains("spec.load.connections"), "the field is not named: {}", ended.errors);
    Ok(())
}

#[test]
fn interrupting_the_plugin_aborts_the_benchmark() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let manifest = manifest("interrupted", &json!({"load": {"duration": "10m"}}));
        let plugin = Plugin::start(&["run", "-f", "-", "-n", &namespace.name], &manifest.to_string()).await?;
        let benchmark = Benchmark::named(&namespace, "interrupted");
        benchmark.running().await?;
        plugin.interrupt().await?;
        let ended = plugin.ended().await?;
        ensure!(ended.code == 1, "exit {} after an abort: {}", ended.code, ended.errors);
        let object = benchmark.finished(SOON).await?;
        ensure!(phase(&object) == "Aborted", "not aborted: {}", object["status"]);
        ensure!(ended.output.contains("scheduled"), "the partial result is not printed:\n{}", ended.output);
        Ok(())
    });
}
