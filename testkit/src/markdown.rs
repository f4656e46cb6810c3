//! The pages for people, and the parts of their Markdown.

use std::collections::BTreeSet;
use std::fs;

use crate::documents::{read, root};

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

/// A command in a block of code, on one line and without the comment behind it.
pub struct Typed {
    pub page: String,
    /// The line of its page on which its block begins.
    pub line: usize,
    pub text: String,
}

/// The programs that the pages call. Lines of blocks that begin otherwise are output.
const PROGRAMS: [&str; 10] =
    ["cargo", "curl", "docker", "export", "helm", "jq", "kubectl", "make", "redisbench", "redisbench-soak"];

/// All commands in the pages' blocks of code.
pub fn commands() -> Vec<Typed> {
    let mut found = Vec::new();
    for page in pages() {
        for block in parts(&read(&page)).1.into_iter().filter(|block| ["", "sh"].contains(&block.language.as_str())) {
            let text = block.text.replace("\\\n", " ");
            let lines = text.lines().map(|line| line.split_once(" #").map_or(line, |(command, _)| command).trim());
            let called = |line: &&str| line.split_whitespace().next().is_some_and(|word| PROGRAMS.contains(&word));
            let typed = |line: &str| Typed { page: page.clone(), line: block.line, text: line.to_owned() };
            found.extend(lines.filter(called).map(typed));
        }
    }
    found
}

/// The test that runs a command of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// `cli/tests/suite/documents.rs`.
    CommandLine,
    /// `e2e/tests/kubernetes/documents.rs`.
    Cluster,
    /// `e2e/tests/prometheus`, which pipes the operator's metrics into promtool.
    Prometheus,
    /// None: targets of the Makefile, its tools, and docker, which no machine of the tests has. Their names and files are checked.
    Build,
}

/// None for a command that no test knows how to run.
pub fn runner(command: &str) -> Option<Runner> {
    const ALONE: [&str; 7] = ["completion", "explain", "export -f", "init", "local", "report -f", "validate"];
    let called = command.strip_prefix("kubectl redisbench ").or_else(|| command.strip_prefix("redisbench "));
    match (called, command.split(' ').next()?) {
        (Some(called), _) if ALONE.iter().any(|begin| called.starts_with(begin)) => Some(Runner::CommandLine),
        (None, "jq") => Some(Runner::CommandLine),
        (Some(_), _) | (None, "helm" | "kubectl") => Some(Runner::Cluster),
        (None, "curl") => Some(Runner::Prometheus),
        (None, "cargo" | "docker" | "export" | "make" | "redisbench-soak") => Some(Runner::Build),
        _ => None,
    }
}

/// Targets of a text's links and pictures.
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
