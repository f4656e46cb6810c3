//! Rules of `workload` and of key patterns.

use super::super::super::keys;
use super::super::forms::{split, union, unsupported};
use super::super::rule::{Rule, SPEC};

const WORKLOAD: &str = "spec.workload";

pub(super) fn all() -> Vec<Rule> {
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
        // Its tests preload what each needs, and have keys of their own.
        unsupported(
            "workload.preset",
            filled!("self.workload.preset"),
            "does not support",
            &[
                ("preload.mode other than None", "self.preload.mode != 'None'"),
                ("preload.data", filled!("self.preload.data")),
                ("workload.keys.file", "has(self.workload.keys.file)"),
            ],
            "change these, or replace it by operations",
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
        turns(
            "keys.pattern.type",
            "self.keys.pattern.type != 'Partitioned' || self.keys.pattern.perConnection",
            "Partitioned is",
        ),
        turns(
            "operations",
            "self.operations.all(operation, !has(operation.keys) || !has(operation.keys.pattern) || \
             operation.keys.pattern.type != 'Partitioned' || operation.keys.pattern.perConnection)",
            "have keys.pattern.type Partitioned, which is",
        ),
        Rule::new(
            "spec.workload.values.content",
            "compressibilityPercent",
            "self.type == 'Random' || self.compressibilityPercent == 0",
            "is only valid for type Random: remove it, or set type to Random",
        ),
    ]
}

/// A rule of operations that are sent in turns.
fn turns(field: &str, condition: &str, what: &str) -> Rule {
    let condition =
        format!("self.mix != 'Ratio' || !has(self.operations) || self.operations.size() < 2 || {condition}");
    let message = format!(
        "{what} not supported with workload.mix Ratio, where each operation walks all keys: set it to Sequential, perConnection \
         to true, or mix to Random"
    );
    Rule::new(WORKLOAD, field, condition, message)
}

pub(super) fn pattern(at: &'static str) -> Vec<Rule> {
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
