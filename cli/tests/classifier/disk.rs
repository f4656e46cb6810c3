//! A slow disk: a file system on a loop device with throttled writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use redisbench_testkit::servers::RedisServer;
use tempfile::TempDir;

use crate::group::{Group, Writes};
use crate::situation::{Given, Manifest, run};

/// A file system. Unmounted on drop.
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
        // Without a journal, because journal writes by the kernel would not be throttled.
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
        // Lazy: the file system is gone once the last process has closed its files.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

fn execute(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A server that syncs its append-only file on that disk before every reply.
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

/// The server blocks on the disk, which its own statistics do not show.
pub fn a_disk_that_takes_few_bytes() -> Given {
    let disk = Disk::new();
    let server = server(&disk.path());
    let _group = Group::of_writes(server.pid(), &disk.device, Writes::Bytes(8 << 20));
    run(&writes(&server, 65536), |_| {})
}

/// The writes that arrive during a sync are synced together, so more connections do not wait longer.
pub fn a_disk_that_takes_few_writes() -> Given {
    let disk = Disk::new();
    let server = server(&disk.path());
    let _group = Group::of_writes(server.pid(), &disk.device, Writes::Times(600));
    run(&writes(&server, 64), |_| {})
}
