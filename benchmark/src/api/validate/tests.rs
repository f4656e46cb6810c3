mod bounds;
mod requests;

use proptest::prelude::*;
use redisbench_testkit::api_server::merge;
use redisbench_wire::plan::Topology;
use serde_json::json;

use super::super::RedisBenchmark;
use super::*;
use crate::sample;

fn manifest() -> Value {
    json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "cart"},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [{"name": "get", "weight": 8, "command": "GET __key__"}]},
            "load": {"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "60s"},
        },
    })
}

fn with(patch: &Value) -> RedisBenchmark {
    let mut object = manifest();
    merge(&mut object["spec"], patch.clone());
    serde_json::from_value(object).unwrap()
}

fn problems(patch: &Value) -> Vec<String> {
    sample::problems(manifest(), patch)
}

#[test]
fn defaults_are_those_of_the_schema() {
    let benchmark = read(&manifest()).unwrap();
    let validated = validate(&benchmark.spec, "cart").unwrap();
    assert_eq!(validated.plan.connections, 50);
    assert_eq!(validated.plan.pipeline, 1);
    assert_eq!(validated.plan.warmup_nanoseconds, 5_000_000_000);
    assert_eq!(validated.plan.workload.keys.count, 1_000_000);
    assert_eq!(validated.plan.workload.values, plan::Values::fixed(100));
    assert_eq!(validated.plan.shards, 1);
    assert_eq!(validated.shards.max_start_skew, Duration::from_millis(20));
    assert_eq!(
        validated.plan.load,
        plan::Load::OpenLoop {
            rate_per_second: 1000,
            stages: Vec::new(),
            arrival: plan::Arrival::Constant,
            pacing_grid_nanoseconds: 0,
            unsent_after_nanoseconds: 10_000_000_000
        }
    );
    assert_eq!(validated.plan.breakdown, plan::Breakdown { operation: true, node: true });
    assert_eq!(validated.plan.target.endpoints, ["redis:6379"]);
}

#[test]
fn announced_addresses_are_of_a_cluster() {
    let map = json!({"addressMap": [{"announced": "10.0.0.1:6379", "reachable": "localhost:7001"}]});
    let target = |kind: &str| json!({"targets": [{"name": "r", "type": kind, "endpoints": ["r:1"], "cluster": map}]});
    let validated = validate(&with(&target("Cluster")).spec, "cart").unwrap();
    assert_eq!(validated.plan.target.reachable("10.0.0.1:6379"), Some("localhost:7001"));
    assert_eq!(validated.plan.target.reachable("10.0.0.2:6379"), None);
    assert_eq!(
        problems(&target("Standalone")),
        ["spec.targets[0].cluster: is only valid for type Cluster: remove it, or set type to Cluster"]
    );
}

#[test]
fn sentinels_have_a_name_for_the_primary() {
    let target = |kind: &str, sentinel: Value| json!({"targets": [{"name": "r", "type": kind, "endpoints": ["r:1", "s:1"], "sentinel": sentinel}]});
    let named = json!({"masterName": "mymaster"});
    let validated = validate(&with(&target("Sentinel", named.clone())).spec, "cart").unwrap();
    assert_eq!(validated.plan.target.master_name.as_deref(), Some("mymaster"));
    assert_eq!(validated.plan.target.topology, Topology::Sentinel);
    assert_eq!(
        problems(&target("Sentinel", Value::Null)),
        ["spec.targets[0].sentinel: must be set for type Sentinel, such as sentinel: {masterName: mymaster}"]
    );
    assert_eq!(
        problems(&target("Cluster", named)),
        ["spec.targets[0].sentinel: is only valid for type Sentinel: remove it, or set type to Sentinel"]
    );
}

#[test]
fn sentinels_may_ask_for_something_of_their_own() {
    let target = |own: Value| {
        let mut sentinel = json!({"masterName": "mymaster"});
        sentinel.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        json!({"targets": [{"name": "r", "type": "Sentinel", "endpoints": ["s:1"], "sentinel": sentinel}]})
    };
    let planned = |own: Value| {
        let validated = validate(&with(&target(own)).spec, "cart").unwrap();
        (validated.plan.target.sentinels.clone(), validated.sentinel_secrets)
    };
    assert_eq!(planned(json!({})), (None, TargetSecrets::default()));
    let (own, secrets) = planned(json!({"auth": {"secretRef": {"name": "s"}}, "transport": {"type": "Plain"}}));
    assert_eq!(own, Some(plan::Sentinels { authenticate: true, transport: plan::Transport::Plain }));
    assert_eq!(secrets.credentials.map(|secret| secret.name), Some("s".into()));
    let (own, secrets) = planned(json!({"transport": {"type": "TLS", "tls": {"caSecretRef": {"name": "ca"}}}}));
    let plan::Transport::Tls(tls) = own.unwrap().transport else { panic!() };
    assert_eq!((tls.trust, secrets.authorities.map(|secret| secret.name)), (plan::Trust::Mounted, Some("ca".into())));
    let insecure = json!({"caSecretRef": {"name": "ca"}, "insecureSkipVerify": true});
    for (transport, problem) in [
        (json!({"type": "TLS"}), ": must be set for type TLS, such as tls: {}"),
        (json!({"tls": {}}), ": is only valid for type TLS: remove it, or set type to TLS"),
        (
            json!({"type": "TLS", "tls": insecure}),
            ".caSecretRef: must not be set with insecureSkipVerify, which accepts any certificate: remove one of them",
        ),
    ] {
        let problem = format!("spec.targets[0].sentinel.transport.tls{problem}");
        assert_eq!(problems(&target(json!({"transport": transport}))), [problem]);
    }
}

#[test]
fn a_unix_socket_is_for_one_server_in_the_clear() {
    let target = |kind: &str, tls: Value| json!({"targets": [{"name": "r", "type": kind, "endpoints": ["unix:/run/redis.sock"], "tls": tls}]});
    assert_eq!(problems(&target("Standalone", Value::Null)), Vec::<String>::new());
    let problem = "spec.targets[0].endpoints: unix:/run/redis.sock: a UNIX socket is only valid for type Standalone \
                   without tls: set host:port";
    for refused in [target("Standalone", json!({})), target("Cluster", Value::Null)] {
        assert_eq!(problems(&refused), [problem]);
    }
}

#[test]
fn problems_of_tls() {
    for (tls, problem) in [
        (
            json!({"caSecretRef": {"name": "ca"}, "insecureSkipVerify": true}),
            "caSecretRef: must not be set with insecureSkipVerify, which accepts any certificate: remove one of them",
        ),
        (
            json!({"serverName": "r:1"}),
            "serverName: \"r:1\": must be a DNS name or an IPv4 address, such as redis.example",
        ),
        (json!({"minimumVersion": "TLS11"}), "minimumVersion: TLS11: must be one of TLS12, TLS13"),
        (json!({"clientCertificateSecretRef": {}}), "clientCertificateSecretRef.name: is required"),
        (
            json!({"clientCertificateSecretRef": {"name": null}}),
            "clientCertificateSecretRef.name: is null, and required: set it, in quotes if it is the text \"Null\"",
        ),
    ] {
        let mut object = manifest();
        object["spec"]["targets"][0]["tls"] = tls;
        let problems = read(&object).and_then(|benchmark| validate(&benchmark.spec, "cart")).unwrap_err();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, [format!("spec.targets[0].tls.{problem}")]);
    }
}

#[test]
fn tls_is_planned_and_its_secrets_are_not() {
    let planned = |tls: Value| {
        let target = json!([{"name": "r", "type": "Standalone", "endpoints": ["r:1"], "tls": tls}]);
        let validated = validate(&with(&json!({"targets": target})).spec, "cart").unwrap();
        (validated.plan.target.tls.clone().unwrap(), validated.secrets)
    };
    let (tls, secrets) = planned(json!({}));
    let system = plan::Tls {
        trust: plan::Trust::System,
        client_certificate: false,
        server_name: None,
        minimum_version: plan::TlsVersion::Tls12,
    };
    assert_eq!((tls, secrets), (system.clone(), TargetSecrets::default()));
    let (tls, secrets) = planned(json!({"caSecretRef": {"name": "ca"}, "clientCertificateSecretRef": {"name": "c"},
        "serverName": "redis", "minimumVersion": "TLS13"}));
    assert_eq!(
        tls,
        plan::Tls {
            trust: plan::Trust::Mounted,
            client_certificate: true,
            server_name: Some("redis".into()),
            minimum_version: plan::TlsVersion::Tls13
        }
    );
    assert_eq!(secrets.authorities.map(|secret| (secret.name, secret.key)), Some(("ca".into(), "ca.crt".into())));
    assert_eq!(planned(json!({"insecureSkipVerify": true})).0, plan::Tls { trust: plan::Trust::Anyone, ..system });
}

fn stage(duration: &str, from: u64, to: u64) -> Value {
    json!({"duration": duration, "rate": {"from": from, "to": to}})
}

#[test]
fn stages_are_rate_and_duration() {
    let load = |open: Value| {
        let mut stages = [stage("30s", 100, 2000), stage("1m", 2000, 2000)];
        stages[1]["name"] = "high".into();
        let benchmark = with(&json!({"load": {"openLoop": open, "stages": stages, "duration": null}}));
        assert_eq!(benchmark.spec.load.mean_rate(), Some((1050 * 30 + 2000 * 60) / 90));
        validate(&benchmark.spec, "cart").unwrap()
    };
    for open in [Value::Null, json!({"rate": null, "arrival": "Poisson"})] {
        let validated = load(open.clone());
        assert_eq!(validated.plan.bound, Bound::Duration { nanoseconds: 90_000_000_000 });
        let plan::Load::OpenLoop { rate_per_second, stages, arrival, .. } = &validated.plan.load else { panic!() };
        assert_eq!((*rate_per_second, stages.len()), (100, 2));
        assert_eq!(*arrival == plan::Arrival::Poisson, !open.is_null());
        assert_eq!((stages[0].nanoseconds, stages[1].to_per_second), (30_000_000_000, 2000));
        assert_eq!(validated.stage_names, [None, Some("high".to_owned())]);
    }
    assert_eq!(with(&json!({})).spec.load.mean_rate(), Some(1000));
    assert_eq!(with(&json!({"load": {"type": "ClosedLoop", "openLoop": null}})).spec.load.mean_rate(), None);
}

#[test]
fn a_load_without_an_end_is_as_long_as_any_may_be() {
    let bound = |load: Value| validate(&with(&json!({ "load": load })).spec, "cart").unwrap().plan.bound;
    assert_eq!(bound(json!({"duration": null})), Bound::Duration { nanoseconds: nanoseconds(48 * HOUR) });
    let by_connection = json!({"duration": null, "requestsPerConnection": 30, "connections": 40});
    assert_eq!(bound(by_connection), Bound::Requests { count: 1200, max_nanoseconds: nanoseconds(HOUR) });
}

#[test]
fn each_problem_names_field_value_and_way_out() {
    sample::assert_problems(sample::problems, &manifest(), include_str!("cases.txt"));
}

#[test]
fn all_problems_come_at_once() {
    let found = problems(&json!({
        "load": {"connections": 0, "pipeline": 0, "duration": "0s", "timeouts": {"request": "1h"}},
        "shards": {"count": 6000},
    }));
    let fields: Vec<&str> = found.iter().filter_map(|problem| problem.split(':').next()).collect();
    assert_eq!(
        fields,
        [
            "spec.load.connections",
            "spec.load.duration",
            "spec.load.pipeline",
            "spec.load.timeouts.request",
            "spec.shards.count"
        ]
    );
}

#[test]
fn keys_of_one_command_share_a_slot_in_a_cluster() {
    let operations = |command: &str| json!({"operations": [{"name": "copy", "command": command}]});
    assert!(problems(&json!({"workload": operations("COPY __key__ {x}__key__")})).is_empty());
    let target = json!([{"name": "r", "type": "Cluster", "endpoints": ["r:1"]}]);
    let of_cluster = |workload: Value| problems(&json!({"workload": workload, "targets": target}));
    assert_eq!(
        of_cluster(operations("COPY __key__ {x}__key__")),
        [
            "spec.workload.operations[0].command: COPY __key__ {x}__key__: has keys that may lie in different slots, and a \
             Cluster, or a Pool with distribution ByKey, has them on different servers: set keys.tags, give keys.prefix a hash tag, such \
             as {rb}:, or put what they share in braces, such as {__key__}:a {__key__}:b"
        ]
    );
    assert!(of_cluster(operations("COPY {__key__}:a {__key__}:b")).is_empty());
    let of_pool = |distribution: &str| {
        let pool = json!({"distribution": distribution});
        let target = json!([{"name": "r", "type": "Pool", "endpoints": ["r:1"], "pool": pool}]);
        problems(&json!({"workload": operations("COPY __key__ {x}__key__"), "targets": target})).len()
    };
    assert_eq!((of_pool("ByKey"), of_pool("Even")), (1, 0));
    let mut several = operations("MGET __key__ __key:2__");
    several["keys"] = json!({"prefix": "{rb}:"});
    assert!(of_cluster(several.clone()).is_empty());
    several["operations"][0]["keys"] = json!({"prefix": "other:"});
    assert_eq!(of_cluster(several.clone()).len(), 1);
    several["keys"] = json!({"tags": {"count": 100}});
    assert!(of_cluster(several).is_empty());
    let from_file = |command: &str| {
        let keys = json!({"file": {"configMapRef": {"name": "v", "key": "keys.txt"}}, "count": 100});
        of_cluster(json!({"operations": [{"name": "copy", "command": command}], "keys": keys}))
    };
    let refused = from_file("MGET __key__ __key:2__");
    let [problem] = refused.as_slice() else { panic!("{refused:?}") };
    let hint = "on different servers: put what they share in braces, such as {__key__}:a {__key__}:b, or use keys.prefix with a hash tag \
                instead of keys.file";
    assert!(problem.ends_with(hint), "{problem}");
    assert!(from_file("COPY {__key__}:a {__key__}:b").is_empty());
}

#[test]
fn a_time_to_live_is_given_and_used() {
    let workload = |command: &str, ttl: Value| json!({"workload": {"operations": [{"name": "set", "command": command}], "values": {"ttl": ttl}}});
    let range = json!({"min": "10s", "max": "1m"});
    let command = "SET __key__ __data__ EX __ttl__";
    assert!(problems(&workload(command, range.clone())).is_empty());
    assert_eq!(
        problems(&workload(command, Value::Null)),
        [
            "spec.workload.operations[0].command: SET __key__ __data__ EX __ttl__: has __ttl__, but workload.values.ttl is \
             not set: set it, such as ttl: {min: 60s, max: 1h}"
        ]
    );
    assert_eq!(
        problems(&workload("SET __key__ __data__", range)),
        [
            "spec.workload.values.ttl: 10s to 1m: is in no command: write __ttl__ where the seconds go, such as SET __key__ \
             __data__ EX __ttl__"
        ]
    );
}

#[test]
fn names_are_short_labels() {
    let spec = with(&json!({})).spec;
    assert!(validate(&spec, &"a".repeat(46)).is_ok());
    for name in ["a".repeat(47), String::new(), "a.b".into(), "A".into()] {
        let found = validate(&spec, &name).unwrap_err();
        assert_eq!((found.len(), found[0].field.as_str()), (1, "metadata.name"));
    }
}

#[test]
fn files_are_read_strictly() {
    let mut object = manifest();
    object["apiVersion"] = json!("redisbench.dev/v2");
    object["spec"]["load"]["conections"] = json!(4);
    object["spec"]["shards"] = json!({"template": {"hostNetwork": true, "resources": {"limits": {"cpu": 1}}}});
    object["extra"] = json!(1);
    let found: Vec<String> = read(&object).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(found[0], "apiVersion: redisbench.dev/v2: must be redisbench.dev/v1alpha1");
    assert!(found[1].starts_with("extra: unknown field"), "{found:?}");
    assert_eq!(found[2], "spec.load.conections: unknown field; did you mean connections?");
    assert!(found[3].starts_with("spec.shards.template.hostNetwork: unknown field"), "{found:?}");
    assert_eq!(found.len(), 4);
}

#[test]
fn a_null_is_nothing_and_a_status_is_passed_over() {
    let mut object = manifest();
    object["spec"]["load"]["warmup"] = Value::Null;
    object["status"] = json!({"phase": "Unheard"});
    assert_eq!(read(&object).unwrap().spec.load.warmup, GoDuration::new("5s"));
}

#[test]
fn every_problem_of_a_wrong_manifest_is_said_in_its_place() {
    for wrong in [json!(null), json!([]), json!("text"), json!({}), json!({"spec": []})] {
        assert!(read(&wrong).is_err());
    }
}

/// Arbitrary value of the schema, including values beyond its bounds.
fn any_of(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return prop::sample::select(values.clone()).boxed();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let mut whole = Just(serde_json::Map::new()).boxed();
            for (name, property) in schema["properties"].as_object().cloned().unwrap_or_default() {
                let inner = if name == "template" { Just(json!({})).boxed() } else { any_of(&property) };
                let present = if required.contains(&json!(name)) { Just(true).boxed() } else { any::<bool>().boxed() };
                whole = (whole, inner, present)
                    .prop_map(move |(mut whole, inner, present)| {
                        if present {
                            whole.insert(name.clone(), inner);
                        }
                        whole
                    })
                    .boxed();
            }
            whole.prop_map(Value::Object).boxed()
        }
        Some("array") => prop::collection::vec(any_of(&schema["items"]), 0..3).prop_map(Value::Array).boxed(),
        Some("integer") => prop_oneof![0..100_u64, 0..=u64::from(u32::MAX)].prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        _ => prop_oneof![
            "[0-9]{1,18}(ns|us|ms|s|m|h)",
            "[a-z0-9-]{0,12}",
            "[a-z.]{1,8}:[0-9]{1,5}",
            "[A-Z]{1,6} __(key|data|x|key:[0-9]{1,3}|integer:-?[0-9]{1,20}:[0-9]{1,9}|ttl|score|sequence)__ ?['\"]?[ -~]{0,9}",
            "\\PC{0,12}"
        ]
        .prop_map(Value::from)
        .boxed(),
    }
}

proptest! {
    #[test]
    fn no_spec_makes_it_panic(spec in any_of(&crd::schema()["properties"]["spec"]), name in "[a-z.-]{0,50}") {
        let read = read(&json!({"apiVersion": "redisbench.dev/v1alpha1", "kind": "RedisBenchmark", "metadata": {}, "spec": spec}));
        if let Ok(spec) = serde_json::from_value::<RedisBenchmarkSpec>(spec) {
            // The operator is at least as strict as the reading of the file.
            let judged = validate(&spec, &name);
            prop_assert!(read.is_ok() || judged.is_err());
        }
    }
}
