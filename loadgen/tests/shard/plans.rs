use redisbench_wire::plan::{Bound, Operation, Preload, Timeouts, Topology, TrialPlan, Values};

pub use crate::open_loop::open_loop;

pub const SECOND: u64 = 1_000_000_000;

pub fn operation(name: &str, weight: u32, command: &str) -> Operation {
    Operation::of(name, weight, command)
}

/// A short closed loop of two operations at `endpoint`.
pub fn plan(endpoint: &str) -> TrialPlan {
    let mut plan = TrialPlan {
        preload: Preload::Always,
        connections: 4,
        pipeline: 4,
        warmup_nanoseconds: SECOND / 10,
        bound: Bound::Requests { count: 5000, max_nanoseconds: 30 * SECOND },
        timeouts: Timeouts { connect_nanoseconds: 2 * SECOND, request_nanoseconds: 5 * SECOND },
        ..TrialPlan::basic(endpoint)
    };
    plan.workload_mut().operations =
        vec![operation("read", 3, "GET __key__"), operation("write", 1, "SET __key__ __data__")];
    plan.target.name = "cart".into();
    plan.workload_mut().values = Values::fixed(32);
    (plan.workload_mut().keys.count, plan.workload_mut().seed) = (1000, 7);
    plan
}

/// `plan` with a constant rate per second for these seconds.
pub fn steady(plan: TrialPlan, rate: u64, seconds: u64) -> TrialPlan {
    TrialPlan { load: open_loop(rate), bound: Bound::Duration { nanoseconds: seconds * SECOND }, ..plan }
}

/// The same plan with credentials.
pub fn authenticated(endpoint: &str) -> TrialPlan {
    let mut plan = plan(endpoint);
    plan.target.authenticate = true;
    plan
}

/// The same plan for a cluster.
pub fn clustered(endpoint: &str) -> TrialPlan {
    let mut plan = plan(endpoint);
    plan.target.topology = Topology::Cluster;
    plan
}
