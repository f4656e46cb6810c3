use k8s_openapi::api::batch::v1::Job;
use redisbench_benchmark::api::status::VerdictValue;
use redisbench_benchmark::measurement::Ending;
use redisbench_benchmark::plan::compile;
use serde_json::{Value, json};

use super::*;
use crate::testing::{benchmark, finished};

fn run() -> Run {
    Run { namespace: "perf".into(), benchmark: "cart".into(), uid: "u-1".into(), id: "0123456789ABCDEF".into() }
}

fn job_of(change: Value) -> Value {
    let benchmark = benchmark(change);
    let plan = compile(&benchmark.spec, "cart").unwrap();
    let images = [("go", "drivers/go:1"), ("py", "drivers/py:2")];
    let images = images.map(|(name, image)| (name.to_owned(), image.to_owned())).into();
    let resources = serde_json::from_value(json!({"limits": {"memory": "1Gi"}})).unwrap();
    let drivers = Drivers { images, resources: Some(resources) };
    let input = JobInput { run: &run(), plan: &plan, image: "loadgen:1", pull_policy: "Never", drivers: &drivers };
    let job: Job = job(&input);
    serde_json::to_value(job).unwrap()
}

fn at<'a>(job: &'a Value, pointer: &str) -> &'a Value {
    job.pointer(&format!("/spec/template/spec{pointer}")).unwrap_or(&Value::Null)
}

#[test]
fn children_are_named_by_the_end_of_the_run() {
    assert_eq!(run().child_name(), "cart-89abcdef");
    assert_eq!(Run { id: "abc".into(), ..run() }.child_name(), "cart-abc");
}

#[test]
fn artifacts_are_named_by_the_benchmark_and_the_trial() {
    let of = |index, of| {
        let pieces = (0..3).map(|piece| (format!("piece-{piece}"), String::new())).collect();
        artifacts(&Finished { pieces, ..finished(index, of, VerdictValue::Valid) })
    };
    let names = |all: Vec<Artifact>| all.into_iter().map(|one| (one.name, one.config_map)).collect::<Vec<_>>();
    let expected =
        |maps: [&str; 3]| (0..).zip(maps).map(|(n, map)| (format!("piece-{n}"), map.to_owned())).collect::<Vec<_>>();
    assert_eq!(names(of(0, 1)), expected(["cart-result-0", "cart-result-1", "cart-result-2"]));
    assert_eq!(names(of(7, 9)), expected(["cart-result-7", "cart-result-7-1", "cart-result-7-2"]));
    assert_eq!(artifacts(&Finished::unmeasured(1, 2, Ending::Completed)), []);
}

#[test]
fn the_job_is_the_settled_one() {
    let job = job_of(json!({}));
    assert_eq!(job["metadata"]["name"], "cart-89abcdef");
    let owner = &job["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["uid"], &owner["controller"]), (&json!("u-1"), &json!(true)));
    let spec = &job["spec"];
    for (field, value) in [
        ("completionMode", json!("Indexed")),
        ("completions", json!(2)),
        ("parallelism", json!(2)),
        ("backoffLimitPerIndex", json!(3)),
        ("podReplacementPolicy", json!("Failed")),
        // 10 min, 1 s, 10 s, 2 min, and a day.
        ("activeDeadlineSeconds", json!(600 + 1 + 10 + 120 + 86_400)),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    let rules = &spec["podFailurePolicy"]["rules"];
    assert_eq!(rules[0]["action"], "Ignore");
    assert_eq!(rules[0]["onPodConditions"], json!([{"type": "DisruptionTarget", "status": "True"}]));
    assert_eq!(rules[1]["action"], "FailIndex");
    assert_eq!(rules[1]["onExitCodes"], json!({"containerName": "loadgen", "operator": "In", "values": [64, 76]}));
    assert_eq!(rules.as_array().unwrap().len(), 2);
    let template = &spec["template"];
    assert_eq!(template["metadata"]["labels"][BENCHMARK_LABEL], "cart");
    assert_eq!(template["metadata"]["labels"][RUN_LABEL], "0123456789ABCDEF");
    let annotations = &template["metadata"]["annotations"];
    assert_eq!(annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"], "false");
    assert_eq!(annotations["karpenter.sh/do-not-disrupt"], "true");
    for (pointer, value) in [
        ("/restartPolicy", json!("Never")),
        ("/terminationGracePeriodSeconds", json!(30)),
        ("/automountServiceAccountToken", json!(false)),
        ("/enableServiceLinks", json!(false)),
        ("/containers/0/image", json!("loadgen:1")),
        ("/containers/0/imagePullPolicy", json!("Never")),
        ("/containers/0/ports/0", json!({"name": "control", "containerPort": 7379})),
        ("/containers/0/env/0", json!({"name": "REDISBENCH_RUN", "value": "0123456789ABCDEF"})),
        ("/containers/0/env/1/valueFrom/fieldRef/fieldPath", json!("metadata.uid")),
        ("/containers/0/env/2/valueFrom/fieldRef/fieldPath", json!("spec.nodeName")),
    ] {
        assert_eq!(*at(&job, pointer), value, "{pointer}");
    }
}

#[test]
fn evictions_of_running_shards_are_held_back() {
    let budget = serde_json::to_value(disruption_budget(&run(), 3)).unwrap();
    assert_eq!(budget["metadata"]["name"], "cart-89abcdef");
    assert_eq!(budget["metadata"]["ownerReferences"][0]["uid"], "u-1");
    let pods = json!({"matchLabels": {RUN_LABEL: "0123456789ABCDEF"}});
    assert_eq!(
        budget["spec"],
        json!({"minAvailable": 3, "selector": pods, "unhealthyPodEvictionPolicy": "AlwaysAllow"})
    );
}

/// A trial through each driver, and through the engine.
fn driven() -> Value {
    let client = |driver: &str| json!({"name": driver, "type": "Driver", "driver": driver});
    let clients = json!([{"name": "engine", "type": "Engine"}, client("py"), client("go")]);
    json!({"spec": {"load": {"clients": clients}, "comparison": {"baseline": "go"}, "repeats": {"count": 5}}})
}

#[test]
fn drivers_are_sidecars_beside_a_shard_that_listens_for_them() {
    let job = job_of(driven());
    let names = |pointer: &str| {
        let list = at(&job, pointer).as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
        list.collect::<Vec<_>>()
    };
    assert_eq!(names("/containers"), ["loadgen"]);
    assert_eq!(names("/initContainers"), ["driver-go", "driver-py"]);
    let driver = at(&job, "/initContainers/0");
    let mount = json!({"name": "drivers", "mountPath": "/run/redisbench"});
    for (field, value) in [
        ("image", json!("drivers/go:1")),
        ("imagePullPolicy", json!("Never")),
        ("restartPolicy", json!("Always")),
        ("env", json!([{"name": "REDISBENCH_DRIVER_SOCKET", "value": "/run/redisbench/go.sock"}])),
        ("volumeMounts", json!([{"name": "drivers", "mountPath": "/run/redisbench", "readOnly": true}])),
    ] {
        assert_eq!(driver[field], value, "{field}");
    }
    let resources = json!({"cpu": "1", "memory": "1Gi"});
    assert_eq!(driver["resources"], json!({"limits": resources, "requests": resources}));
    let args = at(&job, "/containers/0/args").as_array().unwrap();
    let options = json!(["--sockets", "/run/redisbench", "--driver", "go", "--driver", "py"]);
    assert!(args.windows(6).any(|window| json!(window) == options), "{args:?}");
    assert!(at(&job, "/containers/0/volumeMounts").as_array().unwrap().contains(&mount));
    assert_eq!(
        at(&job, "/volumes/2"),
        &json!({"name": "drivers", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
    );
    assert_eq!(at(&job, "/shareProcessNamespace"), &json!(true));
    // The shard's credentials are not the driver's.
    assert_ne!(driver["securityContext"]["runAsUser"], *at(&job, "/securityContext/runAsUser"));
    let without = job_of(json!({}));
    assert_eq!((at(&without, "/initContainers"), at(&without, "/shareProcessNamespace")), (&Value::Null, &Value::Null));
}

/// The rules of the Pod Security profile `restricted`.
#[test]
fn pods_are_restricted() {
    let job = job_of(driven());
    let pod = at(&job, "");
    for field in ["hostNetwork", "hostPID", "hostIPC", "serviceAccountName"] {
        assert!(pod.get(field).is_none(), "{field}");
    }
    let all = &pod["securityContext"];
    assert_eq!((&all["runAsNonRoot"], &all["seccompProfile"]["type"]), (&json!(true), &json!("RuntimeDefault")));
    assert!(all["runAsUser"].as_i64() > Some(0));
    for container in ["containers", "initContainers"].iter().flat_map(|list| pod[list].as_array().unwrap()) {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
        assert_ne!(context["runAsUser"], 0);
    }
    for volume in pod["volumes"].as_array().unwrap() {
        let sources = volume["projected"]["sources"].as_array().cloned().unwrap_or_else(|| vec![volume.clone()]);
        let is_allowed = |source: &Value| source["secret"].is_object() || source["emptyDir"].is_object();
        assert!(sources.iter().all(is_allowed), "{volume}");
    }
}

#[test]
fn credentials_are_mounted_and_nowhere_else() {
    let job = job_of(json!({}));
    assert_eq!(
        at(&job, "/volumes/1"),
        &json!({"name": "targets", "projected": {"defaultMode": 0o440, "sources": [
            {"secret": {"name": "redis-auth", "items": [
                {"key": "secret", "path": "0/password"}, {"key": "user", "path": "0/username"}]}}]}})
    );
    assert_eq!(at(&job, "/volumes/0/secret"), &json!({"secretName": "cart-89abcdef", "defaultMode": 0o440}));
    assert_eq!(
        at(&job, "/containers/0/args"),
        &json!([
            "shard",
            "--identity",
            "/etc/redisbench/identity",
            "--targets",
            "/etc/redisbench/targets",
            "--idle-limit",
            "600",
            "--stay",
            "28"
        ])
    );
    assert_eq!(
        at(&job, "/containers/0/volumeMounts/1"),
        &json!({"name": "targets", "mountPath": "/etc/redisbench/targets", "readOnly": true})
    );
    let without = job_of(json!({"spec": {"targets": [
        {"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}]}}));
    assert_eq!(
        at(&without, "/containers/0/args"),
        &json!(["shard", "--identity", "/etc/redisbench/identity", "--idle-limit", "600", "--stay", "28"])
    );
    assert_eq!(at(&without, "/volumes").as_array().unwrap().len(), 1);
}

#[test]
fn certificates_are_mounted_in_one_folder() {
    let target = |tls: Value| {
        json!({"spec": {"targets": [
        {"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"], "tls": tls}]}})
    };
    let job = job_of(target(json!({"caSecretRef": {"name": "ca"}, "clientCertificateSecretRef": {"name": "client"}})));
    assert_eq!(
        at(&job, "/volumes/1/projected/sources"),
        &json!([
            {"secret": {"name": "ca", "items": [{"key": "ca.crt", "path": "0/ca.crt"}]}},
            {"secret": {"name": "client", "items": [
                {"key": "tls.crt", "path": "0/tls.crt"}, {"key": "tls.key", "path": "0/tls.key"}]}}])
    );
    let job = job_of(target(json!({"insecureSkipVerify": true})));
    assert_eq!(at(&job, "/volumes").as_array().unwrap().len(), 1);
}

#[test]
fn what_sentinels_want_of_their_own_is_mounted_in_one_folder() {
    let target = |sentinel: Value| {
        json!({"spec": {"targets": [{"name": "redis", "type": "Sentinel", "endpoints": ["sentinel:26379"],
        "sentinel": sentinel}]}})
    };
    let job = job_of(target(json!({"masterName": "mymaster", "auth": {"secretRef": {"name": "watch"}},
        "transport": {"type": "TLS", "tls": {"caSecretRef": {"name": "ca"}}}})));
    assert_eq!(
        at(&job, "/volumes/1/projected/sources"),
        &json!([
            {"secret": {"name": "watch", "items": [{"key": "password", "path": "0/sentinel/password"}]}},
            {"secret": {"name": "ca", "items": [{"key": "ca.crt", "path": "0/sentinel/ca.crt"}]}}])
    );
    let job = job_of(target(json!({"masterName": "mymaster", "transport": {"type": "Plain"}})));
    assert_eq!(at(&job, "/volumes").as_array().unwrap().len(), 1);
}

#[test]
fn each_target_has_a_folder_of_its_own_secrets() {
    let login = |name: &str, key: &str| json!({"secretRef": {"name": name, "passwordKey": key}});
    let job = job_of(json!({"spec": {
        "targets": [
            {"name": "plain", "type": "Standalone", "endpoints": ["redis:6379"], "auth": login("login", "plain")},
            {"name": "open", "type": "Standalone", "endpoints": ["open:6379"]},
            {"name": "tls", "type": "Sentinel", "endpoints": ["sentinel:26379"], "auth": login("login", "tls"),
                "tls": {"caSecretRef": {"name": "ca"}},
                "sentinel": {"masterName": "mymaster", "auth": login("watch", "password")}},
        ],
        "comparison": {"baseline": "plain"},
        "repeats": {"count": 5},
    }}));
    assert_eq!(
        at(&job, "/volumes/1/projected/sources"),
        &json!([
            {"secret": {"name": "login", "items": [{"key": "plain", "path": "0/password"}]}},
            {"secret": {"name": "login", "items": [{"key": "tls", "path": "2/password"}]}},
            {"secret": {"name": "ca", "items": [{"key": "ca.crt", "path": "2/ca.crt"}]}},
            {"secret": {"name": "watch", "items": [{"key": "password", "path": "2/sentinel/password"}]}}])
    );
    assert_eq!(at(&job, "/volumes").as_array().unwrap().len(), 2);
}

#[test]
fn files_of_values_and_keys_are_mounted_and_may_be_missing() {
    let file = |name: &str| json!({"configMapRef": {"name": name, "key": "lines.txt"}});
    let job = job_of(json!({"spec": {"targets": [
        {"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
        "workload": {"keys": {"file": file("users"), "count": 9},
            "values": {"content": {"type": "File", "file": file("products")}}}}}));
    let source = |name: &str, path: &str| {
        let items = json!([{"key": "lines.txt", "path": path}]);
        json!({"configMap": {"name": name, "optional": true, "items": items}})
    };
    assert_eq!(
        at(&job, "/volumes/1"),
        &json!({"name": "data", "projected": {"sources": [source("products", "values"), source("users", "keys")]}})
    );
    assert_eq!(at(&job, "/containers/0/volumeMounts/1/mountPath"), "/etc/redisbench/data");
    assert_eq!(at(&job, "/containers/0/args/3"), "--data");
    let trace = json!({"configMapRef": {"name": "monday", "key": "monitor.txt"}});
    let job = job_of(json!({"spec": {"targets": [
        {"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
        "workload": {"operations": null, "trace": trace}}}));
    let items = at(&job, "/volumes/1/projected/sources/0/configMap/items");
    assert_eq!(items, &json!([{"key": "monitor.txt", "path": "trace"}]));
}

#[test]
fn the_secret_holds_what_the_shard_reads_and_the_job_nothing_of_it() {
    let credential = RunCredential::derive(&[7; 32], "u-1/r").unwrap();
    let secret = secret(&run(), &credential);
    let names: Vec<&String> = secret.data.as_ref().unwrap().keys().collect();
    assert_eq!(names, ["tls.crt", "tls.key", "token"]);
    assert_eq!(secret.metadata.name.as_deref(), Some("cart-89abcdef"));
    assert!(!job_of(json!({})).to_string().contains(credential.token_text()));
}

#[test]
fn placement() {
    let place = |placement: &str| job_of(json!({"spec": {"shards": {"placement": placement}}}));
    let (spread, one, any) = (place("Spread"), place("OnePerNode"), place("Any"));
    let constraint = at(&spread, "/topologySpreadConstraints/0");
    assert_eq!(constraint["whenUnsatisfiable"], "ScheduleAnyway");
    assert_eq!(constraint["labelSelector"]["matchLabels"][RUN_LABEL], "0123456789ABCDEF");
    let term = at(&one, "/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0");
    assert_eq!(term["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(term["labelSelector"]["matchLabels"][RUN_LABEL], "0123456789ABCDEF");
    assert!(at(&one, "/topologySpreadConstraints").is_null());
    assert!(at(&any, "/topologySpreadConstraints").is_null() && at(&any, "/affinity").is_null());
}

#[test]
fn requests_are_limits_unless_both_are_given() {
    let resources = |given: Value| {
        let job = job_of(json!({"spec": {"shards": {"template": {"resources": given}}}}));
        let resources = at(&job, "/containers/0/resources").clone();
        (resources["requests"].clone(), resources["limits"].clone())
    };
    let default = json!({"cpu": "1", "memory": "256Mi"});
    assert_eq!(resources(json!({})), (default.clone(), default));
    let two = json!({"cpu": "2", "memory": "256Mi"});
    assert_eq!(resources(json!({"limits": {"cpu": "2"}})), (two.clone(), two.clone()));
    assert_eq!(resources(json!({"requests": {"cpu": "2"}})), (two.clone(), two.clone()));
    let four = json!({"cpu": "4", "memory": "256Mi"});
    assert_eq!(resources(json!({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}})), (two, four));
}

#[test]
fn the_template_adds_and_cannot_replace_ours() {
    let labels = json!({"kueue.x-k8s.io/queue-name": "load"});
    let job = job_of(json!({"spec": {"shards": {"jobLabels": labels, "template": {
        "labels": {"team": "a"},
        "annotations": {"note": "b", "karpenter.sh/do-not-disrupt": "false"},
        "nodeSelector": {"pool": "load"},
        "tolerations": [{"key": "load", "operator": "Exists"}],
        "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "priorityClassName": "high",
        "schedulerName": "gang",
        "imagePullSecrets": [{"name": "pull"}],
    }}}}));
    let of_job = &job["metadata"]["labels"];
    assert_eq!((&of_job["kueue.x-k8s.io/queue-name"], &of_job[BENCHMARK_LABEL]), (&json!("load"), &json!("cart")));
    let metadata = &job["spec"]["template"]["metadata"];
    assert_eq!((&metadata["labels"]["team"], &metadata["labels"][BENCHMARK_LABEL]), (&json!("a"), &json!("cart")));
    assert_eq!(metadata["annotations"]["note"], "b");
    assert_eq!(metadata["annotations"]["karpenter.sh/do-not-disrupt"], "true");
    assert_eq!(at(&job, "/nodeSelector/pool"), "load");
    assert_eq!(at(&job, "/tolerations/0/key"), "load");
    assert_eq!(at(&job, "/topologySpreadConstraints/0/topologyKey"), "zone");
    let selector = at(&job, "/topologySpreadConstraints/0/labelSelector/matchLabels");
    assert_eq!(selector[RUN_LABEL], "0123456789ABCDEF");
    assert!(at(&job, "/topologySpreadConstraints/1").is_null());
    assert_eq!(at(&job, "/priorityClassName"), "high");
    assert_eq!(at(&job, "/schedulerName"), "gang");
    assert_eq!(at(&job, "/imagePullSecrets/0/name"), "pull");
}
