//! Validates a spec: the schema and the rules of the definition, then the rest. The operator and the command line share this
//! code and report all problems at once.

mod caching;
mod client;
mod fill;
mod keys;
mod labels;
mod lifetime;
mod load;
mod preload;
mod probe;
mod search;
mod streams;
mod sweep;
mod threshold;
mod trace;
mod transaction;
mod verify;

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::{self, Bound, TrialPlan};
use serde_json::{Value, json};

use super::command;
use super::crd;
use super::duration::{Durations, GoDuration, HOUR, MILLISECOND, MINUTE, SECOND, nanoseconds};
use super::keys::{KeyPatternType, KeysSpec, NO_PREFIX, check as check_keys, check_gaussian};
use super::limit::watches_nodes;
use super::load::WarmupEnds;
use super::measurement::{self, BreakdownKind};
use super::placeholder::{self, Meaning};
use super::problem::Problem;
use super::rules;
use super::safety;
use super::schema;
use super::script::{self, ScriptSpec};
use super::size;
use super::spec::{CleanupKeys, RedisBenchmarkSpec, ShardsSpec};
use super::target::{self, TargetSecrets};
use super::validated::{Shards, Validated, limits};
use super::values;
use super::workload::{Mix, OnMiss, OperationSpec, PreloadMode, WorkloadSpec};

pub use client::check_drivers;
pub(crate) use load::preload_rate;
pub(crate) use search::{check as check_search, combinations};
#[cfg(test)]
pub(crate) use sweep::sweepable_fields;
pub(crate) use sweep::{check_sweep, check_swept_operations};

/// Validates the spec of the benchmark `name`.
///
/// # Errors
/// All problems, in order of the fields.
pub fn validate(spec: &RedisBenchmarkSpec, name: &str) -> Result<Validated, Vec<Problem>> {
    let mut problems = admission(spec, name);
    if spec.search.is_some() {
        // Of each step a spec without it is made first: see `plan::compile`.
        problems.push(Problem::new("spec.search", "", "is more than one trial"));
    }
    let target = spec.targets.first().map(|target| target::check(target, &mut problems));
    let workload = check_workload(spec, &mut problems);
    let preload_steps = preload::check(spec, &workload, &mut problems);
    let trace = trace::check(spec, &mut problems);
    let load = load::check_load(spec, &mut problems);
    let bound = load::check_bound(&spec.load, &mut problems);
    let measurement = measurement::check(&spec.measurement, &mut problems);
    let connection_lifetime = lifetime::check(spec, &mut problems);
    let chosen = client::chosen(spec, &mut problems);
    let percentiles = measurement::percentiles(&spec.measurement, &mut problems);
    let shards = check_shards(&spec.shards, &spec.safety.unattended, &mut problems);
    let durations = Durations { problems: &mut problems, within: "spec.load" };
    let (warmup, timeouts) = load::check_times(&spec.load, durations);
    // Two fields are compared only once each is right by itself: else one mistake would show as three.
    let mut thresholds = Vec::new();
    if problems.is_empty() {
        check_across(spec, bound, &mut problems);
        verify::check(spec, &workload, &mut problems);
        thresholds = threshold::check(spec, bound, &mut problems);
    }
    let (Some(target), Some(load), true) = (target, load, problems.is_empty()) else {
        problems.sort_by(|a, b| a.field.cmp(&b.field));
        problems.dedup();
        return Err(problems);
    };
    let probe_nanoseconds = probe::nanoseconds(spec, &workload, &load);
    let mut plan = TrialPlan {
        shards: spec.shards.count,
        target,
        workload: Arc::new(workload),
        trace,
        preload: match spec.preload.mode {
            PreloadMode::None => plan::Preload::None,
            PreloadMode::Always => plan::Preload::Always,
            PreloadMode::FillMissing => plan::Preload::FillMissing,
        },
        preload_steps,
        preload_pace: plan::PreloadPace { rate_per_second: spec.preload.rate, pipeline: spec.preload.pipeline },
        verify: spec.verify.mode,
        load,
        client: chosen.client,
        connections: chosen.connections,
        connect_rate: spec.load.connect_rate,
        nodes_per_shard: spec.load.nodes_per_shard,
        connection_lifetime,
        pipeline: spec.load.pipeline,
        pipeline_mode: spec.load.pipeline_mode,
        concurrency: chosen.concurrency,
        warmup_nanoseconds: nanoseconds(warmup),
        settle: spec.load.warmup_ends == WarmupEnds::WhenSettled,
        bound,
        timeouts,
        breakdown: plan::Breakdown {
            operation: spec.measurement.breakdown.contains(&BreakdownKind::Operation),
            node: spec.measurement.breakdown.contains(&BreakdownKind::Node),
        },
        node_seconds: watches_nodes(&thresholds),
        measurement: plan::MeasurementOptions { probe_nanoseconds, ..measurement },
        tracing: measurement::tracing(&spec.measurement),
        limits: plan::Limits::default(),
    };
    plan.limits = limits(&plan, &shards);
    if let Some(problem) = size::check(&plan).or_else(|| streams::check_numbers(&plan)) {
        return Err(vec![problem]);
    }
    Ok(Validated {
        spec: Arc::new(spec.clone()),
        plan: Arc::new(plan),
        secrets: spec.targets.first().map(TargetSecrets::of).unwrap_or_default(),
        sentinel_secrets: spec.targets.first().map(TargetSecrets::of_sentinels).unwrap_or_default(),
        cleanup: spec.cleanup.keys == CleanupKeys::DeletePrefix,
        stage_names: spec.load.stages.iter().map(|stage| stage.name.clone()).collect(),
        percentiles,
        thresholds,
        shards,
        ttl_after_finished: spec.ttl_seconds_after_finished.map(|seconds| Duration::from_secs(seconds.into())),
    })
}

/// Problems that the API server reports: of single fields or, if there are none, of its rules. It checks itself that a name is a DNS name.
pub(crate) fn admission(spec: &RedisBenchmarkSpec, name: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    match serde_json::to_value(spec) {
        Ok(spec) => {
            schema::check(&crd::schema()["properties"]["spec"], &spec, "spec", &mut problems);
            if problems.is_empty() {
                problems = rules::check(&json!({"metadata": {"name": name}, "spec": spec}));
            }
        }
        Err(error) => problems.push(Problem::new("spec", "", format!("cannot be written as JSON: {error}"))),
    }
    if !schema::is_label(&name.replace('.', "")) {
        let message = "must be lower-case letters, digits and -, with a letter or digit at both ends";
        problems.push(Problem::new("metadata.name", format!("{name:?}"), message));
    }
    problems
}

fn check_workload(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) -> plan::Workload {
    let WorkloadSpec { preset, operations, keys, values, seed, .. } = &spec.workload;
    if !preset.is_empty() {
        // Of each a spec without it is made first: see `plan::compile`.
        problems.push(Problem::new("spec.workload.preset", preset.join(", "), "is more than one trial"));
    }
    let ttl = values.ttl.as_ref().map(|ttl| values::check_ttl(ttl, "spec.workload.values.ttl", problems));
    if let Some(ttl) = &values.ttl
        && spec.workload.on_miss == OnMiss::Ignore
        && !operations.iter().any(|operation| operation.command.contains("__ttl__"))
    {
        let message = "is in no command: write __ttl__ where the seconds go, such as SET __key__ __data__ EX __ttl__";
        problems.push(Problem::new("spec.workload.values.ttl", format!("{} to {}", ttl.min, ttl.max), message));
    }
    let context = OperationContext {
        keys,
        meaning: Meaning { ttl, scripts: &spec.workload.scripts },
        slotted: target::keyed(&spec.targets).is_some(),
        allow_destructive: spec.safety.allow_destructive,
        pipeline: spec.load.pipeline,
    };
    let operations: Vec<_> = operations
        .iter()
        .enumerate()
        .map(|(index, operation)| check_operation(operation, index, &context, problems))
        .collect();
    let (scripts, functions) = check_scripts(&spec.workload, problems);
    let options = plan::WorkloadOptions {
        allow_destructive: spec.safety.allow_destructive,
        transaction: transaction::check_transaction(spec, &operations, problems),
        wait: transaction::check_wait(spec, &operations, problems),
        fills: fill::check(spec, &operations, ttl, problems),
        scripts,
        functions,
        in_turns: spec.workload.mix == Mix::Ratio,
        caching: caching::check(spec, &operations, problems),
        rates: streams::rates(spec, problems),
        mixes: streams::mixes(spec, problems),
    };
    plan::Workload {
        operations,
        keys: check_keys(keys, "spec.workload.keys", problems),
        key_file: keys.file.as_ref().map(|_| plan::KeyFile::default()),
        values: values::to_plan(values),
        seed: *seed,
        options,
    }
}

/// Scripts and libraries to load. Reports scripts that no command uses.
fn check_scripts(workload: &WorkloadSpec, problems: &mut Vec<Problem>) -> (Vec<plan::Script>, Vec<plan::Script>) {
    for (index, script) in workload.scripts.iter().enumerate() {
        let placeholder = format!("__script:{}__", script.name);
        if !workload.operations.iter().any(|operation| operation.command.contains(&placeholder)) {
            let message = format!("is in no command: write EVALSHA {placeholder} 1 __key__ in one, or remove it");
            problems.push(Problem::new(format!("spec.workload.scripts[{index}].name"), &script.name, message));
        }
    }
    let read = |scripts: &[ScriptSpec]| {
        scripts
            .iter()
            .map(|ScriptSpec { name, source }| plan::Script { name: name.clone(), source: source.clone() })
            .collect()
    };
    (read(&workload.scripts), read(&workload.functions))
}

/// Parts of the spec that an operation is checked against.
struct OperationContext<'a> {
    keys: &'a KeysSpec,
    meaning: Meaning<'a>,
    /// Some target has slots, and all keys of a command must be in one.
    slotted: bool,
    allow_destructive: bool,
    pipeline: u32,
}

fn check_operation(
    operation: &OperationSpec,
    index: usize,
    context: &OperationContext<'_>,
    problems: &mut Vec<Problem>,
) -> plan::Operation {
    let field = format!("spec.workload.operations[{index}].command");
    let arguments = command::parse_by(&operation.command, context.meaning).unwrap_or_else(|error| {
        problems.push(Problem::new(&field, &operation.command, error.to_string()));
        Vec::new()
    });
    if let Some((name, what)) = safety::harm(&arguments).filter(|_| !context.allow_destructive) {
        let message = format!(
            "{name} {what}, and is refused: remove it, or set spec.safety.allowDestructive to true if the server may be \
             used for that"
        );
        problems.push(Problem::new(&field, &operation.command, message));
    }
    if context.pipeline > 1 && safety::blocks(&arguments) {
        let message = format!(
            "blocks the requests behind it on its connection with load.pipeline {}: set load.pipeline to 1",
            context.pipeline
        );
        problems.push(Problem::new(&field, &operation.command, message));
    }
    let own = operation.keys.as_ref().map(|own| own.over(context.keys));
    let keys = script::keys(&arguments).unwrap_or_else(|problem| {
        problems.push(Problem::new(&field, &operation.command, problem));
        &[]
    });
    if context.slotted && !placeholder::share_a_slot(keys, own.as_ref().unwrap_or(context.keys)) {
        // The lines of a file are unknown here, and other fields add nothing to them.
        let (share, or_else) = match context.keys.file {
            None => ("set keys.tags, give keys.prefix a hash tag, such as {rb}:, or ", ""),
            Some(_) => ("", ", or use keys.prefix with a hash tag instead of keys.file"),
        };
        let message = format!(
            "has keys that may lie in different slots, and a Cluster, or a Pool with distribution ByKey, has them on different \
             servers: {share}put what they share in braces, such as {{__key__}}:a {{__key__}}:b{or_else}"
        );
        problems.push(Problem::new(field, &operation.command, message));
    }
    let own = own.map(|keys| {
        let field = format!("spec.workload.operations[{index}].keys");
        keys::check_tags(&keys, &field, problems);
        if keys.pattern.kind == KeyPatternType::Gaussian {
            check_gaussian(&keys, &field, problems);
        }
        check_keys(&keys, &field, problems)
    });
    plan::Operation { name: operation.name.clone(), weight: operation.weight, arguments, keys: own }
}

fn check_shards(shards: &ShardsSpec, unattended: &GoDuration, problems: &mut Vec<Problem>) -> Shards {
    let template = &shards.template;
    for (field, labels) in [
        ("jobLabels", &shards.job_labels),
        ("template.labels", &template.labels),
        ("template.nodeSelector", &template.node_selector),
    ] {
        for (key, value) in labels {
            labels::check(&format!("spec.shards.{field}"), key, Some(value), problems);
        }
    }
    for key in shards.template.annotations.keys() {
        labels::check("spec.shards.template.annotations", key, None, problems);
    }
    let mut durations = Durations { problems, within: "spec.shards" };
    Shards {
        on_lost: shards.on_lost,
        placement: shards.placement,
        max_start_skew: durations.between("maxStartSkew", &shards.max_start_skew, MILLISECOND, MINUTE),
        prepare_timeout: durations.between("prepareTimeout", &shards.prepare_timeout, 10 * SECOND, 24 * HOUR),
        collect_timeout: durations.between("collectTimeout", &shards.collect_timeout, 5 * SECOND, HOUR),
        unattended: Durations { problems, within: "spec.safety" }.between("unattended", unattended, MINUTE, 48 * HOUR),
        job_labels: shards.job_labels.clone(),
        template: shards.template.clone(),
    }
}

/// Checks that need more than one part of the spec.
fn check_across(spec: &RedisBenchmarkSpec, bound: Bound, problems: &mut Vec<Problem>) {
    let shards = u64::from(spec.shards.count);
    load::check_settling(spec, problems);
    load::check_connect_rate(spec, problems);
    load::check_preload_rate(spec, problems);
    keys::check_per_connection(spec, problems);
    // The rules check `workload.keys`, but not what an operation's keys take from it.
    for (index, operation) in spec.workload.operations.iter().enumerate() {
        let Some(keys) = operation.keys.as_ref().map(|own| own.over(&spec.workload.keys)) else { continue };
        let field = format!("spec.workload.operations[{index}].keys");
        let is_partitioned = keys.pattern.kind == KeyPatternType::Partitioned && !keys.pattern.per_connection;
        if is_partitioned && keys.count < shards {
            problems.push(Problem::new(format!("{field}.count"), "", rules::each_shard(keys.count, shards)));
        }
        if spec.cleanup.keys == CleanupKeys::DeletePrefix && keys.prefix.is_empty() {
            problems.push(Problem::new(format!("{field}.prefix"), "\"\"", NO_PREFIX));
        }
    }
    load::check_amount(spec, bound, problems);
}

/// Problems that the API server would find in a status.
#[cfg(test)]
pub(crate) fn status_problems(status: &super::RedisBenchmarkStatus) -> Vec<Problem> {
    let mut problems = Vec::new();
    let value = serde_json::to_value(status).unwrap_or_default();
    schema::check(&crd::schema()["properties"]["status"], &value, "status", &mut problems);
    problems
}

/// Reads the object of a manifest file as strictly as `kubectl`: unknown fields are problems. Fills in defaults and ignores a status.
///
/// # Errors
/// All problems that the API server's schema would report.
pub fn read(object: &Value) -> Result<super::RedisBenchmark, Vec<Problem>> {
    let mut problems = Vec::new();
    for (field, wanted) in [("apiVersion", "redisbench.dev/v1alpha1"), ("kind", "RedisBenchmark")] {
        let found = object[field].as_str().unwrap_or_default();
        if found != wanted {
            problems.push(Problem::new(field, found, format!("must be {wanted}")));
        }
    }
    for field in object.as_object().into_iter().flat_map(serde_json::Map::keys) {
        if !["apiVersion", "kind", "metadata", "spec", "status"].contains(&field.as_str()) {
            problems.push(Problem::new(field, "", "unknown field; supported fields: apiVersion, kind, metadata, spec"));
        }
    }
    if object["spec"].is_object() {
        schema::check(&crd::schema()["properties"]["spec"], &object["spec"], "spec", &mut problems);
    } else {
        problems.push(Problem::new("spec", "", "is required: it describes the measurement"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut object = object.clone();
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    drop_nulls(&mut object);
    serde_json::from_value(object).map_err(|error| vec![Problem::new("spec", "", error.to_string())])
}

/// Kubernetes treats null as unset, so that the default applies.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(drop_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
