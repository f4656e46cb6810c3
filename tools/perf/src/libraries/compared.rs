//! The clients of an example against one of them, and two libraries beside a plain program.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use redisbench_testkit::status::list;
use serde_json::Value;

use super::comparison::{self, Metric};
use super::{local, page, plain};
use crate::bench::{Bench, all_cpus};
use crate::machine::{COMMIT, COMPILER, Machine, REDIS_SERVER};
use crate::markdown;

const MANIFEST: &str = "examples/clients.yaml";

/// Seconds after which the example is stopped. It takes six minutes.
const LIMIT: u32 = 1_200;

/// Runs both, and prints and writes the tables.
pub fn compare(bench: &Bench) -> anyhow::Result<()> {
    let machine = Machine::look(bench, &[COMMIT, COMPILER, REDIS_SERVER])?;
    println!("{MANIFEST}: about six minutes");
    let object = local::run(bench, &all_cpus()?, Path::new(MANIFEST), "--with-redis", LIMIT).context(MANIFEST)?;
    let compared = tables(&object)?;
    println!("{compared}");
    let beside = plain::text(bench).context("the plain program");
    // The table above stands without it.
    let beside_text = beside.as_ref().map_or_else(|error| format!("Not measured: {error:#}.\n"), Clone::clone);
    println!("{beside_text}");
    let measured = machine.measured(bench, page::CLIENTS.target);
    let text = format!("{measured}\n{HOW}\n{compared}\n### Beside a plain program\n\n{beside_text}");
    bench.rewrite(|old| page::with(old, &page::CLIENTS, &text))?;
    beside.map(drop)
}

const HOW: &str = "\
`kubectl redisbench local -f examples/clients.yaml --with-redis`: the same requests at the same due times through each client, in turns.
Ratios are those to the baseline, with their confidence intervals. That of CPU, the requested metric, has 95 %; the others share 95 %.
CPU is the processor time of the whole shard per request, over all trials. p50 and p99 are medians of the trials, and count from the due
time. `null` answers without a server: what the callers cost.
";

/// The tables of the finished example.
fn tables(object: &Value) -> anyhow::Result<String> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let baseline = spec["comparison"]["baseline"].as_str().context("the example has no baseline")?;
    let all = comparison::all(status);
    anyhow::ensure!(!all.is_empty(), "the status has no comparison");
    let names: Vec<&str> = list(&spec["load"]["clients"]).iter().filter_map(|client| client["name"].as_str()).collect();
    let row = |name: &&str| {
        let cell = list(&status["repeats"]).iter().find(|cell| cell["client"] == **name);
        let at = |path: &str| cell.and_then(|cell| cell.pointer(path));
        let time = |path: &str| at(path).and_then(Value::as_u64).map_or_else(|| "-".to_owned(), microseconds);
        let text = |path: &str| at(path).and_then(Value::as_str).unwrap_or("-").to_owned();
        let found = all.iter().find(|one| one.target == **name);
        let against = |metric: &str| match found.and_then(|found| found.metric(metric)) {
            _ if *name == baseline => "baseline".to_owned(),
            found => found.map_or_else(|| "-".to_owned(), Metric::text),
        };
        [
            (*name).to_owned(),
            text("/cost/version"),
            time("/cost/cpuPerRequestNanoseconds"),
            against("CpuPerRequest"),
            time("/p50/medianNanoseconds"),
            against("P50"),
            time("/p99/medianNanoseconds"),
            against("P99"),
        ]
    };
    let heads = ["client", "library", "CPU per request", "ratio", "p50", "ratio", "p99", "ratio"];
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
        let text = tables(&object).unwrap();
        for part in [
            "| engine | none | 5.0 µs | baseline | - | baseline | - | baseline |\n",
            "| fred | fred 10 | 15.0 µs | 3.00 (2.90 to 3.10), Slower | 120.0 µs | 1.50 (1.40 to 1.60), Slower | - | - |\n",
            "\nfred against engine, 5 pairs: a limit.\n",
            "\n- fred: 1 of 2; the first is Degraded: late\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        let error = tables(&json!({"spec": object["spec"], "status": {}})).unwrap_err();
        assert_eq!(error.to_string(), "the status has no comparison");
    }
}
