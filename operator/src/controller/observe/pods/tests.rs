use redisbench_testkit::api_server::merge;
use serde_json::{Value, json};

use super::*;
use crate::testing::{container as named, pod};

fn job() -> JobView {
    JobView { uid: "j".into(), ..JobView::default() }
}

fn running(index: u32, name: &str, address: &str) -> Value {
    pod(
        index,
        name,
        &json!({"phase": "Running", "podIP": address, "containerStatuses": [container(&json!({"running": {}}))]}),
    )
}

fn failed(index: u32, name: &str, code: i32, reason: &str) -> Value {
    let end = json!({"terminated": {"exitCode": code, "reason": reason, "message": "a\nlast words\n"}});
    pod(index, name, &json!({"phase": "Failed", "containerStatuses": [container(&end)]}))
}

fn container(state: &Value) -> Value {
    named("loadgen", state)
}

/// A pod with these states of the sidecar, which sorts first by name, and of the load generator.
fn with_sidecar(phase: &str, sidecar: &Value, own: &Value) -> Value {
    let statuses = json!([named("istio-proxy", sidecar), container(own)]);
    pod(0, "a", &json!({"phase": phase, "podIP": "10.0.0.1", "containerStatuses": statuses}))
}

fn seen(count: u32, job: &JobView, pods: &[Value]) -> Vec<ShardPresence> {
    at(true, count, job, pods)
}

/// The shards seen before or after the start, which whole pods and stripped ones must agree on.
fn at(started: bool, count: u32, job: &JobView, pods: &[Value]) -> Vec<ShardPresence> {
    let of = |pods: Vec<Pod>| presence(count, Some(job), &pods.iter().collect::<Vec<_>>(), started);
    let seen = of(pods.iter().map(whole).collect());
    assert_eq!(of(pods.iter().map(stripped).collect()), seen, "a field that is needed was stripped");
    seen
}

/// `pod` with more fields and list entries, as the API server has them.
fn whole(pod: &Value) -> Pod {
    let mut whole = pod.clone();
    let more = json!({
        "metadata": {
            "annotations": {"example.com/note": "n"},
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "generateName": "cart-0-",
            "labels": {"example.com/team": "t"},
            "managedFields": [{"manager": "kubelet", "operation": "Update"}],
            "resourceVersion": "7",
        },
        "spec": {"containers": [{"name": CONTAINER, "image": "loadgen:1"}], "restartPolicy": "Never"},
        "status": {"hostIP": "10.1.0.1", "podIPs": [{"ip": "10.0.0.1"}], "qosClass": "Burstable"},
    });
    merge(&mut whole, more);
    let running = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    let completed = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    for (list, entry) in [
        ("conditions", json!({"type": "Ready", "status": "False", "reason": "ContainersNotReady"})),
        ("conditions", json!({"type": "PodScheduled", "status": "True"})),
        ("containerStatuses", named("proxy", &running)),
        ("initContainerStatuses", named("init", &completed)),
    ] {
        let list = &mut whole["status"][list];
        if list.is_null() {
            *list = json!([]);
        }
        list.as_array_mut().unwrap().push(entry);
    }
    whole["metadata"]["ownerReferences"].as_array_mut().unwrap().push(json!(
        {"apiVersion": "v1", "kind": "Thing", "name": "other", "uid": "other"}
    ));
    serde_json::from_value(whole).unwrap()
}

/// `pod` as the cache has it.
fn stripped(pod: &Value) -> Pod {
    let mut pod = whole(pod);
    strip(&mut pod);
    pod
}

fn gone(why: &str, replaced: bool) -> ShardPresence {
    ShardPresence::Gone { why: why.into(), replaced }
}

#[test]
fn nothing_is_cached_that_is_not_read() {
    let running = pod(0, "a", &json!({"phase": "Running", "podIP": "10.0.0.1", "reason": "r", "message": "m"}));
    let expected: Pod = serde_json::from_value(running.clone()).unwrap();
    assert_eq!(stripped(&running), expected);
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "m"}});
    let mut status = container(&waiting);
    (status["image"], status["imageID"], status["ready"]) = ("loadgen:1".into(), "sha256:1".into(), true.into());
    let stuck = stripped(&pod(0, "a", &json!({"containerStatuses": [status]})));
    let expected: Vec<ContainerStatus> = vec![serde_json::from_value(container(&waiting)).unwrap()];
    assert_eq!(stuck.status.unwrap().container_statuses, Some(expected));
}

#[test]
fn running_pods_are_dialled_by_their_address() {
    let expected = |shard, incarnation: &str, address: &str| {
        ShardPresence::Present(Endpoint {
            shard,
            incarnation: incarnation.into(),
            address: address.parse().unwrap(),
            host: "n1".into(),
        })
    };
    assert_eq!(
        seen(3, &job(), &[running(1, "b", "fd00::1"), running(0, "a", "10.0.0.1")]),
        [
            expected(0, "uid-a", "10.0.0.1:7379"),
            expected(1, "uid-b", "[fd00::1]:7379"),
            ShardPresence::Absent { why: None }
        ]
    );
}

#[test]
fn pods_of_another_job_are_not_ours() {
    let mut foreign = running(0, "a", "10.0.0.1");
    foreign["metadata"]["ownerReferences"][0]["uid"] = "other".into();
    assert_eq!(seen(1, &job(), &[foreign]), [ShardPresence::Absent { why: None }]);
}

#[test]
fn a_suspended_job_holds_its_shards_back() {
    let spec = json!({"suspend": true, "selector": {}, "template": {}});
    let suspended: Job = serde_json::from_value(json!({"metadata": {"uid": "j"}, "spec": spec})).unwrap();
    let suspended = JobView::of(&suspended);
    let evicted = pod(1, "b", &json!({"phase": "Failed", "reason": "Evicted"}));
    let pods = [evicted];
    let before = at(false, 2, &suspended, &pods);
    assert_eq!(before, [ShardPresence::Queued, ShardPresence::Queued], "it is replaced only once the Job is admitted");
    let after = at(true, 2, &suspended, &pods);
    assert!(matches!(&after[1], ShardPresence::Gone { replaced: true, .. }), "the run lost it, and not to the queue");
}

#[test]
fn what_keeps_pods_from_running_is_quoted() {
    let unschedulable = pod(
        0,
        "a",
        &json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}),
    );
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
    let image = pod(1, "b", &json!({"phase": "Pending", "containerStatuses": [container(&waiting)]}));
    let creating = json!({"waiting": {"reason": "ContainerCreating"}});
    let creating = pod(2, "c", &json!({"phase": "Pending", "containerStatuses": [container(&creating)]}));
    let why = |why: Option<&str>| ShardPresence::Absent { why: why.map(str::to_owned) };
    assert_eq!(
        seen(3, &job(), &[unschedulable, image, creating]),
        [why(Some("Unschedulable: 0/3 nodes")), why(Some("ImagePullBackOff: no such image")), why(None)]
    );
}

#[test]
fn what_ended_a_pod_is_told_and_whether_another_comes() {
    assert_eq!(
        seen(3, &job(), &[failed(0, "a", 75, "Error"), failed(1, "b", 64, "Error"), failed(2, "c", 137, "OOMKilled")]),
        [
            gone("pod a on node n1: exit code 75: last words", true),
            gone("pod b on node n1: exit code 64: last words", false),
            gone("pod c on node n1: OOMKilled, exit code 137", true),
        ]
    );
    let mut third_retry = failed(0, "a", 1, "Error");
    third_retry["metadata"]["annotations"] = json!({FAILURES_ANNOTATION: "3"});
    assert_eq!(
        seen(1, &job(), &[failed(0, "a", 76, "Error")]),
        [gone("pod a on node n1: exit code 76: last words", false)]
    );
    assert_eq!(seen(1, &job(), &[third_retry]), [gone("pod a on node n1: exit code 1: last words", false)]);
    let over = JobView { ended: Some("its Job has ended: Failed".into()), ..job() };
    assert_eq!(
        seen(2, &over, &[failed(0, "a", 75, "Error")]),
        [gone("pod a on node n1: exit code 75: last words", false), gone("its Job has ended: Failed", false)]
    );
}

#[test]
fn a_pod_that_is_being_deleted_serves_its_result_and_its_replacement_counts() {
    let leaving = |why: &str| {
        let address = "10.0.0.1:7379".parse().unwrap();
        let endpoint = Endpoint { shard: 0, incarnation: "uid-a".into(), address, host: "n1".into() };
        ShardPresence::Leaving { endpoint, why: why.into(), replaced: true }
    };
    let deletion = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:01:00Z"}});
    let deleted = |mut pod: Value| {
        merge(&mut pod, deletion.clone());
        pod
    };
    let running_on = deleted(running(0, "a", "10.0.0.1"));
    assert_eq!(seen(1, &job(), std::slice::from_ref(&running_on)), [leaving("pod a on node n1: was deleted")]);
    let mut evicted = running_on.clone();
    evicted["status"]["conditions"] = json!([
        {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "evicting"}]);
    let why = "pod a on node n1: was deleted: EvictionByEvictionAPI: evicting";
    assert_eq!(seen(1, &job(), &[evicted]), [leaving(why)]);
    // It cannot be called.
    let pending = deleted(pod(0, "a", &json!({"phase": "Pending"})));
    let end = json!({"terminated": {"exitCode": 75, "reason": "Error"}});
    let ended = deleted(with_sidecar("Running", &json!({"running": {}}), &end));
    for pod in [pending, ended] {
        assert_eq!(seen(1, &job(), &[pod]), [gone("pod a on node n1: was deleted", true)]);
    }
    let replacement = running(0, "b", "10.0.0.2");
    let seen = seen(1, &job(), &[replacement, running_on, failed(0, "c", 1, "Error")]);
    assert!(matches!(&seen[0], ShardPresence::Present(shard) if shard.incarnation == "uid-b"), "{seen:?}");
}

#[test]
fn a_sidecar_is_not_taken_for_the_load_generator() {
    let alive = json!({"running": {}});
    let ended =
        |code: i32, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason, "message": "words"}});
    let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "m"}});
    let one = |phase: &str, sidecar: &Value, own: &Value| {
        let presence = seen(1, &job(), &[with_sidecar(phase, sidecar, own)]);
        presence.into_iter().next().unwrap()
    };
    // A terminated shard is gone even if its sidecar runs. Its own exit code determines whether it is retried.
    assert_eq!(one("Running", &alive, &ended(75, "Error")), gone("pod a on node n1: exit code 75: words", true));
    assert_eq!(one("Running", &alive, &ended(64, "Error")), gone("pod a on node n1: exit code 64: words", false));
    assert_eq!(
        one("Failed", &ended(1, "Error"), &ended(137, "OOMKilled")),
        gone("pod a on node n1: OOMKilled, exit code 137", true)
    );
    assert_eq!(one("Running", &alive, &ended(0, "Completed")), ShardPresence::Done);
    // A running shard is present, whatever the state of its sidecar.
    for sidecar in [ended(0, "Completed"), ended(1, "Error"), waiting("CrashLoopBackOff")] {
        let presence = one("Running", &sidecar, &alive);
        assert!(matches!(presence, ShardPresence::Present(_)), "{sidecar}: {presence:?}");
    }
    let absent = |why: &str| ShardPresence::Absent { why: Some(why.into()) };
    assert_eq!(one("Pending", &alive, &waiting("ImagePullBackOff")), absent("ImagePullBackOff: m"));
    // An obstacle of the sidecar is an obstacle of the pod.
    let creating = json!({"waiting": {"reason": "ContainerCreating"}});
    let why = "container istio-proxy: ImagePullBackOff: m";
    assert_eq!(one("Pending", &waiting("ImagePullBackOff"), &creating), absent(why));
    let mut pod = with_sidecar("Pending", &creating, &creating);
    pod["status"]["initContainerStatuses"] = json!([named("istio-init", &waiting("CrashLoopBackOff"))]);
    assert_eq!(seen(1, &job(), &[pod]), [absent("container istio-init: CrashLoopBackOff: m")]);
}

#[test]
fn released_shards_are_done() {
    assert_eq!(seen(1, &job(), &[pod(0, "a", &json!({"phase": "Succeeded"}))]), [ShardPresence::Done]);
}

#[test]
fn without_a_job_shards_were_never_there_or_are_gone() {
    assert_eq!(presence(1, None, &[], false), [ShardPresence::Absent { why: None }]);
    assert_eq!(presence(1, None, &[], true), [gone("its Job was deleted", false)]);
}

#[test]
fn only_what_is_late_and_unexplained_is_a_puzzle() {
    let job: Job =
        serde_json::from_value(json!({"metadata": {"name": "cart", "creationTimestamp": "2026-01-01T00:00:00Z"}}))
            .unwrap();
    let pod = stripped(&pod(0, "a", &json!({"phase": "Pending"})));
    let absent = [ShardPresence::Absent { why: None }];
    let (soon, late): (Timestamp, Timestamp) =
        ("2026-01-01T00:00:09Z".parse().unwrap(), "2026-01-01T00:00:10Z".parse().unwrap());
    assert_eq!(puzzle(&job, &[&pod], &absent, soon), None);
    assert_eq!(puzzle(&job, &[&pod], &absent, late), Some(("Pod", "a".into())));
    assert_eq!(puzzle(&job, &[], &absent, late), Some(("Job", "cart".into())));
    assert_eq!(puzzle(&job, &[], &[ShardPresence::Done], late), None);
}
