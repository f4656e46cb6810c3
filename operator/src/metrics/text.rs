//! The text forms of a scrape, written by `prometheus-client`.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::page::{Page, Value};

/// `page` as OpenMetrics text if `open`, else in Prometheus' own form.
pub fn encode(page: Page, open: bool) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Text { page, open }));
    let mut all = String::new();
    // Writing to a String does not fail.
    let _ = if open { text::encode(&mut all, &registry) } else { text::encode_registry(&mut all, &registry) };
    all
}

#[derive(Debug)]
struct Text {
    page: Page,
    open: bool,
}

impl Collector for Text {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (metric, series) in self.page.families() {
            let name = if self.open { metric.family() } else { metric.name };
            // In Prometheus' own form the family has the suffix of its counters, so none may be added to them.
            let counter = self.open && matches!(metric.kind, MetricType::Counter);
            let mut family = encoder.encode_descriptor(name, metric.help, None, metric.kind)?;
            for one in series {
                let labels: Vec<_> = one.labels(metric).collect();
                // An empty set of labels would be written as {}.
                if labels.is_empty() {
                    write(&mut family, &one.value, counter)?;
                } else {
                    write(&mut family.encode_family(&labels)?, &one.value, counter)?;
                }
            }
        }
        Ok(())
    }
}

fn write(encoder: &mut MetricEncoder, value: &Value, counter: bool) -> fmt::Result {
    match value {
        Value::Count(count) if counter => encoder.encode_counter::<NoLabelSet, _, f64>(count, None),
        Value::Count(count) => encoder.encode_gauge(count),
        Value::Number(number) => encoder.encode_gauge(number),
        Value::Histogram(buckets) => {
            encoder.encode_histogram::<NoLabelSet>(buckets.sum, buckets.count, &buckets.classic(), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redisbench_wire::histogram::Kind;

    use super::super::buckets::Buckets;
    use super::super::catalogue::{ERRORS, LEADER, Of, RESPONSE_TIME};
    use super::super::page::Entity;
    use super::*;

    fn text(open: bool) -> String {
        let labels = ["perf", "cart", "redis", "0", "0"].map(str::to_owned);
        let trial = Entity { of: Of::Trial, labels: Arc::new(labels), created: Some(1_767_229_200.5) };
        let mut histogram = Kind::Request.empty();
        histogram.record_n(1_000_000, 3).unwrap();
        let mut page = Page::default();
        page.add(&ERRORS, &trial, &["a\"b\\\n"], 2_u64);
        page.add(&RESPONSE_TIME, &trial, &[], Arc::new(Buckets::of(&histogram, 0)));
        page.add(&LEADER, &Entity { of: Of::Operator, labels: Arc::default(), created: None }, &[], 1_u64);
        encode(page, open)
    }

    fn has(text: &str, lines: &[&str]) {
        const LABELS: &str = r#"namespace="perf",benchmark="cart",target="redis",trial="0",cell="0""#;
        for line in lines.iter().map(|line| line.replace("LABELS", LABELS)) {
            assert!(text.lines().any(|known| known == line), "no {line} in\n{text}");
        }
    }

    const SAMPLES: [&str; 5] = [
        r#"redisbench_errors_total{LABELS,kind="a\"b\\\n"} 2"#,
        r#"redisbench_response_time_seconds_bucket{le="0.01",LABELS} 3"#,
        r#"redisbench_response_time_seconds_bucket{le="+Inf",LABELS} 3"#,
        "redisbench_response_time_seconds_count{LABELS} 3",
        "redisbench_leader 1",
    ];

    #[test]
    fn open_metrics_names_families_of_counters_without_their_suffix_and_has_an_end() {
        let text = text(true);
        has(&text, &SAMPLES);
        has(&text, &["# TYPE redisbench_errors counter"]);
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn text_names_families_of_counters_with_their_suffix() {
        let text = text(false);
        has(&text, &SAMPLES);
        has(&text, &["# TYPE redisbench_errors_total counter"]);
        assert!(!text.contains("# EOF"), "{text}");
    }
}
