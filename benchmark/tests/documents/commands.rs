//! Names in the commands of the documents. The tests of `kubectl-redisbench` parse its own command lines.

use redisbench_testkit::documents::{read, root};
use redisbench_testkit::markdown::{commands, pages, parts, runner};
use serde_json::Value;

#[test]
fn every_command_has_a_test_that_runs_it() {
    for command in commands() {
        assert!(runner(&command.text).is_some(), "{}, line {}: {}", command.page, command.line, command.text);
    }
}

#[test]
fn make_targets_that_documents_name_exist() {
    let rules = read("Makefile") + &read("e2e/cluster/cluster.mk");
    for page in pages() {
        let text = read(&page);
        let (_, blocks) = parts(&text);
        let typed = blocks.iter().flat_map(|block| block.text.lines()).filter_map(|line| line.strip_prefix("make "));
        for rest in text.split("`make ").skip(1).chain(typed) {
            let target = rest.split(|c: char| c == '`' || c.is_whitespace()).next().unwrap_or_default();
            assert!(rules.contains(&format!("\n{target}:")), "{page} names make {target}");
        }
    }
}

#[test]
fn files_that_commands_read_exist() {
    let mut seen = 0;
    for page in pages() {
        for block in parts(&read(&page)).1 {
            for word in block.text.split(|letter: char| letter.is_whitespace() || "'\"`,;()".contains(letter)) {
                if ["examples/", "charts/"].iter().any(|folder| word.starts_with(folder)) {
                    assert!(root().join(word).exists(), "{page}, line {}: {word}", block.line);
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 10, "only {seen} files");
}

#[test]
fn values_that_commands_set_are_in_the_chart() {
    let values: Value = serde_yaml::from_str(&read("charts/redisbench-operator/values.yaml")).unwrap();
    let mut seen = 0;
    for page in pages() {
        for block in parts(&read(&page)).1 {
            let words: Vec<&str> = block.text.split_whitespace().collect();
            for set in words.windows(2).filter(|pair| pair[0] == "--set") {
                let path = set[1].split('=').next().unwrap_or_default();
                let known = path.split('.').try_fold(&values, |at, name| at.get(name)).is_some();
                assert!(known, "{page}, line {}: the chart has no value {path}", block.line);
                seen += 1;
            }
        }
    }
    assert!(seen > 1, "only {seen} values");
}
