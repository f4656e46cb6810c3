//! The page of the documents with everything that `explain` prints.

use redisbench_testkit::documents::fresh_part;
use redisbench_testkit::markdown::escaped;

use super::{Entry, ORIGINS, entries};

/// A chapter for each kind of word, and a section for each word.
fn chapters() -> String {
    let entries = entries();
    let chapter = |kind: &str| {
        let sections: String = entries.iter().filter(|entry| entry.kind == kind).map(section).collect();
        format!("## {}{}\n\n{sections}", kind[..1].to_uppercase(), &kind[1..])
    };
    ORIGINS.iter().map(|(kind, ..)| chapter(kind)).collect()
}

fn section(entry: &Entry) -> String {
    let meaning = Some(escaped(&entry.meaning)).filter(|meaning| !meaning.is_empty());
    let columns: String = entry.columns.iter().map(|column| format!("- {}\n", escaped(column))).collect();
    let columns = Some(columns).filter(|columns| !columns.is_empty());
    let parts =
        [Some(format!("### {}\n\n", entry.name)), meaning.map(|text| text + "\n\n"), columns.map(|text| text + "\n")];
    parts.into_iter().flatten().collect()
}

/// `make crds` writes it.
#[test]
fn fresh_page_of_troubleshooting() {
    fresh_part("docs/troubleshooting.md", &chapters());
}
