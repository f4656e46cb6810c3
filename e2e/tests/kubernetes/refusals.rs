//! Specs that the API server must refuse, each with a message that names the field and the bound.

use anyhow::{Context, Result, ensure};
use kube::api::{DynamicObject, PostParams};
use redisbench_e2e::benchmark::manifest;
use redisbench_e2e::tools::kubectl_with_input;
use redisbench_e2e::{Benchmark, TestNamespace, run};
use serde_json::{Value, json};

#[test]
fn bad_specs_are_refused_at_apply() {
    run(|namespace| async move {
        let operation =
            |weight: u64| json!({"operations": [{"name": "get", "weight": weight, "command": "GET __key__"}]});
        let two = json!([
            {"name": "a", "type": "Standalone", "endpoints": ["a:6379"]},
            {"name": "b", "type": "Standalone", "endpoints": ["b:6379"]},
        ]);
        let huge = json!({"openLoop": {"rate": 9_000_000_000_000_000_000_u64}});
        let callers = json!({"type": "ClosedLoop", "openLoop": null, "closedLoop": {"concurrency": 1_000_000}});
        let ramp = json!([{"duration": "9s", "rate": {"from": 1, "to": 9}}]);
        let twice = json!([
            {"name": "up", "duration": "9s", "rate": {"from": 1, "to": 9}},
            {"name": "up", "duration": "9s", "rate": {"from": 9, "to": 9}},
        ]);
        // The change to a valid spec, the field that the message must name, and other required text.
        let cases: Vec<(Value, &str, &str)> = vec![
            (json!({"shards": {"count": 0}}), "shards.count", "should be greater than or equal to 1"),
            (json!({"shards": {"count": 1_000_000}}), "shards.count", "less than or equal"),
            (json!({"workload": operation(0)}), "weight", "should be greater than or equal to 1"),
            (json!({"workload": {"operations": []}}), "operations", "exactly one of operations and preset"),
            (
                json!({"load": {"connections": 1}}),
                "spec.load",
                "load.connections is 1, and must be at least shards.count, which is 2",
            ),
            (json!({"load": {"connections": 0}}), "load.connections", "should be greater than or equal to 1"),
            (json!({"load": {"openLoop": {"rate": 0}}}), "load.openLoop.rate", "should be greater than or equal to 1"),
            (json!({"load": huge}), "rate", "less than or equal"),
            (json!({"load": {"pipeline": 0}}), "load.pipeline", "should be greater than or equal to 1"),
            (json!({"load": {"type": "ClosedLoop"}}), "load.openLoop", "openLoop must not be set for type ClosedLoop"),
            (json!({"load": {"openLoop": null}}), "spec.load", "load.openLoop must be set for type OpenLoop"),
            (json!({"load": {"type": "Sideways"}}), "load.type", "supported values"),
            (json!({"load": {"openLoop": {"arrival": "Pareto"}}}), "arrival", "supported values"),
            (json!({"load": {"openLoop": {"rate": null}}}), "openLoop", "or stages"),
            (
                json!({"load": {"closedLoop": {"concurrency": 3}}}),
                "load.closedLoop",
                "closedLoop must not be set for type OpenLoop",
            ),
            (json!({"load": {"pipelineMode": "Batch"}}), "load.pipelineMode", "is only valid for type ClosedLoop"),
            (json!({"load": callers}), "concurrency", "connections x pipeline"),
            (json!({"load": {"stages": ramp}}), "stages", "at most one"),
            (json!({"load": {"stages": ramp, "duration": null}}), "openLoop.rate", "remove one of them"),
            (
                json!({"load": {"stages": [{"duration": "9s", "rate": {"from": 0, "to": 1}}]}}),
                "rate.from",
                "should be greater than or equal to 1",
            ),
            (json!({"load": {"openLoop": null, "duration": null, "stages": twice}}), "load.stages", "the same name"),
            (json!({"load": {"duration": "5 minutes"}}), "duration", "should match"),
            (json!({"targets": []}), "spec.targets", "should have at least 1 items"),
            (json!({"targets": two}), "targets", "comparison must be set with several targets"),
            (json!({"workload": {"keys": {"count": 0}}}), "keys.count", "should be greater than or equal to 1"),
            (json!({"workload": {"keys": {"pattern": {"type": "Zipf"}}}}), "keys.pattern", "exponent"),
            (json!({"workload": {"keys": {"pattern": {"zipf": {"exponent": "0"}}}}}), "zipf.exponent", "should match"),
            (json!({"workload": {"keys": {"pattern": {"gaussian": {"mean": 5_000_000}}}}}), "keys.pattern", "Gaussian"),
            (json!({"workload": {"values": {"size": {"type": "Range"}}}}), "values.size", "minBytes"),
            (json!({"workload": {"values": {"size": {"type": "Weighted"}}}}), "values.size", "weight"),
        ];
        let search =
            |min: u64| json!({"objective": {"quantile": "0.99", "max": "2ms"}, "rate": {"min": min, "max": 9000}});
        let open = json!({"openLoop": null});
        let sweep = json!([{"field": "load.pipeline", "values": [1, 2]}]);
        let searches: Vec<(Value, &str, &str)> = vec![
            (json!({"search": search(1000)}), "load", "search sets the rate"),
            (
                json!({"load": {"type": "ClosedLoop", "openLoop": null}, "search": search(1000)}),
                "load",
                "search sets the rate",
            ),
            (json!({"load": open, "search": {"rate": {"min": 1, "max": 2}}}), "search.objective", "Required"),
            (json!({"load": open, "search": search(9001)}), "search.rate", "at least min"),
            (json!({"load": open, "search": search(1000), "repeats": {"count": 2}}), "repeats", "with search"),
            (json!({"load": open, "search": search(1000), "sweep": sweep}), "sweep", "with search"),
        ];
        let five = json!({"count": 5});
        let compared = |comparison: Value| json!({"targets": two, "comparison": comparison, "repeats": five});
        let many: Vec<u32> = (1..=26).collect();
        let trials = json!({
            "targets": two, "comparison": {"baseline": "a"}, "repeats": five,
            "sweep": [{"field": "load.pipeline", "values": many}],
        });
        let comparisons: Vec<(Value, &str, &str)> = vec![
            (compared(json!({"baseline": "c"})), "comparison", "must be the name of a target"),
            (compared(json!({})), "comparison", "must have either baseline"),
            (compared(json!({"baseline": "a", "benchmark": "other"})), "comparison", "must have either baseline"),
            (compared(json!({"benchmark": "other"})), "comparison", "requires a single target"),
            (json!({"comparison": {"baseline": "redis"}, "repeats": five}), "comparison", "at least two targets"),
            (json!({"targets": two, "comparison": {"baseline": "a"}}), "repeats", "at least 5 with comparison"),
            (json!({"comparison": {"benchmark": "other"}}), "repeats", "at least 5 with comparison"),
            (trials, "sweep", "make 260 trials, the maximum is 250"),
            (json!({"sweep": [{"field": "load.pace", "values": [1]}]}), "sweep[0].field", "supported values"),
            (json!({"sweep": [{"field": "load.pipeline", "values": []}]}), "sweep[0].values", "at least 1"),
        ];
        for (patch, field, hint) in cases.into_iter().chain(searches).chain(comparisons) {
            let refusal = refused(&namespace, &manifest("bad", &patch)).await.context(patch.to_string())?;
            ensure!(refusal.contains(field), "with {patch}: the message does not name {field}: {refusal}");
            ensure!(refusal.contains(hint), "with {patch}: the message does not contain {hint:?}: {refusal}");
        }
        Ok(())
    });
}

/// The API server's message when it refuses `manifest`.
async fn refused(namespace: &TestNamespace, manifest: &Value) -> Result<String> {
    let object: DynamicObject = serde_json::from_value(manifest.clone())?;
    let trial = PostParams { dry_run: true, ..PostParams::default() };
    match namespace.benchmarks().create(&trial, &object).await {
        Ok(_) => anyhow::bail!("it was accepted"),
        Err(kube::Error::Api(status)) => Ok(status.message.clone()),
        Err(other) => Err(other.into()),
    }
}

#[test]
fn other_versions_and_unknown_fields_are_refused() {
    run(|namespace| async move {
        let apply = ["-n", &namespace.name, "apply", "--dry-run=server", "-f", "-"];
        let unknown = manifest("unknown", &json!({"load": {"conections": 4}}));
        let refusal = kubectl_with_input(&apply, &unknown.to_string()).await;
        let refusal = format!("{:#}", refusal.err().context("an unknown field was accepted")?);
        ensure!(refusal.contains("unknown field \"spec.load.conections\""), "{refusal}");

        let mut newer = manifest("newer", &json!({}));
        newer["apiVersion"] = json!("redisbench.dev/v2");
        let refusal = kubectl_with_input(&apply, &newer.to_string()).await;
        let refusal = format!("{:#}", refusal.err().context("another version was accepted")?);
        ensure!(refusal.contains("redisbench.dev/v2"), "{refusal}");
        Ok(())
    });
}

#[test]
fn a_running_spec_is_fixed() {
    run(|namespace| async move {
        redisbench_e2e::redis::standalone(&namespace, "redis").await?;
        let benchmark = Benchmark::create(&namespace, "fixed", &json!({"load": {"duration": "60s"}})).await?;
        benchmark.running().await?;
        for patch in [json!({"load": {"pipeline": 8}}), json!({"measurement": {"breakdown": ["Node"]}})] {
            let refusal = benchmark.patch(&patch).await.err().context("a running spec was changed")?;
            ensure!(format!("{refusal:#}").contains("spec"), "{refusal:#}");
        }
        Ok(())
    });
}
