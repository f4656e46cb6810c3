//! Validation of `spec.preload.data`, and the commands that write it.

use redisbench_wire::limits;
use redisbench_wire::plan::{self, KeyPattern, Part, PreloadStep};

use super::load;
use crate::api::preload::{DataType, PreloadDataSpec};
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;
use crate::api::values::check_ttl;
use crate::api::workload::PreloadMode;

/// Maximum length of a command that writes a key, in bytes.
const COMMAND_BYTES: u64 = 16 << 20;

/// The steps that write the data.
pub(super) fn check(
    spec: &RedisBenchmarkSpec,
    workload: &plan::Workload,
    problems: &mut Vec<Problem>,
) -> Vec<PreloadStep> {
    let mode = (spec.preload.mode != PreloadMode::None).then(|| Names::of(&[Part::Key], &workload.keys));
    let mut written: Vec<(String, Names)> = mode.into_iter().map(|names| ("preload.mode".to_owned(), names)).collect();
    let (mut steps, before) = (Vec::new(), problems.len());
    for (index, data) in spec.preload.data.iter().enumerate() {
        let field = format!("spec.preload.data[{index}]");
        let ttl = data.ttl.as_ref().map(|ttl| check_ttl(ttl, &format!("{field}.ttl"), problems));
        let (key, keys) = match keys_of(data, workload) {
            Ok(of) => of,
            Err((name, message)) => {
                problems.push(Problem::new(format!("{field}.operation"), name, message));
                continue;
            }
        };
        let names = Names::of(&key, &keys);
        if let Some((other, _)) = written.iter().find(|(_, others)| others.overlap(&names)) {
            let message = format!("writes keys that {other} writes: remove one, or give an operation keys of its own");
            problems.push(Problem::new(field.clone(), "", message));
        }
        let bytes = u64::from(workload.values.longest()).saturating_mul(data.elements.into());
        if matches!(data.kind, DataType::Hash | DataType::List) && bytes > COMMAND_BYTES {
            let message = format!(
                "makes {bytes} bytes of values in a key, more than {COMMAND_BYTES} in one command: lower it, or workload.values.size"
            );
            problems.push(Problem::new(format!("{field}.elements"), data.elements, message));
        }
        steps.extend(of_data(data, &key, &keys, ttl));
        written.push((format!("preload.data[{index}]"), names));
    }
    let commands = steps.iter().map(|step| step.keys.count.saturating_mul(step.rounds.into()));
    let commands = commands.fold(0, u64::saturating_add);
    if problems.len() == before {
        problems.extend(load::preload_rate(spec, commands, "commands of preload.data", "have fewer keys"));
    }
    steps
}

/// The names of the keys that an entry writes: numbers with text around them.
struct Names {
    before: String,
    after: String,
    numbers: std::ops::Range<u64>,
}

impl Names {
    fn of(key: &[Part], keys: &plan::Keys) -> Self {
        let at = key.iter().position(|part| *part == Part::Key).unwrap_or(key.len());
        let text = |parts: &[Part]| -> String {
            let literal = |part: &Part| if let Part::Literal(text) = part { text.clone() } else { String::new() };
            parts.iter().map(literal).collect()
        };
        let before = format!("{}{}", text(&key[..at]), keys.prefix);
        let numbers = keys.start..keys.start.saturating_add(keys.count);
        Self { before, after: text(&key[at..]), numbers }
    }

    /// True if both can name the same key. Zeros before a number are not regarded.
    fn overlap(&self, other: &Self) -> bool {
        (&self.before, &self.after) == (&other.before, &other.after)
            && self.numbers.start < other.numbers.end
            && other.numbers.start < self.numbers.end
    }
}

/// The argument that is the key, and the keys in it. Fails with the operation's name and a message.
fn keys_of(
    data: &PreloadDataSpec,
    workload: &plan::Workload,
) -> Result<(Vec<Part>, plan::Keys), (String, &'static str)> {
    let Some(name) = &data.operation else { return Ok((vec![Part::Key], workload.keys.clone())) };
    let fail = |message| Err((name.clone(), message));
    let Some(operation) = workload.operations.iter().find(|operation| operation.name == *name) else {
        return fail("is not in workload.operations: name one of them, or remove it");
    };
    let key = operation.arguments.iter().skip(1).find(|parts| parts.contains(&Part::Key));
    let Some(key) = key else {
        return fail("has no __key__ in its command: name another operation, or remove it");
    };
    if !key.iter().all(|part| matches!(part, Part::Key | Part::Literal(_))) {
        return fail("has keys with more than one number: name an operation whose key is __key__ with text around it");
    }
    Ok((key.clone(), operation.keys.as_ref().unwrap_or(&workload.keys).clone()))
}

/// Deletes the keys, writes them with their elements, and sets their expiry.
fn of_data(data: &PreloadDataSpec, key: &[Part], keys: &plan::Keys, ttl: Option<(i64, i64)>) -> Vec<PreloadStep> {
    let text = |text: &str| vec![Part::Literal(text.to_owned())];
    let keys = plan::Keys { pattern: KeyPattern::Sequential, ..keys.clone() };
    let step = |command: &str, arguments: Vec<Vec<Part>>, rounds, writes| {
        let arguments = [text(command), key.to_vec()].into_iter().chain(arguments).collect();
        PreloadStep { keys: keys.clone(), arguments, rounds, writes }
    };
    let expiry = ttl.map(|(least, most)| vec![Part::Integer { least, most, width: 0 }]);
    // Also specs that the schema refuses are judged, and must not make commands without end.
    let elements = data.elements.min(limits::ELEMENTS);
    let each = |argument: &dyn Fn(u32) -> Vec<Vec<Part>>| (0..elements).flat_map(argument).collect::<Vec<_>>();
    let write = match data.kind {
        DataType::String => {
            let expiry = expiry.into_iter().flat_map(|seconds| [text("EX"), seconds]);
            let arguments = std::iter::once(vec![Part::Data]).chain(expiry).collect();
            return vec![step("SET", arguments, 1, true)];
        }
        DataType::Hash => step("HSET", each(&|n| vec![text(&format!("field:{n}")), vec![Part::Data]]), 1, true),
        DataType::List => step("RPUSH", each(&|_| vec![vec![Part::Data]]), 1, true),
        DataType::Set => step("SADD", each(&|n| vec![text(&format!("element:{n}"))]), 1, true),
        DataType::SortedSet => {
            step("ZADD", each(&|n| vec![text(&n.to_string()), text(&format!("element:{n}"))]), 1, true)
        }
        // An entry takes a command of its own.
        DataType::Stream => step("XADD", vec![text("*"), text("data"), vec![Part::Data]], 1, true),
    };
    let more = (data.kind == DataType::Stream && elements > 1).then(|| PreloadStep {
        rounds: elements - 1,
        writes: false,
        ..write.clone()
    });
    let mut steps = vec![step("UNLINK", Vec::new(), 1, false), write];
    steps.extend(more);
    steps.extend(expiry.map(|seconds| step("EXPIRE", vec![seconds], 1, false)));
    steps
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::validate;
    use crate::sample;

    fn change(data: &Value) -> Value {
        json!({
            "workload": {
                "operations": [
                    {"name": "lrange", "command": "LRANGE list:__key__ 0 9", "keys": {"count": 7}},
                    {"name": "score", "command": "ZSCORE __key__ x"},
                    {"name": "odd", "command": "GET __key__:__integer:0:9__"},
                    {"name": "ping", "command": "PING"},
                    {"name": "same", "command": "HGETALL __key__", "keys": {"prefix": "list:a:", "count": 2}},
                ],
                "keys": {"prefix": "a:", "count": 5},
            },
            "preload": {"data": data},
        })
    }

    fn steps(data: &Value) -> Vec<PreloadStep> {
        assert_eq!(sample::problems(sample::object(), &change(data)), [""; 0]);
        let mut object = sample::object();
        redisbench_testkit::api_server::merge(&mut object["spec"], change(data));
        let benchmark = crate::api::read(&object).unwrap();
        validate(&benchmark.spec, "cart").unwrap().plan.preload_steps.clone()
    }

    /// Commands, with their keys' prefix and number, and how often.
    fn told(data: &Value) -> Vec<(String, u64, u32, bool)> {
        let text = |part: &Part| match part {
            Part::Literal(text) => text.clone(),
            Part::Integer { least, most, .. } => format!("{least}-{most}"),
            part => format!("{part:?}").to_lowercase(),
        };
        let command = |step: PreloadStep| {
            let arguments: Vec<String> =
                step.arguments.iter().map(|parts| parts.iter().map(text).collect::<String>()).collect();
            (arguments.join(" "), step.keys.count, step.rounds, step.writes)
        };
        steps(data).into_iter().map(command).collect()
    }

    #[test]
    fn each_type_has_its_commands() {
        let commands = |kind: &str, elements: u32| -> Vec<String> {
            let all = told(&json!([{"type": kind, "elements": elements, "ttl": {"min": "5s", "max": "9s"}}]));
            all.into_iter().map(|(command, ..)| command).collect()
        };
        assert_eq!(commands("String", 1), ["SET key data EX 5-9"]);
        for (kind, write) in [
            ("Hash", "HSET key field:0 data field:1 data"),
            ("List", "RPUSH key data data"),
            ("Set", "SADD key element:0 element:1"),
            ("SortedSet", "ZADD key 0 element:0 1 element:1"),
        ] {
            assert_eq!(commands(kind, 2), ["UNLINK key", write, "EXPIRE key 5-9"]);
        }
        let entry = "XADD key * data data".to_owned();
        let stream = told(&json!([{"type": "Stream", "elements": 4}]));
        let unlink = ("UNLINK key".to_owned(), 5, 1, false);
        assert_eq!(stream, [unlink, (entry.clone(), 5, 1, true), (entry, 5, 3, false)]);
    }

    #[test]
    fn no_number_of_elements_makes_a_long_command() {
        let keys = plan::TrialPlan::basic("redis:6379").workload.keys.clone();
        for kind in [DataType::Hash, DataType::List, DataType::Set, DataType::SortedSet, DataType::Stream] {
            let data = PreloadDataSpec { kind, operation: None, elements: u32::MAX, ttl: None };
            let steps = of_data(&data, &[Part::Key], &keys, None);
            assert!(steps.iter().all(|step| step.arguments.len() <= 2002 && step.rounds < 1000), "{kind:?}");
        }
    }

    #[test]
    fn keys_are_those_of_an_operation() {
        let of_operation =
            told(&json!([{"type": "List", "operation": "lrange"}, {"type": "Set", "operation": "score"}]));
        assert_eq!(
            of_operation.iter().map(|(command, keys, ..)| (command.as_str(), *keys)).collect::<Vec<_>>(),
            [("UNLINK list:key", 7), ("RPUSH list:key data", 7), ("UNLINK key", 5), ("SADD key element:0", 5)]
        );
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let found = |data: &Value| sample::problems(sample::object(), &change(data));
        for (data, problem) in [
            (json!([{"type": "Set", "operation": "no"}]), "data[0].operation: no: is not in workload.operations"),
            (json!([{"type": "Set", "operation": "ping"}]), "data[0].operation: ping: has no __key__ in its command"),
            (
                json!([{"type": "Set", "operation": "odd"}]),
                "data[0].operation: odd: has keys with more than one number",
            ),
            (
                json!([{"type": "Set"}, {"type": "List", "operation": "score"}]),
                "data[1]: writes keys that preload.data[0] writes",
            ),
            (
                json!([{"type": "List", "operation": "lrange"}, {"type": "Hash", "operation": "same"}]),
                "data[1]: writes keys that preload.data[0] writes",
            ),
            (json!([{"type": "Set", "ttl": {"min": "9s", "max": "5s"}}]), "data[0].ttl.max: 5s: must be at least min"),
        ] {
            let found = found(&data);
            assert!(found.len() == 1 && found[0].contains(problem), "{found:?}");
        }
        let mut both = change(&json!([{"type": "Hash"}]));
        both["preload"]["mode"] = "Always".into();
        let found = sample::problems(sample::object(), &both);
        assert!(found[0].contains("data[0]: writes keys that preload.mode writes"), "{found:?}");
        let mut long = change(&json!([{"type": "Hash", "elements": 1000}]));
        long["workload"]["values"] = json!({"size": {"type": "Fixed", "fixed": {"bytes": 20_000}}});
        let found = sample::problems(sample::object(), &long);
        assert!(found[0].contains("data[0].elements: 1000: makes 20000000 bytes of values in a key"), "{found:?}");
    }
}
