//! Values, keys and recordings from files, which no plan carries.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redisbench_wire::plan::{KeyFile, Keys, Lines, Recorded, ShardPlan, ValueContent, Workload};
use tracing::info;

use crate::workload;

const ABSENT: &str =
    "the ConfigMap or its key did not exist when the shard started: create it, then the benchmark again";

/// `plan` with the lines of the files in `directory`, if it has values or keys from one, or a recording. Fails with a message that names
/// the field.
pub(super) fn with_files(mut plan: ShardPlan, directory: &Path) -> Result<ShardPlan, String> {
    if plan.trace.is_some() {
        return with_trace(&plan, directory).map_err(|problem| format!("spec.workload.trace.configMapRef: {problem}"));
    }
    let of_file = |name: &str, field: &str| {
        lines(&directory.join(name)).map_err(|problem| format!("spec.workload.{field}.configMapRef: {problem}"))
    };
    if plan.workload.values.content == ValueContent::Lines {
        let lines = of_file(Lines::VALUES_FILE, "values.content.file")?;
        plan = plan.with(|plan| plan.workload_mut().values.lines = Some(lines));
    }
    if plan.workload.key_file.is_some() {
        let lines = of_file(Lines::KEYS_FILE, "keys.file")?;
        check_keys(&plan.workload, &lines)?;
        plan = plan.with(|plan| plan.workload_mut().key_file = Some(KeyFile { lines: Some(lines) }));
    }
    Ok(plan)
}

/// Checks that every key has a line.
fn check_keys(workload: &Workload, lines: &Lines) -> Result<(), String> {
    if let Some(number) = lines.first_empty() {
        return Err(format!("spec.workload.keys.file: line {} is empty, and is no key: remove it", number + 1));
    }
    let own = workload.operations.iter().enumerate();
    let own =
        own.filter_map(|(index, operation)| Some((format!("operations[{index}].keys"), operation.keys.as_ref()?)));
    let all = own.chain([("keys".to_owned(), &workload.keys)]);
    let present = lines.count();
    for (field, Keys { start, count, .. }) in all {
        let behind = present.saturating_sub(*start);
        if behind == 0 {
            return Err(format!("spec.workload.{field}.start: is {start}, and the file has {present} lines: lower it"));
        }
        if behind < *count {
            return Err(format!(
                "spec.workload.{field}.count: is {count} with start {start}, and the file has {present} lines: set it to {behind}"
            ));
        }
    }
    Ok(())
}

fn lines(path: &Path) -> Result<Lines, String> {
    Lines::of(read(path, Lines::BYTES)?)
        .ok_or_else(|| "the value of the key is empty: write at least one line".to_owned())
}

fn with_trace(plan: &ShardPlan, directory: &Path) -> Result<ShardPlan, String> {
    let text = read(&directory.join(Recorded::FILE), Recorded::BYTES)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_micros();
    let recorded = Recorded::of_monitor(&text, u64::try_from(now).unwrap_or(u64::MAX))?;
    info!(commands = recorded.commands().len(), left_out = recorded.left_out(), "read the trace");
    let plan = plan.with(|plan| plan.replay(recorded));
    let workload = workload::Workload::of_trial(&plan).map_err(|error| error.to_string())?;
    let (shard, shards) = (u64::from(plan.shard), u64::from(plan.shards.max(1)));
    if !workload.lanes().iter().any(|lane| lane % shards == shard) {
        return Err(format!(
            "no key of the trace falls to shard {shard} of {shards}: lower spec.shards.count, or record more keys"
        ));
    }
    Ok(plan)
}

/// A file of at most `most` bytes.
fn read(path: &Path, most: u32) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ABSENT.to_owned(),
        _ => format!("{} cannot be read: {error}", path.display()),
    };
    let mut text = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(u64::from(most) + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() > most as usize {
        return Err("the value of the key has more than 1 MiB: remove lines".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::{Trace, TrialPlan};

    use super::*;
    use crate::sample::plan;

    /// Reads `text` as the file `name` of `plan`.
    fn read_as(plan: &ShardPlan, name: &str, text: Option<&[u8]>) -> Result<ShardPlan, String> {
        let directory = tempfile::tempdir().unwrap();
        if let Some(text) = text {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        with_files(plan.clone(), directory.path())
    }

    fn refused(plan: &ShardPlan, name: &str, text: Option<&[u8]>, parts: [&str; 2]) {
        let message = read_as(plan, name, text).unwrap_err();
        assert!(message.starts_with(parts[0]) && message.contains(parts[1]), "{message}");
    }

    #[test]
    fn lines_are_read_from_the_file() {
        let mut plan = plan();
        let none = plan.clone().of_shard(1);
        assert_eq!(read_as(&none, Lines::VALUES_FILE, None), Ok(none));
        plan.workload_mut().values.content = ValueContent::Lines;
        let plan = plan.of_shard(1);
        let refused = |text: Option<&[u8]>, part: &str| {
            let parts = ["spec.workload.values.content.file.configMapRef: ", part];
            refused(&plan, Lines::VALUES_FILE, text, parts);
        };
        refused(None, "did not exist");
        refused(Some(b""), "is empty");
        refused(Some(&vec![b'x'; Lines::BYTES as usize + 1]), "more than 1 MiB");
        let read = read_as(&plan, Lines::VALUES_FILE, Some(b"one\ntwo\n")).unwrap();
        assert_eq!(read.workload.values.lines, Lines::of(b"one\ntwo\n".to_vec()));
    }

    #[test]
    fn a_recording_brings_its_operations() {
        let mut plan = plan();
        plan.trace = Some(Trace { repeats: false, recorded: None });
        plan.workload_mut().operations.clear();
        let text: String = (0..100).map(|key| format!("1.000000 [0 a:1] \"get\" \"key:{key}\"\n")).collect();
        let read = read_as(&plan.clone().of_shard(2), Recorded::FILE, Some(text.as_bytes())).unwrap();
        assert_eq!((read.shard, read.workload.operations[0].name.as_str()), (2, "get"));
        assert_eq!(read.trace.as_ref().unwrap().recorded.as_ref().unwrap().commands().len(), 100);
        let refused = |text: Option<&[u8]>, part: &str| {
            let mut shards = (0..3).map(|shard| plan.clone().of_shard(shard));
            let plan = shards.find(|plan| read_as(plan, Recorded::FILE, text).is_err()).unwrap();
            refused(&plan, Recorded::FILE, text, ["spec.workload.trace.configMapRef: ", part]);
        };
        refused(None, "did not exist");
        refused(Some(b"SET a b\n"), "line 1 is not in the format of MONITOR");
        refused(Some(&vec![b'\n'; Recorded::BYTES as usize + 1]), "more than 1 MiB");
        refused(Some(b"1.000000 [0 a:1] \"get\" \"only\"\n"), "no key of the trace falls to shard");
    }

    #[test]
    fn every_key_has_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let mut plan = plan();
        let workload = plan.workload_mut();
        (workload.key_file, workload.keys.start, workload.keys.count) = (Some(KeyFile::default()), 1, 2);
        plan.workload_mut().operations[0].keys = Some(plan.workload.keys.clone());
        let read = |plan: &TrialPlan| with_files(plan.clone().of_shard(1), directory.path());
        let write = |text: &[u8]| std::fs::write(directory.path().join(Lines::KEYS_FILE), text).unwrap();
        assert!(read(&plan).unwrap_err().starts_with("spec.workload.keys.file.configMapRef: the ConfigMap or its key"));
        write(b"user:1\n\nuser:3\n");
        assert_eq!(read(&plan).unwrap_err(), "spec.workload.keys.file: line 2 is empty, and is no key: remove it");
        write(b"user:1\nuser:2\nuser:3\n");
        let lines = read(&plan).unwrap().workload.key_file.as_ref().and_then(|file| file.lines.clone());
        assert_eq!(lines, Lines::of(b"user:1\nuser:2\nuser:3\n".to_vec()));
        plan.workload_mut().keys.count = 3;
        let refused = |field: &str| {
            format!("spec.workload.{field}.count: is 3 with start 1, and the file has 3 lines: set it to 2")
        };
        assert_eq!(read(&plan).unwrap_err(), refused("keys"));
        plan.workload_mut().operations[0].keys = Some(plan.workload.keys.clone());
        assert_eq!(read(&plan).unwrap_err(), refused("operations[0].keys"));
        plan.workload_mut().operations[0].keys.as_mut().unwrap().start = 3;
        let behind = "spec.workload.operations[0].keys.start: is 3, and the file has 3 lines: lower it";
        assert_eq!(read(&plan).unwrap_err(), behind);
    }
}
