use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redisbench_e2e::benchmark::{SOON, manifest, phase};
use redisbench_e2e::tools::Running;
use redisbench_e2e::{Benchmark, redis, run};
use serde_json::json;

#[test]
fn the_plugin_runs_a_manifest_to_its_end() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        // A number of requests leaves none unsent at the end, even on a busy machine.
        let manifest = manifest("plugged", &json!({"load": {"duration": null, "requests": 1200}}));
        let ended =
            Running::plugin(&["run", "-f", "-", "-n", &namespace.name], &manifest.to_string()).await?.ended().await?;
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
    let ended = Running::plugin(&["run", "-f", "-", "-n", namespace], &bad.to_string()).await?.ended().await?;
    ensure!(ended.code == 2, "exit {} for a bad manifest: {}", ended.code, ended.errors);
    ensure!(ended.errors.contains("spec.load.connections"), "the field is not named: {}", ended.errors);
    Ok(())
}

#[test]
fn interrupting_the_plugin_aborts_the_benchmark() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let manifest = manifest("interrupted", &json!({"load": {"duration": "10m"}}));
        let plugin = Running::plugin(&["run", "-f", "-", "-n", &namespace.name], &manifest.to_string()).await?;
        let benchmark = Benchmark::named(&namespace, "interrupted");
        benchmark.running().await?;
        plugin.interrupt()?;
        let ended = plugin.ended().await?;
        ensure!(ended.code == 1, "exit {} after an abort: {}", ended.code, ended.errors);
        let object = benchmark.finished(SOON).await?;
        ensure!(phase(&object) == "Aborted", "not aborted: {}", object["status"]);
        ensure!(ended.output.contains("scheduled"), "the partial result is not printed:\n{}", ended.output);
        Ok(())
    });
}

/// Runs the plugin in `namespace`, and returns its output if it exits with `code`.
async fn says(namespace: &str, code: i32, arguments: &[&str]) -> Result<String> {
    let ended = Running::plugin(&[arguments, &["-n", namespace]].concat(), "").await?.ended().await?;
    ensure!(ended.code == code, "{arguments:?}: exit {} and {}", ended.code, ended.errors);
    Ok(ended.output + &ended.errors)
}

#[test]
fn the_plugin_shows_and_aborts_what_runs() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let benchmark = Benchmark::create(&namespace, "shown", &json!({"load": {"duration": "10m"}})).await?;
        benchmark.measuring().await?;
        let place = namespace.name.as_str();
        let list = says(place, 0, &["list"]).await?;
        ensure!(list.contains("shown") && list.contains("Running"), "{list}");
        let status = says(place, 0, &["status", "shown"]).await?;
        ensure!(status.contains("Running") && status.contains("Reconciling"), "{status}");
        let unfinished = says(place, 2, &["result", "shown"]).await?;
        ensure!(unfinished.contains("is Running, so there is no result yet"), "{unfinished}");
        let unknown = says(place, 1, &["status", "shwon"]).await?;
        ensure!(unknown.contains("did you mean shown?"), "{unknown}");
        says(place, 0, &["logs", "shown", "--shard", "0"]).await?;
        let refused = says(place, 2, &["abort", "shown"]).await?;
        ensure!(refused.contains("use --yes"), "{refused}");
        let watch = Running::plugin(&["watch", "shown", "-n", place], "").await?;
        let aborted = says(place, 0, &["abort", "shown", "--yes"]).await?;
        ensure!(aborted.contains("shown is Aborted"), "{aborted}");
        // The watch ends with the benchmark, and prints the same as `result`.
        let watched = watch.ended().await?;
        ensure!(watched.code == 1, "exit {}: {}", watched.code, watched.errors);
        let result = says(place, 1, &["result", "shown"]).await?;
        ensure!(watched.output == result && result.contains("scheduled"), "{}\n{result}", watched.output);
        let version = says(place, 0, &["version"]).await?;
        ensure!(version.contains("operator  ") && version.contains(" ready"), "{version}");
        Ok(())
    });
}
