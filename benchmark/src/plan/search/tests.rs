use redisbench_wire::plan::Load;
use serde_json::{Value, json};

use super::*;
use crate::api;
use crate::plan::{Plan, compile};
use crate::sample;

fn manifest(edits: &[(&str, Value)]) -> Value {
    let mut object = sample::object();
    object["spec"]["load"] = json!({"type": "OpenLoop", "connections": 8, "warmup": "2s"});
    object["spec"]["search"] =
        json!({"objective": {"quantile": "0.99", "max": "2ms"}, "rate": {"min": 1000, "max": 64000}});
    for (pointer, value) in edits {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    object
}

fn compiled(edits: &[(&str, Value)]) -> Plan {
    compile(&api::read(&manifest(edits)).unwrap().spec, "sample").unwrap()
}

fn line(index: u32, rate: u64, passed: bool) -> TrialLine {
    let outcome = if passed { "Passed" } else { "Failed" };
    let mut search = json!({"ratePerSecond": rate, "outcome": outcome, "busiestServerBasisPoints": 5_000});
    if !passed {
        search["why"] = "slow".into();
    }
    let line = json!({"index": index, "state": "Completed", "attempt": 1, "search": search});
    serde_json::from_value(line).unwrap()
}

fn seconds(seconds: u64) -> Bound {
    Bound::Duration { nanoseconds: seconds * 1_000_000_000 }
}

fn rate(spec: &Validated) -> u64 {
    let Load::OpenLoop { rate_per_second, .. } = spec.plan.load else { panic!("{:?}", spec.plan.load) };
    rate_per_second
}

/// All trials of a search against a target with this capacity.
fn trials(plan: &Plan, capacity: u64) -> (Vec<super::super::Trial>, Vec<TrialLine>) {
    let (mut trials, mut lines) = (Vec::new(), Vec::new());
    while let Some(trial) = plan.trial(u32::try_from(lines.len()).unwrap(), &lines) {
        lines.push(line(trial.index, rate(&trial.spec), rate(&trial.spec) <= capacity));
        trials.push(trial);
    }
    (trials, lines)
}

#[test]
fn each_trial_follows_from_the_lines_of_those_before() {
    let plan = compiled(&[]);
    let (trials, lines) = trials(&plan, 10_000);
    let rates: Vec<_> = trials.iter().map(|trial| rate(&trial.spec)).collect();
    assert_eq!(rates[..5], [1_000, 2_000, 4_000, 8_000, 16_000]);
    assert!(trials.iter().all(|trial| trial.spec.plan.bound == seconds(10)));
    let confirmed: Vec<_> = trials.iter().filter_map(|trial| trial.search.and_then(|step| step.confirmation)).collect();
    assert_eq!(confirmed, [1, 2, 3]);
    // A restarted operator finds the running trial, whichever it is.
    for (trial, index) in trials.iter().zip(0..) {
        assert_eq!(plan.trial(index, &lines).as_ref(), Some(trial));
    }
    let spec = api::read(&manifest(&[])).unwrap().spec;
    let found = standing(&spec, &lines).unwrap().answer.unwrap();
    assert!((9_800..=10_000).contains(&found.last_good.unwrap()), "{found:?}");
    assert_eq!(found.first_bad.unwrap().why.message, "slow");
    let before = standing(&spec, &lines[..lines.len() - 1]).unwrap();
    assert_eq!((before.answer, before.good), (None, found.last_good));
}

/// Tests the plan that operator and command line run, not only the rule: capacities all over the strides of the climb, which vary by 0.3 %
/// from step to step.
#[test]
fn of_twenty_searches_nineteen_end_within_the_tolerance() {
    const TOLERANCE: f64 = 0.02;
    let plan = compiled(&[]);
    let spec = api::read(&manifest(&[])).unwrap().spec;
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    // The sum of twelve uniform numbers is nearly normal.
    let mut even = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut errors = Vec::new();
    for search in 0..20 {
        let capacity = 2_500.0 * 1.15_f64.powi(search);
        let mut lines: Vec<TrialLine> = Vec::new();
        while let Some(trial) = plan.trial(u32::try_from(lines.len()).unwrap(), &lines) {
            let chance = (0..12).map(|_| even()).sum::<f64>() - 6.0;
            let offered = rate(&trial.spec);
            lines.push(line(trial.index, offered, (offered as f64) < capacity * (1.0 + 0.003 * chance)));
        }
        let found = standing(&spec, &lines).unwrap().answer.unwrap();
        assert_eq!(found.ending, search::Ending::Found);
        errors.push(found.last_good.unwrap() as f64 / capacity - 1.0);
    }
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|error| error.abs() <= TOLERANCE).count();
    assert!(within >= 19, "{errors:?}");
    assert!(f64::midpoint(errors[9], errors[10]).abs() < TOLERANCE / 2.0, "{errors:?}");
}

#[test]
fn steps_are_as_long_as_their_quantile_and_the_user_want() {
    let first = |edits: &[(&str, Value)]| compiled(edits).trial(0, &[]).unwrap().spec.plan.bound;
    assert_eq!(first(&[("/spec/load/duration", json!("30s"))]), seconds(30));
    assert_eq!(first(&[("/spec/load/duration", json!("3s"))]), seconds(10));
    assert_eq!(first(&[("/spec/search/objective/quantile", json!("0.999"))]), seconds(100));
    let errors = json!({"metric": "ErrorRate", "maxBasisPoints": 1});
    assert_eq!(first(&[("/spec/search/objective", errors)]), seconds(10));
}

#[test]
fn another_search_is_another_plan() {
    let hash = |edits: &[(&str, Value)]| compiled(edits).hash().to_owned();
    let plain = hash(&[]);
    assert_eq!(plain, hash(&[]));
    for edit in [
        ("/spec/search/rate/max", json!(32_000)),
        ("/spec/search/rate/toleranceBasisPoints", json!(100)),
        ("/spec/search/objective/max", json!("3ms")),
        ("/spec/load/duration", json!("20s")),
    ] {
        assert_ne!(plain, hash(&[edit]));
    }
}

#[test]
fn a_search_that_cannot_be_is_refused_by_its_field() {
    sample::assert_problems(sample::refused, &manifest(&[]), include_str!("cases.txt"));
}

/// Steps at nearly the same rate differ only by chance, and failed or incomplete steps are not used for comparison.
#[test]
fn a_step_is_compared_with_the_last_good_one_clearly_below_it() {
    let at = |index, rate, passed, mean| TrialLine { mean_nanoseconds: mean, ..line(index, rate, passed) };
    let lines = [
        at(0, 1_000, true, Some(100)),
        at(1, 8_000, false, Some(800)),
        at(2, 4_000, true, Some(300)),
        at(3, 4_000, true, Some(400)),
        TrialLine { state: TrialOutcome::Aborted, ..at(4, 4_500, true, Some(450)) },
        at(5, 4_600, true, None),
    ];
    let good = |rate, mean_nanoseconds| Some(GoodStep { rate, mean_nanoseconds, server_basis_points: Some(5_000) });
    assert_eq!(GoodStep::below(5_000, &lines), good(4_000, 400));
    assert_eq!(GoodStep::below(4_445, &lines), good(4_000, 400));
    assert_eq!(GoodStep::below(4_444, &lines), good(1_000, 100), "4,000 is more than nine tenths of it");
    assert_eq!(GoodStep::below(1_000, &lines), None);
    let climbed = [at(0, 1_000, true, Some(100)), at(1, 2_000, true, Some(200))];
    let step = compiled(&[]).trial(2, &climbed).unwrap().search.unwrap();
    assert_eq!((step.rate, step.good), (4_000, good(2_000, 200)));
}

/// Three searches, of pipelines in another order than listed, whose capacities differ.
#[test]
fn each_cell_has_a_search_and_the_next_begins_when_one_has_its_answer() {
    let sweep = json!([{"field": "load.pipeline", "values": [1, 4, 16]}]);
    let edits: [(&str, Value); 2] = [("/spec/sweep", sweep), ("/spec/workload/seed", json!(3))];
    let plan = compiled(&edits);
    assert_eq!(plan.count(), 3 * 83);
    let spec = api::read(&manifest(&edits)).unwrap().spec;
    let mut lines: Vec<TrialLine> = Vec::new();
    while let Some(trial) = plan.trial(u32::try_from(lines.len()).unwrap(), &lines) {
        let pipeline = u64::from(trial.spec.plan.pipeline);
        assert_eq!(trial.kind.parts(), [format!("load.pipeline={pipeline}")]);
        let mut line = line(trial.index, rate(&trial.spec), rate(&trial.spec) <= 2_500 * pipeline);
        line.cell = trial.kind.cell;
        line.setting = trial.kind.setting.clone();
        lines.push(line);
    }
    let searches = of_searches(&lines);
    assert_eq!(searches.len(), 3);
    for search in &searches {
        let pipeline: u64 = search[0].setting.parameters["load.pipeline"].parse().unwrap();
        let found = standing(&spec, search).unwrap().answer.unwrap();
        let capacity = 2_500 * pipeline;
        let good = found.last_good.unwrap();
        assert!(good <= capacity && good * 100 >= capacity * 98, "{pipeline}: {found:?}");
        assert!(search.len() <= 25, "{} steps", search.len());
    }
    // A restarted operator continues where the lines end.
    for index in 0..lines.len() {
        let again = plan.trial(u32::try_from(index).unwrap(), &lines).unwrap();
        assert_eq!(Some(again.search.unwrap().rate), lines[index].search.as_ref().map(|step| step.rate_per_second));
    }
}

#[test]
fn a_range_too_wide_for_the_steps_of_each_of_many_searches_is_refused() {
    let sweep = json!([{"field": "load.pipeline", "values": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}]);
    let rate = json!({"min": 10, "max": 1_000_000_000, "toleranceBasisPoints": 200});
    let edits: [(&str, Value); 2] = [("/spec/sweep", sweep.clone()), ("/spec/search/rate", rate)];
    let found = compile(&api::read(&manifest(&edits)).unwrap().spec, "sample").unwrap_err();
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["spec.search.rate.max: 1000000000: is a range that takes up to 39 steps from search.rate.min, 10, with this \
             tolerance, but each of the 10 searches can take 25: narrow the range, or raise \
             search.rate.toleranceBasisPoints"]
    );
    assert_eq!(compiled(&[("/spec/sweep", sweep)]).count(), 250);
}

#[test]
fn a_sweep_of_what_the_search_sets_is_refused() {
    let edits = [("/spec/sweep", json!([{"field": "load.openLoop.rate", "values": [1_000, 2_000]}]))];
    let found = compile(&api::read(&manifest(&edits)).unwrap().spec, "sample").unwrap_err();
    assert!(found[0].to_string().contains("must not be set with search, which sets the rate"), "{found:?}");
}

#[test]
fn presets_are_searched_unless_each_request_takes_an_element() {
    let preset = |names: Value| [("/spec/workload", json!({"preset": names}))];
    let plan = compiled(&preset(json!(["set", "get"])));
    assert_eq!((plan.count(), plan.trials().len()), (200, 2));
    let refused = compile(&api::read(&manifest(&preset(json!(["set", "lpop"])))).unwrap().spec, "sample").unwrap_err();
    assert_eq!((refused[0].field.as_str(), refused[0].value.as_str()), ("spec.workload.preset", "lpop"));
}
