//! Operations with rates of their own, and mixes of stages, as the server counts them.

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::plan::{Bound, OperationRate, RateStage};

use crate::harness::{MILLISECOND, operation, plan, run, standalone};
use crate::open_loop::OpenLoop;

/// A constant rate beneath two phases: only SET, then only GET.
#[tokio::test]
async fn a_server_gets_exact_rates_and_the_mix_of_each_stage() {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    plan.workload_mut().operations.push(operation("exists", 1, "EXISTS __key__"));
    plan.workload_mut().options.rates = vec![OperationRate { operation: 2, per_second: 3_000 }];
    plan.workload_mut().options.mixes = vec![vec![0, 1, 0], vec![1, 0, 0]];
    let stage =
        |from_per_second, to_per_second| RateStage { nanoseconds: 200 * MILLISECOND, from_per_second, to_per_second };
    plan.load = OpenLoop { stages: vec![stage(1_000, 9_000), stage(2_000, 2_000)], ..OpenLoop::at(1_000) }.load();
    (plan.connections, plan.pipeline) = (8, 16);
    plan.bound = Bound::Duration { nanoseconds: 400 * MILLISECOND };
    let snapshot = run(plan, standalone(&server), 2).await;
    let scheduled: Vec<u64> = snapshot.operations.iter().map(|operation| operation.tally.scheduled).collect();
    assert_eq!(scheduled, [400, 1_000, 1_200]);
    for operation in &snapshot.operations {
        assert_eq!(server.calls(&operation.name), operation.tally.succeeded, "{}", operation.name);
    }
}
