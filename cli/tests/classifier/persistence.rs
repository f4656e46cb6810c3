//! Servers that write their keys to a disk, or read them from there.

use crate::servers::RedisServer;
use crate::situation::{Given, Manifest, in_the_midst, run};

/// With so many keys of a kilobyte that a fork takes some milliseconds.
fn filled(keys: u32) -> RedisServer {
    let server = RedisServer::start(&["--enable-debug-command", "yes"]);
    server.ask::<()>(&["DEBUG", "POPULATE", &keys.to_string(), "rb", "1000"]);
    server
}

pub fn a_server_that_forks() -> Given {
    let keys = 400_000;
    let server = filled(keys);
    // What is written to is all over its memory, and copied before. These names have all the same length.
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
    given.must_say("Forked", &["forked once, which stopped it for ", " ms at a time"])
}

pub fn a_server_that_loads() -> Given {
    let mut server = filled(60_000);
    server.ask::<()>(&["SAVE"]);
    let load =
        "type: OpenLoop, openLoop: {rate: 400}, connections: 32, duration: 5s, warmup: 500ms, timeouts: {request: 5s}";
    let manifest = Manifest { load: load.into(), spec: String::new(), ..Manifest::far(&server) };
    let given = run(&manifest, |_| {
        in_the_midst(&server);
        // 10 us and more for each of its keys.
        server.restart_loading(&["--key-load-delay", "10", "--loading-process-events-interval-bytes", "65536"]);
    });
    given.must_say("Unavailable", &[" answers were LOADING"]).must_say("NotReconciled", &["restarted"])
}
