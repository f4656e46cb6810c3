//! `validate`: reports errors in manifests.

use std::path::Path;

use crate::arguments::ValidateArguments;
use crate::exit::{GOOD, USAGE};
use crate::manifest::{self, Problem};
use crate::render;

/// Validates every file. Problems go to standard error, one per line; valid manifests to standard output.
pub fn validate(arguments: &ValidateArguments) -> anyhow::Result<u8> {
    let mut code = GOOD;
    for file in &arguments.file {
        match manifest::load(file).and_then(|manifest| manifest::compile(&manifest.benchmark).map(|_| manifest)) {
            Ok(manifest) => {
                let name = manifest.benchmark.metadata.name.as_deref().unwrap_or_default();
                let local = manifest::of_one_machine(&manifest.benchmark);
                let local = local.map_or(String::new(), |problem| format!(", but for `local` only: {problem}"));
                render::write(format!("{}: RedisBenchmark {name} is valid{local}\n", shown(file)))?;
            }
            Err(problems) => {
                code = USAGE;
                report(Some(file), &problems);
            }
        }
    }
    Ok(code)
}

/// Prints `problems` of `file`, or of flags, to standard error, one per line.
pub fn report(file: Option<&Path>, problems: &[Problem]) {
    let place = file.map_or_else(|| "error".to_owned(), shown);
    for problem in problems {
        eprintln!("{place}: {problem}");
    }
}

fn shown(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}
