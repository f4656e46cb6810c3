//! The metrics of benchmarks, computed at each scrape, so that deleted benchmarks leave no labels behind.

use std::fmt;

use hdrhistogram::Histogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use redisbench_benchmark::api::status::{Phase, ShardCounts, VerdictValue};

/// Upper bounds of the histograms' buckets, in nanoseconds: three per decade from 10 microseconds to 10 s.
const BOUNDS: [u64; 20] = [
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    60_000_000_000,
];

const PHASES: [(Phase, &str); 8] = [
    (Phase::Pending, "Pending"),
    (Phase::Preparing, "Preparing"),
    (Phase::Running, "Running"),
    (Phase::Suspended, "Suspended"),
    (Phase::Collecting, "Collecting"),
    (Phase::Succeeded, "Succeeded"),
    (Phase::Failed, "Failed"),
    (Phase::Aborted, "Aborted"),
];

const VERDICTS: [(VerdictValue, &str); 3] =
    [(VerdictValue::Valid, "Valid"), (VerdictValue::Degraded, "Degraded"), (VerdictValue::Invalid, "Invalid")];

/// A latency histogram with few buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// Requests per bucket, not cumulative. The last entry is for those above the last bound.
    counts: Vec<u64>,
    /// The sum of all latencies, in seconds.
    sum: f64,
}

impl Buckets {
    /// From `histogram`, plus `overflow` requests that were longer than its highest value.
    pub fn of(histogram: &Histogram<u64>, overflow: u64) -> Self {
        let mut counts = vec![0; BOUNDS.len() + 1];
        for value in histogram.iter_recorded() {
            let bucket = BOUNDS.partition_point(|bound| *bound < value.value_iterated_to());
            counts[bucket] += value.count_at_value();
        }
        counts[BOUNDS.len()] += overflow;
        Self { counts, sum: histogram.mean() * histogram.len() as f64 / 1e9 }
    }

    fn pairs(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().copied()).collect()
    }

    fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The current state of one benchmark.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub namespace: String,
    pub benchmark: String,
    pub phase: Phase,
    /// Measured requests by outcome.
    pub requests: Vec<(&'static str, u64)>,
    /// Errors by kind.
    pub errors: Vec<(String, u64)>,
    /// Checked replies by outcome.
    pub verification: Vec<(&'static str, u64)>,
    /// Bytes by direction.
    pub bytes: Vec<(&'static str, u64)>,
    /// Response time of succeeded requests.
    pub response: Option<std::sync::Arc<Buckets>>,
    /// Response time at quantiles, in nanoseconds.
    pub response_quantiles: Vec<(String, u64)>,
    /// Service time at quantiles, in nanoseconds.
    pub service_quantiles: Vec<(String, u64)>,
    /// The target rate, in requests per second.
    pub target_rate: Option<u64>,
    /// The rate of succeeded requests, per second.
    pub achieved_rate: Option<u64>,
    /// Shards by state.
    pub shards: Option<ShardCounts>,
    /// Time between the first and the last shard's start, in seconds.
    pub start_skew: Option<f64>,
    /// The largest clock uncertainty of all shards, in seconds.
    pub clock_uncertainty: Option<f64>,
    /// The age of the oldest snapshot in the live numbers, in seconds.
    pub snapshot_age: Option<f64>,
    /// The verdict on the result.
    pub verdict: Option<VerdictValue>,
}

impl Sample {
    fn shards_by_state(&self) -> Vec<(&'static str, u64)> {
        let Some(shards) = self.shards else { return Vec::new() };
        [
            ("desired", shards.desired),
            ("armed", shards.armed),
            ("running", shards.running),
            ("finished", shards.finished),
            ("lost", shards.lost),
            ("unreachable", shards.unreachable),
        ]
        .map(|(state, count)| (state, u64::from(count)))
        .into()
    }

    fn phases(&self) -> Vec<(&'static str, u64)> {
        PHASES.iter().map(|(phase, name)| (*name, u64::from(*phase == self.phase))).collect()
    }

    fn verdicts(&self) -> Vec<(&'static str, u64)> {
        let Some(verdict) = self.verdict else { return Vec::new() };
        VERDICTS.iter().map(|(value, name)| (*name, u64::from(*value == verdict))).collect()
    }
}

pub struct BenchmarkMetrics {
    samples: Box<dyn Fn() -> Vec<Sample> + Send + Sync>,
    merges: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl fmt::Debug for BenchmarkMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("BenchmarkMetrics")
    }
}

impl BenchmarkMetrics {
    /// Reads the benchmarks from `samples` and the number of merges from `merges`.
    pub fn new(
        samples: Box<dyn Fn() -> Vec<Sample> + Send + Sync>,
        merges: Box<dyn Fn() -> u64 + Send + Sync>,
    ) -> Self {
        Self { samples, merges }
    }
}

impl Collector for BenchmarkMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        encoder
            .encode_descriptor("redisbench_merges", "Merges of the shards' snapshots.", None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, u64, f64>(&(self.merges)(), None)?;
        let samples = (self.samples)();
        let mut families = Families { encoder, samples: &samples };
        families.counters("redisbench_requests", "Measured requests by outcome.", "outcome", |s| s.requests.clone())?;
        families.counters("redisbench_errors", "Errors of measured requests by kind.", "kind", |s| s.errors.clone())?;
        families.counters(
            "redisbench_verification",
            "Results of verifying the target: replies, lost writes and lost keys.",
            "outcome",
            |s| s.verification.clone(),
        )?;
        families.counters("redisbench_bytes", "Bytes sent and received.", "direction", |s| s.bytes.clone())?;
        families.response_times()?;
        families.quantiles(
            "redisbench_response_time_quantile_seconds",
            "Response time at quantiles. Unknown ones (too few requests, or too many failed) are left out.",
            |sample| &sample.response_quantiles,
        )?;
        families.quantiles("redisbench_service_time_quantile_seconds", "Service time at quantiles.", |sample| {
            &sample.service_quantiles
        })?;
        let whole = |value: Option<u64>| value.map(|value| value as f64);
        families
            .gauge("redisbench_target_rate", "Requested rate, in requests per second.", |s| whole(s.target_rate))?;
        families.gauge("redisbench_achieved_rate", "Successful requests per second.", |s| whole(s.achieved_rate))?;
        families.gauge("redisbench_start_skew_seconds", "Time between the first and the last shard's start.", |s| {
            s.start_skew
        })?;
        families.gauge("redisbench_clock_uncertainty_seconds", "Largest clock uncertainty of a shard.", |s| {
            s.clock_uncertainty
        })?;
        families.gauge("redisbench_snapshot_age_seconds", "Age of the oldest snapshot of a running shard.", |s| {
            s.snapshot_age
        })?;
        families.gauges("redisbench_shards", "Shards by state.", "state", Sample::shards_by_state)?;
        families.gauges("redisbench_phase", "1 for the current phase of the benchmark.", "phase", Sample::phases)?;
        families.gauges("redisbench_verdict", "1 for the verdict on the result.", "verdict", Sample::verdicts)
    }
}

struct Families<'encoder, 'samples> {
    encoder: DescriptorEncoder<'encoder>,
    samples: &'samples [Sample],
}

impl Families<'_, '_> {
    /// Encodes one family: calls `encode` for every benchmark with its labels.
    fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        mut encode: impl FnMut(&mut MetricEncoder<'_>, &Sample, [(&'static str, String); 2]) -> fmt::Result,
    ) -> fmt::Result {
        if self.samples.is_empty() {
            return Ok(());
        }
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        for sample in self.samples {
            let labels = [("namespace", sample.namespace.clone()), ("benchmark", sample.benchmark.clone())];
            encode(&mut metric, sample, labels)?;
        }
        Ok(())
    }

    fn counters<K: AsRef<str>>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl Fn(&Sample) -> Vec<(K, u64)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Counter, |metric, sample, [namespace, benchmark]| {
            for (key, value) in values(sample) {
                let labels = [namespace.clone(), benchmark.clone(), (label, key.as_ref().to_owned())];
                metric.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, f64>(&value, None)?;
            }
            Ok(())
        })
    }

    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl Fn(&Sample) -> Vec<(&'static str, u64)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, |metric, sample, [namespace, benchmark]| {
            for (key, value) in values(sample) {
                let labels = [namespace.clone(), benchmark.clone(), (label, key.to_owned())];
                metric.encode_family(&labels)?.encode_gauge(&value)?;
            }
            Ok(())
        })
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Fn(&Sample) -> Option<f64>) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, |metric, sample, labels| match value(sample) {
            Some(value) => metric.encode_family(&labels)?.encode_gauge(&value),
            None => Ok(()),
        })
    }

    fn quantiles(&mut self, name: &str, help: &str, values: impl Fn(&Sample) -> &Vec<(String, u64)>) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, |metric, sample, [namespace, benchmark]| {
            for (quantile, nanoseconds) in values(sample) {
                let labels = [namespace.clone(), benchmark.clone(), ("quantile", quantile.clone())];
                metric.encode_family(&labels)?.encode_gauge(&(*nanoseconds as f64 / 1e9))?;
            }
            Ok(())
        })
    }

    fn response_times(&mut self) -> fmt::Result {
        let help = "Response time of successful requests, merged over all shards.";
        self.family("redisbench_response_time_seconds", help, MetricType::Histogram, |metric, sample, labels| {
            match &sample.response {
                Some(buckets) => metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                    buckets.sum,
                    buckets.count(),
                    &buckets.pairs(),
                    None,
                ),
                None => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;
    use redisbench_wire::histogram::Kind;
    use std::sync::{Arc, Mutex};

    fn text_of(samples: &Arc<Mutex<Vec<Sample>>>) -> String {
        let samples = samples.clone();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(BenchmarkMetrics::new(
            Box::new(move || samples.lock().unwrap().clone()),
            Box::new(|| 7),
        )));
        let mut text = String::new();
        text::encode(&mut text, &registry).unwrap();
        text
    }

    fn sample() -> Sample {
        let mut histogram = Kind::Request.empty();
        for nanoseconds in [9_000, 15_000, 1_500_000, 599_000_000_000] {
            histogram.record(nanoseconds).unwrap();
        }
        Sample {
            namespace: "perf".into(),
            benchmark: "cart".into(),
            phase: Phase::Running,
            requests: vec![("succeeded", 5)],
            errors: vec![("Timeout".into(), 2)],
            verification: vec![("checked", 9), ("lost_write", 1)],
            bytes: vec![("sent", 100)],
            response: Some(Arc::new(Buckets::of(&histogram, 1))),
            response_quantiles: vec![("0.99".into(), 1_450_000)],
            target_rate: Some(1000),
            verdict: Some(VerdictValue::Degraded),
            shards: Some(ShardCounts { desired: 2, ..ShardCounts::default() }),
            ..Sample::default()
        }
    }

    #[test]
    fn what_is_known_is_shown() {
        let text = text_of(&Arc::new(Mutex::new(vec![sample()])));
        let labels = r#"namespace="perf",benchmark="cart""#;
        for line in [
            "redisbench_merges_total 7".to_owned(),
            format!("redisbench_requests_total{{{labels},outcome=\"succeeded\"}} 5"),
            format!("redisbench_errors_total{{{labels},kind=\"Timeout\"}} 2"),
            format!("redisbench_verification_total{{{labels},outcome=\"lost_write\"}} 1"),
            format!("redisbench_response_time_quantile_seconds{{{labels},quantile=\"0.99\"}} 0.00145"),
            format!("redisbench_response_time_seconds_bucket{{le=\"0.00001\",{labels}}} 1"),
            format!("redisbench_response_time_seconds_bucket{{le=\"0.002\",{labels}}} 3"),
            format!("redisbench_response_time_seconds_bucket{{le=\"+Inf\",{labels}}} 5"),
            format!("redisbench_response_time_seconds_count{{{labels}}} 5"),
            format!("redisbench_target_rate{{{labels}}} 1000.0"),
            format!("redisbench_verdict{{{labels},verdict=\"Degraded\"}} 1"),
            format!("redisbench_verdict{{{labels},verdict=\"Valid\"}} 0"),
            format!("redisbench_phase{{{labels},phase=\"Running\"}} 1"),
            format!("redisbench_shards{{{labels},state=\"desired\"}} 2"),
        ] {
            assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
        }
        assert!(!text.contains("achieved_rate{"), "{text}");
    }

    #[test]
    fn labels_vanish_with_the_benchmark() {
        let samples = Arc::new(Mutex::new(vec![sample()]));
        assert!(text_of(&samples).contains("cart"));
        samples.lock().unwrap().clear();
        let text = text_of(&samples);
        assert!(!text.contains("cart") && !text.contains("perf"), "{text}");
    }
}
