//! What the documents show is what there is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn readme_shows_the_quickstart_as_it_is() {
    let example = read("examples/quickstart.yaml");
    let manifest: Vec<&str> = example.lines().skip_while(|line| line.starts_with('#')).collect();
    let shown = format!("```yaml\n{}\n```", manifest.join("\n"));
    assert!(read("README.md").contains(&shown), "README.md must show examples/quickstart.yaml:\n{shown}");
}

#[test]
fn links_lead_somewhere() {
    for document in [
        "README.md",
        "docs/architecture.md",
        "docs/coming-from.md",
        "docs/measurement.md",
        "docs/security.md",
        "docs/statistics.md",
        "docs/testing.md",
    ] {
        let text = read(document);
        let folder = root().join(document).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            let local = !path.is_empty() && !link.contains("://");
            assert!(!local || folder.join(path).exists(), "{document} links to {link}");
        }
    }
}

#[test]
fn make_targets_that_documents_name_exist() {
    let rules = read("Makefile") + &read("e2e/cluster/cluster.mk");
    for document in ["README.md", "docs/testing.md", "e2e/README.md"] {
        let text = read(document);
        for rest in text.split("`make ").skip(1) {
            let target = rest.split(|c: char| c == '`' || c.is_whitespace()).next().unwrap_or_default();
            assert!(rules.contains(&format!("\n{target}:")), "{document} names make {target}");
        }
    }
}

/// The options of other tools in one document: those of each tool's table, and the fields that it names.
fn tables(text: &str) -> impl Iterator<Item = (&str, Vec<Vec<&str>>)> {
    text.split("\n## ").skip(1).map(|chapter| {
        let rows = chapter.lines().filter(|line| line.starts_with("| ") && !line.contains("---"));
        let cells = rows.skip(1).map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect());
        (chapter.lines().next().unwrap_or_default(), cells.collect())
    })
}

fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn fields_for_the_options_of_other_tools_exist() {
    let crd: serde_yaml::Value = serde_yaml::from_str(&read("crds/redisbenchmarks.redisbench.dev.yaml")).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let text = read("docs/coming-from.md");
    let fields: Vec<_> =
        in_backticks(&text).filter(|word| ["spec.", "status."].iter().any(|part| word.starts_with(part))).collect();
    assert!(fields.len() > 100, "only {} fields", fields.len());
    for field in fields {
        let found = field.split('.').fold(schema, |at, name| {
            let at = at.get("items").unwrap_or(at);
            at.get("properties").map_or(&serde_yaml::Value::Null, |fields| &fields[name])
        });
        assert!(!found.is_null(), "docs/coming-from.md names {field}, which the CRD does not have");
    }
    let tables: Vec<_> = tables(&text).collect();
    assert_eq!(tables.len(), 5, "one table for each tool");
    for (tool, rows) in tables {
        assert!(rows.len() > 10, "{tool}: {} rows", rows.len());
        for row in rows {
            let [option, here, how] = row[..] else { panic!("{tool}: {row:?}") };
            let reasoned = ["no", "later"].contains(&here) && !how.is_empty();
            assert!(reasoned || here.starts_with("`spec.") || here.starts_with("`status."), "{tool}: {option}: {here}");
        }
    }
}

#[test]
fn every_option_of_redis_benchmark_has_its_row() {
    let help = Command::new("redis-benchmark").arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let text = read("docs/coming-from.md");
    let (_, rows) = tables(&text).find(|(tool, _)| *tool == "redis-benchmark").unwrap();
    let known: Vec<_> = rows.iter().flat_map(|row| in_backticks(row[0])).collect();
    let options = help.lines().filter_map(|line| line.strip_prefix(" -").and(line.split_whitespace().next()));
    let mut seen = 0;
    for option in options {
        assert!(known.contains(&option), "docs/coming-from.md has no row for redis-benchmark {option}");
        seen += 1;
    }
    assert!(seen > 25, "only {seen} options in: {help}");
}
