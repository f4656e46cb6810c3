//! Specs that the API server must refuse, each with a message that names the field.

use anyhow::{Context, Result, ensure};
use kube::api::{DynamicObject, PostParams};
use redisbench_e2e::benchmark::manifest;
use redisbench_e2e::tools::kubectl_with_input;
use redisbench_e2e::{Benchmark, TestNamespace, run};
use redisbench_testkit::api_server::merge;
use serde_json::{Value, json};

/// The change to a valid spec, the field that the message must name, and other required text.
const BAD: &str = "\
shards: {count: 0} | shards.count | should be greater than or equal to 1
shards: {count: 1000000} | shards.count | less than or equal
workload: {operations: [{name: get, weight: 0, command: GET __key__}]} | weight | should be greater than or equal to 1
load: {connections: 0} | load.connections | should be greater than or equal to 1
load: {openLoop: {rate: 0}} | load.openLoop.rate | should be greater than or equal to 1
load: {openLoop: {rate: 9000000000000000000}} | rate | less than or equal
load: {pipeline: 0} | load.pipeline | should be greater than or equal to 1
load: {type: Sideways} | load.type | supported values
load: {openLoop: {arrival: Pareto}} | arrival | supported values
load: {stages: [{duration: 9s, rate: {from: 0, to: 1}}]} | rate.from | should be greater than or equal to 1
load: {duration: 5 minutes} | duration | should match
targets: [] | spec.targets | should have at least 1 items
workload: {keys: {count: 0}} | keys.count | should be greater than or equal to 1
workload: {keys: {pattern: {zipf: {exponent: '0'}}}} | zipf.exponent | should match
search: {rate: {min: 1, max: 2}} | search.objective | Required
sweep: [{field: load.pace, values: [1]}] | sweep[0].field | supported values
sweep: [{field: load.pipeline, values: []}] | sweep[0].values | at least 1
sweep: [{field: load.pipeline, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]}], repeats: {count: 10} | spec | make 260 trials, the maximum is 250
load: {connections: 1} | load.connections | is 1, and must be at least shards.count, which is 2
";

#[test]
fn bad_specs_are_refused_at_apply() {
    run(|namespace| async move {
        for case in BAD.lines() {
            let parts: Vec<&str> = case.split(" | ").collect();
            let [patch, field, hint] = parts[..] else { anyhow::bail!("{case}") };
            let patch: Value = serde_yaml::from_str(&format!("{{{patch}}}")).context(case)?;
            let refusal =
                refused(&namespace, &manifest("bad", &patch)).await?.context("it was accepted").context(case)?;
            ensure!(refusal.contains(field), "{case}: the message does not name {field}: {refusal}");
            ensure!(refusal.contains(hint), "{case}: the message does not contain {hint:?}: {refusal}");
        }
        Ok(())
    });
}

/// Cases of the rules across fields. The unit tests hold the operator and the command line against the same ones.
const CASES: &str = include_str!("../../../benchmark/src/api/rules/cases.txt");

#[test]
fn each_rule_refuses_what_breaks_it_and_nothing_else() {
    run(|namespace| async move {
        let parsed = |text: &str| -> Result<Value> {
            let words = CASES.lines().filter_map(|line| line.split_once(" = "));
            let text = words.fold(format!("{{{text}}}"), |text, (word, meaning)| text.replace(word, meaning));
            Ok(serde_yaml::from_str(&text)?)
        };
        let object = |change: &str| -> Result<Value> {
            let change = parsed(change)?;
            let mut object = manifest("case", &json!({}));
            object["spec"] = parsed("BASE")?;
            let changed = if change["metadata"].is_object() { &mut object } else { &mut object["spec"] };
            merge(changed, change);
            Ok(object)
        };
        for case in CASES.lines().filter(|line| line.contains(" | ")) {
            let parts: Vec<&str> = case.split(" | ").collect();
            let [field, breaks, keeps, ref text @ ..] = parts[..] else { anyhow::bail!("{case}") };
            let refusal = refused(&namespace, &object(breaks)?).await?.context("it was accepted").context(case)?;
            let paths: String = refusal.chars().filter(|letter| !letter.is_ascii_digit()).collect();
            ensure!(paths.contains(&format!("{field}: Invalid value: ")), "{case}: {refusal}");
            ensure!(text.iter().all(|part| refusal.contains(part)), "{case}: {refusal}");
            // Printed instead of a message that cannot be evaluated.
            ensure!(!refusal.contains("failed rule"), "{case}: {refusal}");
            let refusal = refused(&namespace, &object(keeps)?).await?;
            ensure!(refusal.is_none(), "{case}: {refusal:?}");
        }
        Ok(())
    });
}

/// The API server's message if it refuses `manifest`.
async fn refused(namespace: &TestNamespace, manifest: &Value) -> Result<Option<String>> {
    let object: DynamicObject = serde_json::from_value(manifest.clone())?;
    let trial = PostParams { dry_run: true, ..PostParams::default() };
    match namespace.benchmarks().create(&trial, &object).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
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
