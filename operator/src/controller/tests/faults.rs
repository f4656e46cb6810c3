//! Every write of the operator is refused, throttled, lost or unanswered. Nothing gets lost, no event is published twice, every retry has a
//! pause, and the status shows the obstacle.

use redisbench_benchmark::api::status::{EncodedHistogramStatus, TrialResult, VerdictValue};
use redisbench_benchmark::report::Finished;

use super::*;
use crate::build;
use crate::client::CallError;
use crate::tasks::ARTIFACTS_LIMIT;
use crate::testing::{Fault, How};

const CONFIG_MAPS: &str = "/api/v1/namespaces/perf/configmaps";

/// Temporary failures.
const PASSING: [How; 7] = [
    How::Refusal(409, "the object has been modified; please apply your changes to the latest version"),
    How::Refusal(429, "too many requests"),
    How::Refusal(500, "etcdserver: leader changed"),
    How::Refusal(503, "apiserver not ready"),
    How::Refusal(504, "request did not complete within the allotted timeout"),
    How::Silence,
    How::LostAnswer,
];

/// Replies of the API server and etcd to objects that are too large or otherwise unacceptable.
const LASTING: [How; 4] = [
    How::Refusal(413, "Request entity too large: limit is 3145728"),
    How::Refusal(500, "etcdserver: request is too large"),
    How::Refusal(500, "rpc error: trying to send message larger than max (2097160 vs. 2097152)"),
    How::Refusal(422, "status.result.shards: Too many: 32: must have at most 16 items"),
];

/// The pause between two reconciliations; short enough for the preparation timeout.
const PAUSE: Duration = Duration::from_secs(5);

fn fault(method: &'static str, path: &'static str, how: How) -> Fault {
    Fault { method, path, body: |_| true, how }
}

#[tokio::test]
async fn a_deleted_namespace_stops_the_load_before_the_task() {
    let world = World::new();
    world.put(benchmark(json!({})), None);
    world.reconcile().await.unwrap();
    let conduct = world.conduct().unwrap();
    // The Job is gone and cannot be created again.
    world.server.fail(fault("POST", "/jobs", How::NamespaceGoing), u32::MAX);
    world.server.take_writes();
    world.reconcile().await.unwrap();
    assert!(world.conduct().is_none() && conduct.is_aborted());
}

/// Until the next periodic reconciliation no conductor would be in charge of the shards.
#[tokio::test(start_paused = true)]
async fn a_run_whose_conductor_panicked_is_taken_over_at_once() {
    let mut world = World::of(TaskRegistry::panicking());
    world.put(benchmark(json!({})), Some(json!({"phase": "Preparing"})));
    world.jobs.apply_watcher_event(&Event::Apply(serde_json::from_value(job()).unwrap()));
    world.server.put(&format!("{JOB}/cart-89abcdef"), job());
    let expected = [(2, Value::Null, "Preparing"), (3, json!(1), "Preparing"), (3, json!(1), "Failed")];
    for (epoch, failures, phase) in expected {
        world.reconcile().await.unwrap();
        let status = world.status();
        let found = (&status["conductorEpoch"], &status["conductorFailures"], &status["phase"]);
        assert_eq!(found, (&json!(epoch), &failures, &json!(phase)));
        if phase != "Failed" {
            let woken = tokio::time::timeout(Duration::from_secs(60), world.woken.recv()).await.unwrap().unwrap();
            assert_eq!(woken.name, "cart");
        }
    }
}

impl World {
    /// Reconciles once, and pauses as the runtime would. Returns whether it succeeded.
    async fn look(&self) -> bool {
        let result = self.reconcile().await;
        if let Err(error) = &result {
            self.retry(error);
        }
        tokio::time::advance(PAUSE).await;
        result.is_ok()
    }

    /// Reconciles until it succeeds without a write. Returns the number of reconciliations.
    async fn settle(&self) -> usize {
        for looks in 1..30 {
            let worked = self.look().await;
            if self.writes().is_empty() && worked {
                return looks;
            }
        }
        panic!("it does not come to rest");
    }

    fn events(&self, reason: &str) -> usize {
        self.server.events().iter().filter(|event| *event == reason).count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_comes_into_being_whatever_passes() {
    for (method, path) in [
        ("PATCH", "/status"),
        ("POST", "/secrets"),
        ("POST", "/poddisruptionbudgets"),
        ("POST", "/jobs"),
        ("POST", "/events"),
    ] {
        for how in PASSING {
            // Existing children have their own tests.
            if method == "POST" && matches!(how, How::Refusal(409, _)) {
                continue;
            }
            let world = World::new();
            world.put(benchmark(json!({})), None);
            world.server.fail(fault(method, path, how), 3);
            for _ in 0..7 {
                world.look().await;
            }
            let case = format!("{method} {path} {how:?}");
            assert_eq!(world.status()["phase"], "Preparing", "{case}");
            let children = |kind: &str| world.server.paths().iter().filter(|path| path.contains(kind)).count();
            assert_eq!(["/jobs/", "/secrets/", "/poddisruptionbudgets/"].map(children), [1; 3], "{case}");
            assert!(world.conduct().is_some(), "{case}");
            // After the refusals end, nothing is stalled.
            assert_eq!(world.condition("Stalled")["status"], "False", "{case}");
            // An event may be lost with its own call, or with the answer to the status, but is never published twice.
            let spared = path != "/events" && how != How::LostAnswer;
            let told = world.events("Preparing");
            assert!(told == 1 || (told == 0 && !spared), "{case}: told {told} times");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_told_and_tried_with_pauses() {
    for (how, reason) in [
        (How::Refusal(500, "failed calling webhook"), "ApiServerFailing"),
        (How::Refusal(429, "too many requests"), "ApiServerFailing"),
        (How::Refusal(403, "exceeded quota"), "Forbidden"),
        (How::Refusal(413, "Request entity too large"), "Refused"),
    ] {
        let world = World::new();
        world.put(benchmark(json!({})), None);
        world.server.fail(fault("POST", "/jobs", how), u32::MAX);
        for _ in 0..8 {
            world.look().await;
        }
        let stalled = world.condition("Stalled");
        assert_eq!((&stalled["status"], &stalled["reason"]), (&json!("True"), &json!(reason)), "{how:?}");
        assert!(stalled["message"].as_str().unwrap().contains("create Job"), "{stalled}");
        // The same status is not written again.
        world.writes();
        world.look().await;
        assert!(world.writes().iter().all(|write| !write.contains("/status")), "{how:?}");
        world.server.mend();
        for _ in 0..2 {
            assert!(world.look().await);
        }
        assert_eq!(world.condition("Stalled")["status"], "False");
    }
}

#[tokio::test(start_paused = true)]
async fn the_api_servers_wish_for_a_pause_is_kept() {
    let status: kube::core::Status = serde_json::from_value(json!({
        "status": "Failure", "message": "slow down", "reason": "TooManyRequests", "code": 429,
        "details": {"retryAfterSeconds": 33},
    }))
    .unwrap();
    let source = Box::new(kube::Error::Api(Box::new(status)));
    let error = ReconcileError::Apply(CallError::Api { what: "write the status".into(), source }.into());
    let world = World::new();
    world.put(benchmark(json!({})), None);
    assert_eq!(error.class().as_str(), "throttled");
    assert_eq!(world.retry(&error), Requeue::requeue(Duration::from_secs(33)));
}

/// A result with entries in every list, in `pieces` pieces.
fn finished(pieces: usize) -> Finished {
    let result = json!({
        "requests": {"scheduled": 10, "succeeded": 9, "errors": 1, "unsent": 0, "late": 0, "redirected": 0},
        "throughput": {"achievedPerSecond": 900, "minPerSecond": 1, "maxPerSecond": 2},
        "bandwidth": {"sentBytesPerSecond": 1, "receivedBytesPerSecond": 2},
        "responseTime": {"p50Nanoseconds": 1_000_000},
        "errors": [{"kind": "Timeout", "count": 1, "firstMessage": "no reply"}],
    });
    let histogram = Some(EncodedHistogramStatus { encoding: "HdrV2DeflateBase64".into(), data: "x".repeat(4_000) });
    let name = |index: usize| format!("result.json.{index:03}");
    let mut finished = crate::testing::finished(0, 1, VerdictValue::Valid);
    finished.measurement.as_mut().unwrap().result =
        TrialResult { histogram, ..serde_json::from_value(result).unwrap() };
    finished.pieces = (0..pieces).map(|index| (name(index), format!("piece {index}"))).collect();
    finished
}

/// The trial has finished, and none of it is written yet.
fn measured(pieces: usize) -> World {
    let world = World::new();
    let start = json!({"phase": "Collecting", "trial": {
        "index": 0, "of": 1, "attempt": 1, "startAt": "2026-01-01T01:00:00.123456Z"}});
    world.put(benchmark(json!({})), Some(start));
    world.context.shared.tasks.put_ended(run(), 1, finished(pieces));
    world
}

/// All pieces exist and have the right content.
fn assert_pieces(world: &World, pieces: usize, case: &str) {
    for index in 0..pieces {
        let piece = world.server.get(&format!("{CONFIG_MAPS}/cart-result-{index}")).unwrap_or_default();
        assert_eq!(piece["data"][format!("result.json.{index:03}")], format!("piece {index}"), "{case}");
    }
    assert_eq!(world.status()["artifacts"].as_array().unwrap().len(), pieces, "{case}");
}

#[tokio::test(start_paused = true)]
async fn a_result_is_written_whatever_passes() {
    for (method, path) in [("POST", "/configmaps"), ("PATCH", "/configmaps"), ("PATCH", "/status"), ("POST", "/events")]
    {
        for how in PASSING {
            let case = format!("{method} {path} {how:?}");
            let world = measured(3);
            if method == "PATCH" {
                // A leftover of an earlier attempt.
                let old = build::artifact(&run(), 1, "cart-result-1", "result.json.001", "an older piece");
                world.server.put(&format!("{CONFIG_MAPS}/cart-result-1"), old);
            }
            let fails = if method == "POST" && matches!(how, How::Refusal(409, _)) { 0 } else { 2 };
            world.server.fail(fault(method, path, how), fails);
            for _ in 0..6 {
                let result = world.reconcile().await;
                if let Err(error) = &result {
                    assert_ne!(error.class().as_str(), "name_taken", "{case}");
                }
            }
            let status = world.status();
            assert_eq!(status["phase"], "Succeeded", "{case}");
            assert_eq!(status["result"]["requests"]["succeeded"], 9, "{case}");
            assert_pieces(&world, 3, &case);
            let told = world.events("Succeeded");
            let spared = path != "/events" && how != How::LostAnswer;
            assert!(told == 1 || (told == 0 && !spared), "{case}: told {told} times");
            // A finished benchmark is not written again.
            world.settle().await;
            assert_eq!(world.status(), status, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pieces_that_are_never_taken_do_not_hold_the_end_up() {
    for how in LASTING {
        let world = measured(3);
        world.server.fail(fault("POST", "/configmaps", how), u32::MAX);
        let mut tries = 0;
        while world.status()["phase"] != "Succeeded" {
            world.look().await;
            tries += 1;
            assert!(PAUSE * tries <= ARTIFACTS_LIMIT + 2 * PAUSE, "{how:?}");
        }
        assert!(PAUSE * tries >= ARTIFACTS_LIMIT);
        let status = world.status();
        assert_eq!(status["result"]["requests"]["succeeded"], 9);
        assert!(status["artifacts"].is_null());
        let complete = world.condition("Complete");
        assert!(complete["message"].as_str().unwrap().contains("failed to store the full result"), "{complete}");
        world.settle().await;
        assert_eq!((world.events("ArtifactsNotWritten"), world.events("Succeeded")), (1, 1), "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_final_status_that_is_refused_goes_without_its_details() {
    // First without the lists; if that is not enough, without the result.
    let too_long: fn(&Value) -> bool = |body| !body["status"]["result"]["histogram"].is_null();
    let not_taken: fn(&Value) -> bool = |body| !body["status"]["result"].is_null();
    for how in LASTING {
        for (body, keeps_result) in [(too_long, true), (not_taken, false)] {
            let case = format!("{how:?}, keeps its result: {keeps_result}");
            let world = measured(1);
            world.server.fail(Fault { method: "PATCH", path: "/status", body, how }, u32::MAX);
            assert!(world.look().await, "{case}");
            let status = world.status();
            assert_eq!(status["phase"], "Succeeded", "{case}");
            assert_eq!(!status["result"].is_null(), keeps_result, "{case}");
            if keeps_result {
                assert_eq!(status["result"]["requests"]["succeeded"], 9, "{case}");
                assert_eq!(status["result"]["truncated"]["errors"], 1, "{case}");
                assert_eq!(status["result"]["truncated"]["histogram"], true, "{case}");
            }
            assert_pieces(&world, 1, &case);
            let complete = world.condition("Complete");
            assert!(complete["message"].as_str().unwrap().contains("refused the full status"), "{complete}");
            world.settle().await;
            assert_eq!((world.events("StatusShortened"), world.events("Succeeded")), (1, 1), "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_was_final_before_is_not_shortened() {
    for how in LASTING {
        let world = World::new();
        let result = serde_json::to_value(finished(1).result()).unwrap();
        world.put(
            benchmark(json!({"metadata": {"generation": 2}})),
            Some(json!({"phase": "Succeeded", "result": result})),
        );
        world.server.fail(fault("PATCH", "/status", how), u32::MAX);
        // Its cleanup does not depend on the status.
        world.reconcile().await.unwrap();
        let patches = world.writes().into_iter().filter(|write| *write == patch_status()).count();
        assert_eq!(patches, 1, "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn children_are_cleared_away_whatever_passes() {
    let kinds = ["/secrets", "/poddisruptionbudgets", "/jobs"];
    for (path, how) in kinds.into_iter().flat_map(|path| PASSING.map(|how| (path, how))) {
        if matches!(how, How::Refusal(409, _)) {
            // For a delete, 409 means that the object has been replaced.
            continue;
        }
        let mut world = World::new();
        world.jobs.apply_watcher_event(&Event::Apply(serde_json::from_value(job()).unwrap()));
        world.server.put(&format!("{JOB}/cart-89abcdef"), job());
        for kind in [SECRET, BUDGET] {
            world.server.put(&format!("{kind}/cart-89abcdef"), json!({"metadata": {"name": "cart-89abcdef"}}));
        }
        world.put(benchmark(json!({})), Some(json!({"phase": "Succeeded"})));
        world.server.fail(fault("DELETE", path, how), 3);
        for _ in 0..5 {
            world.look().await;
        }
        assert_eq!(world.server.paths().iter().filter(|path| path.contains("cart-89abcdef")).count(), 0, "{how:?}");
    }
}

/// Progress changes four times a second. The number of writes is proportional to the run's length.
#[tokio::test(start_paused = true)]
async fn a_run_is_written_about_once_in_five_seconds() {
    use redisbench_benchmark::conductor::{self, ConductProgress, ConductStage, LivePicture};
    use redisbench_wire::histogram::Kind;
    use redisbench_wire::snapshot::Tally;

    use crate::controller::decide::{Subject, decide};
    use crate::controller::observed::Observed;
    use crate::tasks::TaskView;

    let spec = benchmark(json!({})).spec;
    for seconds in [10_u64, 60, 600] {
        let mut known = status(json!({"phase": "Preparing"}));
        let (mut writes, mut notices, mut written) = (0, 0, None::<u64>);
        for tick in 0..seconds * 4 {
            let live = LivePicture {
                topology: redisbench_benchmark::measurement::topology::MergedTopology::default(),
                percent: u8::try_from(tick * 100 / (seconds * 4)).unwrap(),
                total: Tally { scheduled: tick, succeeded: tick, ..Tally::default() },
                warmup: Tally::default(),
                response: Kind::Request.empty(),
                errors: Vec::new(),
                verification: None,
                achieved_per_second: 1_000 + tick,
                recent: None,
                caches: None,
                measuring: true,
                shards: Vec::new(),
                nodes: Vec::new(),
                complete: true,
                snapshot_bytes: 0,
            };
            let progress = ConductProgress {
                stage: ConductStage::Running,
                attempt: 1,
                start_at_unix_nanoseconds: Some(1_767_229_200_123_456_000),
                shards: conductor::ShardCounts { desired: 2, running: 2, ..conductor::ShardCounts::default() },
                live: Some(Arc::new(live)),
                ..ConductProgress::default()
            };
            let observed = Observed {
                conduct: Some(TaskView::Running(Box::new(progress))),
                since_write: written.map(|at| Duration::from_millis(250) * u32::try_from(tick - at).unwrap()),
                ..Observed::default()
            };
            let subject = Subject { spec: &spec, status: &known, generation: Some(1), problems: None, plan: None };
            let now = "2026-01-01T01:00:00Z".parse::<jiff::Timestamp>().unwrap();
            let decision = decide(&subject, &observed, now + Duration::from_millis(250) * u32::try_from(tick).unwrap());
            if decision.status != known {
                (known, written) = (decision.status, Some(tick));
                writes += 1;
                notices += decision.notices.len();
            }
        }
        // One every five seconds, and one at the beginning.
        assert!(writes <= seconds / 5 + 2, "{writes} writes in {seconds} s");
        assert!(writes >= seconds / 5, "{writes} writes in {seconds} s");
        assert_eq!(notices, 1);
    }
}
