//! A small plan, from which tests and measuring tools start.

use std::sync::Arc;

use super::{
    Bound, Breakdown, Distribution, KeyPattern, Keys, Limits, Load, MeasurementOptions, Operation, Part, PipelineMode,
    Preload, PreloadPace, Protocol, ReadFrom, ShardPlan, Target, Timeouts, Topology, TrialPlan, Values, Verify,
    Workload, WorkloadOptions,
};

const SECOND: u64 = 1_000_000_000;

impl TrialPlan {
    /// One second of `GET` of ten keys in a closed loop, over one connection of the only shard, with every breakdown.
    pub fn basic(endpoint: &str) -> Self {
        Self {
            shards: 1,
            target: Target {
                name: "redis".into(),
                index: 0,
                topology: Topology::Standalone,
                endpoints: vec![endpoint.into()],
                database: 0,
                address_map: Vec::new(),
                master_name: None,
                sentinels: None,
                read_from: ReadFrom::Primary,
                distribution: Distribution::default(),
                authenticate: false,
                protocol: Protocol::Resp2,
                tls: None,
            },
            workload: Arc::new(Workload {
                operations: vec![Operation::of("get", 1, "GET __key__")],
                keys: Keys {
                    prefix: "rb:".into(),
                    start: 0,
                    count: 10,
                    width: 0,
                    pattern: KeyPattern::Uniform,
                    tags: None,
                },
                key_file: None,
                values: Values::fixed(100),
                seed: 1,
                options: WorkloadOptions::default(),
            }),
            trace: None,
            preload: Preload::None,
            preload_steps: Vec::new(),
            verify: Verify::None,
            load: Load::ClosedLoop,
            connections: 1,
            pipeline: 1,
            connect_rate: None,
            nodes_per_shard: None,
            client: None,
            connection_lifetime: None,
            preload_pace: PreloadPace::default(),
            pipeline_mode: PipelineMode::Window,
            concurrency: None,
            warmup_nanoseconds: 0,
            settle: false,
            bound: Bound::Duration { nanoseconds: SECOND },
            timeouts: Timeouts { connect_nanoseconds: 5 * SECOND, request_nanoseconds: 5 * SECOND },
            breakdown: Breakdown { operation: true, node: true },
            node_seconds: false,
            measurement: MeasurementOptions::default(),
            tracing: None,
            limits: Limits {
                trial_nanoseconds: 600 * SECOND,
                armed_nanoseconds: 600 * SECOND,
                finished_nanoseconds: 600 * SECOND,
                unattended_nanoseconds: 0,
            },
        }
    }

    /// The part of shard `shard` in trial 0 of run `run`.
    pub fn of_shard(self, shard: u32) -> ShardPlan {
        Arc::new(self).part(&"run".into(), 0, shard)
    }
}

/// The part of the first or only shard.
impl From<TrialPlan> for ShardPlan {
    fn from(plan: TrialPlan) -> Self {
        plan.of_shard(0)
    }
}

impl Operation {
    /// An operation of literal words, `__key__` and `__data__`.
    pub fn of(name: &str, weight: u32, command: &str) -> Self {
        let argument = |word: &str| match word {
            "__key__" => vec![Part::Key],
            "__data__" => vec![Part::Data],
            literal => vec![Part::Literal(literal.into())],
        };
        Self { name: name.into(), weight, arguments: command.split(' ').map(argument).collect(), keys: None }
    }
}
