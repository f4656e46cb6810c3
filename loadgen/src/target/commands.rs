//! Whether the server knows the workload's commands and takes their number of arguments.

use redis::Value;
use redisbench_wire::plan::{Operation, Part, Workload};

use super::client::{Client, Trouble};

/// Asks for all commands of the mix. Says which operation cannot work; nothing if the server does not tell, as when
/// the user may not run COMMAND.
pub async fn check(client: &mut Client, workload: &Workload) -> Result<Option<String>, Trouble> {
    let mut question = redis::cmd("COMMAND");
    question.arg("INFO");
    let names: Vec<_> = workload.operations.iter().map(command).collect();
    question.arg(&names);
    match client.ask(&question).await {
        Ok(answer) => Ok(judge(&workload.operations, &names, &answer)),
        Err(Trouble::Refused(_)) => Ok(None),
        Err(silent) => Err(silent),
    }
}

/// The command's name, which the plan's check found to be literal.
fn command(operation: &Operation) -> String {
    let parts = operation.arguments.first().into_iter().flatten();
    parts.map(|part| if let Part::Literal(text) = part { text.as_str() } else { "" }).collect()
}

fn judge(operations: &[Operation], names: &[String], answer: &Value) -> Option<String> {
    let Value::Array(descriptions) = answer else { return None };
    operations.iter().zip(names).zip(descriptions).find_map(|((operation, name), description)| {
        let Value::Array(fields) = description else {
            return Some(format!("operation {}: the server knows no command {name}", operation.name));
        };
        let Some(Value::Int(arity)) = fields.get(1) else { return None };
        let given = i64::try_from(operation.arguments.len()).unwrap_or(i64::MAX);
        // A negative arity is the least that a command of any length takes.
        let fits = if *arity < 0 { given >= -arity } else { given == *arity };
        (!fits).then(|| {
            format!(
                "operation {}: {name} takes {}{} arguments with its name, not {given}",
                operation.name,
                if *arity < 0 { "at least " } else { "" },
                arity.abs()
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &str, description: Value) -> Option<String> {
        let argument = |word: &str| vec![if word == "K" { Part::Key } else { Part::Literal(word.into()) }];
        let operation =
            Operation { name: "op".into(), weight: 1, arguments: words.split(' ').map(argument).collect(), keys: None };
        let names = [command(&operation)];
        judge(&[operation], &names, &Value::Array(vec![description]))
    }

    fn arity(arity: i64) -> Value {
        Value::Array(vec![Value::BulkString("x".into()), Value::Int(arity)])
    }

    #[test]
    fn a_known_command_of_fitting_length_passes() {
        assert_eq!(told("GET K", arity(2)), None);
        assert_eq!(told("MSET K a K b", arity(-3)), None);
    }

    #[test]
    fn an_unknown_command_is_named() {
        assert_eq!(told("GTE K", Value::Nil).unwrap(), "operation op: the server knows no command GTE");
    }

    #[test]
    fn a_wrong_length_is_named() {
        assert_eq!(told("GET K K", arity(2)).unwrap(), "operation op: GET takes 2 arguments with its name, not 3");
        assert_eq!(
            told("SET K", arity(-3)).unwrap(),
            "operation op: SET takes at least 3 arguments with its name, not 2"
        );
    }

    #[test]
    fn an_answer_of_another_shape_says_nothing() {
        assert_eq!(judge(&[], &[], &Value::Okay), None);
        assert_eq!(told("GET K", Value::Array(vec![])), None);
    }
}
