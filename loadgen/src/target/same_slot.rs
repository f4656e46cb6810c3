//! Checks that all keys of each command lie in one slot of a cluster. The server determines which arguments are keys.

use redis::Value;
use redisbench_wire::plan::{Operation, TrialPlan, WorkloadOptions};

use super::client::Client;
use super::commands;
use super::trouble::Trouble;
use crate::cluster::slot_of;
use crate::workload::Workload;

/// Requests checked per operation. Keys without a common hash tag differ soon.
const REQUESTS: usize = 4;

/// Longer commands are not sent for this check.
const LONGEST: usize = 16 << 10;

/// Checks some requests of every operation that may have several keys. Returns a message on the first that cannot work; `None` also if the
/// server refuses to answer.
pub async fn check(client: &mut Client, plan: &TrialPlan) -> Result<Option<String>, Trouble> {
    let mut bare = plan.clone();
    bare.workload_mut().options = WorkloadOptions::default();
    // Another check reports a workload that cannot be built.
    let Ok(workload) = Workload::of_trial(&bare) else { return Ok(None) };
    if workload.longest() > LONGEST {
        return Ok(None);
    }
    let mut questions = redis::pipe();
    let mut asked = Vec::new();
    for (index, operation) in plan.workload.operations.iter().enumerate().filter(|(_, one)| one.arguments.len() > 2) {
        let number = u16::try_from(index).unwrap_or_default();
        // A recording has the commands of all operations in one order.
        let recorded = (0..workload.lanes().len() as u64).filter(|k| workload.operation(*k) == number);
        let generated = if workload.has_lanes() { 0 } else { REQUESTS as u64 };
        for k in (0..generated).chain(recorded.take(REQUESTS)) {
            let command = workload.command(k, number);
            let question = questions.cmd("COMMAND").arg("GETKEYS");
            arguments(&command).for_each(|argument| {
                question.arg(argument);
            });
            asked.push((index, operation));
        }
    }
    let answers = client.ask_each(&questions).await?;
    Ok(asked
        .into_iter()
        .zip(answers)
        .find_map(|((index, operation), answer)| Some(message(plan, index, operation, &apart(&answer?)?))))
}

fn message(plan: &TrialPlan, index: usize, operation: &Operation, (first, other): &(String, String)) -> String {
    let field = commands::field(plan, index, operation);
    let within = if plan.workload.key_file.is_some() { "the lines of keys.file" } else { "keys.prefix" };
    match plan.trace {
        None => format!(
            "{field}: its keys {first} and {other} are in different slots, which a cluster refuses: give them a common \
             hash tag, such as {{rb}} in {within}"
        ),
        // The keys of a recording may be secret.
        Some(_) => format!(
            "{field}: the keys of a command are in different slots, which a cluster refuses: remove lines with such \
             commands"
        ),
    }
}

/// The first two keys in different slots.
fn apart(answer: &Value) -> Option<(String, String)> {
    let Value::Array(keys) = answer else { return None };
    let keys = keys.iter().filter_map(|key| if let Value::BulkString(key) = key { Some(key) } else { None });
    let mut keys = keys.map(|key| (slot_of(key), key));
    let (slot, first) = keys.next()?;
    let (_, other) = keys.find(|(other, _)| *other != slot)?;
    let shown = |key: &[u8]| String::from_utf8_lossy(key).chars().take(24).collect();
    Some((shown(first), shown(other)))
}

/// The arguments of an encoded command, including its name.
fn arguments(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line(command).map_or(&[][..], |(_, rest)| rest);
    std::iter::from_fn(move || {
        let (header, body) = line(rest)?;
        let length: usize = std::str::from_utf8(header.get(1..)?).ok()?.parse().ok()?;
        rest = body.get(length + 2..)?;
        body.get(..length)
    })
}

fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::{KeyFile, Trace};

    use super::*;
    use crate::resp::append_command;
    use crate::sample;

    #[test]
    fn arguments_are_read_back() {
        let mut command = Vec::new();
        append_command(&mut command, &[b"SET", b"a\r\nb", b""]);
        assert_eq!(arguments(&command).collect::<Vec<_>>(), [&b"SET"[..], b"a\r\nb", b""]);
    }

    #[test]
    fn keys_in_different_slots_are_named() {
        let keys = |keys: &[&str]| Value::Array(keys.iter().map(|key| Value::BulkString((*key).into())).collect());
        assert_eq!(apart(&keys(&["{a}1", "{a}2"])), None);
        assert_eq!(apart(&keys(&["a"])), None);
        assert_eq!(apart(&keys(&["a", "a", "b"])), Some(("a".to_owned(), "b".to_owned())));
    }

    #[test]
    fn the_hint_names_where_the_keys_come_from() {
        let mut plan = sample::plan();
        let keys = ("cart".to_owned(), "{rb}cart".to_owned());
        let told = |plan: &TrialPlan| message(plan, 0, &plan.workload.operations[0], &keys);
        assert!(told(&plan).ends_with("such as {rb} in keys.prefix"), "{}", told(&plan));
        plan.workload_mut().key_file = Some(KeyFile::default());
        assert!(told(&plan).ends_with("such as {rb} in the lines of keys.file"), "{}", told(&plan));
    }

    #[test]
    fn keys_of_a_recording_are_not_shown() {
        let mut plan = sample::plan();
        let keys = ("cart".to_owned(), "hunter2".to_owned());
        let told = |plan: &TrialPlan| message(plan, 0, &plan.workload.operations[0], &keys);
        assert!(told(&plan).contains("its keys cart and hunter2 are in different slots"), "{}", told(&plan));
        plan.trace = Some(Trace { repeats: false, recorded: None });
        let message = told(&plan);
        assert!(message.starts_with("spec.workload.trace: get: ") && !message.contains("hunter2"), "{message}");
    }
}
