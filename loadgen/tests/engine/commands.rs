//! Commands with every kind of part: the server accepts them, and its keys hold the expected data.

use redisbench_testkit::servers::{RedisCluster, RedisServer};
use redisbench_wire::plan::{
    Bound, HotKeys, HotTags, KeyPattern, Keys, Operation, Part, Tags, TrialPlan, ValueSize, Values,
};

use crate::harness::{SECOND, plan, run, standalone, topology};

fn text(text: &str) -> Vec<Part> {
    vec![Part::Literal(text.into())]
}

fn number(least: i64, most: i64) -> Vec<Part> {
    vec![Part::Integer { least, most, width: 0 }]
}

fn command(name: &str, arguments: Vec<Vec<Part>>) -> Operation {
    Operation { name: name.into(), weight: 1, arguments, keys: None }
}

fn of(operations: Vec<Operation>) -> TrialPlan {
    let mut plan = plan();
    plan.workload_mut().operations = operations;
    plan.workload_mut().keys.count = 50;
    plan.pipeline = 8;
    plan.bound = Bound::Requests { count: 8000, max_nanoseconds: 20 * SECOND };
    plan
}

#[tokio::test]
async fn the_server_finds_what_was_to_be_written() {
    let server = RedisServer::start(&[]);
    let mut set = command("set", vec![text("SET"), vec![Part::Key], vec![Part::Data], text("EX"), number(100, 200)]);
    let pattern = KeyPattern::Zipf { exponent_millionths: 1_200_000, hot_keys: HotKeys::Scattered };
    set.keys = Some(Keys { prefix: "value:".into(), start: 0, count: 50, width: 14, pattern, tags: None });
    let member = vec![Part::Literal("m:".into()), Part::Sequence];
    let mut plan = of(vec![
        set,
        command("mset", vec![text("MSET"), vec![Part::Key], vec![Part::Sequence], vec![Part::NthKey(2)], text("x")]),
        command("zadd", vec![text("ZADD"), text("scores"), vec![Part::Score], member]),
        command("incrby", vec![text("INCRBY"), text("sum"), number(-3, 5)]),
        command("xadd", vec![text("XADD"), text("stream"), text("*"), text("field"), vec![Part::Data]]),
    ]);
    plan.workload_mut().values =
        Values { size: ValueSize::Range { least_bytes: 10, most_bytes: 20 }, ..Values::fixed(0) };
    let snapshot = run(plan, standalone(&server), 2).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (8000, 0), "{:?}", snapshot.errors);
    let succeeded = |name: &str| {
        let operation = snapshot.operations.iter().find(|operation| operation.name == name).unwrap();
        assert_eq!(server.calls(name), operation.tally.succeeded, "{name}");
        operation.tally.succeeded
    };
    // Every sequence number is unique.
    assert_eq!(server.ask::<u64>(&["ZCARD", "scores"]), succeeded("zadd"));
    assert_eq!(server.ask::<u64>(&["ZCOUNT", "scores", "0", "1"]), succeeded("zadd"));
    assert_eq!(server.ask::<u64>(&["XLEN", "stream"]), succeeded("xadd"));
    let sum = server.ask::<i64>(&["GET", "sum"]) as f64 / succeeded("incrby") as f64;
    assert!((0.7..1.3).contains(&sum), "{sum}");
    assert!(succeeded("set") > 0 && succeeded("mset") > 0);
    let mut written = 0;
    for key in 0..50 {
        let key = format!("value:{key:014}");
        assert_eq!(key.len(), 20);
        if server.ask::<bool>(&["EXISTS", &key]) {
            assert!((10..=20).contains(&server.ask::<u64>(&["STRLEN", &key])));
            assert!((90..=200).contains(&server.ask::<u64>(&["TTL", &key])));
            written += 1;
        }
    }
    assert!(written > 30, "{written}");
}

#[tokio::test]
async fn commands_of_several_keys_go_to_the_node_of_all() {
    let cluster = RedisCluster::steady(3);
    let tagged = |behind: &str| vec![Part::Literal("{".into()), Part::Key, Part::Literal(format!("}}{behind}"))];
    let sequence = |behind: &str| vec![Part::Literal("{".into()), Part::Sequence, Part::Literal(format!("}}{behind}"))];
    let mut mget = command("mget", vec![text("MGET"), vec![Part::Key], vec![Part::NthKey(2)], vec![Part::NthKey(3)]]);
    mget.keys = Some(Keys {
        prefix: "{tag}".into(),
        start: 0,
        count: 50,
        width: 0,
        pattern: KeyPattern::Sequential,
        tags: None,
    });
    let mut tagged_keys = command("mget-tagged", vec![text("MGET"), vec![Part::Key], vec![Part::NthKey(2)]]);
    let tags = Some(Tags { count: 10, hot: Some(HotTags { count: 1, percent_millionths: 80_000_000 }) });
    let pattern = KeyPattern::Uniform;
    tagged_keys.keys = Some(Keys { prefix: "tagged:".into(), start: 0, count: 50, width: 0, pattern, tags });
    let mut plan = of(vec![
        command("mset", vec![text("MSET"), tagged(":a"), text("1"), tagged(":b"), text("2")]),
        mget,
        tagged_keys,
        command("set", vec![text("SET"), sequence(":a"), text("1")]),
        command(
            "incr",
            vec![text("INCR"), vec![Part::Literal("n".into()), Part::Integer { least: 0, most: 99, width: 4 }]],
        ),
    ]);
    plan.connections = 6;
    plan.target.topology = redisbench_wire::plan::Topology::Cluster;
    let snapshot = run(plan, topology(&cluster), 2).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (8000, 0), "{:?}", snapshot.errors);
    assert_eq!(snapshot.total.redirect_hops, 0);
}
