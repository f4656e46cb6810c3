//! Selects those of a server's counts that belong to the mix. Pure.

use std::collections::{BTreeMap, BTreeSet};

use redisbench_wire::limits;
use redisbench_wire::plan::{Part, TrialPlan};
use redisbench_wire::snapshot::ServerCommands;

use super::info::Calls;

/// Commands that clients send for their own purposes: this load generator, replicas, sentinels, monitoring. They change no key.
const HOUSEKEEPING: &[&str] = &[
    "acl",
    "asking",
    "auth",
    "client",
    "cluster",
    "command",
    "config",
    "dbsize",
    "debug",
    "discard",
    "echo",
    "exec",
    "failover",
    "function",
    "hello",
    "info",
    "lastsave",
    "latency",
    "memory",
    "module",
    "monitor",
    "multi",
    "ping",
    "psubscribe",
    "psync",
    "publish",
    "quit",
    "readonly",
    "readwrite",
    "replconf",
    "reset",
    "role",
    "script",
    "select",
    "sentinel",
    "slowlog",
    "subscribe",
    "sync",
    "time",
    "unsubscribe",
    "unwatch",
    "wait",
    "waitaof",
    "watch",
];

/// The server also counts the commands that scripts execute, which are unknown here.
const SCRIPTS: &[&str] = &["eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"];

/// Commands that may block. Versions differ in how often they count a command that has blocked.
const WAITING: &[&str] =
    &["blpop", "brpop", "brpoplpush", "blmove", "blmpop", "bzpopmin", "bzpopmax", "bzmpop", "xread", "xreadgroup"];

/// The commands of a mix, to separate a server's counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MixCommands {
    /// First word, second word if it is literal, and whether the command only reads.
    names: Vec<(String, Option<String>, bool)>,
    /// True with scripts: other commands may come from them.
    scripts: bool,
    /// Commands whose counts cannot be compared.
    pub not_compared: Vec<String>,
}

impl MixCommands {
    /// `reads` holds for each operation of the plan whether it only reads.
    pub fn of(plan: &TrialPlan, reads: &[bool]) -> Self {
        let literal = |argument: Option<&Vec<Part>>| match argument.map(Vec::as_slice) {
            Some([Part::Literal(text)]) => Some(text.to_ascii_lowercase()),
            _ => None,
        };
        let name = |arguments: &[Vec<Part>], reads: bool| {
            Some((literal(arguments.first())?, literal(arguments.get(1)), reads))
        };
        let options = &plan.workload.options;
        let reads = reads.iter().copied().chain(std::iter::repeat(false));
        let operations = plan.workload.operations.iter().zip(reads);
        let operations = operations.filter_map(|(operation, reads)| name(&operation.arguments, reads));
        let fills = options.fills.iter().filter_map(|fill| name(&fill.arguments, false));
        let mut names: Vec<_> = operations.chain(fills).collect();
        if plan.followed().is_some() {
            // For the last read of followed keys.
            names.push(("get".to_owned(), None, true));
        }
        let is = |list: &[&str], name: &str| list.contains(&name);
        let scripts = names.iter().any(|(name, ..)| is(SCRIPTS, name));
        let only_scripts = names.iter().all(|(name, ..)| is(SCRIPTS, name));
        let not_compared: BTreeSet<&String> = names
            .iter()
            .map(|(name, ..)| name)
            .filter(|name| is(HOUSEKEEPING, name) || is(WAITING, name) || (is(SCRIPTS, name) && !only_scripts))
            .collect();
        let not_compared = not_compared.into_iter().take(limits::OPERATIONS).cloned().collect();
        Self { names, scripts, not_compared }
    }

    /// The commands that a server executed between two answers; `None` if its counts were reset.
    pub fn between(
        &self,
        before: &BTreeMap<String, Calls>,
        after: &BTreeMap<String, Calls>,
        replica: bool,
    ) -> Option<ServerCommands> {
        let mut commands = ServerCommands::default();
        if before.keys().any(|name| !after.contains_key(name)) {
            return None;
        }
        for (name, now) in after {
            let then = before.get(name).copied().unwrap_or_default();
            let calls = now.executed.checked_sub(then.executed)?;
            let microseconds = now.microseconds.saturating_sub(then.microseconds);
            commands.microseconds = commands.microseconds.saturating_add(microseconds);
            if self.has(name, replica) {
                commands.calls = commands.calls.saturating_add(calls);
                commands.failed =
                    commands.failed.saturating_add(now.failed.saturating_sub(then.failed)).min(commands.calls);
                if let Some(rejected) = now.rejected {
                    let rejected = rejected.checked_sub(then.rejected.unwrap_or_default())?;
                    *commands.rejected.get_or_insert_default() += rejected;
                }
            } else if !self.scripts && !replica && !HOUSEKEEPING.contains(&first_word(name)) {
                commands.foreign = commands.foreign.saturating_add(calls);
            }
        }
        Some(commands)
    }

    /// Returns whether a count belongs to the mix. A replica also counts the writes replicated from its primary.
    fn has(&self, counted: &str, replica: bool) -> bool {
        let mut parts = counted.splitn(2, '|');
        let (word, sub) = (parts.next().unwrap_or_default(), parts.next());
        self.names.iter().any(|(name, second, reads)| {
            name == word && (sub.is_none() || second.as_deref() == sub) && (*reads || !replica)
        })
    }
}

fn first_word(name: &str) -> &str {
    name.split('|').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use redisbench_wire::plan::{Operation, Verify, WorkloadOptions};

    fn mix(commands: &[&str], reads: &[bool]) -> MixCommands {
        let mut plan = crate::sample::plan();
        plan.workload_mut().operations = commands.iter().map(|command| Operation::of(command, 1, command)).collect();
        (plan.workload_mut().options, plan.verify) = (WorkloadOptions::default(), Verify::None);
        MixCommands::of(&plan, reads)
    }

    fn counts(of: &[(&str, u64, u64)]) -> BTreeMap<String, Calls> {
        let calls = |(name, calls, rejected): &(&str, u64, u64)| {
            ((*name).to_owned(), Calls { executed: *calls, failed: 0, rejected: Some(*rejected), microseconds: 0 })
        };
        of.iter().map(calls).collect()
    }

    #[test]
    fn what_was_there_before_and_housekeeping_do_not_count() {
        let mix = mix(&["SET a b", "GET a"], &[false, true]);
        let before = counts(&[("set", 10, 1), ("info", 3, 0), ("del", 5, 0)]);
        let after = counts(&[
            ("set", 14, 3),
            ("get", 5, 0),
            ("info", 9, 0),
            ("ping", 1, 0),
            ("del", 7, 0),
            ("config|get", 1, 0),
        ]);
        let found = mix.between(&before, &after, false).unwrap();
        assert_eq!((found.calls, found.rejected, found.foreign), (9, Some(2), 2));
        // Replicated writes are not counted.
        let found = mix.between(&before, &after, true).unwrap();
        assert_eq!((found.calls, found.rejected, found.foreign), (5, Some(0), 0));
        assert!(mix.not_compared.is_empty());
    }

    #[test]
    fn a_server_that_counts_anew_cannot_be_compared() {
        let mix = mix(&["SET a b"], &[]);
        let before = counts(&[("set", 10, 0), ("config|resetstat", 1, 0)]);
        assert_eq!(mix.between(&before, &counts(&[("set", 5, 0), ("config|resetstat", 1, 0)]), false), None);
        assert_eq!(mix.between(&before, &counts(&[("set", 50, 0)]), false), None);
    }

    #[test]
    fn subcommands_and_scripts_are_told_apart() {
        let sub = mix(&["OBJECT ENCODING k"], &[]);
        let after = counts(&[("object|encoding", 5, 0), ("object|freq", 3, 0)]);
        let found = sub.between(&BTreeMap::new(), &after, false).unwrap();
        assert_eq!((found.calls, found.foreign), (5, 3));
        let scripts = mix(&["EVALSHA abc 0"], &[]);
        let found = scripts.between(&BTreeMap::new(), &counts(&[("evalsha", 5, 0), ("set", 15, 0)]), false).unwrap();
        assert_eq!((found.calls, found.foreign), (5, 0));
        assert!(scripts.not_compared.is_empty());
        assert_eq!(
            mix(&["EVALSHA abc 0", "SET a b", "PING", "BLPOP a 1"], &[]).not_compared,
            ["blpop", "evalsha", "ping"]
        );
    }
}
