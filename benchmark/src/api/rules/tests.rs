use std::collections::BTreeSet;

use kube_core::cel::ErrorKind;
use redisbench_testkit::api_server::merge;

use super::*;
use crate::api;

/// Words and what they stand for, then a rule a line: the path of its field, a change to [`object`] that breaks it, a similar one that
/// keeps it, and for some a part of the message. The end-to-end tests hold the API server against them.
const CASES: &str = include_str!("cases.txt");

/// A valid object with `change` merged into its spec, or into the whole if it has `metadata`; with defaults.
fn object(change: &str) -> Value {
    let parsed = |text: &str| -> Value {
        let words = CASES.lines().filter_map(|line| line.split_once(" = "));
        let text = words.fold(format!("{{{text}}}"), |text, (word, meaning)| text.replace(word, meaning));
        serde_yaml::from_str(&text).unwrap()
    };
    let change = parsed(change);
    let mut object = json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "cart"},
        "spec": parsed("BASE"),
    });
    let changed = if change["metadata"].is_object() { &mut object } else { &mut object["spec"] };
    merge(changed, change);
    let benchmark = api::read(&object).unwrap();
    json!({"metadata": object["metadata"], "spec": benchmark.spec})
}

fn compiled(parts: &[&[Rule]]) -> CompiledSchema {
    let mut schema = Value::Null;
    for rules in parts {
        add(&mut schema, rules);
    }
    compile_schema(&schema)
}

/// The path of a problem without the indices of lists.
fn path(problem: &str) -> String {
    problem.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[test]
fn each_rule_refuses_what_breaks_it_and_nothing_else() {
    let commands = commands::all();
    let schema = compiled(&[&RULES, &commands]);
    let mut tried = BTreeSet::new();
    for case in CASES.lines().filter(|line| line.contains(" | ")) {
        let [field, breaks, keeps, ref text @ ..] = case.split(" | ").collect::<Vec<_>>()[..] else { panic!("{case}") };
        let problems = evaluate(&schema, &object(breaks), None);
        let is_told = |problem: &ValidationError| {
            path(&problem.field_path) == field && text.iter().all(|part| problem.message.contains(part))
        };
        assert!(problems.iter().any(is_told), "{case}: {problems:?}");
        for problem in problems.into_iter().filter(|problem| path(&problem.field_path) == field) {
            assert_eq!(problem.kind, ErrorKind::ValidationFailure, "{problem:?}");
            assert!(!problem.message.contains('%') && !problem.message.contains("failed rule"), "{problem:?}");
            tried.insert((field.to_owned(), problem.rule));
        }
        let kept = evaluate(&schema, &object(keeps), None);
        assert!(kept.is_empty(), "{field}: {keeps}: {kept:?}");
    }
    // A rule without a case is found here.
    let is_of_one_object = |rule: &&Rule| !rule.condition.contains("oldSelf");
    let all = RULES.iter().chain(&commands).filter(is_of_one_object).map(|rule| {
        let place = format!("{}.{}", rule.at.replace(".[]", "[]"), rule.field);
        (place.trim_matches('.').to_owned(), rule.condition.clone())
    });
    assert_eq!(tried, all.collect());
}

#[test]
fn messages_show_the_values() {
    for (change, problem) in [
        (
            "load: {connections: 3}, shards: {count: 4}",
            "spec.load.connections: is 3, and must be at least shards.count, which is 4: every shard needs one",
        ),
        (
            "load: {requests: 9, requestsPerConnection: 9}",
            "spec.load: at most one of duration, requests, requestsPerConnection and stages may be set: keep one of duration, \
             requests, requestsPerConnection",
        ),
        (
            "repeats: {count: 50}, sweep: [{field: load.pipeline, values: [1, 2]}, {field: workload.seed, values: [1, 2, 3]}]",
            "spec: sweep x targets or clients x workload.preset x repeats.count make 300 trials, the maximum is 250: remove values, \
             or lower repeats.count",
        ),
        (
            "TWO, comparison: {baseline: c}, repeats: {count: 5}",
            "spec.comparison.baseline: is c, and must be the name of what is compared, one of [\"a\", \"b\"]",
        ),
    ] {
        let problems: Vec<String> = check(&object(change)).iter().map(ToString::to_string).collect();
        assert_eq!(problems, [problem]);
    }
}

#[test]
fn a_spec_is_fixed_once_its_run_has_begun_and_an_abort_for_good() {
    let fields = [("abort", true), ("load", true), ("suspend", true), ("sweep", false)];
    let fields = fields.map(|(field, always)| (field.to_owned(), always));
    let schema = compiled(&[&[immutability(&fields)], &RULES]);
    let update = |old: &str, new: &str| {
        let mut old = object(old);
        old["status"] = json!({"runId": "run"});
        let problems = evaluate(&schema, &object(new), Some(&old)).into_iter();
        problems.map(|problem| problem.field_path).collect::<Vec<_>>()
    };
    assert_eq!(update("load: {pipeline: 1}", "load: {pipeline: 2}"), ["spec"]);
    let sweep = "sweep: [{field: load.pipeline, values: [1, 2]}]";
    assert_eq!((update("load: {}", sweep), update(sweep, "load: {}")), (vec!["spec".into()], vec!["spec".into()]));
    assert_eq!(update("load: {}", "load: {}"), [""; 0]);
    assert_eq!(update("suspend: false", "suspend: true"), [""; 0]);
    assert_eq!(update("abort: true", "abort: false"), ["spec.abort"]);
    assert_eq!(update("abort: false", "abort: true"), [""; 0]);
}
