//! `init`: writes a commented manifest.

mod questions;

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::Context as _;

use crate::arguments::{InitArguments, program};
use crate::draft::Draft;
use crate::exit::{GOOD, USAGE};
use crate::flags::Flags;
use crate::manifest::{Problem, written};
use crate::{render, translate, validate};

/// Writes the manifest.
///
/// # Errors
/// If it cannot be written, or questions cannot be asked.
pub fn init(arguments: &InitArguments) -> anyhow::Result<u8> {
    let refuse = |problems: &[Problem]| {
        validate::report(None, problems);
        Ok(USAGE)
    };
    // Before questions are asked.
    if let Some(file) = arguments.output.as_deref().filter(|file| !arguments.force && file.exists()) {
        return refuse(&[exists(file)]);
    }
    let drafted = match &arguments.from {
        Some(line) => translate::translate(line.reveal(), &arguments.name),
        None if arguments.flags != Flags::default() => from_flags(&arguments.flags, &arguments.name),
        None if io::stdin().is_terminal() && io::stderr().is_terminal() => {
            from_flags(&questions::ask()?, &arguments.name)
        }
        None => Err(Problem::file(
            "init asks questions, which takes a terminal: give the answers as flags, such as --target 127.0.0.1:6379 -c 50 \
             -r 10000 --rate 5000, or --from 'redis-benchmark ...'"
                .to_owned(),
        )),
    };
    let mut draft = match drafted {
        Ok(draft) => draft,
        Err(problem) => return refuse(&[problem]),
    };
    draft.set_if("shards/count", arguments.shards);
    let manifest = match draft.manifest(Vec::new()) {
        Ok(manifest) => manifest,
        Err(problems) => return refuse(&problems),
    };
    let head: Vec<String> = draft.remarks.iter().cloned().chain(draft.instructions()).collect();
    let text = written::write(&manifest, &head, true);
    // On a terminal, the manifest itself shows its head.
    if arguments.output.is_some() || !io::stdout().is_terminal() {
        for line in &head {
            eprintln!("{line}");
        }
    }
    let Some(file) = &arguments.output else {
        return render::write(&text).map(|()| GOOD);
    };
    let mut options = OpenOptions::new();
    // Atomic, should a file have appeared since.
    let options = options.write(true).create(arguments.force).truncate(arguments.force).create_new(!arguments.force);
    let written = options.open(file).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse(&[exists(file)]),
        written => {
            written.with_context(|| format!("failed to write {}", file.display()))?;
            eprintln!("wrote {}; run it with: {} local -f {}", file.display(), program(), file.display());
            Ok(GOOD)
        }
    }
}

fn from_flags(flags: &Flags, name: &str) -> Result<Draft, Problem> {
    if let Some(line) = flags.target.warning() {
        eprintln!("{line}");
    }
    flags.draft(name)
}

fn exists(file: &Path) -> Problem {
    Problem::file(format!("{} exists: add --force to replace it, or use another name", file.display()))
}
