//! Values and keys from files, which no plan carries.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use redisbench_wire::plan::{KeyFile, Keys, Lines, ShardPlan, ValueContent, Workload};

const ABSENT: &str =
    "the ConfigMap or its key did not exist when the shard started: create it, then the benchmark again";

/// `plan` with the lines of the files in `directory`, if it has values or keys from one. Fails with a message that names the field.
pub(super) fn with_lines(mut plan: ShardPlan, directory: &Path) -> Result<ShardPlan, String> {
    let of_file = |name: &str, field: &str| {
        read(&directory.join(name)).map_err(|problem| format!("spec.workload.{field}.configMapRef: {problem}"))
    };
    if plan.workload.values.content == ValueContent::Lines {
        let lines = of_file(Lines::VALUES_FILE, "values.content.file")?;
        plan = plan.with(|plan| plan.workload.values.lines = Some(lines));
    }
    if plan.workload.key_file.is_some() {
        let lines = of_file(Lines::KEYS_FILE, "keys.file")?;
        check_keys(&plan.workload, &lines)?;
        plan = plan.with(|plan| plan.workload.key_file = Some(KeyFile { lines: Some(lines) }));
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
    for (field, Keys { start, count, .. }) in all {
        if start.saturating_add(*count) > lines.count() {
            return Err(format!(
                "spec.workload.{field}.count: is {count} from line {start} on, and the file has {} lines: set it to {}",
                lines.count(),
                lines.count().saturating_sub(*start)
            ));
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Lines, String> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ABSENT.to_owned(),
        _ => format!("{} cannot be read: {error}", path.display()),
    };
    let mut text = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(u64::from(Lines::BYTES) + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() > Lines::BYTES as usize {
        return Err("the value of the key has more than 1 MiB: remove lines".to_owned());
    }
    Lines::of(text).ok_or_else(|| "the value of the key is empty: write a line for each".to_owned())
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::TrialPlan;

    use super::*;
    use crate::sample::plan;

    #[test]
    fn lines_are_read_from_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut plan = plan();
        assert_eq!(with_lines(plan.clone().of_shard(1), directory.path()), Ok(plan.clone().of_shard(1)));
        plan.workload.values.content = ValueContent::Lines;
        let read = || with_lines(plan.clone().of_shard(1), directory.path());
        let write = |text: &[u8]| std::fs::write(directory.path().join(Lines::VALUES_FILE), text).unwrap();
        let refused = |part: &str| {
            let message = read().unwrap_err();
            assert!(message.starts_with("spec.workload.values.content.file.configMapRef: "), "{message}");
            assert!(message.contains(part), "{message}");
        };
        refused("did not exist");
        write(b"");
        refused("is empty");
        write(&vec![b'x'; Lines::BYTES as usize + 1]);
        refused("more than 1 MiB");
        write(b"one\ntwo\n");
        assert_eq!(read().unwrap().workload.values.lines, Lines::of(b"one\ntwo\n".to_vec()));
    }

    #[test]
    fn every_key_has_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let mut plan = plan();
        (plan.workload.key_file, plan.workload.keys.start, plan.workload.keys.count) = (Some(KeyFile::default()), 1, 2);
        plan.workload.operations[0].keys = Some(plan.workload.keys.clone());
        let read = |plan: &TrialPlan| with_lines(plan.clone().of_shard(1), directory.path());
        let write = |text: &[u8]| std::fs::write(directory.path().join(Lines::KEYS_FILE), text).unwrap();
        assert!(read(&plan).unwrap_err().starts_with("spec.workload.keys.file.configMapRef: the ConfigMap or its key"));
        write(b"user:1\n\nuser:3\n");
        assert_eq!(read(&plan).unwrap_err(), "spec.workload.keys.file: line 2 is empty, and is no key: remove it");
        write(b"user:1\nuser:2\nuser:3\n");
        let lines = read(&plan).unwrap().workload.key_file.as_ref().and_then(|file| file.lines.clone());
        assert_eq!(lines, Lines::of(b"user:1\nuser:2\nuser:3\n".to_vec()));
        plan.workload.keys.count = 3;
        let refused = |field: &str| {
            format!("spec.workload.{field}.count: is 3 from line 1 on, and the file has 3 lines: set it to 2")
        };
        assert_eq!(read(&plan).unwrap_err(), refused("keys"));
        plan.workload.operations[0].keys = Some(plan.workload.keys.clone());
        assert_eq!(read(&plan).unwrap_err(), refused("operations[0].keys"));
    }
}
