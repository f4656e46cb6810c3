//! What kept the throughput from being higher.

use std::time::Duration;

use crate::group::Group;
use crate::proxy::{Proxy, Slow};
use crate::servers::RedisServer;
use crate::situation::{Expected, Manifest, alone, as_others, go_first, judge};

/// A command that takes a server about a millisecond, and a load generator nothing.
const HEAVY: &str = "[{name: heavy, command: EVALSHA __script:heavy__ 1 __key__}]";
const SCRIPT: &str = "scripts: [{name: heavy, source: 'local n = 0; for i = 1, 60000 do n = n + i % 7 end; return n'}]";
const CLOSED: &str = "type: ClosedLoop, connections: 16, duration: 3s, warmup: 500ms";

fn heavy(server: &RedisServer, load: &str) -> Manifest {
    Manifest {
        operations: HEAVY.into(),
        workload: SCRIPT.into(),
        load: load.into(),
        spec: String::new(),
        ..Manifest::new(&server.endpoint())
    }
}

#[test]
fn a_server_without_time() {
    let _machine = as_others();
    let server = RedisServer::start(&[]);
    let _first = Group::first(server.pid());
    go_first();
    let expected = Expected {
        limited_by: "Target",
        component: "/MainThread",
        ..Expected::clean("a server at 100 % of a processor")
    };
    judge(&expected, &heavy(&server, CLOSED), |_| {});
}

#[test]
fn a_rate_beyond_reach() {
    let _machine = as_others();
    let server = RedisServer::start(&[]);
    let _first = Group::first(server.pid());
    go_first();
    let load = "type: OpenLoop, openLoop: {rate: 20000, unsentAfter: 1s}, connections: 8, duration: 3s, warmup: 500ms";
    let expected = Expected {
        name: "a rate beyond what the server can do",
        value: "Invalid",
        limited_by: "Target",
        component: "/MainThread",
        reasons: &["RateMissed", "Errors"],
        besides: &[],
        varies: false,
    };
    judge(&expected, &heavy(&server, load), |_| {});
}

#[test]
fn too_few_connections() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let proxy = Proxy::before(server.address(), Slow::Latency(Duration::from_millis(5)));
    let load = "type: ClosedLoop, connections: 4, duration: 3s, warmup: 500ms";
    let manifest = Manifest { load: load.into(), ..Manifest::new(&proxy.endpoint()) };
    let expected =
        Expected { limited_by: "Connections", ..Expected::clean("too few connections to a server far away") };
    judge(&expected, &manifest, |_| {});
    let expected = Expected { limited_by: "Unknown", ..Expected::clean("the same without a probe") };
    judge(&expected, &Manifest { measurement: "probe: false".into(), ..manifest }, |_| {});
}

#[test]
fn too_few_connections_for_a_rate() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let proxy = Proxy::before(server.address(), Slow::Latency(Duration::from_millis(5)));
    let load = "type: OpenLoop, openLoop: {rate: 2000, unsentAfter: 1s}, connections: 4, duration: 3s, warmup: 500ms";
    let manifest = Manifest { load: load.into(), ..Manifest::new(&proxy.endpoint()) };
    let expected = Expected {
        name: "too few connections for the rate",
        value: "Invalid",
        limited_by: "Connections",
        component: "",
        reasons: &["RateMissed", "Errors"],
        besides: &[],
        varies: false,
    };
    judge(&expected, &manifest, |_| {});
}

#[test]
fn a_saturated_proxy() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let proxy = Proxy::before(server.address(), Slow::Busy(Duration::from_millis(1)));
    let manifest = Manifest { load: CLOSED.into(), spec: String::new(), ..Manifest::new(&proxy.endpoint()) };
    let expected =
        Expected { limited_by: "Target", component: "Path", ..Expected::clean("a full proxy before an idle server") };
    judge(&expected, &manifest, |_| {});
}

#[test]
fn a_server_that_sleeps_in_its_commands() {
    let _machine = alone();
    let server = RedisServer::start(&["--enable-debug-command", "yes"]);
    let manifest = Manifest {
        operations: "[{name: sleep, command: DEBUG SLEEP 0.001}]".into(),
        load: CLOSED.into(),
        spec: "safety: {allowDestructive: true}".into(),
        ..Manifest::new(&server.endpoint())
    };
    let expected = Expected {
        limited_by: "Target",
        reasons: &["NotReconciled"],
        ..Expected::clean("a server that is slow without working")
    };
    judge(&expected, &manifest, |_| {});
}

/// What INFO tells of it is what it tells of an idle one.
#[test]
#[ignore = "makes a cgroup, which needs root: make test-selfcheck"]
fn a_server_with_a_quota() {
    let _machine = as_others();
    let server = RedisServer::start(&[]);
    let _group = Group::of_processor(&[server.pid()], 20);
    go_first();
    let load = "type: ClosedLoop, connections: 16, duration: 2s, warmup: 500ms";
    let manifest = Manifest { load: load.into(), ..Manifest::new(&server.endpoint()) };
    // What it does with its time depends on what else the machine does.
    let expected = Expected {
        limited_by: "Target",
        component: "Path",
        varies: true,
        ..Expected::clean("a server whose CPU limit is a fifth of a processor")
    };
    judge(&expected, &manifest, |_| {});
}
