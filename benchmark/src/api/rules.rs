//! Rules across fields, in CEL. The API server evaluates them at apply, as part of the definition. [`check`] evaluates the same rules for the
//! operator and the command line, with the same messages. `validate` checks the rest.
//!
//! No rule depends on what `kube-cel` does differently: it counts the bytes of a string, and 99 == 99.0 is false.

mod commands;
mod forms;
mod rule;
mod table;

use std::sync::LazyLock;

use kube_core::cel::{CompiledSchema, ValidationError, ValidationErrors, compile_schema, validate_compiled};
use serde_json::{Value, json};

pub(super) use forms::each_shard;
use rule::Rule;
pub use table::NAME_LENGTH;

use super::problem::Problem;

/// Fields that can change after the run has begun.
const MUTABLE: [&str; 2] = ["suspend", "abort"];

/// Rules for every evaluator.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(table::all);

/// [`RULES`], ready for [`check`].
static COMPILED: LazyLock<CompiledSchema> = LazyLock::new(|| {
    let mut schema = Value::Null;
    add(&mut schema, &RULES);
    compile_schema(&schema)
});

/// Problems of an object that the schema allows, as the API server reports them, in order of the fields.
pub(super) fn check(object: &Value) -> Vec<Problem> {
    let found = evaluate(&COMPILED, object, None).into_iter();
    let mut problems: Vec<_> = found.map(|error| Problem::new(error.field_path, "", error.message)).collect();
    problems.sort_by(|a, b| a.field.cmp(&b.field));
    problems
}

fn evaluate(rules: &CompiledSchema, object: &Value, old: Option<&Value>) -> Vec<ValidationError> {
    let mut found = validate_compiled(rules, object, old).err().map_or_else(Vec::new, ValidationErrors::into_vec);
    for error in &mut found {
        // The API server's paths do not begin with the dot of a `fieldPath` of the root.
        error.field_path = error.field_path.trim_start_matches('.').to_owned();
    }
    found
}

/// Adds the rules of a definition to the schema of an object whose spec has these fields, each with whether it is always set.
pub(super) fn define(schema: &mut Value, fields: &[(String, bool)]) {
    add(schema, &[immutability(fields)]);
    add(schema, &RULES);
    add(schema, &commands::all());
}

fn add(schema: &mut Value, rules: &[Rule]) {
    for rule in rules {
        let mut at = &mut *schema;
        for step in rule.at.split('.').filter(|step| !step.is_empty()) {
            at = if step == "[]" { &mut at["items"] } else { &mut at["properties"][step] };
        }
        let rules = &mut at["x-kubernetes-validations"];
        match rules.as_array_mut() {
            Some(rules) => rules.push(rule.to_schema()),
            None => *rules = json!([rule.to_schema()]),
        }
    }
}

/// The rule that makes the spec immutable once `status.runId` exists, generated from its fields. A rule per field would miss fields that
/// are added or removed, and optional chaining exceeds the cost budget.
fn immutability(fields: &[(String, bool)]) -> Rule {
    let fields = fields.iter().filter(|(field, _)| !MUTABLE.contains(&field.as_str()));
    let same: Vec<String> = fields
        .map(|(f, always)| {
            let same = format!("self.spec.{f} == oldSelf.spec.{f}");
            if *always {
                same
            } else {
                format!("has(self.spec.{f}) == has(oldSelf.spec.{f}) && (!has(self.spec.{f}) || {same})")
            }
        })
        .collect();
    let condition = format!("!has(oldSelf.status) || !has(oldSelf.status.runId) || ({})", same.join(" && "));
    let message = "is fixed once the run has begun, but for suspend and abort: create another benchmark";
    Rule::new("", "spec", condition, message)
}

#[cfg(test)]
mod tests;
