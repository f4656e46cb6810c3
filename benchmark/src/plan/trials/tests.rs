use redisbench_wire::plan::{Part, Preload};
use serde_json::{Value, json};

use super::*;
use crate::api::preset::PRESETS;
use crate::api::{self, RedisBenchmark};

fn benchmark(workload: &Value, load: &Value) -> RedisBenchmark {
    let mut object = crate::sample::object();
    (object["spec"]["workload"], object["spec"]["load"]) = (workload.clone(), load.clone());
    api::read(&object).unwrap()
}

fn open_loop() -> Value {
    json!({"type": "OpenLoop", "openLoop": {"rate": 1_000}, "duration": "10s", "warmup": "1s"})
}

fn plan_of(workload: &Value, load: &Value) -> Plan {
    compile(&benchmark(workload, load).spec, "sample").unwrap()
}

fn problems(workload: &Value, load: &Value) -> Vec<String> {
    let found = compile(&benchmark(workload, load).spec, "sample").unwrap_err();
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_spec_of_operations_is_one_trial() {
    let plan = plan_of(&json!({"operations": [{"name": "get", "command": "GET __key__"}]}), &open_loop());
    let [only] = plan.trials() else { panic!("{:?}", plan.trials()) };
    assert_eq!((only.index, only.of, &only.kind, only.title().as_str()), (0, 1, &Kind::default(), ""));
}

#[test]
fn each_preset_is_a_trial_on_keys_of_its_own() {
    let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    let plan =
        plan_of(&json!({"preset": names, "keys": {"count": 500, "prefix": "p:", "tags": {"count": 5}}}), &open_loop());
    assert_eq!(plan.count() as usize, PRESETS.len());
    for (index, (trial, preset)) in plan.trials().iter().zip(PRESETS).enumerate() {
        assert_eq!((trial.index as usize, trial.of as usize), (index, PRESETS.len()));
        assert_eq!(trial.kind.setting.preset.as_deref(), Some(preset.name));
        let workload = &trial.spec.plan.workload;
        assert_eq!(workload.keys.prefix, format!("p:{index}:"));
        let [operation] = &workload.operations[..] else { panic!("one operation") };
        // Fixed names of redis-benchmark become keys here, so that no trial finds data of another.
        let uses_keys = operation.arguments.iter().flatten().any(|part| matches!(part, Part::Key));
        assert_eq!(uses_keys, preset.name != "ping_mbulk", "{}", preset.name);
        let containers = ["mylist", "myset", "myhash", "myzset", "mystream"];
        assert!(
            !operation
                .arguments
                .iter()
                .flatten()
                .any(|part| matches!(part, Part::Literal(text) if containers.contains(&text.as_str())))
        );
        let expected = if preset.has_one_key() { (1, None) } else { (500, Some(5)) };
        let tags = workload.keys.tags.map(|tags| tags.count);
        assert_eq!((workload.keys.count, tags), expected, "{}", preset.name);
    }
    assert_eq!(plan.trials()[2].title(), format!("trial 3 of {}, get", PRESETS.len()));
}

#[test]
fn what_a_preset_needs_is_written_before_it() {
    let plan = plan_of(&json!({"preset": ["set", "get", "lpop", "zpopmin", "lrange_300"]}), &open_loop());
    let preloads: Vec<_> = plan.trials().iter().map(|trial| &trial.spec.plan.preload).collect();
    assert_eq!(preloads[..2], [&Preload::None, &Preload::FillMissing]);
    // 11 s at 1000 per second, 1 % of that and 1000 more.
    let counts: Vec<_> = preloads[2..]
        .iter()
        .map(|preload| match preload {
            Preload::Elements { count, arguments } => (*count, arguments.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(counts, [(12_110, 3), (12_110, 4), (300, 3)]);
}

#[test]
fn what_drains_is_refused_where_nobody_knows_how_much() {
    let preset = || json!({"preset": ["set", "lpop"]});
    let says = |load: &Value, what: &str| {
        let found = problems(&preset(), load);
        assert!(found.len() == 1 && found[0].starts_with("spec.workload.preset: lpop: "), "{found:?}");
        assert!(found[0].contains(what), "{found:?}");
    };
    says(&json!({"type": "ClosedLoop", "duration": "10s", "warmup": "0s"}), "set load.requests");
    says(&json!({"type": "ClosedLoop", "requests": 1_000}), "set load.warmup to 0s");
    let huge = json!({"type": "OpenLoop", "openLoop": {"rate": 10_000_000}, "duration": "1m"});
    says(&huge, "the maximum is 100000000");
    let plan = plan_of(&preset(), &json!({"type": "ClosedLoop", "requests": 1_000, "warmup": "0s"}));
    assert_eq!(
        plan.trials()[1].spec.plan.preload,
        Preload::Elements {
            count: 2_010,
            arguments: vec![vec![Part::Literal("LPUSH".into())], vec![Part::Key], vec![Part::Data]],
        }
    );
}

#[test]
fn presets_that_cannot_be_are_refused_with_what_there_is() {
    let unknown = problems(&json!({"preset": ["set", "gett"]}), &open_loop());
    assert!(
        unknown[0].starts_with("spec.workload.preset: gett: is unknown; supported are ping_mbulk, set,"),
        "{unknown:?}"
    );
    let both = problems(&json!({"preset": ["set"], "operations": [{"name": "a", "command": "PING"}]}), &open_loop());
    assert!(both[0].starts_with("spec.workload: exactly one of operations, preset and trace must be set"), "{both:?}");
    let endless = problems(&json!({"preset": ["set", "get"]}), &json!({"type": "ClosedLoop"}));
    assert!(endless.len() == 1 && endless[0].contains("would never end"), "{endless:?}");
    let stages = json!([{"duration": "9s", "rate": {"from": 9, "to": 9}, "mix": {"get": 1}}]);
    let mix = json!({"type": "OpenLoop", "stages": stages, "warmup": "0s"});
    let trace = json!({"configMapRef": {"name": "monday", "key": "monitor.txt"}});
    for workload in [json!({"preset": ["set", "get"]}), json!({"trace": trace})] {
        let mixed = problems(&workload, &mix);
        assert!(mixed.len() == 1 && mixed[0].starts_with("spec.load.stages: has a mix, which weighs"), "{mixed:?}");
    }
    // A trace and rates accept no number of requests.
    let several = |workload: Value| {
        let load = json!({"type": "OpenLoop", "openLoop": null, "duration": null});
        let change = json!({"workload": workload, "load": load, "repeats": {"count": 3}});
        crate::sample::refused(crate::sample::object(), &change)
    };
    let trace = json!({"configMapRef": {"name": "monday", "key": "monitor.txt"}, "pace": "1"});
    let once = several(json!({"operations": null, "trace": trace}));
    assert!(once.len() == 1 && once[0].starts_with("spec.load: lasts as long as the recording"), "{once:?}");
    let rated = several(json!({"operations": [{"name": "get", "command": "GET __key__", "rate": 9}]}));
    assert!(rated.len() == 1 && rated[0].ends_with("would never end: set load.duration"), "{rated:?}");
    let none = problems(&json!({"operations": []}), &open_loop());
    assert!(none[0].starts_with("spec.workload: exactly one of operations, preset and trace must be set"), "{none:?}");
    // A problem of all presets is reported once.
    let load = json!({"type": "ClosedLoop", "duration": "10s", "warmup": "9h"});
    assert_eq!(problems(&json!({"preset": ["set", "get"]}), &load).len(), 1);
    let mut preloaded = benchmark(&json!({"preset": ["set"]}), &open_loop());
    preloaded.spec.preload.mode = api::workload::PreloadMode::Always;
    let found = compile(&preloaded.spec, "sample").unwrap_err();
    assert_eq!(found[0].field, "spec.workload.preset");
}

#[test]
fn elements_that_take_longer_than_a_day_are_refused() {
    let load = json!({"type": "ClosedLoop", "requests": 100_000, "warmup": "0s"});
    let mut spec = benchmark(&json!({"preset": ["set", "lpop"]}), &load).spec;
    spec.preload.rate = Some(1);
    let found = compile(&spec, "sample").unwrap_err();
    let message = "spec.preload.rate: 1: takes 28h20m for 102000 elements of lpop, longer than 24h: raise it, or measure \
                   fewer requests";
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
    spec.preload.rate = Some(2);
    assert_eq!(compile(&spec, "sample").unwrap().count(), 2);
}

#[test]
fn a_preset_that_no_cluster_takes_names_the_preset() {
    let mut spec = benchmark(&json!({"preset": ["set", "mset"]}), &open_loop()).spec;
    spec.targets[0].kind = redisbench_wire::plan::Topology::Cluster;
    let found = compile(&spec, "sample").unwrap_err();
    assert_eq!((found.len(), found[0].field.as_str(), found[0].value.as_str()), (1, "spec.workload.preset", "mset"));
    spec.workload.keys.prefix = "{p}:".into();
    assert_eq!(compile(&spec, "sample").unwrap().count(), 2);
}

#[test]
fn another_plan_has_another_hash() {
    let hash = |names: &Value, load: &Value| plan_of(&json!({"preset": names}), load).hash().to_owned();
    let one = hash(&json!(["set", "get"]), &open_loop());
    assert_eq!(one.len(), 64);
    assert_eq!(one, hash(&json!(["set", "get"]), &open_loop()));
    assert_ne!(one, hash(&json!(["get", "set"]), &open_loop()));
    assert_ne!(one, hash(&json!(["set"]), &open_loop()));
    let longer = json!({"type": "OpenLoop", "openLoop": {"rate": 1_000}, "duration": "11s", "warmup": "1s"});
    assert_ne!(one, hash(&json!(["set", "get"]), &longer));
}

#[test]
fn the_pods_live_as_long_as_all_trials() {
    let plan = plan_of(&json!({"preset": ["set", "get"]}), &open_loop());
    // 10 min to prepare, 1 s, 10 s and 2 min to collect, twice.
    assert_eq!(plan.longest(), Duration::from_secs(2 * (600 + 1 + 10 + 120)));
    assert_eq!(plan.largest().plan.shards, 1);
}

/// The bytes of a trial's plan and spec, apart from its workload, and those of its workload.
fn bytes(trial: &Trial) -> (usize, usize) {
    let Validated { plan, spec, .. } = &trial.spec;
    let workload = json_bytes(plan.workload.as_ref());
    (json_bytes(plan.as_ref()) + json_bytes(spec.as_ref()) - workload, workload)
}

#[test]
fn all_trials_together_are_bounded() {
    let plan = |field: &str, padding: usize| {
        let plain = |index: usize| {
            let letters = 1 + padding / 8 + usize::from(index < padding % 8);
            json!({"name": format!("plain-{index}"), "command": format!("ECHO {}", "a".repeat(letters))})
        };
        let mut operations: Vec<Value> = (0..8).map(plain).collect();
        operations.push(json!({"name": "dense", "command": format!("ECHO{}", " a".repeat(1_200))}));
        let mut spec = benchmark(&json!({"operations": operations}), &open_loop()).spec;
        let values: Vec<u32> = (1_000..1_250).collect();
        spec.sweep = serde_json::from_value(json!([{"field": field, "values": values}])).unwrap();
        compile(&spec, "sample")
    };
    let room = ALL_BYTES / 250;
    let rates = "load.openLoop.rate";
    let (own, workload) = plan(rates, 0).unwrap().trials().iter().map(bytes).max().unwrap();
    // The padding counts in each trial's spec, and once in the workload that all trials share.
    let counted = |padding: usize| own + padding + (workload + padding).div_ceil(250);
    let padding = (0..room).rev().find(|padding| counted(*padding) <= room).unwrap();
    let largest = plan(rates, padding).unwrap();
    assert_eq!(largest.count(), 250);
    assert!(largest.json_bytes() <= ALL_BYTES, "{}", largest.json_bytes());
    let refused = |field: &str, padding| {
        let told = plan(field, padding).unwrap_err()[0].to_string();
        assert!(told.contains("spec.workload: plan and spec of a trial take "), "{told}");
        assert!(told.contains(&format!(" bytes, and each of 250 trials may take {room}: shorten or")), "{told}");
    };
    refused(rates, padding + 1);
    refused("workload.seed", padding);
}

#[test]
fn what_trials_share_counts_once() {
    let two = plan_of(&json!({"preset": ["set", "get"]}), &open_loop());
    let all = |plan: &Plan| plan.trials().iter().map(|trial| bytes(trial).0 + bytes(trial).1).sum::<usize>();
    assert_eq!(two.json_bytes(), all(&two));
    let operations = json!([{"name": "get", "command": "GET __key__"}]);
    let spec = benchmark(&json!({"operations": operations}), &open_loop()).spec;
    let mut repeated = spec.clone();
    repeated.repeats.count = 5;
    let repeated = compile(&repeated, "sample").unwrap();
    assert_eq!((repeated.count(), repeated.json_bytes() * 5), (5, all(&repeated)));
    let mut swept = spec;
    swept.sweep = serde_json::from_value(json!([{"field": "load.openLoop.rate", "values": [1_000, 2_000]}])).unwrap();
    let swept = compile(&swept, "sample").unwrap();
    let (_, workload) = bytes(&swept.trials()[0]);
    assert_eq!((swept.count(), swept.json_bytes()), (2, all(&swept) - workload));
}
