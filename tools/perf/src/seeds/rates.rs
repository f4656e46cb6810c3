//! redis-client: the highest stable rate for each size of a batch, and that of smart batching.

use redisbench_statistics::Interval;
use redisbench_testkit::status::list;
use serde_json::Value;

use super::claims::{Bound, verdict};
use super::manifest::Seed;
use crate::bench::Bench;
use crate::comparison::parameters;
use crate::markdown;

/// Fewer steps: a higher lowest rate, and a wider tolerance.
const SHORTER: (&str, &str) = (
    "rate: {min: 5000, max: 2000000, toleranceBasisPoints: 500}",
    "rate: {min: 20000, max: 1280000, toleranceBasisPoints: 2000}",
);

const TABLE: Seed =
    Seed { file: "redis-client-table.yaml", changes: &[SHORTER, ("[1, 2, 4, 8, 16, 32]", "[1, 4, 16, 32]")] };
const SMART: Seed = Seed { file: "redis-client-smart-batching.yaml", changes: &[SHORTER] };

/// Seconds after which a run is stopped. Four searches of 13 steps take 13 minutes.
const LIMIT: u32 = 1_500;

/// The sizes of batches, and the rate of each in the document's schedule.
const SCHEDULE: [(&str, f64); 4] = [("1", 140_000.0), ("4", 360_000.0), ("16", 600_000.0), ("32", 750_000.0)];
const SMART_BATCHING: &str = "smart batching";
/// The rate of smart batching in its schedule.
const SCHEDULED: f64 = 1_100_000.0;

/// The result of a search.
#[derive(Clone, Debug, Default)]
struct Found {
    /// The highest rate that holds.
    good: Option<f64>,
    /// The lowest rate above that does not.
    bad: Option<f64>,
    ending: String,
    limited_by: String,
}

impl Found {
    fn read(result: &Value) -> Self {
        let rate = |field: &str| result[field].as_u64().map(|rate| rate as f64);
        let text = |field: &str| result[field].as_str().unwrap_or("-").to_owned();
        Self {
            good: rate("lastGoodPerSecond"),
            bad: rate("firstBadPerSecond"),
            ending: text("ending"),
            limited_by: text("limitedBy"),
        }
    }

    /// The bounds of the highest stable rate. Without an end if no rate failed.
    fn bracket(&self) -> Option<Interval> {
        Some(Interval { lower: self.good?, upper: self.bad.unwrap_or(f64::INFINITY) })
    }
}

/// The bounds of the ratio of two highest rates.
fn over(one: &Found, other: &Found) -> Option<Interval> {
    let (one, other) = (one.bracket()?, other.bracket()?);
    Some(Interval { lower: one.lower / other.upper, upper: one.upper / other.lower })
}

/// Makes the searches. Returns the tables.
pub fn tables(bench: &Bench, cpus: &str) -> anyhow::Result<String> {
    let table = TABLE.run(bench, cpus, &[], "--with-redis", LIMIT)?;
    let smart = SMART.run(bench, cpus, &[], "--with-redis", LIMIT)?;
    Ok(format!("{HOW}\n{}", text(&table["status"], &smart["status"])))
}

const HOW: &str = "\
[redis-client-table.yaml](../../examples/seeds/redis-client-table.yaml) and
[redis-client-smart-batching.yaml](../../examples/seeds/redis-client-smart-batching.yaml) with `local --with-redis`: a search for each size
of a batch, and one for smart batching. Shortened: the searches begin at 20,000 and end at 1,280,000 per second for 5,000 and 2,000,000,
their tolerance is 20 % for 5 %, and the sizes 2 and 8 of the document's six are left out. Each step measures 10 s for the document's five
minutes. The capacity is between the highest rate that held, which three fresh trials confirmed, and the lowest above it that failed.
`limited by` is the limit there. The rates of the document are those of its schedule.
";

fn text(table: &Value, smart: &Value) -> String {
    let of_size = |size: &str| {
        let is = |search: &&Value| parameters(search).get("load.pipeline").is_some_and(|value| value == size);
        list(&table["searches"]).iter().find(is).map(|search| Found::read(&search["result"])).unwrap_or_default()
    };
    let [one, four, sixteen, most] = SCHEDULE.map(|(size, _)| of_size(size));
    let smart = Found::read(&smart["search"]);
    let batches = SCHEDULE.map(|(size, rate)| (format!("batches of {size}"), rate));
    let rows = batches.into_iter().chain([(SMART_BATCHING.to_owned(), SCHEDULED)]);
    let rates = rows.zip([&one, &four, &sixteen, &most, &smart]).map(|((name, theirs), found)| {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
        [
            name,
            format!("{theirs:.0}"),
            rate(found.good),
            rate(found.bad),
            found.ending.clone(),
            found.limited_by.clone(),
        ]
    });
    let heads = ["client", "document, requests/s", "held, requests/s", "failed, requests/s", "ending", "limited by"];
    let claims = [
        ("batches of 4 reach more than single requests", "140000 and 360000", Bound::Above(1.0), over(&four, &one)),
        ("batches of 16 reach more than of 4", "360000 and 600000", Bound::Above(1.0), over(&sixteen, &four)),
        ("batches of 32 reach more than of 16", "600000 and 750000", Bound::Above(1.0), over(&most, &sixteen)),
        (
            "single requests reach less than 5 % of the maximum",
            "\"hard to achieve even 5%\"",
            Bound::Below(0.05),
            over(&one, &most),
        ),
        (
            "smart batching reaches more than batches of 32",
            "1500000 and 1300000",
            Bound::Above(1.0),
            over(&smart, &most),
        ),
        (
            "smart batching reaches ten times single requests",
            "\"order-of-magnitude\"",
            Bound::Above(10.0),
            over(&smart, &one),
        ),
    ];
    let claims = claims.map(|(claim, theirs, bound, ratio)| {
        let between = |Interval { lower, upper }| format!("{lower:.3} to {upper:.3}");
        let ours = ratio.map_or_else(|| "-".to_owned(), between);
        [claim.to_owned(), theirs.to_owned(), ours, verdict(bound, ratio).to_owned()]
    });
    format!(
        "{}\nClaims of the document about the ratio of two capacities. One is undecided if its limit is within our interval.\n\n{}",
        markdown::table(heads, rates),
        markdown::table(["claim", "document", "our ratio", "here"], claims)
    )
}

#[cfg(test)]
mod tests {
    use redisbench_testkit::documents::read;
    use serde_json::json;

    use super::*;

    fn result(good: u64, bad: Option<u64>) -> Value {
        let mut result = json!({"ending": "Found", "lastGoodPerSecond": good, "limitedBy": "Target"});
        if let Some(bad) = bad {
            result["firstBadPerSecond"] = json!(bad);
        }
        result
    }

    #[test]
    fn rates_and_claims_have_their_rows() {
        let search = |size: &str, good: u64, bad: u64| json!({"parameters": {"load.pipeline": size}, "result": result(good, Some(bad))});
        let table = json!({"searches": [search("1", 80_000, 88_000), search("4", 200_000, 220_000), search("32", 500_000, 550_000)]});
        let text = text(&table, &json!({"search": result(640_000, None)}));
        for part in [
            "\n| batches of 1 | 140000 | 80000 | 88000 | Found | Target |\n",
            "\n| batches of 16 | 600000 | - | - |  |  |\n",
            "\n| smart batching | 1100000 | 640000 | - | Found | Target |\n",
            "\n| batches of 4 reach more than single requests | 140000 and 360000 | 2.273 to 2.750 | holds |\n",
            "\n| batches of 32 reach more than of 16 | 600000 and 750000 | - | not measured |\n",
            " | 0.145 to 0.176 | does not hold |\n",
            " | 1500000 and 1300000 | 1.164 to inf | holds |\n",
            " | 7.273 to inf | undecided |\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
    }

    #[test]
    fn the_examples_have_what_is_shortened() {
        for seed in [TABLE, SMART] {
            let manifest = read(&seed.path());
            let changed = seed.changed(&manifest, &[]).unwrap();
            assert!(changed.contains("min: 20000") && !changed.contains("[1, 2, 4"), "{changed}");
        }
    }
}
