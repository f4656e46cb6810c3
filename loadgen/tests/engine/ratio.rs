//! A mix in turns: exact numbers by weight, and separate sequential keys for each operation.

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::plan::{Bound, KeyPattern, Lifetime, LifetimeLimit, LifetimeSpread, Load, TrialPlan};

use crate::harness::{SECOND, open_loop, operation, plan, run, standalone};

/// One SET, then ten GETs, as with memtier's `--ratio 1:10 --key-pattern S:S`.
fn in_turns() -> TrialPlan {
    let mut plan = plan();
    plan.workload_mut().operations =
        vec![operation("set", 1, "SET __key__ __data__"), operation("get", 10, "GET __key__")];
    plan.workload_mut().options.in_turns = true;
    plan.workload_mut().keys.pattern = KeyPattern::Sequential;
    plan.workload_mut().keys.count = 100;
    plan.connections = 1;
    plan.bound = Bound::Requests { count: 1100, max_nanoseconds: 20 * SECOND };
    plan
}

#[tokio::test]
async fn each_operation_walks_all_keys() {
    for load in [Load::ClosedLoop, open_loop(20_000)] {
        let server = RedisServer::start(&[]);
        let snapshot = run(TrialPlan { load, ..in_turns() }, standalone(&server), 1).await;
        let counts: Vec<u64> = snapshot.operations.iter().map(|operation| operation.tally.succeeded).collect();
        assert_eq!(counts, [100, 1000]);
        // 100 SETs in sequence hit all 100 keys, wherever they begin.
        assert_eq!(server.ask::<u64>(&["DBSIZE"]), 100);
    }
}

#[tokio::test]
async fn workers_of_a_closed_loop_all_have_the_whole_mix() {
    let server = RedisServer::start(&[]);
    let mut plan = in_turns();
    plan.workload_mut().operations[1].weight = 1;
    plan.connections = 2;
    plan.bound = Bound::Duration { nanoseconds: SECOND / 2 };
    let snapshot = run(plan, standalone(&server), 2).await;
    let [set, get] = snapshot.operations.as_slice() else { panic!("{:?}", snapshot.operations) };
    // Each worker may be one ahead at the end.
    assert!(set.tally.scheduled.abs_diff(get.tally.scheduled) <= 2, "{:?} {:?}", set.tally, get.tally);
}

/// Each connection reads what it wrote, although nothing was preloaded and others are at other keys.
#[tokio::test]
async fn a_connection_finds_what_it_wrote() {
    for (partitioned, pipeline, lifetime) in [(true, 1, None), (true, 16, None), (false, 1, None), (true, 1, Some(50))]
    {
        let server = RedisServer::start(&[]);
        let mut plan = in_turns();
        plan.workload_mut().operations[1].weight = 1;
        plan.workload_mut().keys.pattern = KeyPattern::PerConnection { partitioned };
        plan.workload_mut().keys.count = 1000;
        (plan.connections, plan.pipeline) = (7, pipeline);
        plan.connection_lifetime =
            lifetime.map(|count| Lifetime { limit: LifetimeLimit::Requests { count }, spread: LifetimeSpread::Even });
        plan.bound = Bound::Requests { count: 5_000, max_nanoseconds: 60 * SECOND };
        let snapshot = run(plan, standalone(&server), 2).await;
        let [set, get] = snapshot.operations.as_slice() else { panic!("{:?}", snapshot.operations) };
        assert_eq!(set.tally.succeeded + get.tally.succeeded, 5_000, "{:?}", get.tally);
        assert_eq!(
            (get.nil_replies, get.tally.errors, set.tally.errors),
            (0, 0, 0),
            "{partitioned} {pipeline} {lifetime:?}"
        );
    }
}
