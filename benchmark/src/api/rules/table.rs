//! The rules themselves.

/// CEL for a list that is set and not empty.
macro_rules! filled {
    ($list:literal) => {
        concat!("(has(", $list, ") && ", $list, ".size() > 0)")
    };
}

/// CEL: every operation has a rate of its own.
macro_rules! all_rated {
    () => {
        concat!(
            "(",
            filled!("self.workload.operations"),
            " && self.workload.operations.all(operation, has(operation.rate)))"
        )
    };
}

mod caching;
mod key_file;
mod nodes;
mod per_connection;
mod preload;
mod streams;
mod tags;
mod trace;

use std::fmt;

use redisbench_wire::plan::Verify;

use super::super::comparison::FEWEST_PAIRS;
use super::super::sweep::{MOST_SWEPT, MOST_TRIALS};
use super::super::{keys, verify};
use super::rule::{Rule, SPEC};

/// Maximum length of a benchmark's name: the names of its Job, Secret and pods begin with it.
pub const NAME_LENGTH: usize = 46;

/// CEL: nothing is compared by its client.
const ONE_CLIENT: &str = "(!has(self.load.clients) || self.load.clients.size() < 2)";

/// CEL for the names of what is compared.
const SUBJECTS: &str = "(has(self.load.clients) && self.load.clients.size() > 1 ? \
                        self.load.clients.map(client, client.name) : self.targets.map(target, target.name))";

const LOAD: &str = "spec.load";
const WORKLOAD: &str = "spec.workload";

/// Rules for every evaluator.
pub(super) fn all() -> Vec<Rule> {
    let patterns = ["spec.workload.keys.pattern", "spec.workload.operations.[].keys.pattern"];
    let parts =
        [benchmark(), targets(), open_loop(), closed_loop(), length(), workload(), caching::all(), sizes(), verified()];
    let parts = parts
        .into_iter()
        .chain([per_connection::all(), preload::all(), tags::all(), nodes::all(), key_file::all(), streams::all()])
        .chain([trace::all()])
        .chain(patterns.map(pattern))
        .chain([trials(), clients(), comparison(), search(), thresholds()]);
    parts.flatten().collect()
}

/// Reports a number that is split over more shards than it has.
pub(in crate::api) fn each_shard(count: impl fmt::Display, shards: impl fmt::Display) -> String {
    format!("is {count}, and must be at least shards.count, which is {shards}: every shard needs one")
}

/// Members of a union by the value of its `kind`: name, values that it is for, and an example if these require it.
fn union(at: &'static str, kind: &str, members: &[(&str, &[&str], &str)]) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (member, of, example) in members {
        let (first, names) = (of.first().unwrap_or(&""), of.join(" or "));
        let (is, is_not) = (format!("self.{kind} in ['{}']", of.join("', '")), format!("!has(self.{member})"));
        let message = format!("is only valid for {kind} {names}: remove it, or set {kind} to {first}");
        rules.push(Rule::new(at, *member, format!("{is} || {is_not}"), message));
        if !example.is_empty() {
            let message = format!("must be set for {kind} {names}, such as {example}");
            rules.push(Rule::new(at, *member, format!("!({is}) || has(self.{member})"), message));
        }
    }
    rules
}

/// A field whose number is split over the shards, unless the CEL before holds.
fn split(unless: &str, field: &'static str) -> Rule {
    let count = format!("self.{field}");
    let condition = format!("{unless}{count} >= self.shards.count");
    Rule::new(SPEC, field, condition, each_shard("%s", "%s")).showing([&count, "self.shards.count"])
}

fn benchmark() -> Vec<Rule> {
    vec![
        Rule::new(
            "",
            "metadata.name",
            format!("self.metadata.name.size() <= {NAME_LENGTH}"),
            format!("has %s characters, and may have at most {NAME_LENGTH}: the names of pods begin with it"),
        )
        .showing(["self.metadata.name.size()"]),
        Rule::new(
            "",
            "metadata.name",
            "!self.metadata.name.contains('.')",
            "may have no dots: the host names of pods begin with it",
        ),
        Rule::new(
            "",
            "spec.abort",
            "!has(oldSelf.spec.abort) || !oldSelf.spec.abort || (has(self.spec.abort) && self.spec.abort)",
            "cannot be unset: create another benchmark",
        ),
        // Not with ==, which in kube-cel tells 99 from 99.0.
        Rule::new(
            "spec.measurement",
            "percentiles",
            "self.percentiles.all(percentile, self.percentiles.exists_one(other, other <= percentile && other >= percentile))",
            "one is listed twice: remove one",
        ),
    ]
}

fn targets() -> Vec<Rule> {
    const TARGET: &str = "spec.targets.[]";
    const TRANSPORT: &str = "spec.targets.[].sentinel.transport";
    let mut rules = vec![
        Rule::new(
            TARGET,
            "database",
            "self.type != 'Cluster' || self.database == 0",
            "is %s, and must be 0 for type Cluster, which has no other",
        )
        .showing(["self.database"]),
        Rule::new(
            TARGET,
            "endpoints",
            "self.type != 'Standalone' || self.endpoints.size() == 1",
            "has %s entries, and must have exactly one for type Standalone: only one can be loaded",
        )
        .showing(["self.endpoints.size()"]),
    ];
    let sentinel = "sentinel: {masterName: mymaster}";
    let pool = "pool: {distribution: ByKey}";
    rules.extend(union(
        TARGET,
        "type",
        &[("cluster", &["Cluster"], ""), ("sentinel", &["Sentinel"], sentinel), ("pool", &["Pool"], pool)],
    ));
    rules.push(Rule::new(
        SPEC,
        "targets",
        "self.verify.mode == 'None' || self.targets.all(target, !has(target.pool) || target.pool.distribution == 'ByKey')",
        "has a pool with distribution Even, whose servers may hold a key's writes for a while before others have them: set \
         verify.mode to None, or distribution to ByKey",
    ));
    rules.extend(union(TRANSPORT, "type", &[("tls", &["TLS"], "tls: {}")]));
    rules.extend(["spec.targets.[].tls", "spec.targets.[].sentinel.transport.tls"].map(|tls| {
        Rule::new(
            tls,
            "caSecretRef",
            "!self.insecureSkipVerify || !has(self.caSecretRef)",
            "must not be set with insecureSkipVerify, which accepts any certificate: remove one of them",
        )
    }));
    rules
}

fn open_loop() -> Vec<Rule> {
    vec![
        Rule::new(
            SPEC,
            "load.openLoop",
            concat!(
                "self.load.type != 'OpenLoop' || has(self.load.openLoop) || has(self.search) || ",
                "has(self.workload.trace) && has(self.workload.trace.pace) || ",
                filled!("self.load.stages"),
                " || ",
                all_rated!()
            ),
            "must be set for type OpenLoop, such as openLoop: {rate: 10000}",
        ),
        Rule::new(
            SPEC,
            "load.openLoop.rate",
            concat!(
                "!has(self.load.openLoop) || has(self.load.openLoop.rate) || has(self.search) || ",
                "has(self.workload.trace) && has(self.workload.trace.pace) || ",
                filled!("self.load.stages"),
                " || ",
                all_rated!()
            ),
            "must be set, such as 10000, or stages",
        ),
        Rule::new(
            LOAD,
            "openLoop.rate",
            concat!("!has(self.openLoop) || !has(self.openLoop.rate) || !", filled!("self.stages")),
            "must not be set with stages, which set the rate: remove one of them",
        ),
        Rule::new(
            LOAD,
            "openLoop",
            "self.type == 'OpenLoop' || !has(self.openLoop)",
            "must not be set for type ClosedLoop: remove it, or set type to OpenLoop",
        ),
        Rule::new(
            LOAD,
            "stages",
            concat!("self.type == 'OpenLoop' || !", filled!("self.stages")),
            "must not be set for type ClosedLoop: remove them, or set type to OpenLoop",
        ),
        Rule::new(
            LOAD,
            "stages",
            "!has(self.stages) || self.stages.all(stage, !has(stage.name) || \
             self.stages.exists_one(other, has(other.name) && other.name == stage.name))",
            "have two entries of the same name, %s: rename one",
        )
        .showing(["self.stages.filter(stage, has(stage.name) && \
                   !self.stages.exists_one(other, has(other.name) && other.name == stage.name))[0].name"]),
    ]
}

fn closed_loop() -> Vec<Rule> {
    vec![
        split("", "load.connections"),
        split(
            "!has(self.load.closedLoop) || !has(self.load.closedLoop.concurrency) || ",
            "load.closedLoop.concurrency",
        ),
        Rule::new(
            "spec.load.connectionLifetime",
            "",
            "has(self.requests) != has(self.duration)",
            "must have either requests or duration, such as requests: 100: set one of them",
        ),
        Rule::new(
            LOAD,
            "closedLoop",
            "self.type == 'ClosedLoop' || !has(self.closedLoop)",
            "must not be set for type OpenLoop: remove it, or set type to ClosedLoop",
        ),
        Rule::new(
            LOAD,
            "closedLoop.concurrency",
            "!has(self.closedLoop) || !has(self.closedLoop.concurrency) || \
             self.closedLoop.concurrency <= self.connections * self.pipeline",
            "is %s, and must be at most connections x pipeline, which is %s: more are never in flight; raise one of the two",
        )
        .showing(["self.closedLoop.concurrency", "self.connections * self.pipeline"]),
        Rule::new(
            LOAD,
            "pipelineMode",
            "self.pipelineMode != 'Batch' || self.type == 'ClosedLoop'",
            "Batch is only valid for type ClosedLoop, because an open loop sends requests when they are due: set Window",
        ),
        Rule::new(
            LOAD,
            "pipelineMode",
            "self.pipelineMode != 'Batch' || !has(self.closedLoop) || !has(self.closedLoop.concurrency)",
            "Batch is not supported with closedLoop.concurrency: remove one of them, or set Window",
        ),
        Rule::new(
            SPEC,
            "load.pipelineMode",
            "self.load.pipelineMode != 'Batch' || self.targets.all(target, !(target.type in ['Cluster', 'Pool']))",
            "Batch is only valid for type Standalone or Sentinel, because in a Cluster or Pool the request selects its \
             connection: set Window",
        ),
    ]
}

fn length() -> Vec<Rule> {
    vec![
        split("!has(self.load.requests) || ", "load.requests"),
        Rule::new(
            LOAD,
            "",
            concat!(
                "(has(self.duration) ? 1 : 0) + (has(self.requests) ? 1 : 0) + \
                 (has(self.requestsPerConnection) ? 1 : 0) + (",
                filled!("self.stages"),
                " ? 1 : 0) <= 1"
            ),
            "at most one of duration, requests, requestsPerConnection and stages may be set: keep one of%s%s%s%s",
        )
        .showing([
            "has(self.duration) ? ' duration' : ''",
            "has(self.requests) ? ' requests' : ''",
            "has(self.requestsPerConnection) ? ' requestsPerConnection' : ''",
            concat!(filled!("self.stages"), " ? ' stages' : ''"),
        ]),
        Rule::new(
            LOAD,
            "maxDuration",
            "!has(self.maxDuration) || has(self.requests) || has(self.requestsPerConnection)",
            "is only valid with requests or requestsPerConnection: remove it, or set requests instead of duration",
        ),
        Rule::new(
            LOAD,
            "warmupEnds",
            "self.warmupEnds == 'ByTime' || has(self.duration)",
            "WhenSettled requires load.duration: set it instead of requests, requestsPerConnection or stages, or set warmupEnds to \
             ByTime",
        ),
    ]
}

fn workload() -> Vec<Rule> {
    vec![
        Rule::new(
            WORKLOAD,
            "",
            concat!(
                "(",
                filled!("self.preset"),
                " ? 1 : 0) + (",
                filled!("self.operations"),
                " ? 1 : 0) + (has(self.trace) ? 1 : 0) == 1"
            ),
            "exactly one of operations, preset and trace must be set, such as preset: [set, get]",
        ),
        Rule::new(
            SPEC,
            "preload.mode",
            concat!("!", filled!("self.workload.preset"), " || self.preload.mode == 'None'"),
            "must be None with workload.preset, which preloads what each of its trials needs",
        ),
        Rule::new(
            "spec.workload.keys",
            "pattern.gaussian.mean",
            "!has(self.pattern.gaussian) || !has(self.pattern.gaussian.mean) || \
             (self.pattern.gaussian.mean >= self.start && self.pattern.gaussian.mean - self.start < self.count)",
            keys::no_key("%s", "%s", "%s"),
        )
        .showing(["self.pattern.gaussian.mean", "self.start", "self.start + self.count - 1"]),
        Rule::new(
            "spec.workload.keys",
            "pattern.gaussian.standardDeviation",
            "!has(self.pattern.gaussian) || !has(self.pattern.gaussian.standardDeviation) || \
             self.pattern.gaussian.standardDeviation <= self.count",
            keys::too_wide("%s", "%s"),
        )
        .showing(["self.pattern.gaussian.standardDeviation", "self.count"]),
        Rule::new(
            SPEC,
            "workload.keys.prefix",
            "self.cleanup.keys != 'DeletePrefix' || self.workload.keys.prefix != ''",
            keys::NO_PREFIX,
        ),
        split(
            "(self.workload.keys.pattern.type != 'Partitioned' && self.verify.mode != 'Values') || ",
            "workload.keys.count",
        ),
        Rule::new(
            SPEC,
            "load.pipeline",
            "self.workload.wait.replicas == 0 || self.load.pipeline == 1",
            "is %s, and must be 1 with workload.wait: WAIT blocks the requests behind it on its connection",
        )
        .showing(["self.load.pipeline"]),
        Rule::new(
            WORKLOAD,
            "onMiss",
            "self.onMiss == 'Ignore' || self.transaction.size == 0",
            "Fill is not supported with workload.transaction, whose replies arrive together: set it to Ignore, or \
             transaction.size to 0",
        ),
        Rule::new(
            "spec.workload.values.content",
            "compressibilityPercent",
            "self.type == 'Random' || self.compressibilityPercent == 0",
            "is only valid for type Random: remove it, or set type to Random",
        ),
    ]
}

fn pattern(at: &'static str) -> Vec<Rule> {
    let members: [(&str, &[&str], &str); 3] = [
        ("gaussian", &["Gaussian"], ""),
        ("zipf", &["Zipf"], "zipf: {exponent: \"0.99\"}"),
        ("hotSet", &["HotSet"], "hotSet: {requestsPercent: \"90\", keysPercent: \"10\"}"),
    ];
    let mut rules = union(at, "type", &members);
    rules.push(Rule::new(
        at,
        "perConnection",
        "!self.perConnection || self.type in ['Sequential', 'Partitioned']",
        "is only valid for type Sequential or Partitioned, which walk the keys: remove it, or set type to Sequential",
    ));
    rules
}

fn sizes() -> Vec<Rule> {
    const SIZE: &str = "spec.workload.values.size";
    let members: [(&str, &[&str], &str); 2] =
        [("fixed", &["Fixed"], "fixed: {bytes: 100}"), ("range", &["Range"], "range: {minBytes: 10, maxBytes: 1000}")];
    let mut rules = union(SIZE, "type", &members);
    let file = ("file", &["File"][..], "file: {configMapRef: {name: products, key: values.txt}}");
    rules.extend(union("spec.workload.values.content", "type", &[file]));
    rules.push(Rule::new(
        "spec.workload.values",
        "size",
        "self.content.type != 'File' || (self.size.type == 'Fixed' && has(self.size.fixed) && self.size.fixed.bytes == 100)",
        "must not be set with content.type File, whose lines have lengths of their own: remove it",
    ));
    rules.extend([
        Rule::new(
            SIZE,
            "weighted",
            concat!("self.type == 'Weighted' || !", filled!("self.weighted")),
            "is only valid for type Weighted: remove it, or set type to Weighted",
        ),
        Rule::new(
            SIZE,
            "weighted",
            concat!("self.type != 'Weighted' || ", filled!("self.weighted")),
            "must be set for type Weighted, such as weighted: [{bytes: 100, weight: 9}, {bytes: 10000, weight: 1}]",
        ),
        Rule::new(
            SIZE,
            "range.maxBytes",
            "!has(self.range) || self.range.minBytes <= self.range.maxBytes",
            "is %s, and must be at least minBytes, which is %s",
        )
        .showing(["self.range.maxBytes", "self.range.minBytes"]),
    ]);
    rules
}

/// Rules of `verify`. Those for mode Values also apply to mode Replies if commands count, which only Rust can see.
fn verified() -> Vec<Rule> {
    const LEAST: u32 = Verify::STAMP_BYTES;
    const MOST: u64 = Verify::KEYS_PER_SHARD;
    let too_small = [("fixed", "bytes"), ("range", "minBytes")].map(|(member, bytes)| {
        let size = format!("self.workload.values.size.{member}");
        let bytes = format!("{size}.{bytes}");
        Rule::new(
            SPEC,
            bytes.replace("self.", ""),
            format!("self.verify.mode != 'Values' || !has({size}) || {bytes} >= {LEAST}"),
            format!("is %s, and must be at least {LEAST} with verify.mode Values: these bytes identify the write"),
        )
        .showing([&bytes])
    });
    let unsupported = [
        ("transaction.size", "== 0", "0"),
        ("wait.replicas", "== 0", "0"),
        ("onMiss", "== 'Ignore'", "Ignore"),
        ("mix", "== 'Random'", "Random"),
    ];
    let unsupported = unsupported.map(|(field, is_unset, unset)| {
        Rule::new(
            SPEC,
            format!("workload.{field}"),
            format!("self.verify.mode == 'None' || self.workload.{field} {is_unset}"),
            format!("is not supported with verify.mode %s: set it to {unset}, or verify.mode to None"),
        )
        .showing(["self.verify.mode"])
    });
    let others = [
        Rule::new(
            SPEC,
            "workload.values.size.weighted",
            format!(
                "self.verify.mode != 'Values' || !has(self.workload.values.size.weighted) || \
                 self.workload.values.size.weighted.all(size, size.bytes >= {LEAST})"
            ),
            format!(
                "has an entry of %s bytes, and all must have at least {LEAST} with verify.mode Values: these identify the write"
            ),
        )
        .showing([&format!("self.workload.values.size.weighted.filter(size, size.bytes < {LEAST})[0].bytes")]),
        Rule::new(
            SPEC,
            "targets",
            "self.verify.mode == 'None' || \
             self.targets.all(target, !has(target.cluster) || target.cluster.readFrom == 'Primary')",
            "cluster.readFrom must be Primary with verify.mode %s, because a replica may lag behind; or set verify.mode to None",
        )
        .showing(["self.verify.mode"]),
        Rule::new(
            SPEC,
            "load.pipelineMode",
            "self.verify.mode != 'Values' || self.load.pipelineMode != 'Batch'",
            verify::one_write("Values"),
        ),
        Rule::new(
            SPEC,
            "workload.values.content.type",
            "self.verify.mode != 'Values' || self.workload.values.content.type != 'File'",
            "must not be File with verify.mode Values, which writes values of its own: set it to Random, or verify.mode to Replies",
        ),
        Rule::new(
            SPEC,
            "workload.keys.count",
            format!("self.verify.mode != 'Values' || self.workload.keys.count <= {MOST} * self.shards.count"),
            verify::too_many_keys("%s", "%s", "Values"),
        )
        .showing(["self.workload.keys.count", &format!("{MOST} * self.shards.count")]),
    ];
    too_small.into_iter().chain(unsupported).chain(others).collect()
}

fn trials() -> Vec<Rule> {
    let presets = concat!("(", filled!("self.workload.preset"), " ? self.workload.preset.size() : 1)");
    let of_sweep =
        |index: u8| format!("(has(self.sweep) && self.sweep.size() > {index} ? self.sweep[{index}].values.size() : 1)");
    let cells = [of_sweep(0), of_sweep(1), of_sweep(2)].join(" * ");
    let subjects =
        "(has(self.load.clients) && self.load.clients.size() > 1 ? self.load.clients.size() : self.targets.size())";
    let trials = format!("self.repeats.count * {subjects} * {presets} * {cells}");
    let fields = "self.sweep.map(entry, 1 + (has(entry.with) ? entry.with.size() : 0)).sum()";
    let same_length = "other.values.size() == self.values.size()";
    vec![
        Rule::new(
            "spec.sweep.[]",
            "with",
            format!("!has(self.with) || self.with.all(other, {same_length})"),
            "must each have %s values, one for each of the first field, because they change together; one has %s: add or \
             remove values",
        )
        .showing([
            "self.values.size()",
            &format!("self.with.filter(other, !({same_length}))[0].values.size()"),
        ]),
        Rule::new(
            SPEC,
            "sweep",
            format!("!has(self.sweep) || {fields} <= {MOST_SWEPT}"),
            format!("sweeps %s fields, those of with included, the maximum is {MOST_SWEPT}: remove some"),
        )
        .showing([fields]),
        Rule::new(
            SPEC,
            "",
            format!("{trials} <= {MOST_TRIALS}"),
            format!(
                "sweep x targets or clients x workload.preset x repeats.count make %s trials, the maximum is {MOST_TRIALS}: remove \
                 values, or lower repeats.count"
            ),
        )
        .showing([&trials]),
    ]
}

fn clients() -> Vec<Rule> {
    let at = "spec.load.clients.[]";
    let members: [(&str, &[&str], &str); 3] = [
        ("redisRs", &["RedisRs"], ""),
        ("smartBatching", &["SmartBatching"], ""),
        ("driver", &["Driver"], "driver: go-redis"),
    ];
    let mut rules = union(at, "type", &members);
    rules.push(Rule::new(
        at,
        "pool.sharing",
        "self.pool.type == 'RoundRobin' || self.pool.sharing == 'Shared'",
        "is only valid for pool.type RoundRobin, because other pools are always exclusive: remove it",
    ));
    rules
}

fn comparison() -> Vec<Rule> {
    vec![
        Rule::new(
            SPEC,
            "comparison",
            format!("(self.targets.size() == 1 && {ONE_CLIENT}) || has(self.comparison)"),
            "must be set with several targets or clients, such as comparison: {baseline: NAME}; or remove all but one",
        ),
        Rule::new(
            SPEC,
            "comparison",
            "!has(self.comparison) || has(self.comparison.baseline) != has(self.comparison.benchmark)",
            "must have either baseline, the name of a target or client, or benchmark, the name of a finished benchmark",
        ),
        Rule::new(
            SPEC,
            "comparison.baseline",
            format!(
                "self.targets.size() > 1 || !{ONE_CLIENT} || !has(self.comparison) || !has(self.comparison.baseline)"
            ),
            "requires at least two targets or clients: add some, or remove comparison",
        ),
        Rule::new(
            SPEC,
            "comparison.baseline",
            format!("!has(self.comparison) || !has(self.comparison.baseline) || {SUBJECTS}.exists(name, name == self.comparison.baseline)"),
            "must be the name of what is compared, one of %s",
        )
        .showing([SUBJECTS]),
        Rule::new(
            SPEC,
            "load.clients",
            format!("self.targets.size() == 1 || {ONE_CLIENT}"),
            "has several clients, and targets has several entries: compare either, and keep one of the other",
        ),
        Rule::new(
            SPEC,
            "comparison.benchmark",
            format!(
                "!has(self.comparison) || !has(self.comparison.benchmark) || (self.targets.size() == 1 && {ONE_CLIENT})"
            ),
            "requires a single target and client: remove the others, or set comparison.baseline instead",
        ),
        Rule::new(
            SPEC,
            "repeats.count",
            format!("!has(self.comparison) || self.repeats.count >= {FEWEST_PAIRS}"),
            format!(
                "is %s, and must be at least {FEWEST_PAIRS} with comparison: it needs {FEWEST_PAIRS} trials of each target"
            ),
        )
        .showing(["self.repeats.count"]),
    ]
}

fn search() -> Vec<Rule> {
    let alone = [
        (
            "load.type",
            "self.load.type == 'OpenLoop'",
            "must be OpenLoop with search, because a closed loop has no target rate",
        ),
        (
            "load.openLoop.rate",
            "!has(self.load.openLoop) || !has(self.load.openLoop.rate)",
            "must not be set with search, which sets the rate: remove it",
        ),
        (
            "load.stages",
            concat!("!", filled!("self.load.stages")),
            "must not be set with search, which sets the rate: remove one of them",
        ),
        (
            "load.requests",
            "!has(self.load.requests)",
            "must not be set with search, whose steps last for a time: set load.duration for longer steps",
        ),
        (
            "load.requestsPerConnection",
            "!has(self.load.requestsPerConnection)",
            "must not be set with search, whose steps last for a time: set load.duration for longer steps",
        ),
        (
            "thresholds",
            concat!("!", filled!("self.thresholds")),
            "must not be set with search, which tries rates that fail: set search.objective instead",
        ),
        (
            "comparison.benchmark",
            "!has(self.comparison) || !has(self.comparison.benchmark)",
            "must not be set with search: compare the targets in one benchmark, with comparison.baseline",
        ),
        (
            "comparison.metric",
            "!has(self.comparison) || self.comparison.metric == 'Throughput'",
            "must be Throughput with search, which compares the rates found: other metrics are those of different rates",
        ),
    ];
    let alone = alone.map(|(field, condition, message)| {
        Rule::new(SPEC, field, format!("!has(self.search) || {condition}"), message)
    });
    let members: [(&str, &[&str], &str); 4] = [
        ("quantile", &["ResponseTime"], "\"0.99\""),
        ("max", &["ResponseTime"], "2ms"),
        ("maxBasisPoints", &["ErrorRate"], "10"),
        ("minBasisPoints", &["AchievedRate"], "9990"),
    ];
    let rate = Rule::new(
        "spec.search.rate",
        "max",
        "self.min <= self.max",
        "is %s, and must be at least search.rate.min, which is %s",
    )
    .showing(["self.max", "self.min"]);
    alone.into_iter().chain(union("spec.search.objective", "metric", &members)).chain([rate]).collect()
}

fn thresholds() -> Vec<Rule> {
    const THRESHOLD: &str = "spec.thresholds.[]";
    let members: [(&str, &[&str], &str); 4] = [
        ("quantile", &["ResponseTime", "ServiceTime"], "\"0.99\""),
        ("max", &["ResponseTime", "ServiceTime"], "2ms"),
        ("maxBasisPoints", &["ErrorRate"], "1"),
        ("minPerSecond", &["Throughput"], "10000"),
    ];
    let mut rules = union(THRESHOLD, "metric", &members);
    rules.extend([
        Rule::new(
            THRESHOLD,
            "operation",
            "!self.eachNode || !has(self.operation)",
            "is not supported with eachNode: remove one of the two",
        ),
        Rule::new(
            THRESHOLD,
            "metric",
            "!self.eachNode || self.metric != 'ResponseTime'",
            "ResponseTime is not supported with eachNode, because a node's part begins when the request is sent: set \
             ServiceTime",
        ),
    ]);
    rules
}
