//! What makes a result doubtful, or worthless.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::proxy::{Proxy, Slow};
use crate::servers::RedisServer;
use crate::situation::{Expected, Manifest, alone, in_the_midst, judge, pass};
use crate::support::Run;

fn degraded(name: &'static str, reasons: &'static [&'static str]) -> Expected {
    Expected { value: "Degraded", reasons, ..Expected::clean(name) }
}

#[test]
fn somebody_else_uses_the_server() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let (address, done) = (server.endpoint(), Arc::new(AtomicBool::new(false)));
    let ended = Arc::clone(&done);
    let other = thread::spawn(move || {
        let mut connection = redis::Client::open(format!("redis://{address}")).unwrap().get_connection().unwrap();
        while !ended.load(Ordering::Relaxed) {
            redis::cmd("SET").arg("somebody").arg("else").query::<()>(&mut connection).unwrap();
            pass(Duration::from_millis(5));
        }
    });
    judge(&degraded("somebody else uses the server", &["Unreconciled"]), &Manifest::new(&server.endpoint()), |_| {});
    done.store(true, Ordering::Relaxed);
    other.join().unwrap();
}

#[test]
fn somebody_resets_the_counts() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let expected = Expected { reasons: &["NotReconciled"], ..Expected::clean("somebody resets the server's counts") };
    judge(&expected, &Manifest::new(&server.endpoint()), |_| {
        in_the_midst(&server);
        server.reset_statistics();
    });
}

#[test]
fn a_server_that_forbids_info() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    server.ask::<()>(&["ACL", "SETUSER", "default", "-info"]);
    let expected = Expected { reasons: &["NotReconciled"], ..Expected::clean("a server that forbids INFO") };
    judge(&expected, &Manifest::new(&server.endpoint()), |_| {});
}

#[test]
fn a_server_that_evicts() {
    let _machine = alone();
    let server = RedisServer::start(&["--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru"]);
    let manifest = Manifest {
        operations: "[{name: set, command: SET __key__ __data__}]".into(),
        keys: "{count: 100000}".into(),
        workload: "values: {size: {type: Fixed, fixed: {bytes: 10000}}}".into(),
        spec: String::new(),
        ..Manifest::new(&server.endpoint())
    };
    judge(&degraded("a server that evicts", &["Evictions"]), &manifest, |_| {});
}

#[test]
fn errors_beyond_the_limit() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let manifest = |weight: u32| Manifest {
        operations: format!(
            "[{{name: get, weight: {weight}, command: GET __key__}}, {{name: bad, command: LPUSH __key__ x}}]"
        ),
        ..Manifest::new(&server.endpoint())
    };
    // Where they fail the rate is not achieved either.
    let expected = Expected {
        value: "Invalid",
        besides: &["RateMissed"],
        limited_by: "Unknown",
        ..degraded("one request in ten fails", &["Errors"])
    };
    judge(&expected, &manifest(9), |_| {});
    judge(&degraded("one request in 400 fails", &["Errors"]), &manifest(399), |_| {});
}

#[test]
fn a_server_that_stops() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let load = "type: OpenLoop, openLoop: {rate: 400}, connections: 4, duration: 5s, warmup: 500ms, timeouts: {request: 300ms}";
    let manifest = Manifest { load: load.into(), ..Manifest::new(&server.endpoint()) };
    let expected = Expected {
        besides: &["RateMissed", "SendLate"],
        ..degraded("a server that stops for 600 ms", &["Unavailable", "Errors"])
    };
    judge(&expected, &manifest, |_| {
        in_the_midst(&server);
        server.signal("-STOP");
        pass(Duration::from_millis(600));
        server.signal("-CONT");
    });
}

#[test]
fn a_lost_shard() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    let manifest = Manifest { shards: 2, ..Manifest::new(&server.endpoint()) };
    // What is left of the rate is that of the others.
    let expected =
        Expected { value: "Invalid", limited_by: "Unknown", ..degraded("a lost shard", &["ShardLost", "RateMissed"]) };
    judge(&expected, &manifest, |run: &Run| {
        in_the_midst(&server);
        let child = *run.children().iter().max().unwrap();
        // SAFETY: takes numbers and touches no memory. The shard runs, so its id is its own.
        assert_eq!(unsafe { libc::kill(child.cast_signed(), libc::SIGKILL) }, 0);
    });
}

#[test]
fn a_cache_that_fills() {
    let _machine = alone();
    let server = RedisServer::start(&[]);
    // A miss costs the way to the server twice.
    let proxy = Proxy::before(server.address(), Slow::Latency(Duration::from_millis(5)));
    let manifest = Manifest {
        operations: "[{name: get, command: GET __key__}]".into(),
        keys: "{count: 3000}".into(),
        workload: "onMiss: Fill".into(),
        load: "type: ClosedLoop, connections: 8, duration: 7s, warmup: 0s".into(),
        spec: String::new(),
        ..Manifest::new(&proxy.endpoint())
    };
    let expected =
        Expected { limited_by: "Unknown", ..degraded("a cache that fills while it is measured", &["Unsteady"]) };
    judge(&expected, &manifest, |_| {});
}
