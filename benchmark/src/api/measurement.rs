//! `spec.measurement`: breakdowns, percentiles, and evidence for the verdict. The doc comments are the text of `kubectl explain`.

use redisbench_wire::plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::patterns::{CAPACITY_PATTERN, COLLECTOR_PATTERN};
use super::problem::Problem;
use crate::quantile::Quantile;

const CAPACITY_FIELD: &str = "spec.measurement.linkCapacity";
/// 100 kbit/s.
const LEAST_BITS: u64 = 100_000;
/// 10 Tbit/s.
const MOST_BITS: u64 = 10_000_000_000_000;

/// Breakdowns, percentiles, and evidence for the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeasurementSpec {
    /// Additional results per `Operation` of the mix, per `Node` of the target, or both. Client libraries have
    /// none per node. Default both.
    #[serde(default = "default_breakdown")]
    #[schemars(length(max = 2), extend("x-kubernetes-list-type" = "set"))]
    pub breakdown: Vec<BreakdownKind>,
    /// Percentiles of latencies in status, table and metrics, such as `[50, 99, 99.9]`: 1 to 10 numbers above 0 and below 100, with at most
    /// 4 decimals. Each needs on average 10 requests on either side of it, such as 1,000 requests for 99. Default `[50, 90, 95, 99, 99.9,
    /// 99.99]`.
    #[serde(default = "default_percentiles")]
    #[schemars(length(min = 1, max = 10), inner(range(min = 0.0001, max = 99.9999)))]
    pub percentiles: Vec<Number>,
    /// Polls INFO on every server under load: one shard asks, on a separate connection, before the load, about once a second during the
    /// measurement, and afterwards. The verdict uses it for the servers' CPU time, for evictions, and to check that servers executed
    /// exactly the commands sent to them. A server that forbids INFO is reported and does no harm. Default true.
    #[serde(default = "default_true")]
    pub server_stats: bool,
    /// Other clients use the target on purpose, such as another benchmark beneath this one: the verdict notes their commands instead of
    /// doubting the result. Default false.
    #[serde(default)]
    pub shared_target: bool,
    /// Network capacity of a machine with shards in each direction, such as `10Gbit` or `20Mbit`: 100Kbit to 10Tbit. The verdict needs it
    /// to report the network as the limiting factor, because a machine cannot see beyond its own interface. It is compared with the total
    /// traffic of the shards' busiest interfaces on a machine, including headers and other traffic. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), pattern(CAPACITY_PATTERN))]
    pub link_capacity: Option<String>,
    /// If the limiting factor of a trial is unclear, run a short second load with half of the connections: 2.5 s at most, on all shards at
    /// once. It distinguishes too few connections from a saturated target and does not count in the result. It never exceeds the requested
    /// load: the trial's connections close first, a closed loop stays one, and an open loop keeps its rate. Not set by default: only for
    /// closed loops whose operations only read, without `onMiss: Fill` and `safety.allowDestructive`. `true`: also for open loops with one
    /// rate, and operations that write. `false`: never. No probe runs with `requests`, with `load.stages`, where `verify` follows values,
    /// with fewer than two connections or callers per shard, or where errors or an outage explain the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<bool>,
    /// Sends spans of single requests to an OpenTelemetry collector. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<TracingSpec>,
}

/// Traces of single requests: a span from the due time to the reply, and within it one until the request was sent and one until the reply.
/// The load generator's own clock stamps them. With tracing, replies are counted one by one, which costs processor time on the shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TracingSpec {
    /// Base URL of a collector that accepts OTLP over HTTP, such as `http://otel-collector:4318`. Spans go to `/v1/traces` below it. For a
    /// collector with TLS, run an agent beside it. Spans that it refuses or that come too fast are dropped and counted in the shard's log.
    #[schemars(length(max = 256), pattern(COLLECTOR_PATTERN))]
    pub endpoint: String,
    /// Traces one measured request in this many, chosen by its number: 1 to 1,000,000,000. Default 1000.
    #[serde(default = "default_one_in")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub one_in: u32,
}

/// Dimension of a breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BreakdownKind {
    /// Per operation of the mix.
    Operation,
    /// Per Redis node.
    Node,
}

impl MeasurementSpec {
    /// Valid requested percentiles. Invalid ones are skipped.
    pub fn quantiles(&self) -> Vec<Quantile> {
        self.percentiles.iter().filter_map(|number| Quantile::of_percent(&number.to_string())).collect()
    }
}

impl Default for MeasurementSpec {
    fn default() -> Self {
        Self {
            breakdown: default_breakdown(),
            percentiles: default_percentiles(),
            server_stats: true,
            shared_target: false,
            link_capacity: None,
            probe: None,
            tracing: None,
        }
    }
}

fn default_breakdown() -> Vec<BreakdownKind> {
    vec![BreakdownKind::Operation, BreakdownKind::Node]
}

fn default_percentiles() -> Vec<Number> {
    Quantile::USUAL.iter().filter_map(|quantile| quantile.percent().parse().ok()).collect()
}

fn default_one_in() -> u32 {
    1000
}

fn default_true() -> bool {
    true
}

/// The measurement of each shard, without a probe: that depends on other fields too.
pub(super) fn check(spec: &MeasurementSpec, problems: &mut Vec<Problem>) -> plan::MeasurementOptions {
    let capacity = spec.link_capacity.as_deref().and_then(|text| {
        // The schema's pattern rejects texts that are no capacity at all.
        let bits = bits_per_second(text)?;
        if (LEAST_BITS..=MOST_BITS).contains(&bits) {
            return Some(bits / 8);
        }
        problems.push(Problem::new(CAPACITY_FIELD, text, "must be 100Kbit to 10Tbit"));
        None
    });
    plan::MeasurementOptions { server_stats: spec.server_stats, link_bytes_per_second: capacity, probe_nanoseconds: 0 }
}

/// The tracing of each shard. The schema has checked it.
pub(super) fn tracing(spec: &MeasurementSpec) -> Option<plan::Tracing> {
    let TracingSpec { endpoint, one_in } = spec.tracing.as_ref()?;
    Some(plan::Tracing { endpoint: endpoint.clone(), one_in: (*one_in).into() })
}

/// Percentiles in results, lowest first.
pub(super) fn percentiles(spec: &MeasurementSpec, problems: &mut Vec<Problem>) -> Vec<Quantile> {
    let mut asked = Vec::with_capacity(spec.percentiles.len());
    for (index, number) in spec.percentiles.iter().enumerate() {
        let quantile = Quantile::of_percent(&number.to_string());
        if quantile.is_none() {
            let field = format!("spec.measurement.percentiles[{index}]");
            let message = "must be above 0 and below 100, with at most 4 decimals, such as 99.9";
            problems.push(Problem::new(field, number, message));
        }
        asked.extend(quantile);
    }
    asked.sort_unstable();
    asked
}

/// Parses `20Mbit` into bits per second.
pub(super) fn bits_per_second(text: &str) -> Option<u64> {
    let number = text.strip_suffix("bit")?;
    let unit = match number.chars().next_back()? {
        'K' => 1_000,
        'M' => 1_000_000,
        'G' => 1_000_000_000,
        'T' => 1_000_000_000_000_u64,
        _ => return None,
    };
    let number = &number[..number.len() - 1];
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits =
        |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole, 6) || !is_digits(decimals, 3) {
        return None;
    }
    let thousandths: u64 = format!("{whole}{decimals:0<3}").parse().ok()?;
    Some(unit / 1_000 * thousandths)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api;
    use crate::sample::{checked, object};

    fn problems(measurement: serde_json::Value) -> Vec<String> {
        let mut object = object();
        object["spec"]["measurement"] = measurement;
        let found = api::read(&object).and_then(|benchmark| api::validate(&benchmark.spec, "sample"));
        let found = found.err().unwrap_or_default();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn capacities_are_read() {
        for (text, bits) in [
            ("20Mbit", 20_000_000),
            ("2.5Gbit", 2_500_000_000),
            ("100Kbit", 100_000),
            ("10Tbit", 10_000_000_000_000),
            ("0.125Gbit", 125_000_000),
        ] {
            assert_eq!(bits_per_second(text), Some(bits), "{text}");
            assert!(problems(json!({"linkCapacity": text})).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_no_capacity_is_refused_with_the_way_out() {
        for text in ["", "10", "10Gbps", "Gbit", "10 Gbit", "1.2345Gbit", "1e3Mbit", "-1Mbit", "1234567Mbit", "10gbit"]
        {
            assert_eq!(bits_per_second(text), None, "{text}");
            let said = problems(json!({"linkCapacity": text}));
            assert!(said.len() == 1 && said[0].contains("10Gbit"), "{text}: {said:?}");
        }
        for text in ["99Kbit", "11Tbit", "0Mbit"] {
            let said = problems(json!({"linkCapacity": text}));
            assert!(said.len() == 1 && said[0].contains("100Kbit to 10Tbit"), "{text}: {said:?}");
        }
    }

    #[test]
    fn a_collector_is_a_url_without_tls() {
        let tracing =
            |tracing: serde_json::Value| checked(&json!({"measurement": {"tracing": tracing}})).plan.tracing.clone();
        let endpoint = "http://otel-collector.monitoring:4318";
        let traced = |one_in| Some(plan::Tracing { endpoint: endpoint.into(), one_in });
        assert_eq!(tracing(json!({"endpoint": endpoint})), traced(1000));
        assert_eq!(tracing(json!({"endpoint": endpoint, "oneIn": 1})), traced(1));
        assert_eq!(checked(&json!({})).plan.tracing, None);
        for refused in ["https://collector:4318", "collector:4318", "http://", "http://a b", "http://user@host"] {
            let said = problems(json!({"tracing": {"endpoint": refused}}));
            assert!(said.len() == 1 && said[0].contains("spec.measurement.tracing.endpoint"), "{refused}: {said:?}");
        }
        let said = problems(json!({"tracing": {"endpoint": endpoint, "oneIn": 0}}));
        assert!(said.len() == 1 && said[0].contains("spec.measurement.tracing.oneIn"), "{said:?}");
    }

    #[test]
    fn percentiles_are_those_that_were_asked_for_in_order() {
        let asked = |measurement: serde_json::Value| {
            let checked = checked(&json!({"measurement": measurement}));
            checked.percentiles.into_iter().map(Quantile::percent).collect::<Vec<_>>()
        };
        assert_eq!(asked(json!({})), ["50", "90", "95", "99", "99.9", "99.99"]);
        assert_eq!(asked(json!({"percentiles": [99.9, 50, 12.0, 99.9999]})), ["12", "50", "99.9", "99.9999"]);
    }

    #[test]
    fn what_is_no_percentile_is_refused_with_the_way_out() {
        for (percentiles, words) in [
            (json!([]), "at least 1 entry"),
            (json!([50, 100]), "percentiles[1]"),
            (json!([0]), "percentiles[0]"),
            (json!([-1.5]), "percentiles[0]"),
            (json!([99.99999]), "at most 99.9999"),
            (json!([12.34567]), "at most 4 decimals, such as 99.9"),
            (json!([1e-5]), "at least 0.0001"),
            (json!([99, 99.0]), "listed twice"),
            (json!(["99"]), "must be a number"),
            (json!((1..=11).collect::<Vec<_>>()), "at most 10 entries"),
        ] {
            let said = problems(json!({"percentiles": percentiles}));
            assert!(!said.is_empty() && said.iter().any(|said| said.contains(words)), "{percentiles}: {said:?}");
        }
    }

    #[test]
    fn servers_are_asked_unless_somebody_says_no() {
        let spec = |measurement: serde_json::Value| checked(&json!({"measurement": measurement})).plan.measurement;
        assert!(spec(json!({})).server_stats);
        assert!(!spec(json!({"serverStats": false})).server_stats);
        assert_eq!(spec(json!({"linkCapacity": "20Mbit"})).link_bytes_per_second, Some(2_500_000));
    }
}
