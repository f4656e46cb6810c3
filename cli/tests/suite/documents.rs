//! Runs the commands of the documents that need only a throwaway server or none. `examples.rs` runs the manifests that others name.

use std::collections::BTreeSet;

use redisbench_testkit::documents::read;
use redisbench_testkit::markdown::{pages, parts};

use crate::support::{Run, run};

/// In place of the default length.
const SHORTENED: [&str; 4] = ["-n", "400", "--warmup", "0"];

/// The arguments after each `subcommand` in a block of code.
fn documented(subcommand: &str) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for page in pages() {
        for block in parts(&read(&page)).1 {
            let lines = block.text.lines().filter_map(|line| line.trim_start().strip_prefix("kubectl redisbench "));
            for words in lines.filter_map(shlex::split) {
                if let Some((first, arguments)) = words.split_first()
                    && first == subcommand
                {
                    found.insert(arguments.to_vec());
                }
            }
        }
    }
    found
}

#[test]
fn runs_on_a_throwaway_server_finish_with_a_result() {
    let all = documented("local");
    let runs: Vec<_> = all
        .iter()
        .filter(|words| words.iter().any(|word| word == "--with-redis") && words.iter().all(|word| word != "-f"))
        .collect();
    assert!(runs.len() > 1, "{all:?}");
    for words in runs {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(SHORTENED).collect();
        let finished = Run::from_flags(&arguments, &[]).finish();
        finished.assert_balanced();
        finished.succeeded();
    }
}

#[test]
fn manifests_that_init_writes_are_valid() {
    let all = documented("init");
    assert!(all.len() > 1, "{all:?}");
    for words in all {
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        // To standard output.
        if let Some(output) = arguments.iter().position(|word| *word == "-o") {
            arguments.drain(output..output + 2);
        }
        let (code, manifest, stderr) = run(&[&["init"], &arguments[..]].concat(), "");
        assert_eq!(code, Some(0), "{words:?}: {stderr}");
        let (code, _, stderr) = run(&["validate", "-f", "-"], &manifest);
        assert_eq!(code, Some(0), "{words:?}: {stderr}");
    }
}
