//! Rules across fields, in CEL, for the API server. [`super::validate`] implements the same rules for the command line.

use serde_json::{Value, json};

/// Rule and its position in the schema.
pub(super) struct Rule {
    /// Path of properties below the root's, separated by `.`; empty for the root. `[]` steps into a list's items.
    pub at: &'static str,
    condition: &'static str,
    message: &'static str,
    /// CEL that creates the message; older clients show the plain one.
    expression: Option<&'static str>,
    /// Property that the message refers to, below `at`.
    field: Option<&'static str>,
}

impl Rule {
    pub(super) fn to_schema(&self) -> Value {
        let mut rule = json!({"rule": self.condition, "message": self.message});
        if let Some(expression) = self.expression {
            rule["messageExpression"] = expression.into();
        }
        if let Some(field) = self.field {
            rule["fieldPath"] = field.into();
        }
        rule
    }
}

/// Maximum length of a benchmark's name: the names of its Job, Secret and pods begin with it.
pub const NAME_LENGTH: usize = 46;

/// Number of trials of a spec, in CEL.
macro_rules! trials {
    () => {
        "self.repeats.count * self.targets.size() \
         * (has(self.workload.preset) && self.workload.preset.size() > 0 ? self.workload.preset.size() : 1) \
         * (has(self.sweep) && self.sweep.size() > 0 ? self.sweep[0].values.size() : 1) \
         * (has(self.sweep) && self.sweep.size() > 1 ? self.sweep[1].values.size() : 1) \
         * (has(self.sweep) && self.sweep.size() > 2 ? self.sweep[2].values.size() : 1)"
    };
}

/// The first characters of the load's commands, in CEL. The cost of a regular expression is its length times that of the text: with whole
/// commands, a spec within all other bounds could exceed the API server's budget for a rule. The names of a command and its subcommand are
/// at the beginning; validation checks the whole.
macro_rules! beginnings {
    () => {
        "self.workload.operations.map(operation, operation.command.trim())\
         .map(command, command.size() > 64 ? command.substring(0, 64) : command)"
    };
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        at: "spec.measurement",
        condition: "self.percentiles.all(percentile, self.percentiles.exists_one(other, other == percentile))",
        message: "percentiles: one is listed twice: remove one",
        expression: None,
        field: Some(".percentiles"),
    },
    Rule {
        at: "",
        condition: "self.metadata.name.size() <= 46",
        message: "metadata.name may have at most 46 characters: the names of pods begin with it",
        expression: Some(
            "'metadata.name has %d characters, and may have at most 46: the names of pods begin with it'\
             .format([self.metadata.name.size()])",
        ),
        field: None,
    },
    Rule {
        at: "",
        condition: "!self.metadata.name.contains('.')",
        message: "metadata.name may have no dots: the host names of pods begin with it",
        expression: None,
        field: None,
    },
    Rule {
        at: "",
        condition: "!has(oldSelf.spec.abort) || !oldSelf.spec.abort || (has(self.spec.abort) && self.spec.abort)",
        message: "spec.abort cannot be unset: create another benchmark",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec",
        condition: "self.load.connections >= self.shards.count",
        message: "load.connections must be at least shards.count: every shard needs one",
        expression: Some(
            "'load.connections is %d, and must be at least shards.count, which is %d: every shard needs one'\
             .format([self.load.connections, self.shards.count])",
        ),
        field: Some(".load"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.load.requests) || self.load.requests >= self.shards.count",
        message: "load.requests must be at least shards.count: every shard needs one",
        expression: Some(
            "'load.requests is %d, and must be at least shards.count, which is %d: every shard needs one'\
             .format([self.load.requests, self.shards.count])",
        ),
        field: Some(".load"),
    },
    Rule {
        at: "spec.targets.[]",
        condition: "self.type != 'Cluster' || self.database == 0",
        message: "database must be 0 for type Cluster, which has no other",
        expression: None,
        field: Some(".database"),
    },
    Rule {
        at: "spec.targets.[]",
        condition: "self.type != 'Standalone' || self.endpoints.size() == 1",
        message: "endpoints must have exactly one entry for type Standalone: only one can be loaded",
        expression: None,
        field: Some(".endpoints"),
    },
    Rule {
        at: "spec.targets.[]",
        condition: "self.type == 'Cluster' || !has(self.cluster)",
        message: "cluster is only valid for type Cluster: remove it, or set type to Cluster",
        expression: None,
        field: Some(".cluster"),
    },
    Rule {
        at: "spec.targets.[]",
        condition: "self.type != 'Sentinel' || has(self.sentinel)",
        message: "sentinel must be set for type Sentinel, such as sentinel: {masterName: mymaster}",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.targets.[]",
        condition: "self.type == 'Sentinel' || !has(self.sentinel)",
        message: "sentinel is only valid for type Sentinel: remove it, or set type to Sentinel",
        expression: None,
        field: Some(".sentinel"),
    },
    Rule {
        at: "spec.targets.[].sentinel.transport",
        condition: "self.type != 'TLS' || has(self.tls)",
        message: "tls must be set for type TLS, such as tls: {}",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.targets.[].sentinel.transport",
        condition: "self.type == 'TLS' || !has(self.tls)",
        message: "tls is only valid for type TLS: remove it, or set type to TLS",
        expression: None,
        field: Some(".tls"),
    },
    Rule {
        at: "spec.targets.[].sentinel.transport.tls",
        condition: "!self.insecureSkipVerify || !has(self.caSecretRef)",
        message: "caSecretRef must not be set with insecureSkipVerify, which accepts any certificate: remove one of them",
        expression: None,
        field: Some(".caSecretRef"),
    },
    Rule {
        at: "spec.targets.[].tls",
        condition: "!self.insecureSkipVerify || !has(self.caSecretRef)",
        message: "caSecretRef must not be set with insecureSkipVerify, which accepts any certificate: remove one of them",
        expression: None,
        field: Some(".caSecretRef"),
    },
    Rule {
        at: "spec",
        condition: "self.workload.keys.pattern.type != 'Partitioned' || self.workload.keys.count >= self.shards.count",
        message: "workload.keys.count must be at least shards.count for pattern Partitioned: every shard needs one",
        expression: None,
        field: Some(".workload"),
    },
    Rule {
        at: "spec.workload",
        condition: "(has(self.preset) && self.preset.size() > 0) != (has(self.operations) && self.operations.size() > 0)",
        message: "exactly one of operations and preset must be set, such as preset: [set, get]",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec",
        condition: "!has(self.workload.preset) || self.workload.preset.size() == 0 || self.preload.mode == 'None'",
        message: "preload.mode must be None with workload.preset, which preloads what each of its trials needs",
        expression: None,
        field: Some(".preload"),
    },
    Rule {
        at: "spec",
        condition: concat!(trials!(), " <= 250"),
        message: "repeats.count, targets, sweep and workload.preset make more than 250 trials: remove values, or lower repeats.count",
        expression: Some(concat!(
            "'repeats.count, targets, sweep and workload.preset make %d trials, the maximum is 250: remove values, or lower \
             repeats.count'.format([",
            trials!(),
            "])"
        )),
        field: Some(".sweep"),
    },
    Rule {
        at: "spec",
        condition: "self.targets.size() == 1 || has(self.comparison)",
        message: "comparison must be set with several targets, such as comparison: {baseline: NAME}, or remove all but one",
        expression: None,
        field: Some(".targets"),
    },
    Rule {
        at: "spec",
        condition: "self.targets.size() > 1 || !has(self.comparison) || !has(self.comparison.baseline)",
        message: "comparison.baseline requires at least two targets: add some, or remove comparison",
        expression: None,
        field: Some(".comparison"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.comparison) || !has(self.comparison.baseline) || \
                    self.targets.exists(target, target.name == self.comparison.baseline)",
        message: "comparison.baseline must be the name of a target",
        expression: None,
        field: Some(".comparison"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.comparison) || has(self.comparison.baseline) != has(self.comparison.benchmark)",
        message: "comparison must have either baseline, the name of a target, or benchmark, the name of a finished benchmark",
        expression: None,
        field: Some(".comparison"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.comparison) || !has(self.comparison.benchmark) || self.targets.size() == 1",
        message: "comparison.benchmark requires a single target: remove the others, or set comparison.baseline instead",
        expression: None,
        field: Some(".comparison"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.comparison) || self.repeats.count >= 5",
        message: "repeats.count must be at least 5 with comparison: it needs 5 trials of each target",
        expression: None,
        field: Some(".repeats"),
    },
    Rule {
        at: "spec.workload.keys",
        condition: "!has(self.pattern.gaussian) || !has(self.pattern.gaussian.mean) || \
                    (self.pattern.gaussian.mean >= self.start && self.pattern.gaussian.mean - self.start < self.count)",
        message: "pattern.gaussian.mean must be the number of a key: start to start + count - 1",
        expression: None,
        field: Some(".pattern"),
    },
    Rule {
        at: "spec.workload.keys",
        condition: "!has(self.pattern.gaussian) || !has(self.pattern.gaussian.standardDeviation) || \
                    self.pattern.gaussian.standardDeviation <= self.count",
        message: "pattern.gaussian.standardDeviation must be at most count: more is nearly Uniform",
        expression: None,
        field: Some(".pattern"),
    },
    Rule {
        at: "spec",
        condition: "self.cleanup.keys != 'DeletePrefix' || self.workload.keys.prefix != ''",
        message: "workload.keys.prefix must not be empty with cleanup.keys DeletePrefix: set one that no other client uses, \
                  or cleanup.keys to Keep",
        expression: None,
        field: Some(".workload"),
    },
    Rule {
        at: "spec",
        condition: concat!(
            "self.safety.allowDestructive || !has(self.workload.operations) || !",
            beginnings!(),
            ".exists(command, command.matches(\
                    r'(?i)^[\\x22\\x27]?(flush(all|db)|swapdb|keys|migrate|restore(-asking)?|shutdown|debug|(bg)?save|\
                    bgrewriteaof|(replica|slave)of|failover|module|pf(debug|selftest))([\\s\\x22\\x27]|$)'))"
        ),
        message: "workload.operations: a command deletes data of other clients, changes the server or blocks it: remove \
                  it, or set safety.allowDestructive to true",
        expression: None,
        field: Some(".workload"),
    },
    Rule {
        at: "spec",
        condition: concat!(
            "self.safety.allowDestructive || !has(self.workload.operations) || !",
            beginnings!(),
            ".exists(command, command.matches(\
                    r'(?i)^[\\x22\\x27]?(config[\\x22\\x27]?\\s+[\\x22\\x27]?(set|rewrite|resetstat)|(script|function)[\\x22\\x27]?\\s+\
                    [\\x22\\x27]?(flush|kill|debug|delete|restore)|client[\\x22\\x27]?\\s+[\\x22\\x27]?(kill|pause))'))"
        ),
        message: "workload.operations: a command deletes data of other clients, changes the server or blocks it: remove \
                  it, or set safety.allowDestructive to true",
        expression: None,
        field: Some(".workload"),
    },
    Rule {
        at: "spec",
        condition: concat!(
            "self.load.pipeline == 1 || !has(self.workload.operations) || !",
            beginnings!(),
            ".exists(command, command.matches(\
                    r'(?i)^[\\x22\\x27]?(b[lr]pop|bl(move|mpop)|brpoplpush|bzpop(min|max)|bzmpop|wait(aof)?)([\\s\\x22\\x27]|$)'))"
        ),
        message: "workload.operations: a command blocks the requests behind it on its connection: set load.pipeline to 1",
        expression: None,
        field: Some(".workload"),
    },
    Rule {
        at: "spec",
        condition: "self.workload.wait.replicas == 0 || self.load.pipeline == 1",
        message: "load.pipeline must be 1 with workload.wait: WAIT blocks the requests behind it on its connection",
        expression: None,
        field: Some(".load"),
    },
    Rule {
        at: "spec",
        condition: "self.verify.mode != 'Values' || self.load.pipelineMode != 'Batch'",
        message: "load.pipelineMode must be Window with verify.mode Values: a key has one write in flight at a time",
        expression: None,
        field: Some(".load"),
    },
    Rule {
        at: "spec.workload",
        condition: "self.onMiss == 'Ignore' || self.transaction.size == 0",
        message: "onMiss Fill is not supported with transaction: set it to Ignore, or transaction.size to 0",
        expression: None,
        field: Some(".onMiss"),
    },
    Rule {
        at: "spec",
        condition: "self.verify.mode != 'Values' || (self.workload.keys.count >= self.shards.count && \
                    self.workload.keys.count <= 8000000 * self.shards.count)",
        message: "workload.keys.count must be 1 to 8000000 per shard with verify.mode Values: a shard keeps the state of each \
                  of its keys",
        expression: None,
        field: Some(".workload"),
    },
    Rule {
        at: "spec",
        condition: "self.verify.mode != 'Values' || ((!has(self.workload.values.size.fixed) || \
                    self.workload.values.size.fixed.bytes >= 24) && (!has(self.workload.values.size.range) || \
                    self.workload.values.size.range.minBytes >= 24) && (!has(self.workload.values.size.weighted) || \
                    self.workload.values.size.weighted.all(size, size.bytes >= 24)))",
        message: "workload.values.size must be at least 24 bytes with verify.mode Values: they identify the write",
        expression: None,
        field: Some(".workload"),
    },
    Rule {
        at: "spec.workload.values.size",
        condition: "self.type != 'Fixed' || has(self.fixed)",
        message: "fixed must be set for type Fixed, such as fixed: {bytes: 100}",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.workload.values.size",
        condition: "self.type == 'Fixed' || !has(self.fixed)",
        message: "fixed is only valid for type Fixed: remove it, or set type to Fixed",
        expression: None,
        field: Some(".fixed"),
    },
    Rule {
        at: "spec.workload.values.size",
        condition: "self.type != 'Range' || has(self.range)",
        message: "range must be set for type Range, such as range: {minBytes: 10, maxBytes: 1000}",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.workload.values.size",
        condition: "self.type == 'Range' || !has(self.range)",
        message: "range is only valid for type Range: remove it, or set type to Range",
        expression: None,
        field: Some(".range"),
    },
    Rule {
        at: "spec.workload.values.size",
        condition: "self.type != 'Weighted' || (has(self.weighted) && self.weighted.size() > 0)",
        message: "weighted must be set for type Weighted, such as weighted: [{bytes: 100, weight: 9}, {bytes: 10000, weight: 1}]",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.workload.values.size",
        condition: "self.type == 'Weighted' || !(has(self.weighted) && self.weighted.size() > 0)",
        message: "weighted is only valid for type Weighted: remove it, or set type to Weighted",
        expression: None,
        field: Some(".weighted"),
    },
    Rule {
        at: "spec.workload.values.size",
        condition: "!has(self.range) || self.range.minBytes <= self.range.maxBytes",
        message: "range.maxBytes must be at least range.minBytes",
        expression: None,
        field: Some(".range"),
    },
    Rule {
        at: "spec.workload.values.content",
        condition: "self.type == 'Random' || self.compressibilityPercent == 0",
        message: "compressibilityPercent is only valid for type Random: remove it, or set type to Random",
        expression: None,
        field: Some(".compressibilityPercent"),
    },
    Rule {
        at: "spec",
        condition: "self.load.type != 'OpenLoop' || has(self.load.openLoop) || has(self.search) || \
                    (has(self.load.stages) && self.load.stages.size() > 0)",
        message: "load.openLoop must be set for type OpenLoop, such as openLoop: {rate: 10000}",
        expression: None,
        field: Some(".load"),
    },
    Rule {
        at: "spec.load",
        condition: "self.type == 'OpenLoop' || !has(self.openLoop)",
        message: "openLoop must not be set for type ClosedLoop: remove it, or set type to OpenLoop",
        expression: None,
        field: Some(".openLoop"),
    },
    Rule {
        at: "spec.load",
        condition: "(has(self.duration) ? 1 : 0) + (has(self.requests) ? 1 : 0) + \
                    (has(self.requestsPerConnection) ? 1 : 0) + \
                    (has(self.stages) && self.stages.size() > 0 ? 1 : 0) <= 1",
        message: "at most one of duration, requests, requestsPerConnection and stages may be set: stages last for the \
                  sum of their durations",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec",
        condition: "!has(self.load.openLoop) || has(self.load.openLoop.rate) || has(self.search) || \
                    (has(self.load.stages) && self.load.stages.size() > 0)",
        message: "load.openLoop.rate must be set, such as 10000, or stages",
        expression: None,
        field: Some(".load"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.search) || (self.load.type == 'OpenLoop' && \
                    (!has(self.load.openLoop) || !has(self.load.openLoop.rate)) && \
                    (!has(self.load.stages) || self.load.stages.size() == 0))",
        message: "search sets the rate: load.type must be OpenLoop, and neither openLoop.rate nor stages may be set",
        expression: None,
        field: Some(".load"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.search) || (!has(self.load.requests) && !has(self.load.requestsPerConnection))",
        message: "load.requests must not be set with search, whose steps last for a time: set load.duration for longer steps",
        expression: None,
        field: Some(".load"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.search) || !has(self.workload.preset) || self.workload.preset.size() == 0",
        message: "workload.preset must not be set with search, which measures a single load: set operations instead",
        expression: None,
        field: Some(".workload"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.search) || !has(self.thresholds) || self.thresholds.size() == 0",
        message: "thresholds must not be set with search, which tries rates that fail: set search.objective instead",
        expression: None,
        field: Some(".thresholds"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.search) || self.repeats.count == 1",
        message: "repeats.count must be 1 with search, which confirms its result itself: remove repeats or search",
        expression: None,
        field: Some(".repeats"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.search) || !has(self.comparison)",
        message: "comparison must not be set with search: create a benchmark with a search for each target, or remove one \
                  of them",
        expression: None,
        field: Some(".comparison"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.search) || !has(self.sweep) || self.sweep.size() == 0",
        message: "sweep must not be set with search: create a benchmark with a search for each value, or remove one of them",
        expression: None,
        field: Some(".sweep"),
    },
    Rule {
        at: "spec.search.rate",
        condition: "self.min <= self.max",
        message: "max must be at least min",
        expression: None,
        field: Some(".max"),
    },
    Rule {
        at: "spec.search.objective",
        condition: "(self.metric == 'ResponseTime') == has(self.quantile) && (self.metric == 'ResponseTime') == has(self.max)",
        message: "quantile and max must be set for metric ResponseTime, such as quantile: \"0.99\" and max: 2ms, and for no other",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.search.objective",
        condition: "(self.metric == 'ErrorRate') == has(self.maxBasisPoints)",
        message: "maxBasisPoints must be set for metric ErrorRate, such as 10, and for no other",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.search.objective",
        condition: "(self.metric == 'AchievedRate') == has(self.minBasisPoints)",
        message: "minBasisPoints must be set for metric AchievedRate, such as 9990, and for no other",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.load",
        condition: "!has(self.openLoop) || !has(self.openLoop.rate) || !has(self.stages) || self.stages.size() == 0",
        message: "openLoop.rate must not be set with stages, which set the rate: remove one of them",
        expression: None,
        field: Some(".openLoop"),
    },
    Rule {
        at: "spec.load",
        condition: "self.type == 'OpenLoop' || !has(self.stages) || self.stages.size() == 0",
        message: "stages must not be set for type ClosedLoop: remove them, or set type to OpenLoop",
        expression: None,
        field: Some(".stages"),
    },
    Rule {
        at: "spec.load",
        condition: "!has(self.stages) || self.stages.all(stage, !has(stage.name) || \
                    self.stages.exists_one(other, has(other.name) && other.name == stage.name))",
        message: "stages: two entries have the same name: rename one",
        expression: None,
        field: Some(".stages"),
    },
    Rule {
        at: "spec.load",
        condition: "self.warmupEnds == 'ByTime' || has(self.duration)",
        message: "warmupEnds: WhenSettled requires duration: set it instead of requests, requestsPerConnection or stages, or \
                  set warmupEnds to ByTime",
        expression: None,
        field: Some(".warmupEnds"),
    },
    Rule {
        at: "spec.load",
        condition: "!has(self.maxDuration) || has(self.requests) || has(self.requestsPerConnection)",
        message: "maxDuration is only valid with requests or requestsPerConnection: remove it, or set requests instead of duration",
        expression: None,
        field: Some(".maxDuration"),
    },
    Rule {
        at: "spec.load",
        condition: "self.type == 'ClosedLoop' || !has(self.closedLoop)",
        message: "closedLoop must not be set for type OpenLoop: remove it, or set type to ClosedLoop",
        expression: None,
        field: Some(".closedLoop"),
    },
    Rule {
        at: "spec.load",
        condition: "self.pipelineMode != 'Batch' || self.type == 'ClosedLoop'",
        message: "pipelineMode Batch is only valid for type ClosedLoop: an open loop sends requests when they are due",
        expression: None,
        field: Some(".pipelineMode"),
    },
    Rule {
        at: "spec.load",
        condition: "self.pipelineMode != 'Batch' || !has(self.closedLoop) || !has(self.closedLoop.concurrency)",
        message: "pipelineMode Batch is not supported with closedLoop.concurrency: remove one of them, or set Window",
        expression: None,
        field: Some(".pipelineMode"),
    },
    Rule {
        at: "spec",
        condition: "self.load.pipelineMode != 'Batch' || self.targets.all(target, target.type != 'Cluster')",
        message: "load.pipelineMode Batch is only valid for type Standalone or Sentinel: in a Cluster the key selects the \
                  connection of a request; set Window",
        expression: None,
        field: Some(".load"),
    },
    Rule {
        at: "spec.load",
        condition: "!has(self.closedLoop) || !has(self.closedLoop.concurrency) || \
                    self.closedLoop.concurrency <= self.connections * self.pipeline",
        message: "closedLoop.concurrency must be at most connections x pipeline: more are never in flight",
        expression: None,
        field: Some(".closedLoop"),
    },
    Rule {
        at: "spec",
        condition: "!has(self.load.closedLoop) || !has(self.load.closedLoop.concurrency) || \
                    self.load.closedLoop.concurrency >= self.shards.count",
        message: "load.closedLoop.concurrency must be at least shards.count: every shard needs one",
        expression: None,
        field: Some(".load"),
    },
    Rule {
        at: "spec.thresholds.[]",
        condition: "self.metric in ['ResponseTime', 'ServiceTime'] ? has(self.quantile) && has(self.max) : \
                    !has(self.quantile) && !has(self.max)",
        message: "quantile and max must be set for metrics ResponseTime and ServiceTime, such as quantile: \"0.99\" and \
                  max: 2ms, and for no other",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.thresholds.[]",
        condition: "(self.metric == 'ErrorRate') == has(self.maxBasisPoints)",
        message: "maxBasisPoints must be set for metric ErrorRate, such as maxBasisPoints: 1, and for no other",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.thresholds.[]",
        condition: "(self.metric == 'Throughput') == has(self.minPerSecond)",
        message: "minPerSecond must be set for metric Throughput, such as minPerSecond: 10000, and for no other",
        expression: None,
        field: None,
    },
    Rule {
        at: "spec.thresholds.[]",
        condition: "!self.eachNode || (!has(self.operation) && self.metric != 'ResponseTime')",
        message: "eachNode is not supported with operation, nor with metric ResponseTime, because a node's part begins when \
                  the request is sent: remove operation, and set ServiceTime",
        expression: None,
        field: Some(".eachNode"),
    },
];

/// Positions of [`PATTERN_RULES`].
pub(super) const PATTERNS: [&str; 2] = ["spec.workload.keys.pattern", "spec.workload.operations.[].keys.pattern"];

/// Rules for a key pattern.
pub(super) const PATTERN_RULES: &[Rule] = &[
    Rule {
        at: "",
        condition: "self.type == 'Gaussian' || !has(self.gaussian)",
        message: "gaussian is only valid for type Gaussian: remove it, or set type to Gaussian",
        expression: None,
        field: Some(".gaussian"),
    },
    Rule {
        at: "",
        condition: "self.type == 'Zipf' || !has(self.zipf)",
        message: "zipf is only valid for type Zipf: remove it, or set type to Zipf",
        expression: None,
        field: Some(".zipf"),
    },
    Rule {
        at: "",
        condition: "self.type != 'Zipf' || has(self.zipf)",
        message: "zipf must be set for type Zipf, such as zipf: {exponent: \"0.99\"}",
        expression: None,
        field: None,
    },
    Rule {
        at: "",
        condition: "self.type == 'HotSet' || !has(self.hotSet)",
        message: "hotSet is only valid for type HotSet: remove it, or set type to HotSet",
        expression: None,
        field: Some(".hotSet"),
    },
    Rule {
        at: "",
        condition: "self.type != 'HotSet' || has(self.hotSet)",
        message: "hotSet must be set for type HotSet, such as hotSet: {requestsPercent: \"90\", keysPercent: \"10\"}",
        expression: None,
        field: None,
    },
];

/// Fields that can change after the run has begun.
const MUTABLE: [&str; 2] = ["suspend", "abort"];

/// The rule that makes the spec immutable once `status.runId` exists, generated from its fields. A rule per field would miss fields that
/// are added or removed, and optional chaining exceeds the cost budget.
pub(super) fn immutability<'a>(fields: impl Iterator<Item = &'a str>) -> Value {
    let same: Vec<String> = fields
        .filter(|field| !MUTABLE.contains(field))
        .map(|f| {
            format!(
                "has(self.spec.{f}) == has(oldSelf.spec.{f}) && (!has(self.spec.{f}) || self.spec.{f} == oldSelf.spec.{f})"
            )
        })
        .collect();
    json!({
        "rule": format!("!has(oldSelf.status) || !has(oldSelf.status.runId) || ({})", same.join(" && ")),
        "message": "spec is fixed once the run has begun, but for suspend and abort: create another benchmark",
    })
}
