use redisbench_wire::plan::Trace;

use super::*;
use crate::sample;

fn told_of(words: &str, description: Value, pipeline: u32) -> Option<String> {
    let argument = |word: &str| vec![if word == "K" { Part::Key } else { Part::Literal(word.into()) }];
    let mut plan = sample::plan();
    plan.pipeline = pipeline;
    plan.workload_mut().operations[0].arguments = words.split(' ').map(argument).collect();
    judge(&plan, &Value::Array(vec![description]))
}

fn told(words: &str, description: Value) -> Option<String> {
    told_of(words, description, 1)
}

fn flagged(name: &str, arity: i64, flags: &[&str], subcommands: Vec<Value>) -> Value {
    let flags = flags.iter().map(|flag| Value::SimpleString((*flag).into())).collect();
    let nothing = || Value::Array(Vec::new());
    Value::Array(vec![
        Value::BulkString(name.into()),
        Value::Int(arity),
        Value::Array(flags),
        Value::Int(0),
        Value::Int(0),
        Value::Int(0),
        nothing(),
        nothing(),
        nothing(),
        Value::Array(subcommands),
    ])
}

fn arity(arity: i64) -> Value {
    Value::Array(vec![Value::BulkString("x".into()), Value::Int(arity)])
}

#[test]
fn a_known_command_of_fitting_length_passes() {
    assert_eq!(told("GET K", arity(2)), None);
    assert_eq!(told("MSET K a K b", arity(-3)), None);
}

#[test]
fn an_unknown_command_is_named() {
    assert_eq!(
        told("GTE K", Value::Nil).unwrap(),
        "spec.workload.operations[0].command: GTE __key__: the server has no command GTE: correct it, or remove \
         operation get"
    );
}

#[test]
fn a_recorded_command_is_named_without_its_arguments() {
    let mut plan = sample::plan();
    plan.trace = Some(Trace { repeats: false, recorded: None });
    let problem = judge(&plan, &Value::Array(vec![Value::Nil])).unwrap();
    assert_eq!(problem, "spec.workload.trace: get: the server has no command GET: remove its lines");
}

#[test]
fn a_wrong_length_is_named() {
    let length = |words: &str, wanted: i64| told(words, arity(wanted)).unwrap();
    let field = "spec.workload.operations[0].command: ";
    assert_eq!(
        length("GET K K", 2),
        format!("{field}GET __key__ __key__: GET takes 2 arguments including its name, not 3: correct it")
    );
    assert_eq!(
        length("SET K", -3),
        format!("{field}SET __key__: SET takes at least 3 arguments including its name, not 2: correct it")
    );
}

#[test]
fn subcommands_are_judged_as_such() {
    let config = || flagged("config", -2, &[], vec![flagged("config|get", -3, &["admin", "noscript"], Vec::new())]);
    assert!(told("CONFIG FETCH a", config()).unwrap().contains("has no command CONFIG FETCH"));
    assert!(told("config get", config()).unwrap().contains("CONFIG GET takes at least 3 arguments"));
    assert!(told("CONFIG GET a", config()).unwrap().contains("flags CONFIG GET as admin"));
}

#[test]
fn what_the_server_flags_is_refused_where_it_is_out_of_place() {
    let admin = flagged("slowlog", 2, &["admin"], Vec::new());
    assert!(told("SLOWLOG GET", admin).unwrap().contains("spec.safety.allowDestructive"));
    let blocking = || flagged("blpop", -3, &["write", "blocking"], Vec::new());
    assert_eq!(told_of("BLPOP K 1", blocking(), 1), None);
    assert!(told_of("BLPOP K 1", blocking(), 2).unwrap().ends_with("set spec.load.pipeline to 1"));
    assert_eq!(told_of("XREAD STREAMS K 0", blocking(), 2), None);
    assert!(told_of("XREAD BLOCK 9 STREAMS K 0", blocking(), 2).is_some());
}

#[test]
fn an_answer_of_another_shape_says_nothing() {
    assert_eq!(judge(&sample::plan(), &Value::Okay), None);
    assert_eq!(told("GET K", Value::Array(vec![])), None);
}
