//! Rules of one form for several fields.

use std::fmt;

use super::rule::{Rule, SPEC};

/// Reports a number that is split over more shards than it has.
pub(in crate::api) fn each_shard(count: impl fmt::Display, shards: impl fmt::Display) -> String {
    format!("is {count}, and must be at least shards.count, which is {shards}: every shard needs one")
}

/// Members of a union by the value of its `kind`: name, values that it is for, and an example if these require it.
pub(super) fn union(at: &'static str, kind: &str, members: &[(&str, &[&str], &str)]) -> Vec<Rule> {
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
pub(super) fn split(unless: &str, field: &'static str) -> Rule {
    let count = format!("self.{field}");
    let condition = format!("{unless}{count} >= self.shards.count");
    Rule::new(SPEC, field, condition, each_shard("%s", "%s")).showing([&count, "self.shards.count"])
}

/// CEL that lists the names whose CEL is true. At least one must be true. The API server cannot bound the cost of `join`.
pub(super) fn listed(names: &[(&str, &str)]) -> String {
    let parts: Vec<_> = names.iter().map(|(name, is)| format!("({is} ? ', {name}' : '')")).collect();
    format!("({}).substring(2)", parts.join(" + "))
}

/// Refuses features, each with the CEL of its use, where `given` is true of the spec. The message lists those in use between `what`, such as
/// "does not support", and `fix`. One rule for all of them, because the size of a definition is limited.
pub(super) fn unsupported(field: &str, given: &str, what: &str, features: &[(&str, &str)], fix: &str) -> Rule {
    let used = features.iter().map(|(_, used)| *used).collect::<Vec<_>>().join(" || ");
    Rule::new(SPEC, field, format!("!({given}) || !({used})"), format!("{what} %s: {fix}")).showing([&listed(features)])
}
