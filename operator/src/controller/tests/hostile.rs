//! Reconciling must not panic on any content of the API server: benchmarks, Jobs and pods with anything in any field, as other versions or
//! clients may write them. See `redisbench_testkit::hostile`.

use redisbench_testkit::hostile::{Meter, Target, drive};

use super::*;
use crate::testing::{self, container};

#[global_allocator]
static METER: Meter = Meter;

const TARGETS: [Target; 1] = [
    // The plans of 2,000 shards, and the decisions about each.
    Target { name: "objects", run: objects, seeds, words, memory: (64 << 20, 256), cases: 250 },
];

#[test]
fn hostile_input_is_refused_or_judged() {
    drive(env!("CARGO_MANIFEST_DIR"), &TARGETS);
}

fn objects(bytes: &[u8]) {
    let Ok(mut all @ Value::Object(_)) = serde_json::from_slice::<Value>(bytes) else { return };
    let object = all["object"].take();
    // The API server has no objects without a name.
    if object["metadata"]["name"] != "cart" || object["metadata"]["namespace"] != "perf" {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new();
        let named = |object: &Value| object["metadata"]["name"].is_string();
        if let Some(Ok(job)) = Some(all["job"].take()).filter(named).map(serde_json::from_value::<Job>) {
            world.jobs.apply_watcher_event(&Event::Apply(job));
        }
        for pod in all["pods"].as_array().cloned().unwrap_or_default().into_iter().take(100) {
            if let Some(Ok(pod)) = Some(pod).filter(named).map(serde_json::from_value::<Pod>) {
                world.pods.apply_watcher_event(&Event::Apply(pod));
            }
        }
        world.server.put(CART, object);
        for _ in 0..3 {
            let Some(object) = world.server.get(CART) else { return };
            let Ok(object) = serde_json::from_value::<Guarded>(object) else { return };
            let object = Arc::new(object);
            if let Err(error) = reconcile(object.clone(), world.context.clone()).await {
                retry(object, &error, world.context.clone());
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    });
}

fn seeds() -> Vec<Vec<u8>> {
    let mut job = job();
    job["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    job["status"] = json!({"conditions": [{"type": "FailureTarget", "status": "False", "message": "m"}]});
    let loadgen = |state: Value| json!([container("loadgen", &state)]);
    let running = loadgen(json!({"running": {}}));
    let words = json!({"exitCode": 75, "reason": "Error", "message": "a\nlast words\n"});
    let unschedulable = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available"}]);
    let mut pods = [
        json!({"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": running}),
        json!({"phase": "Failed", "containerStatuses": loadgen(json!({"terminated": words}))}),
        json!({"phase": "Pending", "conditions": unschedulable}),
    ];
    for (pod, index) in pods.iter_mut().zip(0..) {
        *pod = testing::pod(index, &format!("p{index}"), pod);
        pod["metadata"]["annotations"] = json!({"batch.kubernetes.io/job-index-failure-count": "1"});
    }
    let conditions = json!([{"type": "Finished", "status": "True", "reason": "Succeeded", "message": "m",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let start = json!({"index": 0, "of": 1, "attempt": 2, "startAt": "2026-01-01T01:00:00.123456Z"});
    [
        json!(null),
        json!({"phase": "Preparing", "runId": "0123456789abcdef", "conductorEpoch": 1}),
        json!({"phase": "Running", "runId": "0123456789abcdef", "conductorEpoch": 3, "trial": start}),
        json!({"phase": "Succeeded", "runId": "0123456789abcdef", "conditions": conditions}),
    ]
    .map(|status| {
        let mut object = serde_json::to_value(benchmark(json!({"spec": {"ttlSecondsAfterFinished": 60}}))).unwrap();
        object["status"] = status;
        json!({"object": object, "job": job, "pods": pods}).to_string().into_bytes()
    })
    .to_vec()
}

fn words() -> Vec<String> {
    let states = "Running Suspended Failed Succeeded True DisruptionTarget";
    let others = "10.0.0.1 ::1 u-1 j 0123456789abcdef -1 99999999999";
    let times = "2026-01-01T01:00:00Z 9999-12-31T23:59:59Z -9999-01-01T00:00:00Z";
    [states, others, times].iter().flat_map(|words| words.split(' ')).map(str::to_owned).collect()
}
