//! Checks that documents, dashboards and rules match the catalogue.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use prometheus_client::metrics::MetricType;
use redisbench_testkit::documents::{fresh_part, read};
use serde_json::Value;

use super::catalogue::{ALL, Metric, Of};

const PAGE: &str = "docs/metrics.md";

/// The names of metrics in `text`, without those of recording rules, which have colons.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)));
    words.filter(|word| ["redisbench_", "process_"].iter().any(|start| word.starts_with(start))).collect()
}

fn samples() -> BTreeSet<String> {
    let of = |metric: &&Metric| match metric.kind {
        MetricType::Histogram => {
            ["", "_bucket", "_sum", "_count"].map(|suffix| format!("{}{suffix}", metric.name)).to_vec()
        }
        _ => vec![metric.name.to_owned()],
    };
    ALL.iter().flat_map(of).collect()
}

fn dashboards() -> [(&'static str, Value); 2] {
    ["benchmark", "fleet"].map(|name| {
        let text = read(&format!("charts/redisbench-operator/dashboards/{name}.json"));
        (name, serde_json::from_str(&text).unwrap())
    })
}

/// Every query of a dashboard: of panels, variables and annotations.
fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if ["expr", "query"].contains(&name.as_str()) => found.push(text.clone()),
                    _ => queries(field, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, found)),
        _ => {}
    }
}

#[test]
fn dashboards_and_rules_name_metrics_that_exist() {
    let samples = samples();
    let mut shown = BTreeSet::new();
    let mut check = |file: &str, text: &str| {
        for name in named(text) {
            assert!(samples.contains(name), "{file} names {name}, which the operator does not serve");
            shown.insert(name.to_owned());
        }
    };
    for (name, dashboard) in dashboards() {
        let mut all = Vec::new();
        queries(&dashboard, &mut all);
        assert!(all.len() > 20, "{name}: {} queries", all.len());
        for query in &all {
            check(name, query);
        }
    }
    let rules = read("charts/redisbench-operator/rules.yaml");
    check("rules.yaml", &rules);
    // Nothing is measured that nobody can see.
    for metric in ALL {
        assert!(shown.iter().any(|name| name.starts_with(metric.name)), "no panel and no rule shows {}", metric.name);
    }
}

#[test]
fn dashboards_are_laid_out() {
    for (name, dashboard) in dashboards() {
        let mut ids = BTreeSet::new();
        let mut taken = BTreeSet::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: two panels have the id {}", panel["id"]);
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|field| panel["gridPos"][field].as_u64().unwrap());
            assert!(x + w <= 24, "{name}: {} is too wide", panel["title"]);
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{name}: {} covers another panel", panel["title"]);
            }
        }
    }
}

#[test]
fn names_follow_the_conventions() {
    let names: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), ALL.len(), "two metrics have the same name");
    for Metric { name, kind, labels, .. } in ALL {
        assert_eq!(matches!(kind, MetricType::Counter), name.ends_with("_total"), "{name}");
        // Reserved for summaries and histograms.
        assert!(!labels.contains(&"quantile") && !labels.contains(&"le"), "{name}");
    }
}

/// The tables of the page, by what the metrics describe.
fn tables() -> String {
    let mut text = String::new();
    for (of, title) in [(Of::Trial, "Trials"), (Of::Benchmark, "Benchmarks"), (Of::Operator, "The operator")] {
        let labels = of.labels().iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let labels = if labels.is_empty() { labels } else { format!("All have the labels {labels}.\n\n") };
        writeln!(text, "### {title}\n\n{labels}| metric | type | meaning |\n| --- | --- | --- |").unwrap();
        for Metric { name, kind, labels, help, .. } in ALL.iter().filter(|metric| metric.of == of) {
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            writeln!(text, "| `{name}{labels}` | {} | {help} |", kind.as_str()).unwrap();
        }
        text += "\n";
    }
    text
}

/// `make crds` writes the tables.
#[test]
fn fresh_page_of_metrics() {
    fresh_part(PAGE, &tables());
    let samples = samples();
    let page = read(PAGE);
    let unknown: Vec<_> = named(&page).into_iter().filter(|name| !samples.contains(*name)).collect();
    assert!(unknown.is_empty(), "{PAGE} names {unknown:?}, which the operator does not serve");
}
