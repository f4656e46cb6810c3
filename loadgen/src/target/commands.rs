//! Checks with COMMAND that the server knows the workload's commands, accepts their number of arguments, and that a load may use them.
//! Without permission for COMMAND, all pass.

mod flags;
mod reads;

use redis::Value;
use redisbench_wire::plan::{Operation, Part, TrialPlan};

use self::flags::has_flag;
use self::reads::reads;
use super::client::{Client, text};
use super::trouble::Trouble;

/// Commands flagged as blocking that block only with this word.
const BLOCKING_WITH: &[(&str, &str)] = &[("XREAD", "BLOCK"), ("XREADGROUP", "BLOCK")];

/// The most characters of a command in a message.
const SHOWN: usize = 60;

/// Checks all commands of the mix. Returns for each operation whether it only reads, or else a message on the first that cannot work. If
/// COMMAND is refused, all pass.
pub async fn check(client: &mut Client, plan: &TrialPlan) -> Result<Result<Vec<bool>, String>, Trouble> {
    let mut question = redis::cmd("COMMAND");
    question.arg("INFO");
    let names: Vec<String> = plan.workload.operations.iter().map(|operation| word(operation, 0)).collect();
    question.arg(&names);
    let answer = match client.ask(&question).await {
        Ok(answer) => answer,
        Err(Trouble::Refused(_)) => Value::Nil,
        Err(silent) => return Err(silent),
    };
    Ok(match judge(plan, &answer) {
        Some(problem) => Err(problem),
        None => {
            Ok(reads(&names, &answer).into_iter().zip(0..).map(|(reads, at)| reads && stays_alone(plan, at)).collect())
        }
    })
}

/// True if the operation sends nothing else that a replica could not answer.
fn stays_alone(plan: &TrialPlan, operation: u32) -> bool {
    let options = &plan.workload.options;
    options.transaction.is_none() && !options.fills.iter().any(|fill| fill.operation == operation)
}

/// The start of messages about an operation's command.
pub(super) fn field(plan: &TrialPlan, index: usize, operation: &Operation) -> String {
    if plan.trace.is_some() {
        return format!("spec.workload.trace: {}", operation.name);
    }
    let text = written(operation);
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("spec.workload.operations[{index}].command: {shown}{more}")
}

/// An argument in upper case; empty if it is not plain text.
fn word(operation: &Operation, at: usize) -> String {
    let literal = |part: &Part| if let Part::Literal(text) = part { Some(text.to_ascii_uppercase()) } else { None };
    operation.arguments.get(at).and_then(|parts| parts.iter().map(literal).collect()).unwrap_or_default()
}

/// The command as in the manifest, without quotes.
fn written(operation: &Operation) -> String {
    let part = |part: &Part| match part {
        Part::Literal(text) => text.clone(),
        Part::Key => "__key__".to_owned(),
        Part::NthKey(number) => format!("__key:{number}__"),
        Part::Data => "__data__".to_owned(),
        Part::Integer { least, most, .. } => format!("__integer:{least}:{most}__"),
        Part::Sequence => "__sequence__".to_owned(),
        Part::Score => "__score__".to_owned(),
    };
    let argument = |parts: &Vec<Part>| parts.iter().map(part).collect::<String>();
    operation.arguments.iter().map(argument).collect::<Vec<_>>().join(" ")
}

fn judge(plan: &TrialPlan, answer: &Value) -> Option<String> {
    let Value::Array(descriptions) = answer else { return None };
    plan.workload.operations.iter().enumerate().zip(descriptions).find_map(|((index, operation), description)| {
        let problem = judge_one(plan, operation, description)?;
        Some(format!("{}: {problem}", field(plan, index, operation)))
    })
}

/// The COMMAND INFO entry of a command or subcommand.
struct Description<'a> {
    name: String,
    fields: &'a [Value],
}

impl Description<'_> {
    fn has_flag(&self, wanted: &str) -> bool {
        has_flag(self.fields, wanted).unwrap_or(false)
    }
}

fn judge_one(plan: &TrialPlan, operation: &Operation, description: &Value) -> Option<String> {
    let name = word(operation, 0);
    let unknown = |name: &str| match plan.trace {
        None => format!("the server has no command {name}: correct it, or remove operation {}", operation.name),
        Some(_) => format!("the server has no command {name}: remove its lines"),
    };
    let Value::Array(fields) = description else { return Some(unknown(&name)) };
    let description = match subcommand(operation, &name, fields) {
        Ok(description) => description,
        Err(name) => return Some(unknown(&name)),
    };
    let Some(Value::Int(arity)) = description.fields.get(1) else { return None };
    let given = i64::try_from(operation.arguments.len()).unwrap_or(i64::MAX);
    // A negative arity is a minimum.
    let fits = if *arity < 0 { given >= -arity } else { given == *arity };
    let name = &description.name;
    if !fits {
        let least = if *arity < 0 { "at least " } else { "" };
        let wanted = arity.abs();
        return Some(format!("{name} takes {least}{wanted} arguments including its name, not {given}: correct it"));
    }
    if description.has_flag("admin") && !plan.workload.options.allow_destructive {
        return Some(format!(
            "the server flags {name} as admin, so it is refused: remove it, or set spec.safety.allowDestructive to true"
        ));
    }
    if plan.pipeline > 1 && description.has_flag("blocking") && waits(operation) {
        let depth = plan.pipeline;
        return Some(format!(
            "{name} blocks, and with load.pipeline {depth} also the requests behind it: set spec.load.pipeline to 1"
        ));
    }
    None
}

/// The entry of the subcommand, or of the command if it has none. Fails with the name of an unknown subcommand.
fn subcommand<'a>(operation: &Operation, name: &str, fields: &'a [Value]) -> Result<Description<'a>, String> {
    let whole = Description { name: name.to_owned(), fields };
    let Some(Value::Array(subcommands)) =
        fields.get(9).filter(|list| matches!(list, Value::Array(all) if !all.is_empty()))
    else {
        return Ok(whole);
    };
    let wanted = word(operation, 1);
    if wanted.is_empty() {
        return Ok(whole);
    }
    let full = format!("{name}|{wanted}");
    let found = subcommands.iter().find_map(|subcommand| match subcommand {
        Value::Array(fields) => {
            fields.first().and_then(text).filter(|name| name.eq_ignore_ascii_case(&full)).map(|_| fields.as_slice())
        }
        _ => None,
    });
    let name = format!("{name} {wanted}");
    match found {
        Some(fields) => Ok(Description { name, fields }),
        None => Err(name),
    }
}

fn waits(operation: &Operation) -> bool {
    let name = word(operation, 0);
    let option = BLOCKING_WITH.iter().find(|(command, _)| *command == name);
    option.is_none_or(|(_, option)| (1..operation.arguments.len()).any(|at| word(operation, at) == *option))
}

#[cfg(test)]
mod tests;
