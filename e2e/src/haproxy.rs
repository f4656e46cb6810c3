//! `HAProxy` before a server under test.

use anyhow::Result;
use serde_json::json;

use crate::cluster::Cluster;
use crate::namespace::TestNamespace;
use crate::redis;

/// Starts one behind the Service `name`, for the Redis server behind the Service `server`.
pub async fn start(namespace: &TestNamespace, name: &str, server: &str) -> Result<()> {
    let configuration = format!(
        "global\n  maxconn 1000\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n\
         listen redis\n  bind :6379\n  server {server} {server}:6379 check\n"
    );
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"haproxy.cfg": configuration},
    });
    namespace.apply(&[map]).await?;
    let volume = (json!({"name": "config", "configMap": {"name": name}}), "/etc/haproxy");
    let arguments = ["-db", "-f", "/etc/haproxy/haproxy.cfg"];
    let pod = redis::pod("haproxy", &Cluster::get().haproxy_image, 99, &arguments, &[volume]);
    redis::serve(namespace, name, pod).await
}
