//! A telling minute of the soak: runs whose faults hit a shard, a server, the conductor and the network. `make soak`
//! does as many as one likes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::Command;

/// Runs of the first seed, one after another.
fn soak(runs: &[u64]) {
    let program = Path::new(env!("CARGO_BIN_EXE_redisbench-soak"));
    for needed in ["kubectl-redisbench", "redisbench-loadgen"] {
        let beside = program.with_file_name(needed);
        assert!(beside.is_file(), "{} is not built; run `make test-unit`, which builds it first", beside.display());
    }
    for run in runs {
        let output = Command::new(program).args(["--runs", "1", "--run", &run.to_string()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn shards_are_killed() {
    // Before the start while a node of the cluster stands still, with Restart; and while it measures, with Abort.
    soak(&[71, 56]);
}

#[test]
fn the_program_is_interrupted_or_killed() {
    soak(&[52, 26]);
}

#[test]
fn the_server_refuses_or_is_cut_off() {
    soak(&[28, 24]);
}
