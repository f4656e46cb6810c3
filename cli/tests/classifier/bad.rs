//! Situations that make a result doubtful or worthless.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use redisbench_testkit::machine::pass;
use redisbench_testkit::servers::RedisServer;

use crate::proxy::{Proxy, Slow};
use crate::situation::{Given, Manifest, in_the_midst, run, run_far};
use crate::support::Run;

pub fn somebody_else_uses_the_server() -> Given {
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
    let given = run(&Manifest::far(&server), |_| {});
    done.store(true, Ordering::Relaxed);
    other.join().unwrap();
    given
}

pub fn somebody_resets_the_counts() -> Given {
    let server = RedisServer::start(&[]);
    run(&Manifest::far(&server), |_| {
        in_the_midst(&server);
        server.reset_statistics();
    })
}

pub fn a_server_that_forbids_info() -> Given {
    let server = RedisServer::start(&[]);
    server.ask::<()>(&["ACL", "SETUSER", "default", "-info"]);
    run(&Manifest::far(&server), |_| {})
}

pub fn a_server_that_evicts() -> Given {
    let server = RedisServer::start(&["--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru"]);
    let manifest = Manifest {
        operations: "[{name: set, command: SET __key__ __data__}]".into(),
        keys: "{count: 100000}".into(),
        workload: "values: {size: {type: Fixed, fixed: {bytes: 10000}}}".into(),
        spec: String::new(),
        ..Manifest::far(&server)
    };
    run(&manifest, |_| {})
}

pub fn one_request_in_ten_fails() -> Given {
    some_fail(9)
}

pub fn one_request_in_400_fails() -> Given {
    some_fail(399)
}

/// One request fails for every `weight` that succeed.
fn some_fail(weight: u32) -> Given {
    run_far(|usual| Manifest {
        operations: format!(
            "[{{name: get, weight: {weight}, command: GET __key__}}, {{name: bad, command: LPUSH __key__ x}}]"
        ),
        ..usual
    })
}

pub fn a_server_that_stops() -> Given {
    let server = RedisServer::start(&[]);
    let load = "type: OpenLoop, openLoop: {rate: 400}, connections: 16, duration: 5s, warmup: 500ms, timeouts: {request: 400ms}";
    let manifest = Manifest { load: load.into(), ..Manifest::far(&server) };
    run(&manifest, |_| {
        in_the_midst(&server);
        server.pause();
        pass(Duration::from_millis(600));
        server.resume();
    })
}

pub fn a_lost_shard() -> Given {
    let server = RedisServer::start(&[]);
    let manifest = Manifest { shards: 2, ..Manifest::far(&server) };
    run(&manifest, |run: &Run| {
        in_the_midst(&server);
        let child = *run.children().iter().max().unwrap();
        // SAFETY: takes numbers and touches no memory. The shard is running, so the id is its own.
        assert_eq!(unsafe { libc::kill(child.cast_signed(), libc::SIGKILL) }, 0);
    })
}

pub fn a_cache_that_fills() -> Given {
    let server = RedisServer::start(&[]);
    // A miss costs two round trips.
    let proxy = Proxy::before(server.address(), Slow::Latency(Duration::from_millis(5)));
    let manifest = Manifest {
        operations: "[{name: get, command: GET __key__}]".into(),
        keys: "{count: 3000}".into(),
        workload: "onMiss: Fill".into(),
        load: "type: ClosedLoop, connections: 8, duration: 7s, warmup: 0s".into(),
        spec: String::new(),
        ..Manifest::new(&proxy.endpoint())
    };
    run(&manifest, |_| {})
}
