//! A short selection of the soak: runs whose faults affect a shard, a server, the conductor and the network. `make soak` performs any
//! number of runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::Command;

/// Performs runs of the first seed. Each must have drawn the given kind of fault; if it has not, its number must be replaced. At least one
/// of the faults must have had a target: one alone may miss it on a machine that is much faster or slower than others.
fn soak(runs: &[(u64, &str)]) {
    let program = Path::new(env!("CARGO_BIN_EXE_redisbench-soak"));
    for needed in ["kubectl-redisbench", "redisbench-loadgen"] {
        let beside = program.with_file_name(needed);
        assert!(beside.is_file(), "{} is not built; run `make test-unit`, which builds it first", beside.display());
    }
    let mut hits = Vec::new();
    for (run, fault) in runs {
        let output = Command::new(program).args(["--runs", "1", "--run", &run.to_string()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let line = said.lines().find(|line| line.starts_with(&format!("{run}: "))).unwrap_or_default();
        let injections = line.split_once(" -> ").map_or(line, |(injections, _)| injections);
        let named: Vec<_> = injections.split("; ").filter(|injection| injection.contains(fault)).collect();
        // Without its own network, the soak draws no network faults.
        let left_out = fault.starts_with("Cut") && said.contains("network faults are disabled");
        assert!(!named.is_empty() || left_out, "run {run} has no {fault}: {said}");
        hits.extend(named.into_iter().map(|injection| !injection.contains("(no target)")));
    }
    assert!(hits.contains(&true), "nothing was hit in {runs:?}");
}

#[test]
fn shards_are_killed() {
    // Before the first request, with Restart; and during the measurement, with Abort.
    soak(&[(372, "KillShard"), (148, "KillShard")]);
}

#[test]
fn the_program_is_interrupted_or_killed() {
    soak(&[(79, "InterruptConductor"), (162, "KillConductor")]);
}

#[test]
fn the_server_refuses_or_is_cut_off() {
    soak(&[(10, "RefuseClients"), (93, "CutServer")]);
}

#[test]
fn closed_loops_agree_with_the_servers() {
    // One server and a cluster, both with a password.
    soak(&[(3, "no fault"), (208, "no fault")]);
}
