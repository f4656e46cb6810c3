//! The command lines of the documents.

use std::ffi::OsString;

use clap::error::ErrorKind;
use redisbench_testkit::documents::read;
use redisbench_testkit::markdown::{pages, parts};

use crate::command::parse;

/// Words that end a command of a shell.
const ENDS: [&str; 6] = ["|", ">", "<", "&&", "||", ";"];

/// Errors of the parser for a command that a sentence names without all of its arguments, or with the names of values.
const INCOMPLETE: [ErrorKind; 6] = [
    ErrorKind::MissingRequiredArgument,
    ErrorKind::MissingSubcommand,
    ErrorKind::InvalidValue,
    ErrorKind::DisplayVersion,
    ErrorKind::DisplayHelp,
    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
];

/// The words of a line that calls this program; of `make run`, with the arguments that it passes on.
fn words(line: &str) -> Option<Vec<OsString>> {
    let line = match (line.strip_prefix("kubectl redisbench "), line.strip_prefix("make run ARGS='")) {
        (Some(rest), _) => format!("kubectl-redisbench {rest}"),
        (_, Some(rest)) => format!("kubectl-redisbench local {}", rest.split('\'').next()?),
        _ if line.starts_with("redisbench ") => line.to_owned(),
        _ => return None,
    };
    let words = shlex::split(&line).unwrap_or_else(|| panic!("a quote is not closed: {line}"));
    Some(words.into_iter().take_while(|word| !ENDS.contains(&word.as_str())).map(OsString::from).collect())
}

#[test]
fn commands_in_the_documents_can_be_typed() {
    let mut typed = 0;
    for page in pages() {
        for block in parts(&read(&page)).1 {
            let text = block.text.replace("\\\n", " ");
            for words in text.lines().filter_map(|line| words(line.trim_start())) {
                let parsed = parse(&words);
                assert!(parsed.is_ok(), "{page}, line {}: {words:?}: {parsed:?}", block.line);
                typed += 1;
            }
        }
    }
    assert!(typed > 30, "only {typed} commands");
}

#[test]
fn commands_in_sentences_exist() {
    let mut named = 0;
    for page in pages() {
        let (prose, _) = parts(&read(&page));
        for words in prose.split('`').skip(1).step_by(2).filter_map(words) {
            let refused = parse(&words).err().filter(|error| !INCOMPLETE.contains(&error.kind()));
            assert!(refused.is_none(), "{page}: {words:?}: {refused:?}");
            named += 1;
        }
    }
    assert!(named > 10, "only {named} commands");
}
