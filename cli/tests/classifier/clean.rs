//! Situations without problems, whose verdict must have no reasons.

use std::net::SocketAddr;

use redisbench_testkit::servers::{RedisCluster, RedisServer};

use crate::cluster::far_cluster;
use crate::situation::{Given, Manifest, far, run, run_far};
use crate::support::secure;

pub fn an_easy_rate() -> Given {
    run_far(|usual| usual)
}

pub fn poisson_arrivals_over_two_shards() -> Given {
    let load = "type: OpenLoop, openLoop: {rate: 400, arrival: Poisson}, connections: 32, duration: 3s, warmup: 500ms";
    run_far(|usual| Manifest { load: load.into(), shards: 2, ..usual })
}

pub fn a_rate_in_stages() -> Given {
    let load = "type: OpenLoop, connections: 32, warmup: 500ms, \
                stages: [{duration: 2s, rate: {from: 100, to: 500}}, {duration: 2s, rate: {from: 500, to: 100}}]";
    run_far(|usual| Manifest { load: load.into(), ..usual })
}

pub fn popular_keys_in_pipelines() -> Given {
    run_far(|usual| Manifest {
        keys: "{count: 10000, pattern: {type: Zipf, zipf: {exponent: '0.99'}}}".into(),
        load: "type: OpenLoop, openLoop: {rate: 400}, connections: 16, pipeline: 8, duration: 3s, warmup: 500ms".into(),
        shards: 2,
        ..usual
    })
}

pub fn a_server_with_tls() -> Given {
    within_tls("caSecretRef: {name: ca}")
}

pub fn a_server_with_tls_that_nobody_verifies() -> Given {
    within_tls("insecureSkipVerify: true")
}

fn within_tls(trust: &str) -> Given {
    let folder = tempfile::tempdir().unwrap();
    let (_server, port, certificate, _) = secure(folder.path(), &["--tls-auth-clients", "no"]);
    let way = far(SocketAddr::from(([127, 0, 0, 1], port)));
    let far_port = way.rsplit(':').next().unwrap();
    let authority = certificate.replace('\n', "\n    ");
    let manifest = Manifest {
        target: format!("type: Standalone, endpoints: ['localhost:{far_port}'], tls: {{{trust}}}"),
        documents: format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: ca}}\nstringData:\n  ca.crt: |\n    {authority}\n"
        ),
        ..Manifest::new("")
    };
    run(&manifest, |_| {})
}

pub fn a_cluster_of_three() -> Given {
    let cluster = RedisCluster::steady(3);
    run(&far_cluster(&cluster), |_| {})
}

pub fn transactions() -> Given {
    run_far(|usual| Manifest { workload: "transaction: {size: 4}".into(), spec: String::new(), ..usual })
}

pub fn misses_that_are_filled() -> Given {
    run_far(|usual| Manifest {
        operations: "[{name: get, command: GET __key__}]".into(),
        workload: "onMiss: Fill".into(),
        spec: String::new(),
        ..usual
    })
}

pub fn misses() -> Given {
    run_far(|usual| Manifest { operations: "[{name: get, command: GET __key__}]".into(), spec: String::new(), ..usual })
}

/// Each SET waits for a replica that is not there, for 50 ms.
pub fn writes_that_wait_for_a_missing_replica() -> Given {
    run_far(|usual| Manifest {
        operations: "[{name: set, command: SET __key__ __data__}]".into(),
        workload: "wait: {replicas: 1, timeout: 50ms}".into(),
        load: "type: OpenLoop, openLoop: {rate: 100}, connections: 32, duration: 3s, warmup: 500ms".into(),
        spec: String::new(),
        ..usual
    })
}

pub fn scripts() -> Given {
    run_far(|usual| Manifest {
        operations: "[{name: script, command: EVALSHA __script:count__ 1 __key__}]".into(),
        workload: "scripts: [{name: count, source: \"return redis.call('INCR', KEYS[1])\"}]".into(),
        spec: String::new(),
        ..usual
    })
}

pub fn a_server_that_was_used_before() -> Given {
    let server = RedisServer::start(&[]);
    let mut connection = server.connection();
    for number in 0..2000 {
        redis::cmd("SET").arg(format!("other:{number}")).arg("x").query::<()>(&mut connection).unwrap();
    }
    let manifest =
        Manifest { spec: "preload: {mode: Always}\n  cleanup: {keys: DeletePrefix}".into(), ..Manifest::far(&server) };
    run(&manifest, |_| {})
}
