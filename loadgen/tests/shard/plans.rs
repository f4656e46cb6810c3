use redisbench_wire::plan::{
    Bound, Breakdown, KeyPattern, Keys, Limits, Load, Operation, Part, PipelineMode, Preload, PreloadPace, ShardPlan,
    Target, Timeouts, Topology, Values, Verify, Workload, WorkloadOptions,
};

use crate::client::RUN;
pub use crate::support::load::open_loop;

pub const SECOND: u64 = 1_000_000_000;

/// An operation from a command as in a manifest.
pub fn operation(name: &str, weight: u32, command: &str) -> Operation {
    let argument = |word: &str| match word {
        "__key__" => vec![Part::Key],
        "__data__" => vec![Part::Data],
        literal => vec![Part::Literal(literal.into())],
    };
    Operation { name: name.into(), weight, arguments: command.split(' ').map(argument).collect(), keys: None }
}

/// A short closed loop of two operations at `endpoint`.
pub fn plan(endpoint: &str) -> ShardPlan {
    ShardPlan {
        run: RUN.into(),
        trial: 0,
        shard: 0,
        shards: 1,
        target: Target {
            name: "cart".into(),
            topology: Topology::Standalone,
            endpoints: vec![endpoint.into()],
            database: 0,
            address_map: Vec::new(),
            master_name: None,
            sentinels: None,
            read_from: redisbench_wire::plan::ReadFrom::Primary,
            authenticate: false,
            protocol: redisbench_wire::plan::Protocol::Resp2,
            tls: None,
        },
        workload: Workload {
            operations: vec![operation("read", 3, "GET __key__"), operation("write", 1, "SET __key__ __data__")],
            keys: Keys { prefix: "rb:".into(), start: 0, count: 1000, width: 0, pattern: KeyPattern::Uniform },
            values: Values::fixed(32),
            seed: 7,
            options: WorkloadOptions::default(),
        },
        preload: Preload::Always,
        verify: Verify::None,
        load: Load::ClosedLoop,
        connections: 4,
        pipeline: 4,
        connect_rate: None,
        preload_pace: PreloadPace::default(),
        pipeline_mode: PipelineMode::Window,
        concurrency: None,
        warmup_nanoseconds: SECOND / 10,
        settle: false,
        bound: Bound::Requests { count: 5000, max_nanoseconds: 30 * SECOND },
        timeouts: Timeouts { connect_nanoseconds: 2 * SECOND, request_nanoseconds: 5 * SECOND },
        breakdown: Breakdown { operation: true, node: true },
        node_seconds: false,
        measurement: redisbench_wire::plan::Measurement::default(),
        limits: Limits {
            trial_nanoseconds: 60 * SECOND,
            armed_nanoseconds: 60 * SECOND,
            finished_nanoseconds: 60 * SECOND,
        },
    }
}

/// The same plan with credentials.
pub fn authenticated(endpoint: &str) -> ShardPlan {
    let mut plan = plan(endpoint);
    plan.target.authenticate = true;
    plan
}

/// The same plan for a cluster.
pub fn clustered(endpoint: &str) -> ShardPlan {
    let mut plan = plan(endpoint);
    plan.target.topology = Topology::Cluster;
    plan
}
