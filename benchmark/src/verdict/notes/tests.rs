use redisbench_wire::plan::Preload;
use redisbench_wire::snapshot::Snapshot;

use super::*;
use crate::measurement::merge::merge;
use crate::sample::{open_loop, outcome, plan, snapshot};

fn merged(spec: &Validated, change: impl FnOnce(&mut Snapshot)) -> Merged {
    let mut snapshot = snapshot(0, &vec![1_000; 10_000]);
    change(&mut snapshot);
    merge(&spec.plan, &outcome(vec![snapshot])).unwrap().unwrap()
}

#[test]
fn writes_that_too_few_replicas_had_are_a_note() {
    let told = |writes| under_replicated(&merged(&open_loop(1), |snapshot| snapshot.total.under_replicated = writes));
    assert_eq!(told(100), None, "one in a hundred");
    let note = told(101).unwrap();
    assert_eq!((note.reason, note.severity), (ReasonKind::UnderReplicated, VerdictValue::Valid));
    assert!(note.message.starts_with("WAIT timed out in 101 (1.01 %) of 10,000 requests"), "{}", note.message);
}

#[test]
fn reads_of_nothing_are_a_note_unless_something_should_be_there() {
    let told = |spec: &Validated, nil| misses(spec, &merged(spec, |snapshot| snapshot.operations[0].nil_replies = nil));
    let mut spec = open_loop(1);
    assert_eq!(told(&spec, 5_000), None, "half of them");
    let note = told(&spec, 5_001).unwrap();
    assert_eq!((note.reason, note.severity), (ReasonKind::Misses, VerdictValue::Valid));
    assert!(note.message.contains("operation get were empty"), "{}", note.message);
    plan(&mut spec).workload_mut().operations[0].arguments[0] = vec![Part::Literal("set".into())];
    assert_eq!(told(&spec, 10_000), None, "what writes may answer with nil");
    plan(&mut spec).workload_mut().operations[0].arguments[0] = vec![Part::Literal("hget".into())];
    assert!(told(&spec, 10_000).is_some());
    let written = |spec: &mut Validated, count| {
        let own = plan(spec);
        let keys = redisbench_wire::plan::Keys { count, ..own.workload.keys.clone() };
        let arguments = vec![vec![Part::Literal("HSET".into())], vec![Part::Key]];
        own.preload_steps = vec![PreloadStep { keys, arguments, rounds: 1, writes: true }];
    };
    let count = spec.plan.workload.keys.count;
    written(&mut spec, count);
    assert_eq!(told(&spec, 10_000), None);
    written(&mut spec, count + 1);
    assert!(told(&spec, 10_000).is_some(), "other keys are preloaded");
    plan(&mut spec).preload = Preload::Always;
    assert_eq!(told(&spec, 10_000), None);
}
