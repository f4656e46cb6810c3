//! fred: its clients without and with pipelining, and redis-rs in a pool.

use redisbench_statistics::summary::median;
use redisbench_testkit::status::list;
use serde_json::Value;

use super::claims::{direction, place};
use super::manifest::Seed;
use crate::bench::Bench;
use crate::comparison::{self, Metric};
use crate::markdown;

/// A client of the manifest, and its throughput in the document.
type Theirs = (&'static str, f64);

/// A comparison of the document.
struct Compared {
    seed: Seed,
    servers: &'static str,
    baseline: Theirs,
    others: &'static [Theirs],
}

const SHORTER: (&str, &str) = ("    requests: 200000\n", "    requests: 50000\n");

const ALL: [Compared; 2] = [
    Compared {
        seed: Seed { file: "fred-no-pipeline.yaml", changes: &[SHORTER] },
        servers: "cluster",
        baseline: ("no-pipeline", 369_849.0),
        others: &[("pipeline", 2_682_403.0)],
    },
    Compared {
        seed: Seed { file: "fred-centralised.yaml", changes: &[SHORTER] },
        servers: "one server",
        baseline: ("no-pipeline", 191_732.0),
        others: &[("redis-rs-bb8", 97_131.0), ("pipeline", 1_741_553.0)],
    },
];

/// Seconds after which a run is stopped. The longer one takes two minutes.
const LIMIT: u32 = 600;

type Row = [String; 8];

/// Makes the comparisons. Returns their table.
pub fn tables(bench: &Bench, cpus: &str) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    let mut cautions = String::new();
    for compared in &ALL {
        let object = compared.seed.run(bench, cpus, &[], "--with-redis", LIMIT)?;
        rows.extend(compared.rows(&object["status"]));
        cautions += &compared.cautions(&object["status"]);
    }
    let heads = [
        "servers",
        "client",
        "document, requests/s",
        "its ratio",
        "here, requests/s",
        "our ratio (95 % interval), outcome",
        "direction",
        "document's ratio to our interval",
    ];
    Ok(format!("{HOW}\n{}{cautions}", markdown::table(heads, rows)))
}

const HOW: &str = "\
[fred-no-pipeline.yaml](../../examples/seeds/fred-no-pipeline.yaml) and
[fred-centralised.yaml](../../examples/seeds/fred-centralised.yaml) with `local --with-redis`: 10,000 callers share 15 clients. Shortened:
50,000 requests in each trial, for the 200,000 of these files and the document's 10,000,000. Ratios are those to the client without
pipelining, of five pairs of trials in turns; rates are medians. *Same direction*: both are faster, or both slower.
";

impl Compared {
    fn rows(&self, status: &Value) -> Vec<Row> {
        let (baseline, theirs) = self.baseline;
        let name = |client: &str| [self.servers.to_owned(), client.to_owned()];
        let [servers, client] = name(baseline);
        let rate = |client: &str| rate(status, client);
        let unknown = || "-".to_owned();
        let first = [
            servers,
            client,
            format!("{theirs:.0}"),
            "baseline".to_owned(),
            rate(baseline),
            "baseline".to_owned(),
            unknown(),
            unknown(),
        ];
        let all = comparison::all(status);
        let other = |&(client, of_client): &Theirs| {
            let found = all.iter().find(|one| one.target == client);
            let throughput = found.and_then(|found| found.metric("Throughput"));
            let ratio = of_client / theirs;
            let [servers, client_name] = name(client);
            [
                servers,
                client_name,
                format!("{of_client:.0}"),
                format!("{ratio:.2}"),
                rate(client),
                throughput.map_or_else(unknown, Metric::text),
                direction(ratio, throughput).to_owned(),
                place(ratio, throughput).to_owned(),
            ]
        };
        std::iter::once(first).chain(self.others.iter().map(other)).collect()
    }

    fn cautions(&self, status: &Value) -> String {
        let of = |one: comparison::Comparison| Some((one.target, one.pairs, one.caution?));
        let told = comparison::all(status).into_iter().filter_map(of);
        told.map(|(client, pairs, caution)| format!("\n{}, {client}, {pairs} pairs: {caution}.\n", self.servers))
            .collect()
    }
}

/// The median of a client's throughputs, without Invalid trials.
fn rate(status: &Value, client: &str) -> String {
    let of_client =
        list(&status["trials"]).iter().filter(|line| line["client"] == client && line["verdict"] != "Invalid");
    let rates: Vec<f64> =
        of_client.filter_map(|line| line["achievedPerSecond"].as_u64()).map(|rate| rate as f64).collect();
    if rates.is_empty() { "-".to_owned() } else { format!("{:.0}", median(&rates)) }
}

#[cfg(test)]
mod tests {
    use redisbench_testkit::documents::read;
    use serde_json::json;

    use super::*;

    #[test]
    fn clients_have_their_rows() {
        let trial = |client: &str, rate: u64, verdict: &str| json!({"client": client, "achievedPerSecond": rate, "verdict": verdict});
        let status = json!({
            "trials": [trial("pipeline", 90_000, "Valid"), trial("pipeline", 110_000, "Degraded"), trial("pipeline", 1, "Invalid"),
                trial("no-pipeline", 20_000, "Valid")],
            "comparison": [{"target": "pipeline", "pairs": 4, "caution": "a limit", "metrics": [{"metric": "Throughput",
                "outcome": "Faster", "ratioMillionths": 5_000_000, "lowMillionths": 4_000_000, "highMillionths": 6_000_000}]}],
        });
        let rows = ALL[0].rows(&status);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].join(" | "), "cluster | no-pipeline | 369849 | baseline | 20000 | baseline | - | -");
        let expected =
            "cluster | pipeline | 2682403 | 7.25 | 100000 | 5.00 (4.00 to 6.00), Faster | same direction | above";
        assert_eq!(rows[1].join(" | "), expected);
        assert_eq!(ALL[0].cautions(&status), "\ncluster, pipeline, 4 pairs: a limit.\n");
        let unknown = ALL[1].rows(&json!({}));
        assert_eq!(unknown[1].join(" | "), "one server | redis-rs-bb8 | 97131 | 0.51 | - | - | not measured | -");
    }

    #[test]
    fn the_examples_have_what_is_shortened_and_these_clients() {
        for Compared { seed, baseline, others, .. } in ALL {
            let manifest = read(&seed.path());
            assert!(seed.changed(&manifest, &[]).unwrap().contains("requests: 50000\n"));
            assert!(manifest.contains(&format!("\n  comparison: {{baseline: {}}}\n", baseline.0)));
            for (client, _) in others {
                assert!(manifest.contains(&format!("- name: {client}\n")), "{client}");
            }
        }
    }
}
