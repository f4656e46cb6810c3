//! A node and everything on it dies, and comes back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use redisbench_e2e::benchmark::{SOON, shards};
use redisbench_e2e::faults::{Expected, Part, Report, lasts, operator};
use redisbench_e2e::json::count;
use redisbench_e2e::{Benchmark, TestNamespace, redis, run_alone};
use redisbench_testkit::api_server::merge;
use serde_json::{Value, json};

const PROMISED: &str =
    "the others continue; the node's shard counts up to its last report, the rest is unknown; Invalid, naming it";

/// Long enough to be noticed by all components, and too short for Kubernetes to evict the node's pods.
const DEAD: Duration = Duration::from_secs(15);

/// Creates a benchmark with one shard on each of two nodes, and Redis on the third. Returns it with the node to kill, which has a shard.
/// With `operator_too` the operator is on that node, otherwise on that of Redis.
async fn place(namespace: &TestNamespace, operator_too: bool, mut spec: Value) -> Result<(Benchmark, String)> {
    let operators = operator::leader(&namespace.client).await?;
    let operators = node_of(&operators)?;
    let nodes: Api<Node> = Api::all(namespace.client.clone());
    let names: Vec<String> = nodes.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
    let other = names.iter().find(|name| **name != operators).context("only one node")?;
    let (redis, victim) = if operator_too { (other, &operators) } else { (&operators, other) };
    let there = json!({"kubernetes.io/hostname": redis});
    redis::standalone_with(namespace, "redis", |pod| pod["nodeSelector"] = there).await?;
    let elsewhere = json!({"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [redis]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [elsewhere]}]}}});
    merge(&mut spec, json!({"shards": {"placement": "OnePerNode", "template": {"affinity": affinity}}}));
    let benchmark = Benchmark::create(namespace, "node", &spec).await?;
    benchmark.measuring().await?;
    let on_victim = |pod: &Pod| node_of(pod).is_ok_and(|node| node == *victim);
    ensure!(benchmark.pods().await?.iter().filter(|pod| on_victim(pod)).count() == 1, "not one shard on {victim}");
    Ok((benchmark, victim.clone()))
}

fn node_of(pod: &Pod) -> Result<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("a pod without a node")
}

fn lost(object: &Value) -> bool {
    shards(object, "lost") > Some(0)
}

#[test]
fn killed_and_back_in_mid_run() {
    run_alone(|namespace| async move {
        let (benchmark, victim) = place(&namespace, false, json!({"load": {"duration": "60s"}})).await?;
        let fault = "node of a shard killed, back after 15 s, in mid-run";
        let mut report = Report::open(&namespace, &benchmark, fault, PROMISED).await?;
        let dead = Part::Node(victim).kill()?;
        // The shard may still be running until its end is reported.
        let unreachable = |object: &Value| shards(object, "unreachable") > Some(0);
        let (silent, ()) = tokio::join!(benchmark.wait("with an unreachable shard", SOON, unreachable), lasts(DEAD));
        ensure!(!lost(&silent?), "lost without a report");
        report.fault_ended();
        dead.mend(&namespace.client).await?;
        report.recovers("counted as lost", SOON, lost).await?;
        close(report, &namespace).await
    });
}

#[test]
fn killed_with_the_operator_on_it() {
    run_alone(|namespace| async move {
        operator::fresh(&namespace.client).await?;
        let (benchmark, victim) = place(&namespace, true, json!({"load": {"duration": "60s"}})).await?;
        let fault = "node of a shard and of the operator killed, back after 15 s, in mid-run";
        let promised = "the restarted operator takes over, the others continue; no report of the node's shard is left: \
                        all of it is unknown; Invalid, naming it";
        let mut report = Report::open(&namespace, &benchmark, fault, promised).await?;
        let dead = Part::Node(victim).kill()?;
        lasts(DEAD).await;
        report.fault_ended();
        dead.mend(&namespace.client).await?;
        report.taken_over().await?;
        benchmark.wait("counted as lost", SOON, lost).await?;
        close(report, &namespace).await
    });
}

/// Closes the report of a minute's load with one lost shard. Waits until everything on the node runs again, so that later tests find a
/// working cluster.
async fn close(report: Report, namespace: &TestNamespace) -> Result<()> {
    let object = report.close(&Expected { verdicts: &["Invalid"], lost: 1, ..Expected::default() }).await?;
    let scheduled = count(&object, "/status/result/requests/scheduled")?;
    ensure!(scheduled == 400 * 60, "{scheduled} requests are accounted for");
    operator::leader(&namespace.client).await?;
    let coredns = ["-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s"];
    redisbench_e2e::tools::kubectl(&coredns).await?;
    Ok(())
}
