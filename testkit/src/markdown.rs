//! The pages for people, and the parts of their Markdown.

use std::collections::BTreeSet;
use std::fs;

use crate::documents::root;

/// A fenced block of code.
pub struct Block {
    /// The word after the opening fence; empty for commands and their output.
    pub language: String,
    pub text: String,
    /// The line of its page on which it begins.
    pub line: usize,
}

/// All pages, by their paths below the root.
pub fn pages() -> Vec<String> {
    let below = |folder: &str| {
        let paths = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let pages = paths.filter(|path| path.extension().is_some_and(|end| end == "md"));
        pages.map(|path| format!("{folder}/{}", path.file_name().unwrap().display())).collect::<Vec<_>>()
    };
    let folders = ["docs", "docs/evidence", "docs/how-to", "e2e", "operator"].map(below).into_iter().flatten();
    std::iter::once("README.md".to_owned()).chain(folders).collect()
}

/// The text of a page outside of its blocks of code, and these, without the indentation of their fences.
pub fn parts(page: &str) -> (String, Vec<Block>) {
    let mut prose = String::new();
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (line, number) in page.lines().zip(1_usize..) {
        let indent = line.len() - line.trim_start().len();
        match (open.take(), line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => {
                let block = Block { language: language.to_owned(), text: String::new(), line: number };
                open = Some((indent, block));
            }
            (None, None) => prose.extend([line, "\n"]),
            (Some((_, block)), Some(_)) => blocks.push(block),
            (Some((indent, mut block)), None) => {
                block.text.extend([line.get(indent..).unwrap_or_default(), "\n"]);
                open = Some((indent, block));
            }
        }
    }
    assert!(open.is_none(), "a block of code is not closed: {page}");
    (prose, blocks)
}

/// What the links and pictures of a text lead to.
pub fn links(prose: &str) -> impl Iterator<Item = &str> {
    prose.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The anchors of a text's headings, as GitHub and mdBook generate them.
pub fn anchors(prose: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let headings = prose.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    for heading in headings {
        let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        // Later headings with the same text are numbered.
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(numbered).find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

/// Text whose only Markdown is code.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut is_code = false;
    for letter in text.chars() {
        is_code ^= letter == '`';
        if letter == '|' || (!is_code && "_*<[]".contains(letter)) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
