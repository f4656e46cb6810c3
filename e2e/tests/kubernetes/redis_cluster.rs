use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use redisbench_e2e::accounts::{check_served, sent, served};
use redisbench_e2e::benchmark::SOON;
use redisbench_e2e::json::{count, list};
use redisbench_e2e::{Benchmark, redis, run};
use serde_json::{Value, json};

#[test]
fn four_shards_load_a_redis_cluster() {
    run(|namespace| async move {
        redis::cluster(&namespace, "redis-cluster").await?;
        let spec = json!({
            "targets": [{"name": "cluster", "type": "Cluster", "endpoints": ["redis-cluster:6379"]}],
            "load": {"connections": 12, "openLoop": {"rate": 600}},
            "shards": {"count": 4, "placement": "Spread"},
            "measurement": {"breakdown": ["Operation", "Node"]},
        });
        let benchmark = Benchmark::create(&namespace, "cluster", &spec).await?;
        benchmark.running().await?;
        let pods = benchmark.pods().await?;
        ensure!(pods.len() == 4, "{} pods of four shards", pods.len());
        let used: BTreeSet<_> = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
        let nodes = Api::<Node>::all(namespace.client.clone()).list(&ListParams::default()).await?.items.len();
        ensure!(used.len() == nodes.min(4), "four shards on {used:?} of {nodes} nodes");

        let object = benchmark.succeeded(SOON).await?;
        check_nodes(&object)?;
        let mut total = 0;
        for index in 0..2 * redis::PRIMARIES {
            // Replicas apply the writes of their primary, and count them as their own.
            let pod = format!("redis-cluster-{index}");
            if redis::cli(&namespace, &pod, &["role"]).await?.starts_with("master") {
                total += served(&redis::calls(&namespace, &pod).await?);
            }
        }
        let sent = sent(&object)?;
        ensure!(total == sent, "the primaries counted {total} requests, the benchmark {sent}");
        Ok(())
    });
}

#[test]
fn every_pod_of_a_headless_service_is_loaded() {
    run(|namespace| async move {
        redis::headless(&namespace, "redis", redis::PRIMARIES, &[]).await?;
        let pool = json!({
            "name": "redis", "type": "Pool", "endpoints": ["redis:6379"], "pool": {"distribution": "ByKey"},
        });
        let spec = json!({
            "targets": [pool],
            "load": {"connections": 12},
            "measurement": {"breakdown": ["Operation", "Node"]},
        });
        let object = Benchmark::create(&namespace, "pool", &spec).await?.succeeded(SOON).await?;
        check_nodes(&object)?;
        let mut total = 0;
        for index in 0..redis::PRIMARIES {
            total += served(&redis::calls(&namespace, &format!("redis-{index}")).await?);
        }
        let sent = sent(&object)?;
        ensure!(total == sent, "the servers counted {total} requests, the benchmark {sent}");
        Ok(())
    });
}

fn check_nodes(object: &Value) -> Result<()> {
    let nodes = list(object, "/status/result/nodes");
    ensure!(nodes.len() == redis::PRIMARIES, "a breakdown over {} nodes: {nodes:?}", nodes.len());
    let sum = |field: &str| nodes.iter().map(|node| count(node, field)).sum::<Result<u64>>();
    ensure!(sum("/slots")? == 16384, "the nodes own {} slots: {nodes:?}", sum("/slots")?);
    ensure!(nodes.iter().all(|node| node["requests"].as_u64() > Some(0)), "a node without requests: {nodes:?}");
    let requests = &object["status"]["result"]["requests"];
    let total = count(requests, "/scheduled")? - count(requests, "/unsent")?;
    ensure!(sum("/requests")? == total, "the nodes' requests sum to {} of {total}", sum("/requests")?);
    Ok(())
}

#[test]
fn two_benchmarks_at_once() {
    run(|namespace| async move {
        redis::standalone(&namespace, "redis").await?;
        let open = json!({"workload": {"keys": {"prefix": "open:"}}});
        let closed = json!({
            "workload": {"keys": {"prefix": "closed:"}},
            "load": {"type": "ClosedLoop", "openLoop": null, "requests": 5000, "duration": null},
        });
        let first = Benchmark::create(&namespace, "open", &open).await?;
        let second = Benchmark::create(&namespace, "closed", &closed).await?;
        let (open, closed) = tokio::try_join!(first.succeeded(SOON), second.succeeded(SOON))?;
        ensure!(count(&open, "/status/result/requests/scheduled")? == 400 * 5, "not rate x duration: {open}");
        ensure!(count(&closed, "/status/result/requests/scheduled")? == 5000, "not the requests asked for: {closed}");
        check_served(&namespace, &[&open, &closed]).await
    });
}
