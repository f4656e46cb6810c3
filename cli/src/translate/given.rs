//! The options of a command line, in their order.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use super::tables::{Meaning, Part, Row};
use super::tool::Tool;
use crate::credentials::Confidential;
use crate::draft::Draft;
use crate::explain::nearest;
use crate::flags::TargetFlags;
use crate::manifest::Problem;

/// A command line that was split into its options.
pub struct Given {
    tool: &'static str,
    options: Vec<OneOption>,
    /// The command behind the options.
    pub command: Vec<String>,
}

struct OneOption {
    /// The name as written.
    name: String,
    row: &'static Row,
    value: String,
}

impl Given {
    /// Splits `words` into the options of `tool`.
    ///
    /// # Errors
    /// If an option is unknown or lacks its value.
    pub fn read(tool: &Tool, words: &[String]) -> Result<Self, Problem> {
        let mut given = Self { tool: tool.name, options: Vec::new(), command: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with('-') || word == "-" || word == "--" {
                let first = Some(word).filter(|word| *word != "--");
                given.command = first.into_iter().chain(words).cloned().collect();
                break;
            }
            let (name, attached) = if tool.gnu { split(tool, word) } else { (word.as_str(), None) };
            let row = find(tool, name)?;
            let value = match (row.value, attached) {
                (None, None) => String::new(),
                (None, Some(_)) => return Err(problem(tool.name, name, "takes no value")),
                (Some(_), Some(value)) => value.to_owned(),
                (Some(_), None) => words.next().cloned().ok_or_else(|| problem(tool.name, name, "needs a value"))?,
            };
            given.options.push(OneOption { name: name.to_owned(), row, value });
        }
        if tool.gnu && !given.command.is_empty() {
            return Err(Problem::field("--from", format!("{} takes no argument {:?}", tool.name, given.command[0])));
        }
        Ok(given)
    }

    /// Applies the options that are the value of one field, and names those without a counterpart.
    pub fn apply_rows(&self, draft: &mut Draft) -> Result<(), Problem> {
        for OneOption { name, row, value } in &self.options {
            match row.meaning {
                Meaning::Number(path) => draft.set(path, self.parse::<u64>(name, value)?),
                Meaning::Seconds(path) => draft.set(path, format!("{}s", self.parse::<u64>(name, value)?)),
                Meaning::Is(path, text) => draft.set(path, text),
                Meaning::Without(nearest) => draft.remarks.push(format!("No counterpart of {name}: {nearest}")),
                Meaning::Part(_) => {}
            }
        }
        Ok(())
    }

    /// All options that are a `part`, with their values, in their order.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &str)> {
        self.options.iter().filter_map(|given| match given.row.meaning {
            Meaning::Part(part) => Some((part, given.value.as_str())),
            _ => None,
        })
    }

    /// The value of `part`. As in the tools, the last one wins.
    pub fn value(&self, part: Part) -> Option<&str> {
        self.parts().filter(|(found, _)| *found == part).last().map(|(_, value)| value)
    }

    pub fn has(&self, part: Part) -> bool {
        self.value(part).is_some()
    }

    /// The value of `part` as a number, or what else can be parsed.
    pub fn number<T: FromStr>(&self, part: Part) -> Result<Option<T>, Problem> {
        self.value(part).map(|value| self.parse(&self.name(part), value)).transpose()
    }

    /// The problem that the value of `part` is not as `expected`.
    pub fn wrong(&self, part: Part, expected: impl Display) -> Problem {
        let value = self.value(part).unwrap_or_default();
        problem(self.tool, &self.name(part), format!("must be {expected}, not {value:?}"))
    }

    fn name(&self, part: Part) -> String {
        let found =
            self.options.iter().rfind(|given| matches!(given.row.meaning, Meaning::Part(found) if found == part));
        found.map(|given| given.name.clone()).unwrap_or_default()
    }

    fn parse<T: FromStr>(&self, name: &str, value: &str) -> Result<T, Problem> {
        value.parse().map_err(|_| problem(self.tool, name, format!("must be a number, not {value:?}")))
    }
}

fn problem(tool: &str, option: &str, message: impl Display) -> Problem {
    Problem::field("--from", format!("{option} of {tool} {message}"))
}

/// Splits an option from the value in the same word.
fn split<'a>(tool: &Tool, word: &'a str) -> (&'a str, Option<&'a str>) {
    if let Some((name, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        return (name, Some(value));
    }
    // `-c50`.
    match word.char_indices().nth(2) {
        Some((at, _)) if !word.starts_with("--") && find(tool, &word[..at]).is_ok_and(|row| row.value.is_some()) => {
            (&word[..at], Some(&word[at..]))
        }
        _ => (word, None),
    }
}

fn find(tool: &Tool, name: &str) -> Result<&'static Row, Problem> {
    let rows = || tool.tables.iter().copied().flatten();
    if let Some(row) = rows().find(|row| row.names.contains(&name)) {
        return Ok(row);
    }
    // As GNU's getopt_long: a beginning is enough if no other option has it.
    let begins = |row: &&Row| row.names.iter().any(|known| name.len() > 2 && known.starts_with(name));
    let mut similar = rows().filter(|row| tool.gnu && begins(row));
    match (similar.next(), similar.next()) {
        (Some(row), None) => Ok(row),
        (Some(one), Some(other)) => {
            let both = format!("is ambiguous: {} or {}", one.names.join(" "), other.names.join(" "));
            Err(problem(tool.name, name, both))
        }
        (None, _) => {
            let message = format!("{} has no option {name}; {}", tool.name, instead(tool, name));
            Err(Problem::field("--from", message))
        }
    }
}

/// Advice about the unknown option `name`. Only long names can be misspelt.
fn instead(tool: &Tool, name: &str) -> String {
    let names = tool.tables.iter().copied().flatten().flat_map(|row| row.names.iter().copied());
    let long: Vec<&str> = names.filter_map(|known| known.strip_prefix("--")).collect();
    match nearest(name.trim_start_matches('-'), &long).as_slice() {
        [] => "remove it".to_owned(),
        near => format!("did you mean --{}? If not, remove it", near.join(" or --")),
    }
}

/// Parts common to all tools: the target, its credentials and TLS, and processors.
impl Given {
    /// The target as flags of this program.
    pub fn target(&self) -> Result<TargetFlags, Problem> {
        let text = |part| self.value(part).map(str::to_owned);
        let confidential = |part| text(part).map(Confidential::from);
        let path = |part| text(part).map(PathBuf::from);
        let certificate = path(Part::Certificate);
        // A file may have both.
        let key = path(Part::Key).or_else(|| certificate.clone());
        if certificate.is_none() && key.is_some() {
            return Err(problem(self.tool, &self.name(Part::Key), "needs --cert"));
        }
        Ok(TargetFlags {
            host: text(Part::Host),
            port: self.number(Part::Port)?,
            socket: text(Part::Socket),
            uri: confidential(Part::Uri),
            cluster: self.has(Part::Cluster),
            // The tools log in only with a password.
            user: text(Part::User).filter(|_| self.has(Part::Password)),
            password: confidential(Part::Password),
            tls: self.has(Part::Tls),
            cacert: path(Part::Authorities),
            cert: certificate,
            key,
            sni: text(Part::Sni),
            insecure: self.has(Part::Insecure),
            ..TargetFlags::default()
        })
    }

    /// Limits a shard to the processors of the tool's threads.
    pub fn set_threads(&self, draft: &mut Draft) -> Result<(), Problem> {
        if let Some(threads) = self.number::<u32>(Part::Threads)? {
            draft.set("shards/template/resources/limits/cpu", threads.to_string());
        }
        Ok(())
    }
}
