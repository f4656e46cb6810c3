//! The messages that the page of troubleshooting quotes.

use std::fs;
use std::path::Path;

use redisbench_testkit::documents::{read, root};
use redisbench_testkit::markdown::parts;

/// The code of all Rust files below `folder`, with the strings that are broken over lines in one piece.
fn code(folder: &Path) -> String {
    let mut code = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code += &self::code(&path);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap().replace("\\\"", "\"");
            let mut pieces = text.split("\\\n");
            code.extend(pieces.next());
            code.extend(pieces.map(str::trim_start));
        }
    }
    code
}

/// Dots stand for what differs, such as a name.
#[test]
fn quoted_messages_are_those_of_the_programs() {
    let programs: String =
        ["benchmark", "cli", "loadgen", "operator", "wire"].map(|part| code(&root().join(part).join("src"))).concat();
    let (prose, _) = parts(&read("docs/troubleshooting.md"));
    let (_, chapter) = prose.split_once("\n## By message\n").unwrap();
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let mut quoted = 0;
    for row in chapter.lines().filter_map(|line| line.strip_prefix("| `")) {
        let message = row.split('`').next().unwrap_or_default();
        for part in message.split("...").map(str::trim).filter(|part| !part.is_empty()) {
            assert!(
                programs.contains(part),
                "docs/troubleshooting.md quotes {message:?}, and no program prints {part:?}"
            );
        }
        quoted += 1;
    }
    assert!(quoted > 20, "only {quoted} messages");
}
