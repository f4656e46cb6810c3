use serde_json::{Value, json};

use crate::sample;

const SET: &str = "SET __key__ __data__";

/// A closed loop of these commands on two shards.
fn object(commands: &[&str]) -> Value {
    let operation = |(index, command): (u32, &&str)| json!({"name": format!("op-{index}"), "command": command});
    let operations: Vec<Value> = (0..).zip(commands).map(operation).collect();
    let mut object = sample::object();
    object["spec"]["workload"] = json!({"operations": operations, "keys": {"count": 1000}});
    object["spec"]["shards"]["count"] = 2.into();
    object
}

#[test]
fn what_can_be_followed_is_accepted() {
    let accepted = |mode: &str, commands: &[&str]| {
        assert_eq!(sample::problems(object(commands), &json!({"verify": {"mode": mode}})), [""; 0], "{commands:?}");
    };
    accepted("Values", &[SET, "GET __key__", "PING", "TTL __key__"]);
    accepted("Values", &["SET __key__ __data__ PX 100 GET", "SETEX __key__ 10 __data__", "GETSET __key__ __data__"]);
    let own = json!([{"name": "set", "command": SET, "keys": {"pattern": {"type": "Sequential"}}}]);
    let own = json!({"verify": {"mode": "Values"}, "workload": {"operations": own}});
    assert_eq!(sample::problems(object(&[]), &own), [""; 0]);
    // Replies takes anything, and follows counts where it can.
    accepted("Replies", &["INCR __key__", "LPUSH list __data__"]);
    accepted("Replies", &["INCR __key__", SET]);
}

#[test]
fn what_cannot_is_refused_by_its_name() {
    sample::assert_problems(sample::problems, &object(&[SET, "GET __key__"]), include_str!("cases.txt"));
}
