//! Servers that write their keys to disk, or load them.

use redisbench_testkit::servers::RedisServer;

use crate::situation::{Given, Manifest, in_the_midst, run};

/// A server with `keys` keys of one kilobyte, so that a fork takes some milliseconds.
fn filled(keys: u32) -> RedisServer {
    let server = RedisServer::start(&["--enable-debug-command", "yes"]);
    server.ask::<()>(&["DEBUG", "POPULATE", &keys.to_string(), "rb", "1000"]);
    server
}

pub fn a_server_that_forks() -> Given {
    let keys = 400_000;
    let server = filled(keys);
    // Writes go to pages all over the memory, which are copied first. All these key names have the same length.
    let manifest = Manifest {
        keys: format!("{{start: 100000, count: {}}}", keys - 100_000),
        load: "type: OpenLoop, openLoop: {rate: 1000}, connections: 64, duration: 3s, warmup: 500ms".into(),
        spec: String::new(),
        ..Manifest::far(&server)
    };
    let given = run(&manifest, |_| {
        in_the_midst(&server);
        server.ask::<()>(&["BGSAVE"]);
    });
    given.must_say("Forked", &["forked once, which paused it for up to ", " ms during the measurement"])
}

pub fn a_server_that_loads() -> Given {
    let mut server = filled(60_000);
    server.ask::<()>(&["SAVE"]);
    let load =
        "type: OpenLoop, openLoop: {rate: 400}, connections: 32, duration: 5s, warmup: 500ms, timeouts: {request: 5s}";
    let manifest = Manifest { load: load.into(), spec: String::new(), ..Manifest::far(&server) };
    let given = run(&manifest, |_| {
        in_the_midst(&server);
        // At least 10 us for each key.
        server.restart_loading(&["--key-load-delay", "10", "--loading-process-events-interval-bytes", "65536"]);
    });
    given.must_say("Unavailable", &[" replies were LOADING"]).must_say("NotReconciled", &["restarted"])
}
