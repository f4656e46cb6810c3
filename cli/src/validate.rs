//! `validate`: reports errors in manifests.

use std::path::Path;

use crate::arguments::ValidateArguments;
use crate::manifest::{self, Problem};
use crate::{GOOD, USAGE};

/// Validates every file. Problems go to standard error, one per line; valid manifests to standard output.
pub fn validate(arguments: &ValidateArguments) -> u8 {
    let mut code = GOOD;
    for file in &arguments.file {
        match manifest::load(file).and_then(|manifest| manifest::compile(&manifest.benchmark).map(|_| manifest)) {
            Ok(manifest) => {
                let name = manifest.benchmark.metadata.name.as_deref().unwrap_or_default();
                let local = manifest::of_one_machine(&manifest.benchmark);
                let local = local.map_or(String::new(), |problem| format!(", but for `local` only: {problem}"));
                println!("{}: RedisBenchmark {name} is valid{local}", shown(file));
            }
            Err(problems) => {
                code = USAGE;
                report(file, &problems);
            }
        }
    }
    code
}

/// Prints `problems` of `file` to standard error, one per line.
pub fn report(file: &Path, problems: &[Problem]) {
    for problem in problems {
        eprintln!("{}: {problem}", shown(file));
    }
}

fn shown(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}
