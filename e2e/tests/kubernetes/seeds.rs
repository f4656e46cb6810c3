//! The manifests of `examples/seeds`, applied unchanged except for the address of a target with TLS.

use anyhow::{Context, Result, ensure};
use redisbench_e2e::accounts::{check_served, sent};
use redisbench_e2e::benchmark::SOON;
use redisbench_e2e::cluster::repository;
use redisbench_e2e::json::{count, list};
use redisbench_e2e::tools::kubectl_with_input;
use redisbench_e2e::{Benchmark, TestNamespace, redis, run};
use serde_json::{Value, json};

/// Applies a tool's example and waits for its success.
async fn succeeded(namespace: &TestNamespace, name: &str, endpoint: &str, address: &str) -> Result<Value> {
    let path = repository().join("examples/seeds").join(name).with_extension("yaml");
    let manifest = std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    ensure!(manifest.matches(endpoint).count() == 1, "{name} does not name {endpoint} once");
    kubectl_with_input(&["-n", &namespace.name, "apply", "-f", "-"], &manifest.replace(endpoint, address)).await?;
    // memtier's runs ten times.
    Benchmark::named(namespace, name).succeeded(SOON * 3).await
}

/// Checks that a benchmark with one trial made its requests and none failed. On a busy machine some may not have been sent in time.
fn check_all(object: &Value, requests: u64) -> Result<()> {
    let result = &object["status"]["result"];
    let [scheduled, errors] = ["/requests/scheduled", "/requests/errors"].map(|field| count(result, field));
    ensure!((scheduled?, errors?) == (requests, 0), "not {requests} requests without errors: {result}");
    Ok(())
}

#[test]
fn redis_client() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let object = succeeded(&namespace, "redis-client", "redis:6379", "redis:6379").await?;
        check_all(&object, 200_000)?;
        check_served(&namespace, &[&object]).await
    });
}

#[test]
fn memtier() {
    run(|namespace| async move {
        let pair = rcgen::generate_simple_self_signed(["redis".to_owned()])?;
        let conf = "tls-port 6380\ntls-cert-file /etc/redis/tls.crt\ntls-key-file /etc/redis/tls.key\n\
                    tls-ca-cert-file /etc/redis/tls.crt\ntls-auth-clients no\n\
                    user bench on >change-me ~* &* +@all -config\n";
        let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        let secret = json!({"redis.conf": conf, "tls.crt": certificate, "tls.key": key});
        namespace.secret("redis-conf", secret).await?;
        redis::secure(&namespace, "redis", "redis-conf").await?;
        let object = succeeded(&namespace, "memtier", "redis:6380", "redis-tls:6380").await?;
        let trials = list(&object, "/status/trials");
        ensure!(trials.len() == 10, "{} trials of 10: {object}", trials.len());
        for trial in trials {
            let [succeeded, misses] = ["/requests/succeeded", "/misses"].map(|field| count(trial, field));
            ensure!((succeeded?, misses?) == (100_000, 0), "not all of it, or reads that found nothing: {trial}");
        }
        Ok(())
    });
}

#[test]
fn redis_benchmark_go() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        redis::replica(&namespace, "replica", "redis").await?;
        let object = succeeded(&namespace, "redis-benchmark-go", "redis:6379", "redis:6379").await?;
        check_all(&object, 10_000)?;
        let calls = redis::calls(&namespace, "deployment/redis").await?;
        let sent = sent(&object)?;
        let counted = ["set", "wait"].map(|command| calls.get(command).copied());
        ensure!(counted == [Some(sent); 2], "the server counted {calls:?}: {object}");
        Ok(())
    });
}

#[test]
fn fred() {
    run(|namespace| async move {
        redis::cluster(&namespace, "redis-cluster").await?;
        redis::protect(&namespace, "redis-cluster", "bar").await?;
        let object = succeeded(&namespace, "fred", "redis-cluster:6379", "redis-cluster:6379").await?;
        check_all(&object, 1_000_000)
    });
}

#[test]
fn redishappy() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        redis::haproxy(&namespace, "haproxy", "redis").await?;
        let object = succeeded(&namespace, "redishappy-proxy", "haproxy:6379", "haproxy:6379").await?;
        let trials = list(&object, "/status/trials");
        ensure!(trials.len() == 7, "{} trials of 7: {object}", trials.len());
        for trial in trials {
            let [succeeded, misses] = ["/requests/succeeded", "/misses"].map(|field| count(trial, field));
            ensure!((succeeded?, misses?) == (20_000, 0), "not all of it: {trial}");
        }
        let calls = redis::calls(&namespace, "deployment/redis").await?;
        let counted = ["get", "incr", "lpop", "spop"].map(|command| calls.get(command).copied());
        ensure!(counted == [Some(20_000); 4], "the server counted {calls:?}");
        Ok(())
    });
}
