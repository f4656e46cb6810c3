//! The comparisons in the status of a finished benchmark.

use std::collections::BTreeMap;

use redisbench_statistics::Interval;
use redisbench_testkit::status::{list, number};
use serde_json::Value;

const MILLION: f64 = 1e6;

/// A metric of a subject against that of the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub name: String,
    pub outcome: String,
    /// Over the baseline's.
    pub ratio: Option<f64>,
    /// The ratio's confidence interval.
    pub interval: Option<Interval>,
}

/// A subject against the baseline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    pub target: String,
    /// The test, if there are several.
    pub preset: Option<String>,
    /// The swept fields and their values.
    pub parameters: BTreeMap<String, String>,
    /// Pairs of trials that count.
    pub pairs: u64,
    /// Why the outcome may not be about the subjects.
    pub caution: Option<String>,
    /// The requested metric first.
    pub metrics: Vec<Metric>,
}

impl Comparison {
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

impl Metric {
    fn read(value: &Value) -> Self {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let ratio = |field: &str| value[field].as_u64().map(|millionths| millionths as f64 / MILLION);
        let interval = ratio("lowMillionths").zip(ratio("highMillionths"));
        Self {
            name: text("metric"),
            outcome: text("outcome"),
            ratio: ratio("ratioMillionths"),
            interval: interval.map(|(lower, upper)| Interval { lower, upper }),
        }
    }

    /// Such as `1.93 (1.88 to 1.99), Slower`.
    pub fn text(&self) -> String {
        let interval = self.interval.map(|Interval { lower, upper }| format!(" ({lower:.2} to {upper:.2})"));
        self.ratio.map_or_else(
            || self.outcome.clone(),
            |ratio| format!("{ratio:.2}{}, {}", interval.unwrap_or_default(), self.outcome),
        )
    }

    /// Returns whether the two were called different.
    pub fn is_finding(&self) -> bool {
        ["Faster", "Slower"].contains(&self.outcome.as_str())
    }
}

/// All comparisons of a status.
pub fn all(status: &Value) -> Vec<Comparison> {
    let read = |value: &Value| Comparison {
        target: value["target"].as_str().unwrap_or_default().to_owned(),
        preset: value["preset"].as_str().map(str::to_owned),
        parameters: parameters(value),
        caution: value["caution"].as_str().map(str::to_owned),
        pairs: number(&value["pairs"]),
        metrics: list(&value["metrics"]).iter().map(Metric::read).collect(),
    };
    list(&status["comparison"]).iter().map(read).collect()
}

/// The swept fields of a comparison or a trial, and their values.
pub fn parameters(value: &Value) -> BTreeMap<String, String> {
    let fields = value["parameters"].as_object().into_iter().flatten();
    fields.filter_map(|(field, value)| Some((field.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comparisons_are_read_as_the_status_has_them() {
        let metrics = json!([
            {"metric": "P50", "outcome": "Slower", "ratioMillionths": 1_200_000, "lowMillionths": 1_100_000,
             "highMillionths": 1_300_000, "confidenceBasisPoints": 9_500},
            {"metric": "P999", "outcome": "Inconclusive", "confidenceBasisPoints": 9_900},
        ]);
        let found = all(&json!({"comparison": [{"target": "b", "baseline": "a", "pairs": 5, "preset": "get",
            "parameters": {"load.pipeline": "10"}, "metrics": metrics}]}));
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.preset.as_deref(), one.parameters["load.pipeline"].as_str()), (Some("get"), "10"));
        assert_eq!((one.target.as_str(), one.pairs, one.metrics.len()), ("b", 5, 2));
        let [p50, p999] = &one.metrics[..] else { panic!("{one:?}") };
        assert_eq!((p50.name.as_str(), p50.interval), ("P50", Some(Interval { lower: 1.1, upper: 1.3 })));
        assert!(p50.is_finding() && !p999.is_finding() && p999.interval.is_none());
        let texts = ["P50", "P999"].map(|name| one.metric(name).unwrap().text());
        assert_eq!(texts, ["1.20 (1.10 to 1.30), Slower", "Inconclusive"]);
        assert!(all(&json!({})).is_empty());
    }
}
