//! Commands that change nothing.

use redisbench_wire::plan::{self, Part};

/// Commands without the value of a key: servers do not flag them as `readonly`, or not all of their subcommands.
const ABOUT_NO_VALUE: &[&str] =
    &["CLUSTER", "COMMAND", "CONFIG", "ECHO", "INFO", "MEMORY", "OBJECT", "PING", "ROLE", "TIME", "XINFO"];

/// Returns whether a command is known to change nothing.
pub(super) fn only_reads(arguments: &[Vec<Part>]) -> bool {
    match arguments.first().map(Vec::as_slice) {
        Some([Part::Literal(name)]) => {
            plan::only_reads(name) || ABOUT_NO_VALUE.contains(&name.to_ascii_uppercase().as_str())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::parse;
    use super::*;

    #[test]
    fn what_changes_nothing_is_told_from_the_rest() {
        let reads = |command: &str| only_reads(&parse(command, None).unwrap());
        assert!(reads("get __key__") && reads("ping") && reads("OBJECT FREQ a"));
        assert!(!reads("SET a b") && !reads("EVAL x 0") && !reads("SORT a STORE b"));
    }
}
