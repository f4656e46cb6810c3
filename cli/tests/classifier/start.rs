//! Shards that do not start together, and shards that do although their clocks differ.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use redisbench_testkit::servers::{RedisServer, wait_until};

use crate::situation::{Given, Manifest, run};
use crate::support::{Run, load_generator};

pub fn a_late_shard() -> Given {
    let server = RedisServer::start(&[]);
    let load = "type: OpenLoop, openLoop: {rate: 400}, connections: 32, duration: 3s, warmup: 500ms";
    let manifest = Manifest { shards: 2, load: load.into(), ..Manifest::far(&server) };
    run(&manifest, |run: &Run| {
        // It is stopped after it got the start. It misses most of the warm-up, and the requests that it catches up with are in it.
        let child = run.children().into_iter().max().unwrap().cast_signed();
        let before = server.calls("get");
        // SAFETY: takes numbers and touches no memory. The shard is running, so the id is its own.
        assert_eq!(unsafe { libc::kill(child, libc::SIGSTOP) }, 0);
        // At the other shard's 150 GETs per second this is 400 ms, and 200 ms are allowed.
        wait_until("the other shard has begun", || server.calls("get") > before + 60);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(child, libc::SIGCONT) }, 0);
    })
}

/// Two shards in their own time namespaces, whose clocks are days apart.
pub fn skewed_clocks() -> Given {
    let server = RedisServer::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let skewed = folder.path().join("skewed");
    let real = load_generator();
    let script = format!(
        "#!/bin/sh\ndays=$(($$ % 1000 + 1))\nexec unshare --time --monotonic $((days * 86400)) --boottime $((days * 86400)) \
         {} \"$@\"\n",
        real.display()
    );
    fs::write(&skewed, script).unwrap();
    fs::set_permissions(&skewed, fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = vec!["--loadgen".to_owned(), skewed.to_str().unwrap().to_owned()];
    let manifest = Manifest { shards: 2, arguments, ..Manifest::far(&server) };
    let given = run(&manifest, |run: &Run| {
        let clock = |process: &str| fs::read_link(format!("/proc/{process}/ns/time")).unwrap();
        let clocks: Vec<_> = run.children().iter().map(|child| clock(&child.to_string())).collect();
        assert!(clocks.len() == 2 && clocks[0] != clocks[1] && !clocks.contains(&clock("self")), "{clocks:?}");
    });
    let skew = given.finished.object["status"]["synchronization"]["startSkewMicroseconds"].as_u64().unwrap();
    given.must(skew < 200_000, || format!("shards started {skew} us apart"))
}
