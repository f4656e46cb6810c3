//! An approximation of [`super::super::safety`] for the API server alone, from the same lists. Rust parses commands, so it checks them exactly
//! and names the entry.

use redisbench_wire::plan::refused::{BLOCKING, COMMANDS, SUBCOMMANDS};

use super::rule::Rule;

/// Rules for the first characters of commands. The cost of a regular expression is its length times that of the text: with whole commands, a
/// spec within all other bounds could exceed the API server's budget for a rule.
pub(super) fn all() -> Vec<Rule> {
    const ALLOWED: &str = "self.safety.allowDestructive";
    const HARMFUL: &str = "one deletes data of other clients, changes the server or blocks it: remove it, or set \
                           safety.allowDestructive to true";
    const QUOTE: &str = r"[\x22\x27]?";
    let subcommands = SUBCOMMANDS.iter();
    let subcommands = subcommands.map(|(command, of, _)| format!(r"{command}{QUOTE}\s+{QUOTE}({})", of.join("|")));
    let harmful: Vec<&str> = COMMANDS.iter().map(|(command, _)| *command).collect();
    let blocks = "one blocks the requests behind it on its connection: set load.pipeline to 1";
    [
        (ALLOWED, harmful.join("|"), HARMFUL),
        (ALLOWED, subcommands.collect::<Vec<_>>().join("|"), HARMFUL),
        ("self.load.pipeline == 1", BLOCKING.join("|"), blocks),
    ]
    .map(|(unless, names, message)| {
        let condition = format!(
            "{unless} || !has(self.workload.operations) || !self.workload.operations.map(operation, operation.command.trim())\
             .map(command, command.size() > 64 ? command.substring(0, 64) : command)\
             .exists(command, command.matches(r'(?i)^{QUOTE}({names})([\\s\\x22\\x27]|$)'))"
        );
        Rule::new("spec", "workload.operations", condition, message)
    })
    .into()
}
