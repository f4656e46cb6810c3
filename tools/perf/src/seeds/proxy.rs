//! `RedisHappy`: a server with `HAProxy` in front of it, against the server itself.

use redisbench_statistics::summary::median;
use redisbench_testkit::haproxy::HaProxy;
use redisbench_testkit::servers::RedisServer;
use redisbench_testkit::status::list;
use serde_json::Value;

use super::claims::{direction, place};
use super::manifest::Seed;
use crate::bench::Bench;
use crate::comparison::{self, Metric, parameters};
use crate::markdown;

const SEED: Seed = Seed { file: "redishappy.yaml", changes: &[] };

/// Seconds after which the run is stopped. Its 210 trials take twelve minutes.
const LIMIT: u32 = 1_500;

const DIRECT: &str = "direct";
const PROXY: &str = "redishappy";
const PIPELINE: &str = "load.pipeline";

const TESTS: [&str; 7] = ["set", "get", "incr", "lpush", "lpop", "sadd", "spop"];

/// The document's throughputs of each test with a pipeline: direct, and through the proxy.
struct Theirs {
    pipeline: &'static str,
    direct: [f64; 7],
    proxy: [f64; 7],
}

const THEIRS: [Theirs; 3] = [
    Theirs {
        pipeline: "1",
        direct: [55_555.56, 75_414.78, 54_704.60, 55_279.16, 56_529.11, 75_414.78, 75_414.78],
        proxy: [37_565.74, 37_565.74, 37_579.86, 37_565.74, 37_579.86, 37_579.86, 37_579.86],
    },
    Theirs {
        pipeline: "10",
        direct: [534_759.31, 800_000.0, 680_272.12, 523_560.22, 584_795.31, 793_650.75, 800_000.0],
        proxy: [383_141.75, 384_615.41, 383_141.75, 383_141.75, 384_615.41, 384_615.41, 383_141.75],
    },
    Theirs {
        pipeline: "100",
        direct: [555_555.56, 1_333_333.25, 709_219.88, 520_833.34, 613_496.94, 1_149_425.38, 1_388_889.0],
        proxy: [558_659.19, 1_333_333.25, 704_225.31, 526_315.81, 613_496.94, 1_149_425.38, 1_408_450.62],
    },
];

type Row = [String; 9];

/// Makes the comparison. Returns its table.
pub fn tables(bench: &Bench, cpus: &str) -> anyhow::Result<String> {
    let redis = RedisServer::start(&[]);
    let proxy = HaProxy::start(&[&[redis.endpoint()]]);
    let proxied = proxy.endpoints().concat();
    let addresses = [("redis:6379", redis.endpoint()), ("haproxy:6379", proxied)];
    let addresses = addresses.each_ref().map(|(endpoint, address)| (*endpoint, address.as_str()));
    let object = SEED.run(bench, cpus, &addresses, "", LIMIT)?;
    let status = &object["status"];
    let left_out = status["comparisonLeftOut"].as_u64().unwrap_or_default();
    anyhow::ensure!(left_out == 0, "the status has no room for {left_out} comparisons");
    Ok(format!("{HOW}\n{}", text(status)))
}

const HOW: &str = "\
[redishappy.yaml](../../examples/seeds/redishappy.yaml) with `local`, not shortened: 100 connections and 100,000 requests in each trial, as
in the document. Its two targets are a redis-server, and a HAProxy in front of the same server. The document has each on a machine of its
own, with four processes of HAProxy; here the load generator, the server and HAProxy share the processors. The percentage is the throughput
through the proxy of the direct one, of five pairs of trials in turns; rates are medians.
";

fn text(status: &Value) -> String {
    let heads = [
        "test",
        "pipeline",
        "document: direct, requests/s",
        "through HAProxy",
        "percentage",
        "here: direct, requests/s",
        "through HAProxy",
        "percentage (95 % interval), outcome",
        "document's percentage",
    ];
    let all = comparison::all(status);
    let row = |theirs: &Theirs, test: usize| -> Row {
        let (name, pipeline) = (TESTS[test], theirs.pipeline);
        let (direct, proxy) = (theirs.direct[test], theirs.proxy[test]);
        let is = |one: &&comparison::Comparison| {
            let same_pipeline = one.parameters.get(PIPELINE).is_some_and(|value| value == pipeline);
            one.target == PROXY && one.preset.as_deref() == Some(name) && same_pipeline
        };
        let throughput = all.iter().find(is).and_then(|found| found.metric("Throughput"));
        let ratio = proxy / direct;
        let agreement = format!("{}, {}", direction(ratio, throughput), place(ratio, throughput));
        [
            name.to_uppercase(),
            pipeline.to_owned(),
            format!("{direct:.0}"),
            format!("{proxy:.0}"),
            format!("{:.0} %", 100.0 * ratio),
            rate(status, DIRECT, name, pipeline),
            rate(status, PROXY, name, pipeline),
            throughput.map_or_else(|| "-".to_owned(), percentage),
            agreement,
        ]
    };
    let mut rows = Vec::new();
    for theirs in &THEIRS {
        rows.extend((0..TESTS.len()).map(|test| row(theirs, test)));
    }
    let (count, agreeing) = (rows.len(), rows.iter().filter(|row| row[8].starts_with("same direction")).count());
    let cautioned = all.iter().filter_map(|one| one.caution.as_deref()).collect::<Vec<_>>();
    let caution = cautioned.first().map(|caution| {
        format!("\n{} of {} comparisons have a caution. The first: {caution}.\n", cautioned.len(), all.len())
    });
    format!(
        "{}\n{agreeing} of {count} have the document's direction: slower, or no difference of 2 %. The last word of a row is where the \
         document's percentage is, seen from our interval.\n{}",
        markdown::table(heads, rows),
        caution.unwrap_or_default()
    )
}

/// Such as `62 % (60 to 64), Slower`.
fn percentage(metric: &Metric) -> String {
    let percent = |ratio: f64| format!("{:.0}", 100.0 * ratio);
    let interval =
        metric.interval.map(|interval| format!(" ({} to {})", percent(interval.lower), percent(interval.upper)));
    let ratio = metric.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{} %", percent(ratio)));
    format!("{ratio}{}, {}", interval.unwrap_or_default(), metric.outcome)
}

/// The median of a target's throughputs in a test, without Invalid trials.
fn rate(status: &Value, target: &str, test: &str, pipeline: &str) -> String {
    let is = |line: &&Value| {
        let same_pipeline = parameters(line).get(PIPELINE).is_some_and(|value| value == pipeline);
        line["target"] == target && line["preset"] == test && same_pipeline && line["verdict"] != "Invalid"
    };
    let lines = list(&status["trials"]).iter().filter(is);
    let rates: Vec<f64> = lines.filter_map(|line| line["achievedPerSecond"].as_u64()).map(|rate| rate as f64).collect();
    if rates.is_empty() { "-".to_owned() } else { format!("{:.0}", median(&rates)) }
}

#[cfg(test)]
mod tests {
    use redisbench_testkit::documents::read;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_test_and_pipeline_has_its_row() {
        let setting = json!({"load.pipeline": "10"});
        let trial = |target: &str, rate: u64| {
            json!({"target": target, "preset": "get", "parameters": setting, "achievedPerSecond": rate,
                "verdict": "Valid"})
        };
        let status = json!({
            "trials": [trial(DIRECT, 300_000), trial(PROXY, 150_000), trial(PROXY, 156_000)],
            "comparison": [{"target": PROXY, "preset": "get", "parameters": setting, "pairs": 5, "caution": "a limit",
                "metrics": [{"metric": "Throughput", "outcome": "Slower", "ratioMillionths": 510_000, "lowMillionths": 490_000,
                    "highMillionths": 530_000}]}],
        });
        let text = text(&status);
        for part in [
            "\n| GET | 10 | 800000 | 384615 | 48 % | 300000 | 153000 | 51 % (49 to 53), Slower | same direction, below |\n",
            "\n| SPOP | 100 | 1388889 | 1408451 | 101 % | - | - | - | not measured, - |\n",
            "\n1 of 21 have the document's direction",
            "\n1 of 1 comparisons have a caution. The first: a limit.\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
    }

    #[test]
    fn the_example_has_these_tests_and_addresses() {
        let manifest = read(&SEED.path());
        assert!(manifest.contains(&format!("preset: [{}]", TESTS.join(", "))), "{manifest}");
        assert!(
            manifest.contains(&format!("values: [{}]", THEIRS.map(|theirs| theirs.pipeline).join(", "))),
            "{manifest}"
        );
        let changed = SEED.changed(&manifest, &[("redis:6379", "one"), ("haproxy:6379", "two")]).unwrap();
        assert!(changed.contains(r#"["one"]"#) && changed.contains(r#"["two"]"#), "{changed}");
    }
}
