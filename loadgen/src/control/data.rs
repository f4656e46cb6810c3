//! Values from a file, which no plan carries.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use redisbench_wire::plan::{Lines, ShardPlan, ValueContent};

/// The name of the file of values.
const VALUES: &str = "values";

const ABSENT: &str =
    "the ConfigMap or its key did not exist when the shard started: create it, then the benchmark again";

/// `plan` with the lines of the file in `directory`, if it has values from one. Fails with a message that names the field.
pub(super) fn with_lines(plan: ShardPlan, directory: &Path) -> Result<ShardPlan, String> {
    if plan.workload.values.content != ValueContent::Lines {
        return Ok(plan);
    }
    let lines = read(&directory.join(VALUES))
        .map_err(|problem| format!("spec.workload.values.content.file.configMapRef: {problem}"))?;
    Ok(plan.with(|plan| plan.workload.values.lines = Some(lines)))
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
    Lines::of(text).ok_or_else(|| "the value of the key is empty: write a value on each line".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::plan;

    #[test]
    fn lines_are_read_from_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut plan = plan();
        assert_eq!(with_lines(plan.clone().of_shard(1), directory.path()), Ok(plan.clone().of_shard(1)));
        plan.workload.values.content = ValueContent::Lines;
        let read = || with_lines(plan.clone().of_shard(1), directory.path());
        let write = |text: &[u8]| std::fs::write(directory.path().join(VALUES), text).unwrap();
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
}
