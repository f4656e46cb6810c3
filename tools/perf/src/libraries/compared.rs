//! The clients of two examples, each against one of them, and two libraries beside a plain program.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use redisbench_testkit::status::list;
use serde_json::Value;

use super::page::{self, PAGE};
use super::plain;
use crate::bench::{Bench, all_cpus};
use crate::comparison::{self, Metric};
use crate::local;
use crate::machine::{COMMIT, COMPILER, Machine, REDIS_SERVER};
use crate::markdown;

/// Seconds after which an example is stopped. The longer one takes six minutes.
const LIMIT: u32 = 1_200;

/// An example, and the columns of its table.
struct Example {
    manifest: &'static str,
    how: &'static str,
    figures: [Figure; 3],
}

/// A figure of a client, and its ratio to that of the baseline.
struct Figure {
    head: &'static str,
    /// Its place in an entry of `status.repeats`.
    path: &'static str,
    text: fn(u64) -> String,
    metric: &'static str,
}

const CPU: Figure = Figure {
    head: "CPU per request",
    path: "/cost/cpuPerRequestNanoseconds",
    text: microseconds,
    metric: "CpuPerRequest",
};
const P50: Figure = Figure { head: "p50", path: "/p50/medianNanoseconds", text: microseconds, metric: "P50" };
const P99: Figure = Figure { head: "p99", path: "/p99/medianNanoseconds", text: microseconds, metric: "P99" };
const THROUGHPUT: Figure = Figure {
    head: "requests per second",
    path: "/throughput/medianPerSecond",
    text: |rate| rate.to_string(),
    metric: "Throughput",
};

const EXAMPLES: [Example; 2] = [
    Example {
        manifest: "examples/clients.yaml",
        how: "\
The same requests at the same due times through each client, in turns. The requested metric is CPU. p50 and p99 count from the due time.
`null` answers without a server: what the callers cost.
",
        figures: [CPU, P50, P99],
    },
    Example {
        manifest: "examples/seeds/fred-centralised.yaml",
        how: "\
The comparison of fred's own benchmark, smaller: 10,000 callers make requests as fast as 15 clients or connections let them. The requested
metric is throughput. [seeds.md](seeds.md) has the figures of its document beside these clients.
",
        figures: [THROUGHPUT, CPU, P99],
    },
];

/// Runs all, and prints and writes the tables.
pub fn compare(bench: &Bench) -> anyhow::Result<()> {
    let machine = Machine::look(bench, &[COMMIT, COMPILER, REDIS_SERVER])?;
    let cpus = all_cpus()?;
    let mut compared = String::new();
    for Example { manifest, how, figures } in &EXAMPLES {
        println!("{manifest}: some minutes");
        let object = local::run(bench, &cpus, Path::new(manifest), "--with-redis", LIMIT).context(*manifest)?;
        let tables = tables(&object, figures).context(*manifest)?;
        println!("{tables}");
        let _ = write!(compared, "### `{manifest}`\n\n{how}\n{tables}");
    }
    let beside = plain::text(bench).context("the plain program");
    // The tables above stand without it.
    let beside_text = beside.as_ref().map_or_else(|error| format!("Not measured: {error:#}.\n"), Clone::clone);
    println!("{beside_text}");
    let measured = machine.measured(bench, page::CLIENTS.target);
    let text = format!("{measured}\n{HOW}\n{compared}### Beside a plain program\n\n{beside_text}");
    bench.rewrite(|old| PAGE.with(old, &page::CLIENTS, &text))?;
    beside.map(drop)
}

const HOW: &str = "\
Each table is an example, run unchanged by `kubectl redisbench local -f EXAMPLE --with-redis`. Ratios are those to the baseline, with their
confidence intervals. That of the requested metric has 95 %; the others share 95 %. CPU is the processor time of the whole shard per
request, over all trials. Other figures are medians of the trials.
";

/// The tables of the finished example.
fn tables(object: &Value, figures: &[Figure; 3]) -> anyhow::Result<String> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let baseline = spec["comparison"]["baseline"].as_str().context("the example has no baseline")?;
    let all = comparison::all(status);
    anyhow::ensure!(!all.is_empty(), "the status has no comparison");
    let names: Vec<&str> = list(&spec["load"]["clients"]).iter().filter_map(|client| client["name"].as_str()).collect();
    let row = |name: &&str| {
        let cell = list(&status["repeats"]).iter().find(|cell| cell["client"] == **name);
        let at = |path: &str| cell.and_then(|cell| cell.pointer(path));
        let found = all.iter().find(|one| one.target == **name);
        let [[one, of_one], [two, of_two], [three, of_three]] =
            figures.each_ref().map(|Figure { path, text, metric, .. }| {
                let own = at(path).and_then(Value::as_u64).map_or_else(|| "-".to_owned(), text);
                let ratio = match found.and_then(|found| found.metric(metric)) {
                    _ if *name == baseline => "baseline".to_owned(),
                    found => found.map_or_else(|| "-".to_owned(), Metric::text),
                };
                [own, ratio]
            });
        let version = at("/cost/version").and_then(Value::as_str).unwrap_or("-");
        [(*name).to_owned(), version.to_owned(), one, of_one, two, of_two, three, of_three]
    };
    let [first, second, third] = figures.each_ref().map(|figure| figure.head);
    let heads = ["client", "library", first, "ratio", second, "ratio", third, "ratio"];
    let mut text = markdown::table(heads, names.iter().map(row));
    for one in &all {
        if let Some(caution) = &one.caution {
            let _ = writeln!(text, "\n{} against {baseline}, {} pairs: {caution}.", one.target, one.pairs);
        }
    }
    let doubtful: Vec<String> = names.iter().filter_map(|name| doubtful(status, name)).collect();
    if !doubtful.is_empty() {
        let _ = writeln!(text, "\nTrials that are not Valid; Invalid ones do not count:\n\n{}", doubtful.concat());
    }
    Ok(text)
}

/// The number of a client's trials that are not Valid, and why the first of them is not.
fn doubtful(status: &Value, client: &str) -> Option<String> {
    let of_client = || list(&status["trials"]).iter().filter(move |line| line["client"] == client);
    let doubtful: Vec<&Value> = of_client().filter(|line| line["verdict"] != "Valid").collect();
    let first = doubtful.first()?;
    let text = |field: &str| first[field].as_str().unwrap_or("unknown");
    let (count, all) = (doubtful.len(), of_client().count());
    Some(format!("- {client}: {count} of {all}; the first is {}: {}\n", text("verdict"), text("why")))
}

fn microseconds(nanoseconds: u64) -> String {
    format!("{:.1} µs", nanoseconds as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_client_has_its_row() {
        let metric = |name: &str, ratio: u64| {
            json!({"metric": name, "outcome": "Slower", "ratioMillionths": ratio, "lowMillionths": ratio - 100_000,
                "highMillionths": ratio + 100_000})
        };
        let object = json!({
            "spec": {
                "load": {"clients": [{"name": "engine"}, {"name": "fred"}]},
                "comparison": {"baseline": "engine"},
            },
            "status": {
                "repeats": [
                    {"client": "engine", "cost": {"cpuPerRequestNanoseconds": 5_000, "version": "none"}},
                    {"client": "fred", "cost": {"cpuPerRequestNanoseconds": 15_000, "version": "fred 10"},
                        "p50": {"medianNanoseconds": 120_000}},
                ],
                "comparison": [{"target": "fred", "baseline": "engine", "pairs": 5, "caution": "a limit",
                    "metrics": [metric("CpuPerRequest", 3_000_000), metric("P50", 1_500_000)]}],
                "trials": [
                    {"client": "engine", "verdict": "Valid"},
                    {"client": "fred", "verdict": "Valid"},
                    {"client": "fred", "verdict": "Degraded", "why": "late"},
                ],
            },
        });
        let text = tables(&object, &EXAMPLES[0].figures).unwrap();
        for part in [
            "| engine | none | 5.0 µs | baseline | - | baseline | - | baseline |\n",
            "| fred | fred 10 | 15.0 µs | 3.00 (2.90 to 3.10), Slower | 120.0 µs | 1.50 (1.40 to 1.60), Slower | - | - |\n",
            "\nfred against engine, 5 pairs: a limit.\n",
            "\n- fred: 1 of 2; the first is Degraded: late\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        let error = tables(&json!({"spec": object["spec"], "status": {}}), &EXAMPLES[0].figures).unwrap_err();
        assert_eq!(error.to_string(), "the status has no comparison");
    }

    #[test]
    fn each_example_has_its_own_columns() {
        let object = json!({
            "spec": {"load": {"clients": [{"name": "pipeline"}]}, "comparison": {"baseline": "no-pipeline"}},
            "status": {
                "repeats": [{"client": "pipeline", "throughput": {"medianPerSecond": 90_000}}],
                "comparison": [{"target": "pipeline", "metrics": [{"metric": "Throughput", "outcome": "Faster",
                    "ratioMillionths": 9_000_000, "lowMillionths": 8_500_000, "highMillionths": 9_500_000}]}],
            },
        });
        let text = tables(&object, &EXAMPLES[1].figures).unwrap();
        assert!(
            text.starts_with("| client | library | requests per second | ratio | CPU per request | ratio | p99 |"),
            "{text}"
        );
        assert!(text.contains("\n| pipeline | - | 90000 | 9.00 (8.50 to 9.50), Faster | - | - | - | - |\n"), "{text}");
    }
}
