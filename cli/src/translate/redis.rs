//! redis-benchmark and valkey-benchmark.

use redisbench_benchmark::api::preset::DIGITS;
use serde_json::json;

use super::command::{self, Names, Sequence};
use super::given::Given;
use super::tables::Part;
use crate::draft::Draft;
use crate::flags::{REQUESTS_OF_TESTS, preset_names};
use crate::manifest::Problem;

const RANDOM: &str = "__rand_int__";
/// valkey-benchmark's numbers that are equal within a command.
const ORDINALS: [&str; 9] = ["1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th"];
/// Tests of valkey-benchmark that are not presets.
const NO_PRESETS: [&str; 3] = ["mget", "function_load", "fcall"];

/// Makes of the parts what they are together, and writes out the tool's defaults.
pub fn finish(given: &Given, draft: &mut Draft) -> Result<(), Problem> {
    given.target()?.apply(draft)?;
    given.set_threads(draft)?;
    read_from(given, draft)?;
    let rate: Option<u64> = given.number(Part::Rate)?.filter(|rate| *rate > 0);
    draft.set("load/type", if rate.is_some() { "OpenLoop" } else { "ClosedLoop" });
    draft.set_if("load/openLoop/rate", rate);
    let mut sequence = command::sequence(&given.command);
    let all = sequence.len();
    sequence.retain(|entry| !command::delimits_transaction(&entry.words[0]));
    let in_transactions = sequence.len() < all;
    // All commands of a sequence count as one for -P.
    let weights = sequence.iter().fold(0_u32, |sum, entry| sum.saturating_add(entry.weight));
    let together = if in_transactions { 1 } else { weights.max(1) };
    let pipeline = given.number::<u32>(Part::Pipeline)?.unwrap_or(1).saturating_mul(together);
    if pipeline > 1 {
        draft.set("load/pipeline", pipeline);
        if rate.is_none() && !given.has(Part::Cluster) {
            draft.set("load/pipelineMode", "Batch");
        } else {
            draft.remark(
                "No counterpart of the batches of -P in a cluster or at a rate: as many requests are in flight, but \
                 none waits for the others",
            );
        }
    }
    length(given, draft)?;
    draft.set_default("load/warmup", "0s");
    if given.value(Part::KeepAlive) == Some("0") {
        // It connects again once the requests of a pipeline are answered.
        draft.set("load/connectionLifetime/requests", pipeline);
    }
    let keys: u64 = given.number(Part::Keys)?.unwrap_or(1).max(1);
    draft.set("workload/keys/count", keys);
    draft.set("workload/values/size/fixed/bytes", given.number::<u32>(Part::ValueBytes)?.unwrap_or(3));
    if given.has(Part::User) && !given.has(Part::Password) {
        draft.remark("--user: no effect without -a");
    }
    if given.command.is_empty() {
        return tests(given, draft);
    }
    if in_transactions {
        command::set_transaction(sequence.len(), given.has(Part::Cluster), draft);
    }
    commands(given, &sequence, keys, draft);
    Ok(())
}

fn read_from(given: &Given, draft: &mut Draft) -> Result<(), Problem> {
    let from = match given.value(Part::ReadFrom) {
        None => return Ok(()),
        Some(_) if !given.has(Part::Cluster) => {
            draft.remark("--rfr: no effect without --cluster");
            return Ok(());
        }
        Some("no") => "Primary",
        Some("yes") => "Replica",
        Some("all") => {
            draft.remark("No counterpart of --rfr all: PreferReplica reads from a primary only without a replica");
            "PreferReplica"
        }
        Some(_) => return Err(given.wrong(Part::ReadFrom, "no, yes or all")),
    };
    draft.set("targets/0/cluster/readFrom", from);
    Ok(())
}

fn length(given: &Given, draft: &mut Draft) -> Result<(), Problem> {
    let duration: Option<u64> = given.number(Part::Duration)?;
    let requests: Option<u64> = given.number(Part::Requests)?;
    if given.has(Part::Endless) {
        draft.remark("-l: runs until it is aborted, as one load; with several tests, give each a length");
    } else if let Some(seconds) = duration.filter(|seconds| *seconds > 0) {
        draft.set("load/duration", format!("{seconds}s"));
    } else {
        draft.set("load/requests", requests.unwrap_or(REQUESTS_OF_TESTS));
    }
    Ok(())
}

fn tests(given: &Given, draft: &mut Draft) -> Result<(), Problem> {
    let asked: Vec<String> = match given.value(Part::Tests) {
        Some(names) => names.split(',').map(str::to_owned).collect(),
        None => std::iter::once("ping".to_owned()).chain(preset_names::all().skip(1)).collect(),
    };
    let (without, asked): (Vec<_>, Vec<_>) = asked.into_iter().partition(|name| NO_PRESETS.contains(&name.as_str()));
    for name in without {
        let message = format!("No counterpart of the test {name}: write its command into spec.workload.operations");
        draft.remarks.push(message);
    }
    if asked.is_empty() {
        return Err(given.wrong(Part::Tests, "at least one test with a counterpart, such as get"));
    }
    let (presets, remarks) = preset_names::presets(&asked);
    draft.set("workload/preset", presets);
    draft.remarks.extend(remarks);
    Ok(())
}

fn commands(given: &Given, sequence: &[Sequence], keys: u64, draft: &mut Draft) {
    if given.has(Part::Tests) {
        draft.remark("-t: ignored, because there is a command");
    }
    let (mut names, mut operations, mut prefixes) = (Names::default(), Vec::new(), Vec::new());
    for entry in sequence {
        let (words, prefix) = placeholders(&entry.words, keys, given.has(Part::Cluster), draft);
        let text = command::quoted(&words);
        operations.push(command::operation(&names.of(&text), entry.weight, &text));
        prefixes.push(prefix);
    }
    let first = prefixes.iter().flatten().next().cloned();
    for (operation, prefix) in operations.iter_mut().zip(&prefixes) {
        if prefix.is_some() && *prefix != first {
            operation["keys"] = json!({"prefix": prefix});
        }
    }
    if let Some(prefix) = first {
        draft.set("workload/keys/prefix", prefix);
        draft.set("workload/keys/width", DIGITS);
    }
    if operations.len() > 1 {
        draft.set("workload/mix", "Ratio");
    }
    draft.set("workload/operations", operations);
}

/// Replaces placeholders. The first argument is the key if it ends with a random number: returns its prefix.
fn placeholders(words: &[String], keys: u64, cluster: bool, draft: &mut Draft) -> (Vec<String>, Option<String>) {
    let number = format!("__integer:{:0DIGITS$}:{:0DIGITS$}__", 0, keys.saturating_sub(1));
    let mut words: Vec<String> = words.to_vec();
    let mut prefix = None;
    if let Some(key) = words.get_mut(1)
        && let Some(before) = key.strip_suffix(RANDOM).filter(|before| !before.contains(RANDOM))
    {
        // It only chooses a node there.
        prefix = Some(if cluster { before.replace("{tag}", "") } else { before.to_owned() });
        "__key__".clone_into(key);
    }
    for word in &mut words {
        *word = word.replace(RANDOM, &number);
        for ordinal in ORDINALS {
            let name = format!("__rand_{ordinal}__");
            if word.contains(&name) {
                *word = word.replace(&name, &number);
                draft.remark(format!(
                    "{name}: each occurrence draws its own number; __key__ is the same throughout a command"
                ));
            }
        }
        if let Some((before, field)) = word.split_once("__field:") {
            let behind = field.split_once("__").map_or("", |(_, behind)| behind);
            draft.remark(format!(
                "No counterpart of {word}: __data__ takes its place, and can be a column of the file: spec.workload.values.content.file"
            ));
            *word = format!("{before}__data__{behind}");
        }
    }
    (words, prefix)
}
