//! `explain`: what a word in a status means, and what to do. The texts are the doc comments of the types and the tables of the docs, read
//! when this program is compiled.

use std::fmt::Write as _;

use crate::exit::{GOOD, USAGE};
use crate::render;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    /// The kind of value, such as `phase`.
    kind: &'static str,
    meaning: String,
    /// The rest of its row in the docs, the last column of which says what to do.
    columns: Vec<String>,
}

macro_rules! source {
    ($path:literal) => {
        include_str!(concat!("../../", $path))
    };
}

/// A kind of word: the source of its doc comments, the line before them, and the table about them in the docs.
type Origin = (&'static str, &'static str, &'static str, Table);

/// A page, and the heads of the table.
type Table = (&'static str, &'static str);

const REASONS: Table = (source!("docs/results.md"), "| reason | what was found | what to do |");
const LIMITS: Table = (source!("docs/results.md"), "| `limitedBy`, `component` | when |");
const PHASES: Table = (source!("docs/operating.md"), "| phase | ends when | on error |");
const NO_TABLE: Table = ("", "");

const ORIGINS: [Origin; 12] = [
    ("reason of a verdict", source!("benchmark/src/api/status/verdict.rs"), "pub enum ReasonKind {", REASONS),
    ("verdict", source!("benchmark/src/api/status/verdict.rs"), "pub enum VerdictValue {", NO_TABLE),
    ("limiting factor", source!("benchmark/src/api/status/verdict.rs"), "pub enum LimitedBy {", LIMITS),
    ("phase", source!("benchmark/src/api/status.rs"), "pub enum Phase {", PHASES),
    ("condition", source!("benchmark/src/report/conditions.rs"), "pub mod condition {", NO_TABLE),
    ("reason of a condition", source!("benchmark/src/report/conditions.rs"), "pub mod reason {", NO_TABLE),
    ("reason of Failed", source!("benchmark/src/measurement/outcome.rs"), "pub mod reason {", NO_TABLE),
    ("reason of Failed, from a shard", source!("wire/src/call.rs"), "pub enum FailureReason {", NO_TABLE),
    ("reason of Failed, a call refused by a shard", source!("wire/src/answer.rs"), "pub enum RefusalCode {", NO_TABLE),
    (
        "outcome of a threshold",
        source!("benchmark/src/api/status/threshold.rs"),
        "pub enum ThresholdOutcome {",
        NO_TABLE,
    ),
    (
        "outcome of a comparison",
        source!("benchmark/src/api/status/comparison.rs"),
        "pub enum ComparisonOutcome {",
        NO_TABLE,
    ),
    (
        "exit code",
        source!("cli/src/exit.rs"),
        "use redisbench_benchmark::report::conditions::{condition, find, reason};",
        NO_TABLE,
    ),
];

/// Prints what `name` means, or without a name the list of all names.
pub fn explain(name: Option<&str>) -> anyhow::Result<u8> {
    let entries = entries();
    let Some(name) = name else {
        render::write(list(&entries))?;
        return Ok(GOOD);
    };
    let found: Vec<&Entry> = entries.iter().filter(|entry| entry.name.eq_ignore_ascii_case(name)).collect();
    if found.is_empty() {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let near = nearest(name, &names);
        let hint = if near.is_empty() {
            "explain without a name lists all".to_owned()
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        eprintln!("error: {name} is no reason, condition, phase or exit code; {hint}");
        return Ok(USAGE);
    }
    render::write(found.into_iter().map(text).collect::<Vec<_>>().join("\n"))?;
    Ok(GOOD)
}

/// At most three of `names` that are most like `name`, without their repeats.
pub fn nearest<'a>(name: &str, names: &[&'a str]) -> Vec<&'a str> {
    const LIKE: f64 = 0.8;
    let name = name.to_lowercase();
    let mut near: Vec<(f64, &str)> = names
        .iter()
        .map(|other| (strsim::jaro_winkler(&name, &other.to_lowercase()), *other))
        .filter(|(likeness, _)| *likeness >= LIKE)
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    near.dedup();
    near.into_iter().map(|(_, name)| name).take(3).collect()
}

fn entries() -> Vec<Entry> {
    let of = |(kind, source, opening, table): Origin| {
        documented(source, opening).into_iter().map(move |(name, meaning)| {
            let columns = cells(table, &name);
            Entry { name, kind, meaning, columns }
        })
    };
    ORIGINS.into_iter().flat_map(of).collect()
}

fn list(entries: &[Entry]) -> String {
    let mut text = String::new();
    for (kind, ..) in ORIGINS {
        let names: Vec<&str> =
            entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.name.as_str()).collect();
        let _ = writeln!(text, "{kind}:\n  {}", names.join(" "));
    }
    text
}

fn text(entry: &Entry) -> String {
    let mut text = format!("{} ({})\n  {}\n", entry.name, entry.kind, entry.meaning);
    for column in &entry.columns {
        let _ = writeln!(text, "  {column}");
    }
    text
}

/// The variants or constants after the line `opening` of `source`, up to the end of their item, with their doc comments.
fn documented(source: &str, opening: &str) -> Vec<(String, String)> {
    let mut items = Vec::new();
    let mut about: Vec<&str> = Vec::new();
    for line in source.lines().skip_while(|line| line.trim() != opening).skip(1) {
        if line == "}" || line.starts_with("pub fn ") {
            break;
        }
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            about.push(text.trim());
            continue;
        }
        if let Some(name) = name(line) {
            items.push((name.to_owned(), plain(&about.join(" "))));
        }
        if !line.starts_with('#') {
            about.clear();
        }
    }
    items
}

/// The name of a variant, or the value of a constant.
fn name(line: &str) -> Option<&str> {
    if let Some((_, value)) = line.split_once(" = ").filter(|_| line.contains("const ")) {
        return Some(value.trim_end_matches(';').trim_matches('"'));
    }
    let variant = line.strip_suffix(',')?;
    variant.chars().all(char::is_alphanumeric).then_some(variant)
}

/// The cells after the first of the rows of `name`, or of `name` with a component, each with its head.
fn cells((page, heads): Table, name: &str) -> Vec<String> {
    let titles = heads.trim_end_matches(" |").split(" | ").skip(1);
    let code = format!("`{name}`");
    let rows = page.lines().skip_while(|line| *line != heads).skip(2).take_while(|line| line.starts_with('|'));
    let of_row = |line: &str| {
        let (first, rest) = line.strip_prefix("| ")?.trim_end_matches(" |").split_once(" | ")?;
        let component = match first.strip_prefix(code.as_str()) {
            Some("") => String::new(),
            Some(component) => format!("{}: ", component.strip_prefix(", ")?),
            None => (first == name).then(String::new)?,
        };
        let cells = titles.clone().zip(rest.split(" | ")).filter(|(_, cell)| !cell.is_empty());
        Some(cells.map(|(title, cell)| plain(&format!("{title}: {component}{cell}"))).collect::<Vec<_>>())
    };
    rows.filter_map(of_row).flatten().collect()
}

/// Without the markup of links and code.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        let (label, after) = after.split_once(']').unwrap_or((after, ""));
        let link = after.strip_prefix('(').and_then(|link| link.split_once(')'));
        rest = link.map_or(after, |(_, after)| after);
        if link.is_some() || label.starts_with('`') {
            plain.push_str(label);
        } else {
            let _ = write!(plain, "[{label}]");
        }
    }
    plain.push_str(rest);
    plain.replace('`', "")
}

#[cfg(test)]
mod page;

#[cfg(test)]
mod tests {
    use redisbench_benchmark::api::status::{LimitedBy, Phase, ReasonKind, ThresholdOutcome, VerdictValue};
    use redisbench_benchmark::report::conditions::reason;

    use super::*;

    fn found(name: &str) -> Vec<Entry> {
        entries().into_iter().filter(|entry| entry.name == name).collect()
    }

    #[test]
    fn a_reason_says_what_to_do() {
        let of_verdict = &found("ShardLost")[0];
        assert_eq!(of_verdict.meaning, "A shard was lost before it gave its result.");
        assert_eq!(of_verdict.columns.last().unwrap(), "what to do: fix the cause in the message");
        assert_eq!(found("Preparing")[0].columns.len(), 2, "a phase: when it ends, and what an error does");
        let rate = &found("Rate")[0].columns;
        assert!(rate[0].starts_with("when: the rate was met and no backlog grew: ask for more, or search"), "{rate:?}");
        let [of_verdict, limit] = &found("GeneratorCPU")[..] else { panic!("{:?}", found("GeneratorCPU")) };
        assert!(of_verdict.columns[0].starts_with("what was found: shards lacked processor time"), "{of_verdict:?}");
        assert!(limit.columns[0].starts_with("when: at least half of the shards lacked"), "{limit:?}");
        let target = &found("Target")[0].columns;
        assert!(target.len() == 4 && target[0].starts_with("when: ID/MainThread: the main thread"), "{target:?}");
    }

    #[test]
    fn every_kind_has_names_and_every_name_a_meaning() {
        let entries = entries();
        for (kind, ..) in ORIGINS {
            let of_kind: Vec<_> = entries.iter().filter(|entry| entry.kind == kind).collect();
            assert!(of_kind.len() >= 3, "{kind}: {of_kind:?}");
        }
        // Names that say everything have no comment.
        let bare: Vec<_> = entries.iter().filter(|one| one.meaning.is_empty()).map(|one| one.name.as_str()).collect();
        assert_eq!(bare, ["Accepted", "InvalidSpec", "WrongReplies", "ThresholdsMet"]);
        for value in [
            format!("{:?}", ReasonKind::Unsteady),
            format!("{:?}", VerdictValue::Invalid),
            format!("{:?}", LimitedBy::Unknown),
            format!("{:?}", Phase::Aborted),
            format!("{:?}", ThresholdOutcome::Failed),
            reason::API_SERVER_FAILING.to_owned(),
            "AuthenticationFailed".to_owned(),
        ] {
            assert!(!found(&value).is_empty(), "{value} is not explained");
        }
    }

    #[test]
    fn exit_codes_are_those_of_the_program() {
        let codes: Vec<_> =
            entries().into_iter().filter(|entry| entry.kind == "exit code").map(|entry| entry.name).collect();
        assert_eq!(codes, ["0", "1", "2", "3", "4", "5"]);
        assert!(found("2")[0].meaning.contains("usage"));
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbours() {
        assert_eq!(nearest("shardlots", &["ShardLost", "Errors", "ShardLost"]), ["ShardLost"]);
        assert_eq!(nearest("xyz", &["ShardLost"]), [""; 0]);
    }
}
