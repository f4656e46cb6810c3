//! A password in a Secret appears nowhere else.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use redisbench_e2e::benchmark::SOON;
use redisbench_e2e::cluster::{OPERATOR, SYSTEM};
use redisbench_e2e::metrics::Scrape;
use redisbench_e2e::tools::kubectl;
use redisbench_e2e::{Benchmark, TestNamespace, redis, run};
use serde_json::json;

#[test]
fn a_password_appears_nowhere() {
    run(|namespace| async move {
        // The random part of the namespace's name makes it unique to this test.
        let password = format!("hush-{}", namespace.name.rsplit('-').next().unwrap_or_default().repeat(3));
        let conf = format!("user default off\nuser bench on >{password} ~* &* +@all\n");
        let auth = json!({"username": "bench", "password": password});
        namespace.secret("redis-conf", json!({"redis.conf": conf})).await?;
        namespace.secret("redis-auth", auth).await?;
        redis::configured(&namespace, "redis", "redis-conf").await?;
        let reference = json!({"name": "redis-auth", "usernameKey": "username", "passwordKey": "password"});
        let target = json!([{
            "name": "redis",
            "type": "Standalone",
            "endpoints": ["redis:6379"],
            "auth": {"secretRef": reference},
        }]);
        let benchmark = Benchmark::create(&namespace, "quiet", &json!({"targets": target})).await?;
        benchmark.measuring().await?;
        // Shards have logs only while their pods exist, and metrics are live only during the load.
        check(&namespace, &password).await?;
        benchmark.succeeded(SOON).await?;
        check(&namespace, &password).await
    });
}

async fn check(namespace: &TestNamespace, password: &str) -> Result<()> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(password);
    let kinds = "redisbenchmarks,jobs,pods,configmaps,events,leases,services,endpointslices";
    let shards = ["logs", "-l", "batch.kubernetes.io/job-name", "--prefix", "--tail=-1", "--max-log-requests=20"];
    let own_secrets = "jsonpath={range .items[?(@.metadata.ownerReferences)]}{.data}{end}";
    let places = [
        ("the API's objects", namespace.kubectl(&["get", kinds, "-o", "yaml"]).await?),
        ("the operator's Secrets", namespace.kubectl(&["get", "secrets", "-o", own_secrets]).await?),
        ("the shards' logs", namespace.kubectl(&shards).await?),
        ("the operator's logs", kubectl(&["-n", SYSTEM, "logs", "-l", OPERATOR, "--tail=-1"]).await?),
        (
            "the operator's objects",
            kubectl(&["-n", SYSTEM, "get", "pods,configmaps,leases,events", "-o", "yaml"]).await?,
        ),
        ("the metrics", Scrape::take().await?.text),
    ];
    for (place, text) in places {
        let found = text.lines().find(|line| line.contains(password) || line.contains(&encoded));
        ensure!(found.is_none(), "the password is in {place}: {}", found.context("a line")?);
    }
    Ok(())
}
