//! Writes keys after read misses, in addition to the requests.

use redisbench_testkit::servers::{RedisCluster, RedisServer};
use redisbench_wire::plan::{Bound, Fill, Load, Part, Topology, TrialPlan, ValueSize};

use crate::harness::{SECOND, open_loop, operation, plan, run, standalone, topology};

/// 2000 reads of 500 keys; a miss writes the key.
fn filling() -> TrialPlan {
    let mut plan = plan();
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    plan.workload_mut().keys.count = 500;
    let literal = |text: &str| vec![Part::Literal(text.into())];
    let arguments = vec![literal("SET"), vec![Part::Key], vec![Part::Data]];
    plan.workload_mut().options.fills = vec![Fill { operation: 0, arguments }];
    plan.bound = Bound::Requests { count: 2000, max_nanoseconds: 20 * SECOND };
    plan
}

#[tokio::test]
async fn what_was_missed_is_written_once_for_each_miss() {
    let loads = [
        (Load::ClosedLoop, 1, 100),
        (Load::ClosedLoop, 8, 100),
        (open_loop(20_000), 8, 100),
        // Requests send values of this size without a copy, but fills do not.
        (Load::ClosedLoop, 8, 100_000),
    ];
    for (load, pipeline, bytes) in loads {
        let server = RedisServer::start(&[]);
        let mut plan = TrialPlan { load, pipeline, ..filling() };
        plan.workload_mut().values.size = ValueSize::Fixed { bytes };
        let snapshot = run(plan, standalone(&server), 2).await;
        let total = snapshot.total;
        assert_eq!((total.scheduled, total.succeeded, total.errors), (2000, 2000, 0), "{:?}", snapshot.errors);
        assert_eq!([total.fills, total.fill_errors], [snapshot.operations[0].nil_replies, 0]);
        assert_eq!([server.calls("get"), server.calls("set")], [2000, total.fills]);
        let keys: u64 = server.ask(&["DBSIZE"]);
        assert!(keys > 450 && total.fills >= keys && total.fills < 1000, "{keys} {}", total.fills);
        let any: String = server.ask(&["RANDOMKEY"]);
        assert_eq!(server.ask::<u32>(&["STRLEN", &any]), bytes);
    }
}

#[tokio::test]
async fn the_warmup_has_its_own() {
    let server = RedisServer::start(&[]);
    let mut plan = filling();
    plan.load = open_loop(5000);
    plan.warmup_nanoseconds = SECOND / 5;
    let snapshot = run(plan, standalone(&server), 1).await;
    assert!(snapshot.warmup.fills > 100, "{:?}", snapshot.warmup);
    assert_eq!(snapshot.warmup.fills + snapshot.total.fills, server.calls("set"));
    assert_eq!(snapshot.total.fills, snapshot.operations[0].nil_replies);
}

#[tokio::test]
async fn a_write_that_fails_is_no_error_of_a_request() {
    let server = RedisServer::start(&["--maxmemory", "1"]);
    let snapshot = run(filling(), standalone(&server), 1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (2000, 0), "{:?}", snapshot.errors);
    assert_eq!([snapshot.total.fills, snapshot.total.fill_errors], [0, 2000]);
}

#[tokio::test]
async fn keys_are_written_where_they_belong() {
    let cluster = RedisCluster::steady(3);
    let mut wrong = topology(&cluster);
    wrong.slots.as_mut().unwrap().fill(1);
    for map in [topology(&cluster), wrong] {
        cluster.nodes.iter().for_each(|node| node.ask::<()>(&["FLUSHALL"]));
        cluster.reset_statistics();
        let mut plan = filling();
        plan.target.topology = Topology::Cluster;
        plan.connections = 6;
        let snapshot = run(plan, map, 1).await;
        assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (2000, 0), "{:?}", snapshot.errors);
        assert_eq!([snapshot.total.fills, snapshot.total.fill_errors], [snapshot.operations[0].nil_replies, 0]);
        assert_eq!(cluster.calls("set"), snapshot.total.fills);
    }
}
