//! `init --from`: command lines of redis-benchmark, valkey-benchmark and `memtier_benchmark` as manifests. Each option is translated, or
//! named with the nearest alternative.

mod command;
mod given;
mod memtier;
mod redis;
mod tables;
mod tool;

use std::path::Path;

use crate::draft::Draft;
use crate::manifest::Problem;
use given::Given;
use tool::Tool;

/// A tool, and what completes the translation once its options are read.
struct Translator {
    tool: Tool,
    finish: fn(&Given, &mut Draft) -> Result<(), Problem>,
}

const TRANSLATORS: [Translator; 3] = [
    Translator { tool: Tool { name: "redis-benchmark", tables: &[tables::REDIS], gnu: false }, finish: redis::finish },
    Translator {
        tool: Tool { name: "valkey-benchmark", tables: &[tables::REDIS, tables::VALKEY], gnu: false },
        finish: redis::finish,
    },
    Translator {
        tool: Tool { name: "memtier_benchmark", tables: &[tables::MEMTIER], gnu: true },
        finish: memtier::finish,
    },
];

/// Translates the command line `line` into a benchmark called `name`.
///
/// # Errors
/// If the tool or an option is unknown, or a value cannot be read.
pub fn translate(line: &str, name: &str) -> Result<Draft, Problem> {
    let from = |message: String| Problem::field("--from", message);
    let words = shlex::split(line).ok_or_else(|| from("has a quote that is not closed".to_owned()))?;
    let program = words.first().map(Path::new).and_then(Path::file_name);
    let is_named = |one: &&Translator| program.is_some_and(|program| program == one.tool.name);
    let Translator { tool, finish } = TRANSLATORS.iter().find(is_named).ok_or_else(|| {
        let known: Vec<&str> = TRANSLATORS.iter().map(|one| one.tool.name).collect();
        // Other words may be a password.
        let first = words.first().map(|first| format!("; it begins with {first:?}")).unwrap_or_default();
        from(format!("must begin with the name of a tool, one of: {}{first}", known.join(", ")))
    })?;
    let given = Given::read(tool, &words[1..])?;
    let mut draft = Draft::new(name);
    draft.remarks.push(format!("Translated from {}.", tool.name));
    given.apply_rows(&mut draft)?;
    finish(&given, &mut draft)?;
    Ok(draft)
}

#[cfg(test)]
mod tests;
