//! A plan for unit tests to start from.

use redisbench_wire::plan::{
    Bound, Breakdown, KeyPattern, Keys, Limits, Load, Operation, Part, PipelineMode, Preload, PreloadPace, ShardPlan,
    Target, Timeouts, Topology, Values, Verify, Workload, WorkloadOptions,
};

/// One second in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// Shard 1 of 3 in trial 0 of run `run`: a closed loop of GET with preload.
pub fn plan() -> ShardPlan {
    ShardPlan {
        run: "run".into(),
        trial: 0,
        shard: 1,
        shards: 3,
        target: Target {
            name: "cart".into(),
            topology: Topology::Standalone,
            endpoints: vec!["redis:6379".into()],
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
            operations: vec![Operation {
                name: "get".into(),
                weight: 1,
                arguments: vec![vec![Part::Literal("GET".into())], vec![Part::Key]],
                keys: None,
            }],
            keys: Keys { prefix: "rb:".into(), start: 0, count: 10, width: 0, pattern: KeyPattern::Uniform },
            values: Values::fixed(100),
            seed: 1,
            options: WorkloadOptions::default(),
        },
        preload: Preload::Always,
        verify: Verify::None,
        load: Load::ClosedLoop,
        connections: 4,
        pipeline: 1,
        connect_rate: None,
        preload_pace: PreloadPace::default(),
        pipeline_mode: PipelineMode::Window,
        concurrency: None,
        warmup_nanoseconds: 0,
        settle: false,
        bound: Bound::Duration { nanoseconds: SECOND },
        timeouts: Timeouts { connect_nanoseconds: SECOND, request_nanoseconds: SECOND },
        breakdown: Breakdown { operation: true, node: true },
        node_seconds: false,
        measurement: redisbench_wire::plan::Measurement::default(),
        limits: Limits {
            trial_nanoseconds: 60 * SECOND,
            armed_nanoseconds: 600 * SECOND,
            finished_nanoseconds: 500 * SECOND,
        },
    }
}
