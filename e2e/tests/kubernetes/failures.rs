//! Targets that cannot be measured: Failed within a minute, with a message that explains the fix.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use redisbench_e2e::benchmark::{SOON, condition, is_finished, message, phase};
use redisbench_e2e::{Benchmark, TestNamespace, redis, run, wait};
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn targets_that_cannot_be_measured_fail_soon() {
    run(|namespace| async move {
        namespace.secret("redis-conf", json!({"redis.conf": "requirepass right\n"})).await?;
        namespace.secret("wrong", json!({"password": "wrong"})).await?;
        tokio::try_join!(redis::configured(&namespace, "locked", "redis-conf"), redis::standalone(&namespace, "open"))?;
        let target = |kind: &str, endpoint: &str| json!([{"name": "t", "type": kind, "endpoints": [endpoint]}]);
        let mut wrong_password = target("Standalone", "locked:6379");
        wrong_password[0]["auth"] = json!({"secretRef": {"name": "wrong", "passwordKey": "password"}});
        // The target, and the required text of the message.
        let cases = [
            ("wrong-password", wrong_password, &["password", "auth.secretRef"][..]),
            ("no-password", target("Standalone", "locked:6379"), &["password", "auth.secretRef"]),
            ("closed-port", target("Standalone", "open:6380"), &["open:6380", "endpoints"]),
            // A network that is reserved for documentation and never answers.
            ("black-hole", target("Standalone", "192.0.2.1:6379"), &["192.0.2.1:6379", "NetworkPolicy"]),
            ("no-such-name", target("Standalone", "nowhere:6379"), &["nowhere", "endpoints"]),
            ("no-cluster", target("Cluster", "open:6379"), &["type", "Standalone"]),
        ];
        try_join_all(cases.iter().map(|(name, targets, says)| fails(&namespace, name, targets, says))).await?;
        Ok(())
    });
}

async fn fails(namespace: &TestNamespace, name: &str, targets: &Value, says: &[&str]) -> Result<()> {
    let spec = json!({"targets": targets, "shards": {"count": 1}, "load": {"timeouts": {"connect": "2s"}}});
    let benchmark = Benchmark::create(namespace, name, &spec).await?;
    // The minute is the shard's, and its pod may start late.
    wait::answer("a running shard, or the end", SOON, || async {
        let running = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        let begun = benchmark.pods().await?.iter().any(running) || is_finished(&benchmark.get().await?);
        Ok(begun.then_some(()))
    })
    .await?;
    let object = benchmark.finished(MINUTE).await?;
    ensure!(phase(&object) == "Failed", "{name} did not fail: {}", object["status"]);
    ensure!(condition(&object, "Failed") == Some("True"), "{name}: no condition Failed");
    let message = message(&object, "Failed");
    for word in says {
        ensure!(message.contains(word), "{name}: the message does not contain {word:?}: {message}");
    }
    Ok(())
}

#[test]
fn what_the_schema_cannot_judge_is_not_accepted() {
    run(|namespace| async move {
        // Unbalanced quotes, which no pattern of the schema detects.
        let operations = json!([{"name": "get", "weight": 1, "command": "GET \"__key__"}]);
        let spec = json!({"workload": {"operations": operations}});
        let benchmark = Benchmark::create(&namespace, "unquoted", &spec).await?;
        let refused = |o: &Value| condition(o, "Accepted") == Some("False");
        let object = benchmark.wait("refused", Duration::from_secs(20), refused).await?;
        let message = message(&object, "Accepted");
        ensure!(message.contains("workload.operations"), "the message names no field: {message}");
        ensure!(phase(&object) == "Pending", "not Pending: {}", object["status"]);
        // Correcting the spec is sufficient.
        redis::standalone(&namespace, "redis").await?;
        let operations = json!([{"name": "get", "weight": 1, "command": "GET __key__"}]);
        benchmark.patch(&json!({"workload": {"operations": operations}})).await?;
        benchmark.succeeded(SOON).await?;
        Ok(())
    });
}
