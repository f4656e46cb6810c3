//! The manifest of a local run: from its file, or from flags.

use std::io::{self, IsTerminal as _};

use crate::arguments::{LocalArguments, NAME, Output};
use crate::draft::Draft;
use crate::manifest::{self, Manifest, Problem, written};
use crate::render::{self, Paint, Style};

/// Reads the manifest, or makes it from flags and shows it. Warns about passwords that others can see, and asks for one if wanted.
///
/// # Errors
/// All problems of the file or of the flags.
pub fn manifest(arguments: &LocalArguments) -> Result<Manifest, Vec<Problem>> {
    if let Some(file) = &arguments.file {
        return manifest::load(file);
    }
    let draft = draft(arguments)?;
    // Before the user is asked for a password.
    draft.manifest(Vec::new())?;
    let target = &arguments.flags.target;
    for line in target.warning().iter().chain(&draft.remarks) {
        eprintln!("{line}");
    }
    let password = target.password()?;
    let manifest = draft.manifest(draft.secrets(password.as_ref())?)?;
    if arguments.output == Output::Table && !arguments.baseline {
        let paint = Paint::for_stream(io::stderr().is_terminal());
        let head = "The manifest of this run; --print-manifest prints it without running it.".to_owned();
        eprintln!("{}", paint.apply(Style::Dim, &written::write(&manifest, &[head], false)));
    }
    Ok(manifest)
}

/// Prints the manifest that the flags make.
///
/// # Errors
/// All problems of the flags; and within, that standard output cannot be written.
pub fn print(arguments: &LocalArguments) -> Result<anyhow::Result<()>, Vec<Problem>> {
    let draft = draft(arguments)?;
    let head: Vec<String> = draft.remarks.iter().cloned().chain(draft.instructions()).collect();
    Ok(render::write(written::write(&draft.manifest(Vec::new())?, &head, false)))
}

fn draft(arguments: &LocalArguments) -> Result<Draft, Vec<Problem>> {
    let needs_target = !arguments.with_redis && !arguments.baseline;
    if needs_target && !arguments.flags.target.is_aimed() {
        let message = "no target: give one with --target HOST:PORT (or -h, -p, -u, -s), a manifest with -f FILE, or \
                       --with-redis for a throwaway server";
        return Err(vec![Problem::file(message.to_owned())]);
    }
    let mut draft = arguments.flags.draft(NAME)?;
    draft.set_if("shards/count", arguments.shards);
    Ok(draft)
}
