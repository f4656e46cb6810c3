//! Redis servers under test, as pods, their command counts, and a proxy before them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use redisbench_testkit::servers;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::namespace::TestNamespace;
use crate::wait;

const READY: Duration = Duration::from_secs(60);

/// Primaries of the Redis Cluster. Each has a replica.
pub const PRIMARIES: usize = 3;

/// Arguments of a server that stores nothing on its disk.
const IN_MEMORY: [&str; 4] = ["--save", "", "--appendonly", "no"];

/// Starts one Redis server behind the Service `name`.
pub async fn standalone(namespace: &TestNamespace, name: &str) -> Result<()> {
    standalone_with(namespace, name, |_| ()).await
}

/// Like [`standalone`], after a change of the pod.
pub async fn standalone_with(namespace: &TestNamespace, name: &str, change: impl FnOnce(&mut Value)) -> Result<()> {
    let mut pod = redis(&IN_MEMORY, None);
    change(&mut pod);
    serve(namespace, name, pod).await
}

/// Like [`standalone`], as a replica of the server behind the Service `primary`. Returns once it is in sync.
pub async fn replica(namespace: &TestNamespace, name: &str, primary: &str) -> Result<()> {
    let follow = [&IN_MEMORY[..], &["--replicaof", primary, "6379"]].concat();
    serve(namespace, name, redis(&follow, None)).await?;
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

/// Starts one Redis server whose configuration, including passwords, is in the Secret `secret` under `redis.conf`.
pub async fn configured(namespace: &TestNamespace, name: &str, secret: &str) -> Result<()> {
    let volume = json!({"name": "config", "secret": {"secretName": secret}});
    serve(namespace, name, redis(&["/etc/redis/redis.conf"], Some(volume))).await
}

/// Like [`configured`], with TLS on port 6380 in addition. The Secret `secret` has its `redis.conf` and the certificates for it.
pub async fn secure(namespace: &TestNamespace, name: &str, secret: &str) -> Result<()> {
    configured(namespace, name, secret).await?;
    let spec = json!({"selector": {"app": name}, "ports": [{"port": 6380}]});
    namespace.apply(&[service(&format!("{name}-tls"), &spec)]).await?;
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
    let service = service(name, &json!({"selector": labels, "ports": [{"port": 6379}]}));
    namespace.apply(&[deployment, service]).await?;
    available(namespace, name).await
}

fn service(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
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

/// Starts `count` Redis servers with more `arguments`, as a `StatefulSet` whose headless Service `name` has all of their addresses.
pub async fn headless(namespace: &TestNamespace, name: &str, count: usize, arguments: &[&str]) -> Result<()> {
    let labels = json!({"app": name});
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": count,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": redis(&[&IN_MEMORY[..], arguments].concat(), None)},
        },
    });
    let service = service(name, &json!({"clusterIP": "None", "selector": labels, "ports": [{"port": 6379}]}));
    namespace.apply(&[set, service]).await?;
    wait::object(namespace.api::<StatefulSet>(), name, "ready", READY, |set| {
        let ready = set.and_then(|set| set.status.as_ref()).and_then(|status| status.ready_replicas);
        ready.and_then(|ready| usize::try_from(ready).ok()) == Some(count)
    })
    .await?;
    Ok(())
}

/// Starts a Redis Cluster of three primaries and three replicas behind the Service `name`, and waits until all nodes agree that it is
/// complete.
pub async fn cluster(namespace: &TestNamespace, name: &str) -> Result<()> {
    let nodes = 2 * PRIMARIES;
    headless(namespace, name, nodes, &["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"]).await?;
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

fn redis(arguments: &[&str], config: Option<Value>) -> Value {
    let arguments = [arguments, &["--protected-mode", "no", "--dir", "/data"]].concat();
    let data = (json!({"name": "data", "emptyDir": {}}), "/data");
    let volumes: Vec<_> = [data].into_iter().chain(config.map(|config| (config, "/etc/redis"))).collect();
    pod("redis-server", &Cluster::get().redis_image, 999, &arguments, &volumes)
}

/// A pod of one container in which `user` runs `program`, which serves port 6379. `volumes` are with their places in the container, which
/// can write only to those that begin empty.
fn pod(program: &str, image: &str, user: u32, arguments: &[&str], volumes: &[(Value, &str)]) -> Value {
    let mount = |(volume, place): &(Value, &str)| json!({"name": volume["name"], "mountPath": place, "readOnly": volume["emptyDir"].is_null()});
    json!({
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": user,
            "fsGroup": user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": program,
            "image": image,
            "command": [program],
            "args": arguments,
            "ports": [{"containerPort": 6379}],
            "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
            "volumeMounts": volumes.iter().map(mount).collect::<Vec<_>>(),
        }],
        "volumes": volumes.iter().map(|(volume, _)| volume).collect::<Vec<_>>(),
    })
}

/// The pod of the server behind the Service `name`.
pub async fn pod_of(namespace: &TestNamespace, name: &str) -> Result<Pod> {
    let pods = namespace.api::<Pod>().list(&ListParams::default().labels(&format!("app={name}"))).await?;
    pods.items.into_iter().next().with_context(|| format!("no pod of {name}"))
}

/// Starts `HAProxy` behind the Service `name`, for the server behind the Service `server`.
pub async fn haproxy(namespace: &TestNamespace, name: &str, server: &str) -> Result<()> {
    let configuration = format!(
        "global\n  maxconn 1000\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n\
         listen redis\n  bind :6379\n  server {server} {server}:6379 check\n"
    );
    let data = json!({"haproxy.cfg": configuration});
    namespace
        .apply(&[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})])
        .await?;
    let volume = (json!({"name": "config", "configMap": {"name": name}}), "/etc/haproxy");
    let arguments = ["-db", "-f", "/etc/haproxy/haproxy.cfg"];
    serve(namespace, name, pod("haproxy", &Cluster::get().haproxy_image, 99, &arguments, &[volume])).await
}

/// The reply to `redis-cli` in a Redis pod (or `deployment/NAME`).
pub async fn cli(namespace: &TestNamespace, pod: &str, command: &[&str]) -> Result<String> {
    let answer = namespace.kubectl(&[&["exec", pod, "--", "redis-cli", "-e"], command].concat()).await?;
    ensure!(!answer.starts_with("(error)"), "redis-cli {command:?} returned {answer}");
    Ok(answer)
}

/// The server's count of calls per command, including those that failed during execution.
pub async fn calls(namespace: &TestNamespace, pod: &str) -> Result<BTreeMap<String, u64>> {
    Ok(servers::calls(&cli(namespace, pod, &["info", "commandstats"]).await?))
}
