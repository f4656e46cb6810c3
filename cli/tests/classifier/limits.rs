//! The limiting factor of the throughput.

use std::time::Duration;

use redisbench_testkit::servers::RedisServer;

use crate::group::Group;
use crate::proxy::{Proxy, Slow};
use crate::situation::{Given, Manifest, go_first, run, run_full};

/// A command that takes a server a millisecond, and the load generator hardly anything. By a clock, because the speed of a virtual machine's
/// processors may differ between a trial and its probe: that of the CPU time, or for servers whose scripts have none, that of `TIME`.
pub const HEAVY: &str = "[{name: heavy, command: EVALSHA __script:heavy__ 1 __key__}]";
pub const SCRIPT: &str = "scripts: [{name: heavy, source: \"\
    local os = rawget(_G, 'os') \
    local function now() if os then return os.clock() * 1000000 end local t = redis.call('TIME'); return t[1] * 1000000 + t[2] end \
    local due = now() + 1000 \
    while now() < due do end \
    return 1\"}]";
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

pub fn a_server_without_time() -> Given {
    let server = RedisServer::start(&[]);
    let _first = Group::first(server.pid());
    go_first();
    run_full(&server, &heavy(&server, CLOSED))
}

pub fn a_rate_beyond_reach() -> Given {
    let server = RedisServer::start(&[]);
    let _first = Group::first(server.pid());
    go_first();
    let load = "type: OpenLoop, openLoop: {rate: 20000, unsentAfter: 1s}, connections: 8, duration: 3s, warmup: 500ms";
    run_full(&server, &heavy(&server, load))
}

pub fn too_few_connections() -> Given {
    few_connections("probe: true")
}

pub fn too_few_connections_without_a_probe() -> Given {
    few_connections("probe: false")
}

fn few_connections(measurement: &str) -> Given {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::before(server.address(), Slow::Latency(Duration::from_millis(25)));
    let load = "type: ClosedLoop, connections: 4, duration: 3s, warmup: 500ms";
    let manifest = Manifest { load: load.into(), measurement: measurement.into(), ..Manifest::new(&proxy.endpoint()) };
    run(&manifest, |_| {})
}

pub fn too_few_connections_for_a_rate() -> Given {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::before(server.address(), Slow::Latency(Duration::from_millis(25)));
    let load = "type: OpenLoop, openLoop: {rate: 2000, unsentAfter: 1s}, connections: 4, duration: 3s, warmup: 500ms";
    let manifest = Manifest { load: load.into(), ..Manifest::new(&proxy.endpoint()) };
    run(&manifest, |_| {})
}

pub fn a_saturated_proxy() -> Given {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::before(server.address(), Slow::Busy(Duration::from_millis(1)));
    let manifest = Manifest {
        operations: "[{name: set, command: SET __key__ __data__}]".into(),
        load: CLOSED.into(),
        spec: String::new(),
        ..Manifest::new(&proxy.endpoint())
    };
    run(&manifest, |_| {})
}

/// 1,005 requests per second through a proxy that forwards 1,000, one of them a look at the server's counts. So few are missing that the
/// rate counts as met, and each request that waits has a connection.
pub fn a_rate_slightly_beyond_reach() -> Given {
    let server = RedisServer::start(&[]);
    let proxy = Proxy::before(server.address(), Slow::Busy(Duration::from_millis(1)));
    let load = "type: OpenLoop, openLoop: {rate: 1005}, connections: 128, duration: 10s, warmup: 500ms";
    let measurement = "probe: false".into();
    let manifest = Manifest { load: load.into(), measurement, ..Manifest::new(&proxy.endpoint()) };
    run(&manifest, |_| {}).must_say("Backlog", &["the backlog grew by ", " % of the rate, throughout the measurement"])
}

pub fn a_server_that_sleeps_in_its_commands() -> Given {
    let server = RedisServer::start(&["--enable-debug-command", "yes"]);
    let manifest = Manifest {
        operations: "[{name: sleep, command: DEBUG SLEEP 0.001}]".into(),
        load: CLOSED.into(),
        spec: "safety: {allowDestructive: true}".into(),
        ..Manifest::new(&server.endpoint())
    };
    run(&manifest, |_| {})
}

/// Its main thread uses little CPU time. Nearly all of the limit's pauses fall into a command.
pub fn a_server_with_a_quota() -> Given {
    let server = RedisServer::start(&[]);
    let _group = Group::of_processor(&[server.pid()], 20);
    go_first();
    let load = "type: ClosedLoop, connections: 16, duration: 3s, warmup: 500ms";
    run(&heavy(&server, load), |_| {})
}
