//! A disk that takes little: a file system of the test's own on a loop device, whose writes are throttled.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::group::{Group, Writes};
use crate::servers::RedisServer;
use crate::situation::{Given, Manifest, run};

/// A file system for as long as this lives.
struct Disk {
    directory: TempDir,
    device: String,
}

impl Disk {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (image, mount) = (directory.path().join("image"), directory.path().join("mount"));
        fs::File::create(&image).unwrap().set_len(256 << 20).unwrap();
        fs::create_dir(&mount).unwrap();
        // Without a journal, which the kernel would write and nobody throttle.
        execute(Command::new("mkfs.ext4").args(["-q", "-O", "^has_journal"]).arg(&image));
        execute(Command::new("mount").args(["-o", "loop"]).args([&image, &mount]));
        let device = execute(Command::new("findmnt").args(["-n", "-o", "MAJ:MIN"]).arg(&mount)).trim().to_owned();
        Self { directory, device }
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("mount")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It goes when the last one has closed its files.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

fn execute(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A server whose writes are on that disk before it answers them.
fn server(disk: &Path) -> RedisServer {
    let disk = disk.to_str().unwrap();
    let rewrite = ["--auto-aof-rewrite-percentage", "0"];
    RedisServer::start(&[&["--appendonly", "yes", "--appendfsync", "always", "--dir", disk], &rewrite[..]].concat())
}

fn writes(server: &RedisServer, bytes: u32) -> Manifest {
    Manifest {
        operations: "[{name: set, command: SET __key__ __data__}]".into(),
        workload: format!("values: {{size: {{type: Fixed, fixed: {{bytes: {bytes}}}}}}}"),
        load: "type: ClosedLoop, connections: 16, duration: 2s, warmup: 500ms".into(),
        spec: String::new(),
        ..Manifest::new(&server.endpoint())
    }
}

/// The server waits for the disk and does nothing else meanwhile, which it does not know of.
pub fn a_disk_that_takes_few_bytes() -> Given {
    let disk = Disk::new();
    let server = server(&disk.path());
    let _group = Group::of_writes(server.pid(), &disk.device, Writes::Bytes(8 << 20));
    run(&writes(&server, 65536), |_| {})
}

/// What came while it waited is written at once: more connections wait no longer.
pub fn a_disk_that_takes_few_writes() -> Given {
    let disk = Disk::new();
    let server = server(&disk.path());
    let _group = Group::of_writes(server.pid(), &disk.device, Writes::Times(600));
    run(&writes(&server, 64), |_| {})
}
