//! `spec.safety`: what would harm other users of the target. The doc comments are the text of `kubectl explain`.
//!
//! The lists of `redisbench_wire::plan::refused` apply where the server does not describe its commands. Before any load, a shard also refuses
//! other commands that the server flags as `admin`, or, with `load.pipeline` above 1, as `blocking`.

use std::time::Duration;

use redisbench_wire::plan::Part;
use redisbench_wire::plan::refused::{BLOCKING, BLOCKING_IF, COMMANDS, SUBCOMMANDS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;

/// Protection of other users of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SafetySpec {
    /// Allows commands that destroy or change data or settings of other users of the server, or stall it: those that the server flags as
    /// `admin`, and others such as FLUSHALL, FLUSHDB, SWAPDB, KEYS, MIGRATE, RESTORE, SCRIPT FLUSH, FUNCTION FLUSH, SHUTDOWN, DEBUG and
    /// CONFIG SET. If false, they are refused before any load. The contents of scripts are not checked. Default false.
    #[serde(default)]
    pub allow_destructive: bool,
    /// Time without a call from the operator after which a shard stops its load, 1m to 48h. It keeps its result until 10 minutes after
    /// the planned end. The operator then stops the other shards, and fails the run with `StoppedEarly`. Default 5m.
    #[serde(default = "default_unattended")]
    pub unattended: GoDuration,
}

impl Default for SafetySpec {
    fn default() -> Self {
        Self { allow_destructive: false, unattended: default_unattended() }
    }
}

fn default_unattended() -> GoDuration {
    GoDuration::from(Duration::from_secs(300))
}

/// The harmful command and its effect; none if its literal arguments are harmless.
pub(super) fn harm(arguments: &[Vec<Part>]) -> Option<(String, &'static str)> {
    let name = word(arguments.first()?)?;
    if let Some((_, what)) = COMMANDS.iter().find(|(command, _)| *command == name) {
        return Some((name, what));
    }
    let (_, subcommands, what) = SUBCOMMANDS.iter().find(|(command, ..)| *command == name)?;
    match word(arguments.get(1)?) {
        Some(subcommand) => subcommands.contains(&subcommand.as_str()).then(|| (format!("{name} {subcommand}"), *what)),
        // A placeholder may come to be any of them.
        None => Some((name, what)),
    }
}

/// Returns whether a command can block its connection.
pub(super) fn blocks(arguments: &[Vec<Part>]) -> bool {
    let Some(name) = arguments.first().and_then(word) else { return false };
    let says =
        |wanted: &str| arguments.iter().skip(1).any(|argument| word(argument).is_some_and(|word| word == wanted));
    BLOCKING.contains(&name.as_str()) || BLOCKING_IF.iter().any(|(command, option)| *command == name && says(option))
}

/// An argument without placeholders, in capitals.
fn word(argument: &Vec<Part>) -> Option<String> {
    match argument.as_slice() {
        [Part::Literal(text)] => Some(text.to_ascii_uppercase()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::parse;
    use super::*;

    fn harmful(command: &str) -> Option<String> {
        harm(&parse(command, None).unwrap()).map(|(name, _)| name)
    }

    #[test]
    fn what_harms_others_is_named() {
        for command in ["FLUSHALL", "flushdb ASYNC", "Keys *", "DEBUG SLEEP 1", "RESTORE __key__ 0 __data__", "SAVE"] {
            assert_eq!(harmful(command), Some(command.split(' ').next().unwrap().to_uppercase()));
        }
        for (command, name) in [
            ("config set maxmemory 1", "CONFIG SET"),
            ("SCRIPT FLUSH", "SCRIPT FLUSH"),
            ("'function' \"flush\"", "FUNCTION FLUSH"),
            ("CLUSTER RESET HARD", "CLUSTER RESET"),
            ("CLIENT KILL TYPE normal", "CLIENT KILL"),
            ("CONFIG __data__ x 1", "CONFIG"),
        ] {
            assert_eq!(harmful(command).as_deref(), Some(name));
        }
    }

    #[test]
    fn what_only_touches_keys_or_asks_is_allowed() {
        for command in ["GET __key__", "DEL __key__", "SCRIPT LOAD 'return 1'", "CONFIG GET *", "CLUSTER INFO", "ACL"] {
            assert_eq!(harmful(command), None, "{command}");
        }
    }

    #[test]
    fn what_waits_is_told_from_what_does_not() {
        let waits = |command: &str| blocks(&parse(command, None).unwrap());
        for command in ["BLPOP __key__ 1", "wait 1 100", "bzpopmin a 0", "XREAD COUNT 1 block 5 STREAMS s $"] {
            assert!(waits(command), "{command}");
        }
        for command in ["LPOP __key__", "XREAD STREAMS s 0", "XADD s * BLOCK 1", "LPUSH a WAIT"] {
            assert!(!waits(command), "{command}");
        }
    }
}
