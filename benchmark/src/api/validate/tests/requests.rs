//! Requests: transactions, WAIT, fills, scripts, mixes, and forbidden commands.

use super::*;

#[test]
fn what_harms_others_is_refused_unless_it_is_meant() {
    let operations = |command: &str| json!({"operations": [{"name": "get", "command": "GET __key__"}, {"name": "odd", "command": command}]});
    let with_safety = |command: &str, allowed: bool| {
        problems(&json!({"workload": operations(command), "safety": {"allowDestructive": allowed}}))
    };
    for command in ["FLUSHALL", "script flush", "CONFIG SET maxmemory 1", "KEYS *"] {
        let problems = with_safety(command, false);
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert!(problem.starts_with(&format!("spec.workload.operations[1].command: {command}: ")), "{problem}");
        assert!(problem.contains("spec.safety.allowDestructive to true"), "{problem}");
        assert_eq!(with_safety(command, true), [""; 0]);
    }
}

#[test]
fn what_waits_needs_a_connection_for_itself() {
    let deep = |pipeline: u32| {
        let workload = json!({"operations": [{"name": "pop", "command": "BLPOP __key__ 1"}]});
        let load = json!({"type": "ClosedLoop", "duration": "1s", "openLoop": null, "pipeline": pipeline});
        problems(&json!({"workload": workload, "load": load}))
    };
    assert_eq!(deep(1), [""; 0]);
    assert_eq!(
        deep(2),
        ["spec.workload.operations[0].command: BLPOP __key__ 1: blocks the requests behind it on its connection with \
          load.pipeline 2: set load.pipeline to 1"]
    );
}

#[test]
fn sequences_are_those_of_all_nodes() {
    let of_some = |command: &str| {
        let target = json!({"name": "cart", "type": "Cluster", "endpoints": ["cart:6379"]});
        let workload = json!({"operations": [{"name": "add", "command": command}]});
        problems(&json!({"targets": [target], "workload": workload, "load": {"nodesPerShard": 1}}))
    };
    assert_eq!(of_some("SET __key__ __data__"), [""; 0]);
    let problems = of_some("SET __key__ __sequence__");
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(
        problem.starts_with("spec.load.nodesPerShard: ") && problem.contains(" does not support __sequence__: "),
        "{problem}"
    );
}

#[test]
fn transactions_stay_in_a_slot_of_a_cluster() {
    let workload = |prefix: &str, command: &str, keys: &str| {
        let target = json!([{"name": "r", "type": "Cluster", "endpoints": ["r:1"]}]);
        json!({"targets": target, "workload": {
            "operations": [{"name": "op", "command": command}], "keys": {"prefix": prefix}, "transaction": {"size": 3, "keys": keys},
        }})
    };
    for (prefix, command, keys) in [
        ("{rb}:", "GET __key__", "Own"),
        ("rb:", "GET __key__", "Shared"),
        ("rb:", "INCR fixed", "Own"),
        ("rb:", "SET {__key__}:__sequence__ 1", "Shared"),
    ] {
        let checked = validate(&with(&workload(prefix, command, keys)).spec, "cart").unwrap();
        let shared_keys = keys == "Shared";
        assert_eq!(checked.plan.workload.options.transaction, Some(plan::Transaction { size: 3, shared_keys }));
    }
    for (prefix, command, keys) in [
        ("rb:", "GET __key__", "Own"),
        ("rb:", "INCR n__sequence__", "Shared"),
        ("rb:", "SET __key__:__sequence__ 1", "Shared"),
    ] {
        let problems = problems(&workload(prefix, command, keys));
        let [problem] = problems.as_slice() else { panic!("{command} {problems:?}") };
        assert!(problem.starts_with(&format!("spec.workload.operations[0].command: {command}: ")), "{problem}");
        assert!(problem.contains("spec.workload.transaction.keys to Shared"), "{problem}");
    }
    for (keys, expected) in [("Shared", 0), ("Own", 1)] {
        let mut tagged = workload("rb:", "MGET __key__ __key:2__", keys);
        tagged["workload"]["keys"]["tags"] = json!({"count": 10});
        assert_eq!(problems(&tagged).len(), expected, "{keys}");
    }
}

#[test]
fn only_writes_wait_and_not_for_longer_than_a_request() {
    let spec = |wait: Value, pipeline: u32| {
        json!({"workload": {
            "operations": [{"name": "get", "command": "GET __key__"}, {"name": "set", "command": "SET __key__ __data__"}], "wait": wait,
        }, "load": {"pipeline": pipeline}})
    };
    let checked = validate(&with(&spec(json!({"replicas": 2}), 1)).spec, "cart").unwrap();
    let wait = plan::Wait { replicas: 2, timeout_milliseconds: 500, operations: vec![1] };
    assert_eq!(checked.plan.workload.options.wait, Some(wait));
    assert_eq!(
        validate(&with(&spec(json!({}), 9)).spec, "cart").unwrap().plan.workload.options,
        plan::WorkloadOptions::default()
    );
    assert_eq!(
        problems(&spec(json!({"replicas": 1}), 2)),
        [
            "spec.load.pipeline: is 2, and must be 1 with workload.wait: WAIT blocks the requests behind it on its connection"
        ]
    );
    let late = problems(&spec(json!({"replicas": 1, "timeout": "1s"}), 1));
    assert!(late[0].starts_with("spec.workload.wait.timeout: 1s: must be less than load.timeouts.request"), "{late:?}");
    let mut reads = spec(json!({"replicas": 1}), 1);
    reads["workload"]["operations"] = json!([{"name": "get", "command": "GET __key__"}]);
    let idle = problems(&reads);
    assert!(idle[0].starts_with("spec.workload.wait.replicas: 1: has no effect"), "{idle:?}");
}

#[test]
fn what_was_missed_is_filled_by_reads_of_one_key() {
    let spec = |command: &str, more: Value| {
        let mut spec = json!({"workload": {"operations": [{"name": "op", "command": command}], "onMiss": "Fill"}});
        merge(&mut spec["workload"], more);
        spec
    };
    let literal = |text: &str| vec![plan::Part::Literal(text.into())];
    let expiring = spec("get user:__key__", json!({"values": {"ttl": {"min": "1s", "max": "9s"}}}));
    let checked = validate(&with(&expiring).spec, "cart").unwrap();
    let key = vec![plan::Part::Literal("user:".into()), plan::Part::Key];
    let expiry = vec![plan::Part::Integer { least: 1, most: 9, width: 0 }];
    let arguments = vec![literal("SET"), key, vec![plan::Part::Data], literal("EX"), expiry];
    assert_eq!(checked.plan.workload.options.fills, [plan::Fill { operation: 0, arguments }]);
    let none = problems(&spec("MGET __key__", json!({})));
    assert!(none[0].starts_with("spec.workload.onMiss: Fill: has no effect"), "{none:?}");
    let both = problems(&spec("GET __key__", json!({"transaction": {"size": 2}})));
    assert!(both[0].starts_with("spec.workload.onMiss: Fill is not supported with workload.transaction"), "{both:?}");
}

#[test]
fn scripts_are_called_by_their_names() {
    let spec = |command: &str| {
        json!({"workload": {
            "operations": [{"name": "op", "command": command}], "scripts": [{"name": "one", "source": "return 1"}],
        }})
    };
    let checked = validate(&with(&spec("EVALSHA __script:one__ 1 __key__")).spec, "cart").unwrap();
    let sha = plan::Part::Literal("e0e1f9fabfc9d4800c877a703b823ac0578ff8db".into());
    assert_eq!(checked.plan.workload.operations[0].arguments[1], [sha]);
    assert_eq!(checked.plan.workload.options.scripts, [plan::Script { name: "one".into(), source: "return 1".into() }]);
    for (command, field, part) in [
        ("EVALSHA __script:two__ 1 __key__", "operations[0].command", "workload.scripts has no such name"),
        ("EVALSHA __script:one__ 2 __key__", "operations[0].command", "declares 2 keys, but only 1"),
        ("GET __key__", "scripts[0].name", "is in no command"),
    ] {
        let found = problems(&spec(command));
        assert!(found.iter().any(|problem| problem.contains(field) && problem.contains(part)), "{found:?}");
    }
}

#[test]
fn a_mix_in_turns_has_no_parts_of_shards() {
    let spec = |pattern: &str| {
        json!({"workload": {
            "operations": [{"name": "get", "command": "GET __key__"}, {"name": "set", "command": "SET __key__ x"}],
            "mix": "Ratio", "keys": {"pattern": {"type": pattern}},
        }})
    };
    assert!(validate(&with(&spec("Sequential")).spec, "cart").unwrap().plan.workload.options.in_turns);
    let mut per_connection = spec("Partitioned");
    per_connection["workload"]["keys"]["pattern"]["perConnection"] = true.into();
    per_connection["load"] = json!({"type": "ClosedLoop", "openLoop": null, "duration": "1s"});
    assert!(validate(&with(&per_connection).spec, "cart").is_ok());
    let found = problems(&spec("Partitioned"));
    assert!(
        found[0].starts_with("spec.workload.keys.pattern.type: Partitioned is not supported with workload.mix Ratio"),
        "{found:?}"
    );
}

/// With 28 operations of 2,000 short arguments, which are longest in a plan, and `padding` letters in 9 others.
fn large(padding: usize) -> Value {
    let dense = (0..28).map(|index| (format!("dense-{index}"), format!("ECHO{}", " a".repeat(2_000))));
    let plain = (0..9).map(|index| (format!("plain-{index}"), format!("ECHO a{}", "a".repeat((padding + index) / 9))));
    let operations = dense.chain(plain).map(|(name, command)| json!({"name": name, "command": command}));
    json!({"workload": {"operations": operations.collect::<Vec<_>>()}})
}

#[test]
fn a_plan_is_no_longer_than_a_shard_reads() {
    let bytes = |padding| size::json_bytes(validate(&with(&large(padding)).spec, "cart").unwrap().plan.as_ref());
    let most = redisbench_wire::limits::PLAN_BYTES;
    let padding = most - bytes(0);
    assert_eq!(bytes(padding), most);
    let problems = problems(&large(padding + 1));
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    let (more, most) = (most + 1, most);
    let start = format!("spec.workload: makes a plan of {more} bytes, and a shard reads at most {most}: shorten or");
    assert!(problem.starts_with(&start), "{problem}");
}

#[test]
fn the_longest_plan_fits_into_a_request() {
    let plan = validate(&with(&json!({})).spec, "cart").unwrap().plan;
    let (hash, bytes) = (plan.hash("run", 0), size::json_bytes(plan.as_ref()));
    let request = redisbench_wire::PlanRequest { epoch: u64::MAX, hash, plan };
    let others = size::json_bytes(&request) - bytes;
    assert!(redisbench_wire::limits::PLAN_BYTES + others <= redisbench_wire::limits::REQUEST_BYTES, "{others}");
}
