//! Nothing is wrong, and nothing may be said.

use std::fs;

use crate::servers::{RedisCluster, RedisServer, free_port};
use crate::situation::{Expected, Manifest, alone, judge};

#[test]
fn an_easy_rate() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    judge(&Expected::clean("an easy rate"), &Manifest::new(&server.endpoint()), |_| {});
}

#[test]
fn poisson_arrivals_over_two_shards() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let load = "type: OpenLoop, openLoop: {rate: 400, arrival: Poisson}, connections: 4, duration: 3s, warmup: 500ms";
    let manifest = Manifest { load: load.into(), shards: 2, ..Manifest::new(&server.endpoint()) };
    judge(&Expected::clean("Poisson arrivals, two shards"), &manifest, |_| {});
}

#[test]
fn a_rate_in_stages() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let load = "type: OpenLoop, connections: 4, warmup: 500ms, \
                stages: [{duration: 2s, rate: {from: 100, to: 500}}, {duration: 2s, rate: {from: 500, to: 100}}]";
    let manifest = Manifest { load: load.into(), ..Manifest::new(&server.endpoint()) };
    judge(&Expected::clean("a rate that rises and falls"), &manifest, |_| {});
}

#[test]
fn popular_keys_in_pipelines() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let manifest = Manifest {
        keys: "{count: 10000, pattern: {type: Zipf, zipf: {exponent: '0.99'}}}".into(),
        load: "type: OpenLoop, openLoop: {rate: 400}, connections: 2, pipeline: 8, duration: 3s, warmup: 500ms".into(),
        shards: 2,
        ..Manifest::new(&server.endpoint())
    };
    judge(&Expected::clean("popular keys, in pipelines of two shards"), &manifest, |_| {});
}

#[test]
fn a_server_with_tls() {
    let _machine = alone();
    let folder = tempfile::tempdir().unwrap();
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
    fs::write(&certificate, pair.cert.pem()).unwrap();
    fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let port = free_port().to_string();
    let _server = RedisServer::start(&[
        "--tls-port",
        &port,
        "--tls-auth-clients",
        "no",
        "--tls-cert-file",
        certificate,
        "--tls-key-file",
        key,
    ]);
    let authority = pair.cert.pem().replace('\n', "\n    ");
    let manifest = Manifest {
        target: format!("type: Standalone, endpoints: ['localhost:{port}'], tls: {{caSecretRef: {{name: ca}}}}"),
        documents: format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: ca}}\nstringData:\n  ca.crt: |\n    {authority}\n"
        ),
        ..Manifest::new("")
    };
    judge(&Expected::clean("a server within TLS"), &manifest, |_| {});
    let target = format!("type: Standalone, endpoints: ['localhost:{port}'], tls: {{insecureSkipVerify: true}}");
    let expected = Expected {
        reasons: &["NotVerified"],
        ..Expected::clean("a server within TLS whose certificate nobody verifies")
    };
    let load = "type: OpenLoop, openLoop: {rate: 400}, connections: 4, duration: 1s, warmup: 500ms".into();
    judge(&expected, &Manifest { target, load, ..Manifest::new("") }, |_| {});
}

#[test]
fn a_cluster_of_three() {
    let _machine = alone();
    let cluster = RedisCluster::steady(3);
    let target = format!("type: Cluster, endpoints: ['{}']", cluster.nodes[0].endpoint());
    let manifest = Manifest { target, ..Manifest::new("") };
    judge(&Expected::clean("a cluster of three"), &manifest, |_| {});
}

#[test]
fn transactions() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let manifest = Manifest { workload: "transaction: {size: 4}".into(), ..Manifest::new(&server.endpoint()) };
    let manifest = Manifest { spec: String::new(), ..manifest };
    judge(&Expected::clean("transactions of four"), &manifest, |_| {});
}

#[test]
fn misses_that_are_filled() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let manifest = Manifest {
        operations: "[{name: get, command: GET __key__}]".into(),
        workload: "onMiss: Fill".into(),
        spec: String::new(),
        ..Manifest::new(&server.endpoint())
    };
    judge(&Expected::clean("misses that are filled, at a rate"), &manifest, |_| {});
}

#[test]
fn scripts() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let manifest = Manifest {
        operations: "[{name: script, command: EVALSHA __script:count__ 1 __key__}]".into(),
        workload: "scripts: [{name: count, source: \"return redis.call('INCR', KEYS[1])\"}]".into(),
        spec: String::new(),
        ..Manifest::new(&server.endpoint())
    };
    judge(&Expected::clean("scripts that execute other commands"), &manifest, |_| {});
}

#[test]
fn a_server_that_was_used_before() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let mut connection = server.connection();
    for number in 0..2000 {
        redis::cmd("SET").arg(format!("other:{number}")).arg("x").query::<()>(&mut connection).unwrap();
    }
    let manifest = Manifest {
        spec: "preload: {mode: Always}\n  cleanup: {keys: DeletePrefix}".into(),
        ..Manifest::new(&server.endpoint())
    };
    judge(&Expected::clean("a server that was used before, and is cleaned up after"), &manifest, |_| {});
}
