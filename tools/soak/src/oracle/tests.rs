use std::time::Duration;

use serde_json::json;

use redisbench_wire::histogram::{EncodedHistogram, Kind};

use super::*;
use crate::evidence::{Calls, Injection};
use crate::fault;
use crate::scenario::{Bound, Load, Means, Scenario};
use crate::servers::Redis;

/// A benchmark with 1,000 requests by two shards, and no random parameters.
fn scenario() -> Scenario {
    let mut scenario = Scenario::draw(1, 1, Means { network: true, clocks: true });
    scenario.shards = 2;
    scenario.redis = Redis::Standalone;
    scenario.load = Load::Open(500);
    scenario.bound = Bound::Seconds(2);
    scenario.warmup = Duration::ZERO;
    scenario.preload = "None";
    scenario.verify = "None";
    scenario.on_lost = "Invalidate";
    scenario.full_disk = false;
    scenario.small_disk = None;
    scenario.faults.clear();
    scenario
}

/// 2026-11-21T17:22:00Z.
const START: u64 = 1_795_281_720_000_000_000;

fn shard(index: u32, requests: &Value) -> Value {
    json!({"index": index, "state": "Finished", "requests": requests})
}

fn object() -> Value {
    let half = json!({"scheduled": 500, "succeeded": 500, "errors": 0, "unsent": 0});
    let whole = json!({"scheduled": 1_000, "succeeded": 1_000, "errors": 0, "unsent": 0});
    let mut histogram = Kind::Request.empty();
    histogram.record_n(1_000, 1_000).unwrap();
    json!({"status": {
        "phase": "Succeeded",
        "conditions": [{"type": "Finished", "status": "True"}, {"type": "Failed", "status": "False"}],
        "trial": {"attempt": 1, "startAt": "2026-11-21T17:22:00.000000Z"},
        "shards": {"lost": 0},
        "synchronization": {"commonWindowMilliseconds": 2_000},
        "verdict": {"value": "Valid", "reasons": []},
        "result": {
            "requests": whole,
            "throughput": {"achievedPerSecond": 500},
            "histogram": {"data": EncodedHistogram::encode(&histogram).unwrap()},
            "operations": [{"name": "get", "requests": whole}],
            "nodes": [{"requests": 1_000}],
            "shards": [shard(0, &half), shard(1, &half)],
        },
    }})
}

fn evidence(object: Value) -> Evidence {
    Evidence {
        ended: Ended::Code(0),
        took: Duration::from_secs(6),
        object: Some(object),
        stdout: "{}".to_owned(),
        logs: vec![" INFO the phase changed".to_owned()],
        calls: Some(Calls { at_least: 1_000, at_most: Some(1_000) }),
        peak_kib: 20_000,
        ..Evidence::default()
    }
}

/// A fault on shard 1 or the only server, some time after the start. It lasts for a second, unless it is not undone at all.
fn struck(kind: fault::Kind, milliseconds: u64) -> Injection {
    let (target, lasts) = match kind {
        fault::Kind::KillShard => (1, 0),
        fault::Kind::StopShard => (1, 1),
        fault::Kind::RestartServer => (0, 1),
        _ => (0, 0),
    };
    let fault = Fault { kind, target, time: Duration::from_secs(lasts) };
    let at = START + milliseconds * 1_000_000;
    Injection { fault, after: Duration::from_secs(3), at, undone: None, hit: true }
}

/// The violations in a good run after `change`.
fn found(change: impl FnOnce(&mut Evidence)) -> String {
    let mut evidence = evidence(object());
    change(&mut evidence);
    judge(&scenario(), &evidence).join("\n")
}

/// The status of a run.
fn status(evidence: &mut Evidence) -> &mut Value {
    &mut evidence.object.as_mut().unwrap()["status"]
}

/// More than one percent of the requests is missing.
fn rate_missed() -> Value {
    json!({"reason": "RateMissed", "severity": "Degraded", "message": "achieved 400/s of the 500/s requested"})
}

/// Shard 1 was lost after 300 of its 500 requests.
fn lose(evidence: &mut Evidence) {
    let status = status(evidence);
    let result = &mut status["result"];
    result["shards"][1]["requests"] = json!({"scheduled": 500, "succeeded": 300, "unknown": 200});
    result["shards"][1]["state"] = json!("Lost");
    result["requests"] = json!({"scheduled": 1_000, "succeeded": 800, "unknown": 200});
    result["operations"][0]["requests"] = json!({"scheduled": 500, "succeeded": 500});
    let mut histogram = Kind::Request.empty();
    histogram.record_n(1_000, 800).unwrap();
    result["histogram"]["data"] = json!(EncodedHistogram::encode(&histogram).unwrap());
    status["shards"]["lost"] = json!(1);
    let message = "1 of 2 shards are lost, with their measurements: shard 1; shard 1: signal 9";
    let lost = json!({"reason": "ShardLost", "severity": "Invalid", "message": message});
    status["verdict"] = json!({"value": "Invalid", "reasons": [lost, rate_missed()]});
    evidence.ended = Ended::Code(1);
    evidence.calls = Some(Calls { at_least: 900, at_most: Some(900) });
}

#[test]
fn a_run_in_which_all_is_well_passes() {
    assert_eq!(found(|_| {}), "");
    assert_eq!(unix_nanoseconds("2026-11-21T17:22:00.000000Z"), Some(START));
}

#[test]
fn a_loss_needs_a_cause_and_a_cause_a_loss() {
    let kill = struck(fault::Kind::KillShard, 1_000);
    let with_cause = found(|evidence| {
        lose(evidence);
        evidence.injections.push(kill);
    });
    assert_eq!(with_cause, "");
    assert!(found(lose).contains("shard 1 is lost, which no fault explains"));
    assert!(
        found(|evidence| evidence.injections.push(kill))
            .contains("shard 1 was killed while it measured, but is not lost")
    );
    // The loss ends the run, but its result is missing.
    let untold = found(|evidence| {
        evidence.injections.push(kill);
        evidence.ended = Ended::Code(1);
        let status = status(evidence);
        (status["phase"], status["result"]) = (json!("Failed"), Value::Null);
        status["conditions"][1] = json!({"type": "Failed", "status": "True", "reason": "ShardLost"});
    });
    assert_eq!(untold, "Failed because of lost shards; killed [1], lost []");
    // The result names the wrong shard.
    let renamed = found(|evidence| {
        lose(evidence);
        evidence.injections.push(kill);
        let message =
            status(evidence)["verdict"]["reasons"][0]["message"].as_str().unwrap().replace("shard 1;", "shard 0;");
        status(evidence)["verdict"]["reasons"][0]["message"] = json!(message);
    });
    assert!(renamed.contains("[0] are named"), "{renamed}");
}

#[test]
fn who_was_back_in_time_is_not_lost() {
    let stopped = |undone: u64| {
        found(|evidence| {
            lose(evidence);
            let mut injection = struck(fault::Kind::StopShard, 500);
            injection.undone = Some(START + undone * 1_000_000_000);
            evidence.injections.push(injection);
        })
    };
    assert!(stopped(2).contains("shard 1 is lost, which no fault explains"));
    assert_eq!(stopped(30), "");
}

#[test]
fn sums_that_do_not_hold_are_found() {
    for (path, value, words) in [
        ("/result/requests/succeeded", 999, "total does not add up"),
        ("/result/shards/0/requests/succeeded", 400, "does not add up"),
        ("/result/operations/0/requests/scheduled", 900, "the sum of the operations is 900"),
        ("/result/nodes/0/requests", 1_001, "1000 were sent, but the nodes have 1001"),
    ] {
        let found = found(|evidence| *status(evidence).pointer_mut(path).unwrap() = json!(value));
        assert!(found.contains(words), "{path}: {found}");
    }
    let empty = EncodedHistogram::encode(&Kind::Request.empty()).unwrap();
    let found = found(|evidence| status(evidence)["result"]["histogram"]["data"] = json!(empty));
    assert!(found.contains("the histogram has Some(0)"), "{found}");
}

#[test]
fn the_servers_count_decides() {
    let found = |count: u64| found(|evidence| evidence.calls = Some(Calls { at_least: count, at_most: Some(count) }));
    assert!(found(999).contains("1000 commands were answered, but the servers executed 999"));
    assert!(found(1_001).contains("at most 1000 commands were sent, but the servers executed 1001"));
}

#[test]
fn what_is_left_is_found() {
    assert!(found(|evidence| evidence.left_processes.push("7 redis-server".to_owned())).contains("left running"));
    assert!(found(|evidence| evidence.left_files.push("port".to_owned())).contains("left behind"));
    assert!(found(|evidence| evidence.left_ports.push(7)).contains("left listening"));
    assert!(found(|evidence| evidence.peak_kib = 1 << 20).contains("took 1048576 KiB"));
    assert!(found(|evidence| evidence.logs.push("thread 'w' panicked at x".to_owned())).contains("error in a log"));
    assert!(found(|evidence| evidence.ended = Ended::Hung).contains("did not finish"));
}

#[test]
fn endings_need_a_cause() {
    let phase = |phase: &str, injection: Option<Injection>| {
        found(|evidence| {
            status(evidence)["phase"] = json!(phase);
            evidence.ended = Ended::Code(i32::from(phase != "Succeeded"));
            evidence.injections.extend(injection);
        })
    };
    assert!(phase("Aborted", None).contains("Aborted without a request"));
    assert_eq!(phase("Aborted", Some(struck(fault::Kind::InterruptConductor, 500))), "");
    assert!(
        phase("Succeeded", Some(struck(fault::Kind::InterruptConductor, 500))).contains("aborted while it measured")
    );
    assert_eq!(phase("Succeeded", Some(struck(fault::Kind::InterruptConductor, 2_500))), "");
    assert!(phase("Running", None).contains("finished in phase"));
    assert!(found(|evidence| evidence.ended = Ended::Code(1)).contains("exit code 1"));
    assert!(found(|evidence| evidence.ended = Ended::Signal(libc::SIGKILL)).contains("signal 9"));
    assert!(found(|evidence| evidence.object = None).contains("no explanation"));
}

#[test]
fn without_a_fault_only_a_busy_machine_explains_an_invalid_result() {
    let unsent = |unsent: u64| {
        found(|evidence| {
            let all = 1_000 - unsent;
            let part = json!({"scheduled": 1_000, "succeeded": all, "unsent": unsent});
            let status = status(evidence);
            let result = &mut status["result"];
            result["shards"][0]["requests"] = json!({"scheduled": 500, "succeeded": 500 - unsent, "unsent": unsent});
            (result["requests"], result["operations"][0]["requests"]) = (part.clone(), part);
            result["nodes"][0]["requests"] = json!(all);
            let mut histogram = Kind::Request.empty();
            histogram.record_n(1_000, all).unwrap();
            result["histogram"]["data"] = json!(EncodedHistogram::encode(&histogram).unwrap());
            let reason = json!({"reason": "Errors", "severity": "Invalid", "message": "2 % were not sent"});
            status["verdict"] = json!({"value": "Invalid", "reasons": [reason, rate_missed()]});
            evidence.ended = Ended::Code(1);
            evidence.calls = Some(Calls { at_least: all, at_most: Some(all) });
        })
    };
    assert_eq!(unsent(50), "");
    assert!(unsent(51).contains("Invalid without a fault"), "{}", unsent(51));
}

/// The violations in a run with this result of verification.
fn found_verified(verification: &Value, injections: &[Injection]) -> String {
    let mut evidence = evidence(object());
    evidence.calls = Some(Calls { at_least: 1_100, at_most: Some(1_100) });
    evidence.injections.extend(injections);
    let result = &mut status(&mut evidence)["result"];
    result["verification"] = verification.clone();
    result["verification"]["readKeys"] = json!(100);
    let scenario = Scenario { verify: "Values", keys: 100, ..scenario() };
    judge(&scenario, &evidence).join("\n")
}

#[test]
fn data_is_lost_by_faults_alone_and_never_made_up() {
    let lost = json!({"checked": 1_100, "lostWrites": 3});
    let restarted = struck(fault::Kind::RestartServer, 500);
    let disconnected = struck(fault::Kind::KillClients, 500);
    assert_eq!(found_verified(&json!({"checked": 1_100}), &[]), "");
    assert!(found_verified(&lost, &[]).contains("data is lost, which no fault explains"));
    assert!(found_verified(&lost, &[disconnected]).contains("data is lost, which no fault explains"));
    assert_eq!(found_verified(&lost, &[restarted]), "");
    let corrupt = json!({"checked": 1_100, "corrupt": 1});
    assert!(found_verified(&corrupt, &[restarted]).contains("corrupt or mismatched values"));
}

#[test]
fn an_outage_ends_when_the_target_is_well_again() {
    let lasting = |seconds: u64, injection: Injection| {
        let mut evidence = evidence(object());
        evidence.injections.push(injection);
        evidence.calls = None;
        status(&mut evidence)["topology"] = json!({"unavailability": [{"node": "127.0.0.1:7", "lasting": true}]});
        let scenario = Scenario { bound: Bound::Seconds(seconds), load: Load::Closed, ..scenario() };
        let found = judge(&scenario, &evidence);
        found.iter().any(|found| found.contains("these outages remain"))
    };
    let disconnected = struck(fault::Kind::KillClients, 500);
    assert!(lasting(9, disconnected), "nothing explains it");
    assert!(!lasting(2, disconnected), "it may be about to end");
    let mut restarted = struck(fault::Kind::RestartServer, 500);
    assert!(!lasting(9, restarted), "it never came back");
    restarted.undone = Some(START + 1_500_000_000);
    assert!(lasting(9, restarted));
}
