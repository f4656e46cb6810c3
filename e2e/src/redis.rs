//! Redis servers under test, as pods, and their command counts.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::namespace::TestNamespace;
use crate::wait;

const READY: Duration = Duration::from_secs(60);

/// Primaries of the Redis Cluster. Each has a replica.
pub const PRIMARIES: usize = 3;

/// Starts one Redis server behind the Service `name`.
pub async fn standalone(namespace: &TestNamespace, name: &str) -> Result<()> {
    serve(namespace, name, pod_spec(&["--save", "", "--appendonly", "no"], None)).await
}

/// Like [`standalone`], as a replica of the server behind the Service `primary`. Returns once it is in sync.
pub async fn replica(namespace: &TestNamespace, name: &str, primary: &str) -> Result<()> {
    let follow = ["--save", "", "--appendonly", "no", "--replicaof", primary, "6379"];
    serve(namespace, name, pod_spec(&follow, None)).await?;
    wait::answer("a replica that follows", READY, || async {
        let told = cli(namespace, &format!("deployment/{name}"), &["role"]).await?;
        Ok(told.contains("connected").then_some(()))
    })
    .await
}

/// Makes every node of the Redis Cluster `name` require `password`.
pub async fn protect(namespace: &TestNamespace, name: &str, password: &str) -> Result<()> {
    for index in 0..2 * PRIMARIES {
        let set = ["config", "set", "masterauth", password, "requirepass", password];
        cli(namespace, &format!("{name}-{index}"), &set).await?;
    }
    Ok(())
}

/// Like [`standalone`], on this node.
pub async fn standalone_on(namespace: &TestNamespace, name: &str, node: &str) -> Result<()> {
    let mut pod = pod_spec(&["--save", "", "--appendonly", "no"], None);
    pod["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    serve(namespace, name, pod).await
}

/// Like [`standalone`], with a CPU request such as `500m`.
pub async fn standalone_of(namespace: &TestNamespace, name: &str, cpu: &str) -> Result<()> {
    let mut pod = pod_spec(&["--save", "", "--appendonly", "no"], None);
    pod["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
    serve(namespace, name, pod).await
}

/// Waits until the container of a pod was restarted.
pub async fn restarted(namespace: &TestNamespace, pod: &Pod) -> Result<()> {
    let starts = |pod: &Pod| {
        let container = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
        container.ready.then_some(container.restart_count)
    };
    let before = starts(pod);
    wait::object(namespace.api::<Pod>(), &pod.name_any(), "started again", READY, |now| now.and_then(starts) > before)
        .await?;
    Ok(())
}

/// Starts one Redis server whose configuration, including passwords, is in the Secret `secret` under `redis.conf`.
pub async fn configured(namespace: &TestNamespace, name: &str, secret: &str) -> Result<()> {
    let volume = json!({"name": "config", "secret": {"secretName": secret}});
    serve(namespace, name, pod_spec(&["/etc/redis/redis.conf"], Some(volume))).await
}

/// Like [`configured`], with TLS on port 6380 in addition. The Secret `secret` has its `redis.conf` and the certificates for it.
pub async fn secure(namespace: &TestNamespace, name: &str, secret: &str) -> Result<()> {
    configured(namespace, name, secret).await?;
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": format!("{name}-tls")},
        "spec": {"selector": {"app": name}, "ports": [{"port": 6380}]},
    });
    namespace.apply(&[service]).await?;
    Ok(())
}

/// Starts a pod that serves port 6379 behind the Service `name`.
pub async fn serve(namespace: &TestNamespace, name: &str, pod: Value) -> Result<()> {
    let labels = json!({"app": name});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    });
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": labels, "ports": [{"port": 6379}]},
    });
    namespace.apply(&[deployment, service]).await?;
    available(namespace, name).await
}

/// Waits until the Deployment `name` is available.
pub async fn available(namespace: &TestNamespace, name: &str) -> Result<()> {
    wait::object(namespace.api::<Deployment>(), name, "available", READY, |deployment| {
        let ready = deployment.and_then(|d| d.status.as_ref()).and_then(|status| status.available_replicas);
        ready.is_some_and(|replicas| replicas > 0)
    })
    .await?;
    Ok(())
}

/// Starts a Redis Cluster of three primaries and three replicas behind the Service `name`, and waits until all nodes agree that it is
/// complete.
pub async fn cluster(namespace: &TestNamespace, name: &str) -> Result<()> {
    let nodes = 2 * PRIMARIES;
    let labels = json!({"app": name});
    let arguments = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--save", "", "--appendonly", "no"];
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": nodes,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(&arguments, None)},
        },
    });
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "selector": labels, "ports": [{"port": 6379}]},
    });
    namespace.apply(&[set, service]).await?;
    wait::object(namespace.api::<StatefulSet>(), name, "ready", READY, |set| {
        let ready = set.and_then(|set| set.status.as_ref()).and_then(|status| status.ready_replicas);
        ready.and_then(|ready| usize::try_from(ready).ok()) == Some(nodes)
    })
    .await?;
    let pods: Api<Pod> = namespace.api();
    let members = pods.list(&ListParams::default().labels(&format!("app={name}"))).await?.items;
    let mut addresses = Vec::new();
    for pod in &members {
        let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone()).context("a Redis pod has no address")?;
        addresses.push(format!("{ip}:6379"));
    }
    let first = format!("{name}-0");
    let mut create = vec!["--cluster", "create"];
    create.extend(addresses.iter().map(String::as_str));
    create.extend(["--cluster-replicas", "1", "--cluster-yes"]);
    cli(namespace, &first, &create).await?;
    for pod in &members {
        let pod = pod.name_any();
        wait::answer("a whole Redis Cluster", READY, || async {
            let info = cli(namespace, &pod, &["cluster", "info"]).await?;
            let known = format!("cluster_known_nodes:{nodes}");
            Ok((info.contains("cluster_state:ok") && info.contains(&known)).then_some(()))
        })
        .await?;
    }
    // A client may read the topology from any node, so all of them must list the replicas too.
    wait::answer("replicas of every primary", READY, || async {
        let told = cli(namespace, &first, &["cluster", "nodes"]).await?;
        Ok((told.matches(" slave ").count() + told.matches(",slave ").count() == PRIMARIES).then_some(()))
    })
    .await
}

fn pod_spec(arguments: &[&str], config: Option<Value>) -> Value {
    let mut mounts = vec![json!({"name": "data", "mountPath": "/data"})];
    let mut volumes = vec![json!({"name": "data", "emptyDir": {}})];
    if let Some(volume) = config {
        mounts.push(json!({"name": "config", "mountPath": "/etc/redis", "readOnly": true}));
        volumes.push(volume);
    }
    let arguments = [arguments, &["--protected-mode", "no", "--dir", "/data"]].concat();
    json!({
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 999,
            "fsGroup": 999,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": "redis",
            "image": Cluster::get().redis_image(),
            "command": ["redis-server"],
            "args": arguments,
            "ports": [{"containerPort": 6379}],
            "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
            "volumeMounts": mounts,
        }],
        "volumes": volumes,
    })
}

/// The reply to `redis-cli` in a Redis pod (or `deployment/NAME`).
pub async fn cli(namespace: &TestNamespace, pod: &str, command: &[&str]) -> Result<String> {
    let answer = namespace.kubectl(&[&["exec", pod, "--", "redis-cli", "-e"], command].concat()).await?;
    ensure!(!answer.starts_with("(error)"), "redis-cli {command:?} returned {answer}");
    Ok(answer)
}

/// The server's count of calls per command, including those that failed during execution.
pub async fn calls(namespace: &TestNamespace, pod: &str) -> Result<BTreeMap<String, u64>> {
    let info = cli(namespace, pod, &["info", "commandstats"]).await?;
    parse_calls(&info)
}

fn parse_calls(info: &str) -> Result<BTreeMap<String, u64>> {
    let mut calls = BTreeMap::new();
    for line in info.lines().filter_map(|line| line.strip_prefix("cmdstat_")) {
        let (command, fields) = line.split_once(':').with_context(|| format!("no fields in {line}"))?;
        let count = fields.split(',').find_map(|field| field.strip_prefix("calls="));
        let count = count.with_context(|| format!("no calls in {line}"))?.parse()?;
        calls.insert(command.to_owned(), count);
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::parse_calls;

    #[test]
    fn calls_are_read_per_command() {
        let info =
            "# Commandstats\r\ncmdstat_get:calls=12,usec=3,usec_per_call=0.25\r\ncmdstat_config|get:calls=1,usec=9\r\n";
        let calls = parse_calls(info).unwrap();
        assert_eq!(calls["get"], 12);
        assert_eq!(calls["config|get"], 1);
    }
}
