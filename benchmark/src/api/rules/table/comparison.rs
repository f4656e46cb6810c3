//! Rules of `comparison`.

use super::super::super::comparison::FEWEST_PAIRS;
use super::super::rule::{Rule, SPEC};

/// CEL: nothing is compared by its client.
const ONE_CLIENT: &str = "(!has(self.load.clients) || self.load.clients.size() < 2)";

/// CEL for the names of what is compared.
const SUBJECTS: &str = "(has(self.load.clients) && self.load.clients.size() > 1 ? \
                        self.load.clients.map(client, client.name) : self.targets.map(target, target.name))";

pub(super) fn all() -> Vec<Rule> {
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
            "is %s, and must be the name of what is compared, one of %s",
        )
        .showing(["self.comparison.baseline", &format!("'%s'.format([{SUBJECTS}])")]),
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
