use std::sync::Arc;
use std::time::Duration;

use redisbench_testkit::api_server::merge;
use redisbench_wire::plan::Workload;
use serde_json::{Value, json};

use super::super::{Plan, compile};
use super::*;
use crate::{api, sample};

/// A spec of operations, with `change` merged in.
fn spec(change: &Value) -> RedisBenchmarkSpec {
    let mut object = sample::object();
    merge(&mut object["spec"], change.clone());
    api::read(&object).unwrap().spec
}

fn plan(change: &Value) -> Plan {
    compile(&spec(change), "sample").unwrap()
}

fn refused(change: &Value) -> Vec<String> {
    sample::refused(sample::object(), change)
}

/// The values of the trials of a sweep, in the order in which they run; of each trial in the order of the fields' names.
fn values(plan: &Plan) -> Vec<String> {
    let values = |trial: &crate::plan::Trial| {
        let values: Vec<_> = trial.kind.setting.parameters.values().map(String::as_str).collect();
        values.join("/")
    };
    plan.trials().iter().map(values).collect()
}

#[test]
fn repeats_are_the_same_trial_again_with_an_interval_before_each_but_the_first() {
    let plan = plan(&json!({"repeats": {"count": 3, "interval": "10s"}}));
    let seconds: Vec<_> = plan.trials().iter().map(|trial| trial.interval.as_secs()).collect();
    assert_eq!(seconds, [0, 10, 10]);
    let first = &plan.trials()[0];
    for (index, trial) in (0..).zip(plan.trials()) {
        assert_eq!((trial.index, trial.of, trial.kind.cell, trial.kind.repeat), (index, 3, 0, Some(index)));
        assert_eq!(trial.spec, first.spec);
    }
    assert_eq!(plan.trials()[1].title(), "trial 2 of 3, repeat 2");
    assert_eq!(plan.longest(), Duration::from_secs(3 * (600 + 10 + 120) + 2 * 10));
}

#[test]
fn the_weight_of_an_operation_can_be_swept() {
    let sweep = json!([{"field": "workload.operations[1].weight", "values": [5, 50]}]);
    let operations =
        json!([{"name": "get", "command": "GET __key__"}, {"name": "set", "command": "SET __key__ __data__"}]);
    let change = json!({"sweep": sweep, "sweepOrder": "Listed", "workload": {"operations": operations}});
    let plan = plan(&change);
    let weights = |trial: &crate::plan::Trial| -> Vec<u32> {
        trial.spec.plan.workload.operations.iter().map(|operation| operation.weight).collect()
    };
    assert_eq!(plan.trials().iter().map(weights).collect::<Vec<_>>(), [[1, 5], [1, 50]]);
}

/// For each trial of the plan, the first that has the same workload in memory.
fn shared_workloads(change: &Value) -> Vec<usize> {
    let plan = plan(change);
    let workloads: Vec<&Arc<Workload>> = plan.trials().iter().map(|trial| &trial.spec.plan.workload).collect();
    let first = |own: &&Arc<Workload>| workloads.iter().position(|other| Arc::ptr_eq(own, other)).unwrap();
    workloads.iter().map(first).collect()
}

#[test]
fn trials_share_a_workload_unless_the_sweep_changes_it() {
    let open_loop = json!({"type": "OpenLoop", "openLoop": {"rate": 1_000}});
    let rates = json!({"field": "load.openLoop.rate", "values": [1_000, 2_000, 3_000]});
    let sizes = json!({"field": "workload.values.size.fixed.bytes", "values": [10, 20]});
    let swept =
        |sweep: &[&Value]| shared_workloads(&json!({"load": open_loop, "sweep": sweep, "sweepOrder": "Listed"}));
    assert_eq!(swept(&[&rates]), [0, 0, 0]);
    assert_eq!(swept(&[&sizes]), [0, 1]);
    assert_eq!(swept(&[&sizes, &rates]), [0, 0, 0, 3, 3, 3]);
    let target = |name: &str| json!({"name": name, "type": "Standalone", "endpoints": [format!("{name}:6379")]});
    let compared = shared_workloads(&json!({
        "targets": [target("a"), target("b")], "comparison": {"baseline": "a"}, "repeats": {"count": 5},
    }));
    assert!(compared.len() >= 10 && compared.iter().all(|first| *first == 0), "{compared:?}");
}

#[test]
fn a_sweep_is_every_combination_once() {
    let sweep =
        json!([{"field": "load.pipeline", "values": [1, 10]}, {"field": "load.connections", "values": [50, 100, 200]}]);
    let plan = plan(&json!({"sweep": sweep, "sweepOrder": "Listed"}));
    assert_eq!(values(&plan), ["50/1", "100/1", "200/1", "50/10", "100/10", "200/10"]);
    assert_eq!(plan.trials().iter().map(|trial| trial.kind.cell).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    let last = &plan.trials()[5];
    assert_eq!((last.spec.plan.pipeline, last.spec.plan.connections, last.kind.repeat), (10, 200, None));
    assert_eq!(last.title(), "trial 6 of 6, load.connections=200, load.pipeline=10");
}

#[test]
fn fields_that_change_together_make_rows_and_no_product() {
    let paired = json!({
        "field": "load.pipeline", "values": [1, 10, 100],
        "with": [{"field": "load.connections", "values": [200, 100, 50]}],
    });
    let seeds = json!({"field": "workload.seed", "values": [1, 2]});
    let plan = plan(&json!({"sweep": [paired, seeds], "sweepOrder": "Listed"}));
    assert_eq!(values(&plan), ["200/1/1", "200/1/2", "100/10/1", "100/10/2", "50/100/1", "50/100/2"]);
    let last = &plan.trials()[5];
    assert_eq!((last.spec.plan.pipeline, last.spec.plan.connections), (100, 50));
    assert_eq!(last.title(), "trial 6 of 6, load.connections=50, load.pipeline=100, workload.seed=2");
    let short = json!({
        "field": "load.pipeline", "values": [1, 10, 100], "with": [{"field": "load.connections", "values": [200, 100]}],
    });
    assert_eq!(
        refused(&json!({"sweep": [short]})),
        [
            "spec.sweep[0].with: must each have 3 values, one for each of the first field, because they change together; one \
             has 2: add or remove values"
        ]
    );
}

#[test]
fn cells_run_in_another_order_in_each_repeat_and_in_the_same_for_a_seed() {
    let values: Vec<_> = (1..=12).collect();
    let change = |seed: u64| {
        json!({
            "workload": {"seed": seed},
            "sweep": [{"field": "load.pipeline", "values": values}],
            "repeats": {"count": 3},
        })
    };
    let plan_of = |seed| plan(&change(seed));
    let order = |plan: &Plan| plan.trials().iter().map(|trial| trial.kind.cell).collect::<Vec<_>>();
    let cells = order(&plan_of(7));
    assert_eq!(cells, order(&plan_of(7)));
    assert_ne!(cells, order(&plan_of(8)));
    let repeats: Vec<_> = cells.chunks(12).collect();
    for repeat in &repeats {
        let mut sorted = repeat.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..12).collect::<Vec<_>>(), "each cell is in each repeat once");
    }
    assert!(repeats[0] != repeats[1] && repeats[1] != repeats[2]);
    // Pinned: another version of the operator must not change the plan of a running benchmark.
    assert_eq!(order_of_four(), PINNED);
}

fn order_of_four() -> Vec<Vec<usize>> {
    (0..3).map(|repeat| order(&spec(&json!({})), 4, repeat)).collect()
}

const PINNED: [[usize; 4]; 3] = [[0, 1, 3, 2], [0, 2, 1, 3], [3, 1, 0, 2]];

/// Its first numbers from seed 0, as published.
#[test]
fn the_generator_is_split_mix() {
    let mut state = 0;
    assert_eq!([splitmix(&mut state), splitmix(&mut state)], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
}

#[test]
fn what_cells_need_of_the_spec_may_be_missing_in_it() {
    let sweep = json!([{"field": "load.closedLoop.concurrency", "values": [50, 100]}]);
    let plan = plan(&json!({"sweep": sweep, "sweepOrder": "Listed"}));
    assert_eq!(
        plan.trials().iter().map(|trial| trial.spec.plan.concurrency).collect::<Vec<_>>(),
        [Some(50), Some(100)]
    );
}

#[test]
fn a_sweep_over_the_shards_has_the_pods_of_its_largest_cell() {
    let plan = plan(&json!({"sweep": [{"field": "shards.count", "values": [1, 4, 2]}], "sweepOrder": "Listed"}));
    let shards: Vec<_> =
        plan.trials().iter().map(|trial| (trial.spec.plan.shards, trial.spec.plan.connections)).collect();
    assert_eq!(shards, [(1, 4_000), (4, 4_000), (2, 4_000)]);
    assert_eq!(plan.largest().plan.shards, 4);
}

#[test]
fn presets_are_run_in_each_cell_on_keys_of_their_own() {
    let mut object = sample::object();
    object["spec"]["workload"] = json!({"preset": ["set", "get"]});
    object["spec"]["sweep"] = json!([{"field": "load.pipeline", "values": [1, 8]}]);
    object["spec"]["sweepOrder"] = json!("Listed");
    object["spec"]["repeats"] = json!({"count": 2});
    let plan = compile(&api::read(&object).unwrap().spec, "sample").unwrap();
    let titles: Vec<_> = plan.trials().iter().map(|trial| trial.kind.parts().join(" ")).collect();
    assert_eq!(
        titles[..5],
        [
            "set load.pipeline=1 repeat 1",
            "get load.pipeline=1 repeat 1",
            "set load.pipeline=8 repeat 1",
            "get load.pipeline=8 repeat 1",
            "set load.pipeline=1 repeat 2",
        ]
    );
    assert_eq!(plan.trials().iter().map(|trial| trial.kind.cell).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1, 2, 3]);
    let prefixes: Vec<_> = plan.trials().iter().map(|trial| trial.spec.plan.workload.keys.prefix.clone()).collect();
    assert_eq!(prefixes, (0..8).map(|trial| format!("rb:{trial}:")).collect::<Vec<_>>());
}

#[test]
fn a_cell_that_cannot_be_run_is_refused_with_its_values() {
    let sweep =
        json!([{"field": "load.connections", "values": [1, 4]}, {"field": "shards.count", "values": [1, 2, 4]}]);
    let of = |shards: u32| {
        format!(
            "spec.sweep: load.connections=1, shards.count={shards}: spec.load.connections: is 1, and must be at least \
             shards.count, which is {shards}: every shard needs one"
        )
    };
    assert_eq!(refused(&json!({"sweep": sweep, "sweepOrder": "Listed"})), [of(2), of(4)]);
}

#[test]
fn many_cells_that_cannot_be_run_are_counted() {
    let shards: Vec<_> = (2..=21).collect();
    let found = refused(&json!({"load": {"connections": 1}, "sweep": [{"field": "shards.count", "values": shards}]}));
    assert_eq!(found.len(), 6, "{found:?}");
    assert_eq!(found[5], "spec.sweep: 15 more problems of other cells");
}

#[test]
fn what_is_wrong_with_the_spec_itself_is_said_as_ever() {
    let found = refused(&json!({"load": {"warmup": "9h"}, "sweep": [{"field": "load.pipeline", "values": [1, 2]}]}));
    assert_eq!(found, ["spec.load.warmup: 9h: must be from 0s to 1h"]);
}

#[test]
fn plans_that_are_too_large_are_refused_with_their_size() {
    let many = |count: i64| (1..=count).collect::<Vec<_>>();
    let sweep = json!([{"field": "load.pipeline", "values": many(16)}, {"field": "workload.seed", "values": many(4)}]);
    assert_eq!(
        refused(&json!({"sweep": sweep, "repeats": {"count": 5}})),
        [
            "spec: sweep x targets or clients x workload.preset x repeats.count make 320 trials, the maximum is 250: remove values, or \
             lower repeats.count"
        ]
    );
    let most = plan(&json!({"sweep": [{"field": "workload.seed", "values": many(25)}], "repeats": {"count": 10}}));
    assert_eq!(most.count(), 250);
}

#[test]
fn intervals_are_an_hour_at_most_and_several_trials_have_an_end() {
    assert_eq!(
        refused(&json!({"repeats": {"count": 2, "interval": "61m"}})),
        ["spec.repeats.interval: 61m: must be from 0s to 1h"]
    );
    let endless = refused(&json!({"load": {"duration": null}, "repeats": {"count": 2}}));
    assert!(endless.len() == 1 && endless[0].contains("would never end"), "{endless:?}");
    // The swept field ends the load.
    let sweep = json!([{"field": "load.duration", "values": ["1s", "2s"]}]);
    assert_eq!(plan(&json!({"load": {"duration": null}, "sweep": sweep})).count(), 2);
}

fn two_targets(comparison: &Value) -> Value {
    json!({
        "targets": [
            {"name": "direct", "type": "Standalone", "endpoints": ["redis:6379"]},
            {"name": "proxy", "type": "Standalone", "endpoints": ["proxy:6379"]},
        ],
        "comparison": comparison,
        "repeats": {"count": 5},
    })
}

#[test]
fn targets_take_turns() {
    let plan = plan(&two_targets(&json!({"baseline": "direct"})));
    let targets: String = plan
        .trials()
        .iter()
        .map(|trial| if trial.kind.setting.target.as_deref() == Some("direct") { 'A' } else { 'B' })
        .collect();
    assert_eq!(targets, "ABBABAABAB");
    let endpoints: Vec<_> = plan.trials().iter().map(|trial| trial.spec.plan.target.endpoints[0].as_str()).collect();
    assert_eq!(endpoints[..3], ["redis:6379", "proxy:6379", "proxy:6379"]);
    assert_eq!(plan.trials().iter().filter(|trial| trial.kind.cold).count(), 4);
    let repeats: Vec<_> = plan.trials().iter().filter_map(|trial| trial.kind.repeat).collect();
    assert_eq!(repeats, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(plan.trials()[1].title(), "trial 2 of 10, proxy, repeat 1");
}

#[test]
fn each_target_has_its_own_credentials_and_tls() {
    let mut change = two_targets(&json!({"baseline": "direct"}));
    change["targets"][0]["auth"] = json!({"secretRef": {"name": "of-direct"}});
    change["targets"][1]["auth"] = json!({"secretRef": {"name": "of-proxy"}});
    change["targets"][1]["tls"] = json!({"caSecretRef": {"name": "ca"}});
    let check = |plan: &Plan| {
        for trial in plan.trials() {
            let target = &trial.spec.plan.target;
            let index = u32::from(trial.kind.setting.target.as_deref() == Some("proxy"));
            assert_eq!((target.index, target.folder(), target.tls.is_some()), (index, index.to_string(), index == 1));
        }
        let secrets: Vec<_> = plan.by_target().into_iter().map(|spec| &spec.secrets).collect();
        let names: Vec<_> = secrets.iter().filter_map(|one| one.credentials.as_ref()).map(|one| &one.name).collect();
        assert_eq!(names, ["of-direct", "of-proxy"]);
        assert_eq!(secrets.iter().map(|one| one.authorities.is_some()).collect::<Vec<_>>(), [false, true]);
    };
    check(&plan(&change));
    let mut presets = change.clone();
    presets["workload"] = json!({"operations": null, "preset": ["set", "get"]});
    check(&plan(&presets));
    let mut searched = change;
    searched["load"] = json!({"type": "OpenLoop", "connections": 8, "warmup": "2s", "duration": null});
    searched["search"] = json!({"objective": {"quantile": "0.99", "max": "2ms"}, "rate": {"min": 1000, "max": 64000}});
    check(&plan(&searched));
}

#[test]
fn each_setting_of_a_sweep_is_compared_in_one_go() {
    let mut change = two_targets(&json!({"baseline": "direct"}));
    change["sweep"] = json!([{"field": "load.pipeline", "values": [1, 10]}]);
    change["sweepOrder"] = json!("Listed");
    let plan = plan(&change);
    let turns: String = plan
        .trials()
        .iter()
        .map(|trial| match (trial.kind.setting.target.as_deref(), trial.spec.plan.pipeline) {
            (Some("direct"), 1) => 'A',
            (Some("proxy"), 1) => 'B',
            (Some("direct"), 10) => 'C',
            (Some("proxy"), 10) => 'D',
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(turns, "ABBABAABABCDDCDCCDCD");
    let cells: Vec<_> = [0, 1, 10, 11].map(|trial| plan.trials()[trial].kind.cell).into();
    assert_eq!(cells, [0, 1, 2, 3]);
}

#[test]
fn sweeps_and_comparisons_that_cannot_be_are_refused_with_the_way_out() {
    let mut object = sample::object();
    merge(&mut object["spec"], two_targets(&json!({"baseline": "direct"})));
    sample::assert_problems(sample::refused, &object, include_str!("cases.txt"));
}

#[test]
fn a_problem_of_a_client_names_its_place_in_the_list() {
    let clients = json!([{"name": "a", "type": "Engine"}, {"name": "b", "type": "Fred", "pool": {"type": "Bb8"}}]);
    let change = json!({"load": {"clients": clients}, "comparison": {"baseline": "a"}, "repeats": {"count": 5}});
    let found = refused(&change);
    assert!(found.len() == 1 && found[0].starts_with("spec.load.clients[1].pool.type: Bb8"), "{found:?}");
}
