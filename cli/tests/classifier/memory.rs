//! Shards that run out of memory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use redisbench_testkit::servers::RedisServer;

use crate::group::Group;
use crate::situation::{Given, Manifest, in_the_midst, run};
use crate::support::load_generator;

/// A shard needs little memory, and not more over time. But its limit includes other memory, such as tmpfs, which may grow; then the kernel
/// kills the largest process.
pub fn a_shard_without_memory() -> Given {
    let server = RedisServer::start(&[]);
    let group = Group::of_memory(128 << 20);
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (poor, one, filler) = (path("poor"), path("one"), path("filler"));
    let (entrance, real) = (group.entrance(), load_generator());
    let (entrance, real) = (entrance.display(), real.display());
    // Only one of the two has the limit.
    let script = format!(
        "#!/bin/sh\nif mkdir {one} 2>/dev/null; then echo $$ >{entrance}; echo 1000 >/proc/$$/oom_score_adj; fi\n\
         exec {real} \"$@\"\n"
    );
    fs::write(&poor, script).unwrap();
    fs::set_permissions(&poor, fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = Manifest { shards: 2, arguments: vec!["--loadgen".to_owned(), poor], ..Manifest::far(&server) };
    let given = run(&manifest, |_| {
        in_the_midst(&server);
        let command = format!("echo $$ >{entrance}; exec dd if=/dev/zero of={filler} bs=1M count=256");
        // It may be killed too.
        Command::new("sh").args(["-c", &command]).output().unwrap();
        let _ = (fs::remove_file(&filler), fs::remove_dir(&one));
    });
    given.must_say("ShardLost", &["signal 9 (SIGKILL), possibly out of memory"])
}
