//! The last check of a plan before it runs. `benchmark` makes only valid plans; this keeps a faulty conductor from crashing the shard.

use redisbench_wire::limits;
use redisbench_wire::plan::{
    Arrival, Bound, Caching, KeyPattern, Keys, LifetimeLimit, Load, Operation, Part, PipelineMode, Protocol, ShardPlan,
    Topology, TrialPlan, ValueContent, ValueSize, Values, Verify, Workload,
};
use redisbench_wire::rate::CumulativeRate;

use crate::workload;

/// Fails with a message that names the field.
pub fn check(plan: &ShardPlan) -> Result<(), String> {
    let target = &plan.target;
    require(plan.shard < plan.shards, || format!("shard {} of {} shards", plan.shard, plan.shards))?;
    require(plan.connections > 0, || "connections is 0: a shard needs at least one".into())?;
    require(plan.pipeline > 0, || "pipeline is 0: a connection needs at least one request in flight".into())?;
    let pace = plan.preload_pace;
    require(pace.pipeline != Some(0) && pace.rate_per_second != Some(0), || {
        "preloadPace has a 0: it needs at least one key per second and one command in flight".into()
    })?;
    let lifetime = plan.connection_lifetime.map(|lifetime| lifetime.limit);
    let none = [LifetimeLimit::Requests { count: 0 }, LifetimeLimit::Duration { nanoseconds: 0 }];
    require(!lifetime.is_some_and(|lifetime| none.contains(&lifetime)), || {
        "connectionLifetime is 0: a connection needs at least one request".into()
    })?;
    require(plan.concurrency != Some(0), || "concurrency is 0: a shard needs at least one caller".into())?;
    require(plan.tracing.as_ref().is_none_or(|tracing| tracing.one_in > 0), || {
        "tracing.oneIn is 0: it needs at least 1".into()
    })?;
    require(!target.endpoints.is_empty(), || "target.endpoints is empty".into())?;
    require(target.master_name.is_some() == (target.topology == Topology::Sentinel), || {
        format!(
            "target.masterName must be set for topology Sentinel, and only for it; the topology is {:?}",
            target.topology
        )
    })?;
    require(target.sentinels.is_none() || target.topology == Topology::Sentinel, || {
        format!("target.sentinels needs topology Sentinel, not {:?}", target.topology)
    })?;
    require(target.topology != Topology::Cluster || target.database == 0, || {
        format!("target.database is {}, but a cluster has only database 0", target.database)
    })?;
    check_keys("workload", &plan.workload.keys)?;
    check_values(&plan.workload.values)?;
    let operations = &plan.workload.operations;
    let least = usize::from(plan.trace.is_none());
    require((least..=limits::OPERATIONS).contains(&operations.len()), || {
        format!("workload.operations has {} entries, not {least} to {}", operations.len(), limits::OPERATIONS)
    })?;
    check_trace(plan)?;
    operations.iter().try_for_each(check_operation)?;
    check_options(plan)?;
    check_preload(plan)?;
    check_per_connection(plan)?;
    check_verify(plan)?;
    let longest = plan.bound.longest_nanoseconds();
    let times = [
        plan.warmup_nanoseconds,
        longest,
        plan.timeouts.connect_nanoseconds,
        plan.timeouts.request_nanoseconds,
        plan.limits.trial_nanoseconds,
        plan.limits.armed_nanoseconds,
        plan.limits.finished_nanoseconds,
        plan.limits.unattended_nanoseconds,
    ];
    require(times.iter().all(|time| *time <= limits::LARGEST_INSTANT_NANOSECONDS / 4), || {
        "a time is longer than 18 years, or the sum of the times out of range".into()
    })?;
    check_load(plan, longest)?;
    check_streams(plan)?;
    require(longest > 0, || "bound: the measurement has no duration".into())?;
    let timeouts = plan.timeouts;
    require(timeouts.connect_nanoseconds > 0 && timeouts.request_nanoseconds > 0, || "a timeout is 0".into())
}

/// Rejects what goes with generated requests only.
fn check_trace(plan: &TrialPlan) -> Result<(), String> {
    let (options, generated) = (&plan.workload.options, plan.trace.is_none());
    let pace = if let Load::Recorded { pace_millionths, .. } = plan.load { Some(pace_millionths) } else { None };
    require(pace.is_none_or(|pace| pace > 0 && !generated), || {
        "load: recorded due times need a trace, and a pace above 0".into()
    })?;
    let single = options.transaction.is_none() && options.wait.is_none() && options.fills.is_empty();
    require(generated || single && options.caching.is_none() && !options.in_turns, || {
        "trace: not supported with transactions, WAIT, fills, caching or a mix in turns".into()
    })?;
    let ordinary = plan.verify == Verify::None && plan.client.is_none() && plan.nodes_per_shard.is_none();
    require(generated || ordinary, || "trace: not supported with verify, clients or nodesPerShard".into())?;
    let by_time = matches!(plan.bound, Bound::Duration { .. });
    let random = matches!(plan.load, Load::OpenLoop { arrival: Arrival::Poisson, .. });
    require(generated || by_time && !random, || {
        "trace: not supported with a number of requests or Poisson arrivals".into()
    })
}

/// Bounds the memory for followed keys, and checks that a value has room for a stamp.
fn check_verify(plan: &ShardPlan) -> Result<(), String> {
    let options = &plan.workload.options;
    let single =
        options.transaction.is_none() && options.wait.is_none() && options.fills.is_empty() && !options.in_turns;
    require(plan.verify == Verify::None || single, || {
        "verify: not supported with transactions, WAIT, fills or a mix in turns".into()
    })?;
    let mut keys = plan.workload.keys_of_operations().chain([&plan.workload.keys]);
    require(plan.verify == Verify::None || keys.all(|keys| keys.tags.is_none()), || {
        "verify: not supported with keys that have tags".into()
    })?;
    require(plan.verify == Verify::None || plan.workload.key_file.is_none(), || {
        "verify: not supported with keys from a file, which may have one twice".into()
    })?;
    let Some(followed) = plan.followed() else { return Ok(()) };
    let part = workload::part_of(followed.keys.count, plan.shard.into(), plan.shards.into());
    require(part.end - part.start <= Verify::KEYS_PER_SHARD, || {
        format!("verify: {} keys of a shard's own, more than {}", part.end - part.start, Verify::KEYS_PER_SHARD)
    })?;
    require(!part.is_empty(), || "verify: the shard has no key of its own".into())?;
    let values = plan.verify == Verify::Values;
    require(!values || plan.workload.values.content != ValueContent::Lines, || {
        "verify: values are not supported with lines of a file, which have no stamps".into()
    })?;
    let shortest = plan.workload.values.size.shortest();
    require(!values || shortest >= Verify::STAMP_BYTES, || {
        format!("verify: a value of {shortest} bytes has no room for a stamp of {}", Verify::STAMP_BYTES)
    })?;
    require(plan.pipeline_mode == PipelineMode::Window, || {
        "verify: values are not supported with pipelineMode Batch".into()
    })
}

/// Beyond these bounds the schedule's arithmetic would overflow.
fn check_load(plan: &TrialPlan, longest: u64) -> Result<(), String> {
    let Load::OpenLoop { rate_per_second, stages, .. } = &plan.load else { return Ok(()) };
    let rate = |field: &str, rate: u64| {
        require((1..=limits::RATE_PER_SECOND).contains(&rate), || {
            format!("load.{field} is {rate}, not 1 to {}", limits::RATE_PER_SECOND)
        })
    };
    if plan.workload.has_mix() {
        rate("ratePerSecond", *rate_per_second)?;
    }
    rate("ratePerSecond with rates", rate_per_second.saturating_add(plan.workload.own_rates_per_second()))?;
    require(stages.len() <= limits::STAGES, || {
        format!("load.stages has {} entries, more than {}", stages.len(), limits::STAGES)
    })?;
    let mut staged = 0_u64;
    for stage in stages {
        rate("stages.fromPerSecond", stage.from_per_second)?;
        rate("stages.toPerSecond", stage.to_per_second)?;
        require(stage.nanoseconds > 0, || "load.stages: a stage has no duration".into())?;
        staged = staged.saturating_add(stage.nanoseconds);
    }
    let whole = plan.warmup_nanoseconds.saturating_add(longest.max(staged));
    require(whole <= limits::OPEN_LOOP_NANOSECONDS, || {
        format!("load: an open loop of {whole} ns, longer than {}", limits::OPEN_LOOP_NANOSECONDS)
    })
}

/// Checks that the streams of requests are those of stages and operations, and can be numbered.
fn check_streams(plan: &TrialPlan) -> Result<(), String> {
    let (workload, options) = (&plan.workload, &plan.workload.options);
    if options.rates.is_empty() && options.mixes.is_empty() {
        return Ok(());
    }
    let Load::OpenLoop { stages, .. } = &plan.load else {
        return Err("workload.options: rates and mixes need an open loop".into());
    };
    require(matches!(plan.bound, Bound::Duration { .. }), || {
        "workload.options: rates and mixes do not go with a number of requests".into()
    })?;
    let operations = workload.operations.len();
    let ascending = options.rates.windows(2).all(|two| two[0].operation < two[1].operation);
    let known = options.rates.iter().all(|rate| (rate.operation as usize) < operations && rate.per_second > 0);
    require(ascending && known, || {
        "workload.options.rates: one has no rate, no operation or one listed before".into()
    })?;
    let weights = workload.weights();
    let is_mix = |mix: &Vec<u32>| {
        mix.len() == operations
            && mix.iter().any(|weight| *weight > 0)
            && mix.iter().zip(&weights).all(|(weight, own)| *weight == 0 || *own > 0)
    };
    require(options.mixes.is_empty() || options.mixes.len() == stages.len(), || {
        format!("workload.options.mixes has {} entries for {} stages", options.mixes.len(), stages.len())
    })?;
    require(options.mixes.iter().all(is_mix) && (options.mixes.is_empty() || !options.in_turns), || {
        "workload.options.mixes: one has no weights, has weights of operations with a rate, or is sent in turns".into()
    })?;
    let numbers = CumulativeRate::numbers(plan);
    require(plan.nodes_per_shard.is_none() || numbers < 1 << limits::REDRAWN_BITS, || {
        format!("workload.options: {numbers} requests are too many to number with nodesPerShard")
    })
}

fn check_operation(operation: &Operation) -> Result<(), String> {
    let Operation { name, weight, arguments, keys } = operation;
    let literal = |part: &Part| matches!(part, Part::Literal(text) if !text.is_empty());
    let command = arguments.first().is_some_and(|command| !command.is_empty() && command.iter().all(literal));
    require(*weight > 0, || format!("operation {name} has weight 0"))?;
    require(command, || format!("operation {name} does not begin with the name of a command"))?;
    keys.iter().try_for_each(|keys| check_keys(&format!("operation {name}"), keys))
}

/// Rejects options and combinations that `benchmark` never makes.
fn check_options(plan: &TrialPlan) -> Result<(), String> {
    let options = &plan.workload.options;
    let size = options.transaction.map_or(1, |transaction| transaction.size);
    require((1..=limits::TRANSACTION).contains(&size), || {
        format!("workload.options.transaction.size is {size}, not 1 to {}", limits::TRANSACTION)
    })?;
    require(options.wait.is_none() || plan.pipeline == 1, || {
        format!("workload.options.wait needs pipeline 1, not {}", plan.pipeline)
    })?;
    require(options.fills.is_empty() || options.transaction.is_none(), || {
        "workload.options.fills do not go with a transaction".into()
    })?;
    require(options.fills.iter().all(|fill| !fill.arguments.is_empty()), || {
        "workload.options.fills has one without a command".into()
    })?;
    options.caching.iter().try_for_each(|caching| check_caching(plan, caching))
}

/// Bounds the steps of a preload, and rejects those that it could not send.
fn check_preload(plan: &TrialPlan) -> Result<(), String> {
    let steps = &plan.preload_steps;
    require(steps.len() <= limits::PRELOAD_STEPS, || {
        format!("preloadSteps has {} entries, more than {}", steps.len(), limits::PRELOAD_STEPS)
    })?;
    require(steps.is_empty() || plan.verify == Verify::None, || "preloadSteps do not go with verify".into())?;
    for step in steps {
        check_keys("preloadSteps", &step.keys)?;
        require((1..=limits::ELEMENTS).contains(&step.rounds), || {
            format!("preloadSteps.rounds is {}, not 1 to {}", step.rounds, limits::ELEMENTS)
        })?;
        require(step.arguments.first().is_some_and(|command| !command.is_empty()), || {
            "preloadSteps has one without a command".into()
        })?;
    }
    Ok(())
}

/// Only where each connection draws its own requests, and no operation walks the numbers of all of them.
fn check_per_connection(plan: &TrialPlan) -> Result<(), String> {
    let workload = &plan.workload;
    if !workload.is_per_connection() {
        return Ok(());
    }
    require(plan.load == Load::ClosedLoop && plan.concurrency.is_none(), || {
        "workload: keys per connection need a closed loop without callers".into()
    })?;
    require(matches!(plan.target.topology, Topology::Standalone | Topology::Sentinel), || {
        format!("workload: keys per connection do not go with topology {:?}", plan.target.topology)
    })?;
    require(workload.options.caching.is_none() && plan.verify == Verify::None, || {
        "workload: keys per connection do not go with caching or verify".into()
    })?;
    let size = workload.options.transaction.map_or(1, |transaction| u64::from(transaction.size));
    require(size.saturating_mul(plan.connections.into()) <= Workload::APART, || {
        format!("workload: {} connections are too many to number {size} commands each", plan.connections)
    })?;
    let walks_all = |keys: &Keys| matches!(keys.pattern, KeyPattern::Sequential | KeyPattern::Partitioned);
    require(!workload.keys_of_operations().any(walks_all), || {
        "workload: keys per connection do not go with keys that all connections walk together".into()
    })
}

/// Bounds the memory for caches.
fn check_caching(plan: &TrialPlan, caching: &Caching) -> Result<(), String> {
    let options = &plan.workload.options;
    require(options.transaction.is_none() && options.wait.is_none(), || {
        "workload.options.caching does not go with transactions or WAIT".into()
    })?;
    require(plan.target.protocol == Protocol::Resp3, || "workload.options.caching needs protocol RESP3".into())?;
    require(plan.pipeline_mode == PipelineMode::Window, || {
        "workload.options.caching does not go with pipelineMode Batch".into()
    })?;
    require(caching.entries > 0, || "workload.options.caching.entries is 0".into())?;
    let spaces = plan.workload.operations.iter().filter_map(|operation| operation.keys.as_ref());
    let keys = spaces.chain([&plan.workload.keys]).map(|keys| keys.count).max().unwrap_or_default();
    let connections = u64::from(plan.connections).div_ceil(u64::from(plan.shards.max(1)));
    let all = caching.entries_in_all(connections, keys);
    require(all <= Caching::BYTES_PER_SHARD / Caching::BYTES_PER_ENTRY, || {
        format!("workload.options.caching makes {all} entries in the caches of a shard, which take too much memory")
    })
}

fn check_values(values: &Values) -> Result<(), String> {
    let longest = values.size.longest();
    require(longest <= limits::VALUE_BYTES, || {
        format!("workload.values: one has {longest} bytes, more than the {} that Redis takes", limits::VALUE_BYTES)
    })?;
    let ValueSize::Weighted(sizes) = &values.size else { return Ok(()) };
    require((1..=limits::VALUE_SIZES).contains(&sizes.len()), || {
        format!("workload.values.size has {} entries, not 1 to {}", sizes.len(), limits::VALUE_SIZES)
    })
}

/// The key pattern's own parameters are checked where the pattern is built.
fn check_keys(of: &str, keys: &Keys) -> Result<(), String> {
    require(keys.count > 0, || format!("{of}.keys.count is 0"))?;
    require(keys.start.checked_add(keys.count).is_some(), || {
        format!("{of}.keys: start {} and count {} go beyond 64 bits", keys.start, keys.count)
    })
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_loop::OpenLoop;
    use crate::sample::{SECOND, plan};
    use redisbench_wire::plan::{
        CacheScope, CachingMode, KeyFile, Lifetime, LifetimeSpread, OperationRate, PreloadStep, RateStage, Tags, Trace,
        Tracing,
    };

    fn open(rate_per_second: u64, stages: &[RateStage]) -> Load {
        OpenLoop { stages: stages.to_vec(), ..OpenLoop::at(rate_per_second) }.load()
    }

    fn stage(nanoseconds: u64, from_per_second: u64, to_per_second: u64) -> RateStage {
        RateStage { nanoseconds, from_per_second, to_per_second }
    }

    fn lifetime(count: u32) -> Lifetime {
        Lifetime { limit: LifetimeLimit::Requests { count }, spread: LifetimeSpread::Even }
    }

    fn tracing(one_in: u64) -> Tracing {
        Tracing { endpoint: "http://collector:4318".into(), one_in }
    }

    const RATE: OperationRate = OperationRate { operation: 0, per_second: 1 };

    const OWN: KeyPattern = KeyPattern::PerConnection { partitioned: true };

    fn step(rounds: u32) -> PreloadStep {
        let arguments = Operation::of("preload", 1, "SADD __key__ a").arguments;
        PreloadStep { keys: plan().workload.keys.clone(), arguments, rounds, writes: true }
    }

    fn trace() -> Trace {
        Trace { repeats: false, recorded: None }
    }

    fn at_pace(pace_millionths: u32) -> Load {
        Load::Recorded { pace_millionths, pacing_grid_nanoseconds: 0, unsent_after_nanoseconds: 1 }
    }

    fn caching() -> Caching {
        Caching {
            mode: CachingMode::Default,
            scope: CacheScope::Connection,
            entries: 100_000_000,
            ttl_nanoseconds: 1,
            prefixes: Vec::new(),
            no_loop: true,
            operations: vec![0],
            writes: Vec::new(),
        }
    }

    #[test]
    fn caches_have_a_limit_of_memory() {
        let mut plan = plan();
        plan.target.protocol = Protocol::Resp3;
        (plan.workload_mut().options.transaction, plan.workload_mut().options.wait) = (None, None);
        (plan.workload_mut().options.caching, plan.workload_mut().keys.count) = (Some(caching()), 1_000);
        assert_eq!(check(&plan.clone().of_shard(1)), Ok(()));
        plan.workload_mut().keys.count = 1 << 30;
        assert!(check(&plan.of_shard(1)).unwrap_err().contains("too much memory"));
    }

    #[test]
    fn a_good_plan_passes() {
        assert_eq!(check(&plan().of_shard(1)), Ok(()));
    }

    type Spoil = fn(&mut TrialPlan);

    fn assert_faults(faults: &[(Spoil, &str)]) {
        for (spoil, part) in faults {
            let mut plan = plan();
            spoil(&mut plan);
            let message = check(&plan.of_shard(1)).unwrap_err();
            assert!(message.contains(*part), "{message}");
        }
    }

    #[test]
    fn each_fault_of_rates_and_mixes_is_named() {
        let faults: [(Spoil, &str); 7] = [
            (|plan| plan.workload_mut().options.rates = vec![RATE], "need an open loop"),
            (
                |plan| {
                    (plan.workload_mut().options.rates, plan.load) = (vec![RATE], open(1, &[]));
                    plan.bound = Bound::Requests { count: 9, max_nanoseconds: 1 };
                },
                "a number of requests",
            ),
            (
                |plan| (plan.workload_mut().options.rates, plan.load) = (vec![RATE, RATE], open(1, &[])),
                "options.rates: one has no rate",
            ),
            (
                |plan| {
                    plan.workload_mut().options.rates =
                        vec![OperationRate { per_second: limits::RATE_PER_SECOND, ..RATE }];
                    plan.load = open(1, &[]);
                },
                "load.ratePerSecond with rates is 1000000001",
            ),
            (
                |plan| (plan.workload_mut().options.mixes, plan.load) = (vec![vec![1]], open(1, &[])),
                "options.mixes has 1 entries for 0 stages",
            ),
            (
                |plan| (plan.workload_mut().options.mixes, plan.load) = (vec![vec![0]], open(1, &[stage(1, 1, 1)])),
                "options.mixes: one has no weights",
            ),
            (
                |plan| {
                    let whole = stage(SECOND << 16, limits::RATE_PER_SECOND, limits::RATE_PER_SECOND);
                    (plan.workload_mut().options.mixes, plan.load) = (vec![vec![1]; 3], open(1, &[whole; 3]));
                    (plan.nodes_per_shard, plan.bound) = (Some(1), Bound::Duration { nanoseconds: 3 * (SECOND << 16) });
                },
                "too many to number with nodesPerShard",
            ),
        ];
        assert_faults(&faults);
    }

    #[test]
    fn each_fault_is_named() {
        let faults: [(Spoil, &str); 44] = [
            (|plan| plan.warmup_nanoseconds = u64::MAX, "a time is longer"),
            (|plan| plan.shards = 0, "shard 1 of 0 shards"),
            (|plan| plan.connections = 0, "connections is 0"),
            (|plan| plan.preload_pace.pipeline = Some(0), "preloadPace has a 0"),
            (
                |plan| (plan.workload_mut().keys.pattern, plan.load) = (OWN, open(1, &[])),
                "need a closed loop without callers",
            ),
            (
                |plan| (plan.workload_mut().keys.pattern, plan.target.topology) = (OWN, Topology::Cluster),
                "do not go with topology Cluster",
            ),
            (|plan| plan.preload_steps = vec![step(0)], "preloadSteps.rounds is 0"),
            (|plan| plan.preload_steps = vec![step(1); limits::PRELOAD_STEPS + 1], "preloadSteps has 65 entries"),
            (
                |plan| plan.preload_steps = vec![PreloadStep { arguments: Vec::new(), ..step(1) }],
                "one without a command",
            ),
            (|plan| plan.preload_pace.rate_per_second = Some(0), "preloadPace has a 0"),
            (|plan| plan.pipeline = 0, "pipeline is 0"),
            (|plan| plan.concurrency = Some(0), "concurrency is 0"),
            (|plan| plan.connection_lifetime = Some(lifetime(0)), "connectionLifetime is 0"),
            (|plan| plan.tracing = Some(tracing(0)), "tracing.oneIn is 0"),
            (|plan| plan.workload_mut().options.caching = Some(caching()), "needs protocol RESP3"),
            (|plan| plan.target.endpoints.clear(), "target.endpoints is empty"),
            (|plan| (plan.target.topology, plan.target.database) = (Topology::Cluster, 1), "target.database is 1"),
            (|plan| plan.target.topology = Topology::Sentinel, "target.masterName"),
            (|plan| plan.workload_mut().keys.count = 0, "workload.keys.count is 0"),
            (|plan| plan.workload_mut().keys.start = u64::MAX, "beyond 64 bits"),
            (
                |plan| plan.workload_mut().operations[0].keys = Some(Keys { count: 0, ..plan.workload.keys.clone() }),
                "operation get.keys.count is 0",
            ),
            (|plan| plan.workload_mut().values = Values::fixed(u32::MAX), "workload.values: one has 4294967295 bytes"),
            (
                |plan| plan.workload_mut().values.size = ValueSize::Weighted(Vec::new()),
                "workload.values.size has 0 entries",
            ),
            (|plan| plan.workload_mut().operations.clear(), "has 0 entries"),
            (|plan| plan.load = at_pace(1), "need a trace"),
            (|plan| (plan.trace, plan.load) = (Some(trace()), at_pace(0)), "a pace above 0"),
            (|plan| (plan.trace, plan.verify) = (Some(trace()), Verify::Replies), "trace: not supported with verify"),
            (|plan| plan.workload_mut().operations[0].weight = 0, "operation get has weight 0"),
            (|plan| plan.workload_mut().operations[0].arguments[0] = vec![Part::Key], "the name of a command"),
            (|plan| plan.load = open(0, &[]), "load.ratePerSecond is 0"),
            (|plan| plan.load = open(limits::RATE_PER_SECOND + 1, &[]), "load.ratePerSecond is 1000000001"),
            (|plan| plan.load = open(1, &[stage(1, 0, 1)]), "load.stages.fromPerSecond is 0"),
            (|plan| plan.load = open(1, &[stage(1, 1, u64::MAX)]), "load.stages.toPerSecond is 18"),
            (|plan| plan.load = open(1, &[stage(0, 1, 1)]), "a stage has no duration"),
            (|plan| plan.load = open(1, &[stage(1, 1, 1); 65]), "load.stages has 65 entries"),
            (|plan| plan.load = open(1, &[stage(u64::MAX / 2, 1, 1); 3]), "longer than"),
            (|plan| plan.bound = Bound::Requests { count: 1, max_nanoseconds: 0 }, "bound: "),
            (|plan| plan.timeouts.request_nanoseconds = 0, "a timeout is 0"),
            (
                |plan| (plan.verify, plan.workload_mut().keys.count) = (Verify::Values, 24_000_003),
                "verify: 8000001 keys of a shard's own",
            ),
            (
                |plan| (plan.verify, plan.workload_mut().values) = (Verify::Values, Values::fixed(23)),
                "verify: a value of 23 bytes has no room",
            ),
            (
                |plan| (plan.verify, plan.pipeline_mode) = (Verify::Values, PipelineMode::Batch),
                "verify: values are not supported with pipelineMode Batch",
            ),
            (
                |plan| {
                    let tags = Tags { count: 1, hot: None };
                    (plan.verify, plan.workload_mut().keys.tags) = (Verify::Values, Some(tags));
                },
                "verify: not supported with keys that have tags",
            ),
            (
                |plan| (plan.verify, plan.workload_mut().values.content) = (Verify::Values, ValueContent::Lines),
                "verify: values are not supported with lines of a file",
            ),
            (
                |plan| (plan.verify, plan.workload_mut().key_file) = (Verify::Replies, Some(KeyFile::default())),
                "verify: not supported with keys from a file",
            ),
        ];
        assert_faults(&faults);
    }
}
