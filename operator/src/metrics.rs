//! Prometheus metrics: of the operator itself, and of every benchmark at the time of the scrape.

mod benchmark;
mod sample;

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use benchmark::BenchmarkMetrics;
pub use sample::Source;

use crate::tasks::TaskRegistry;

/// Metrics of the operator itself.
#[derive(Clone, Debug)]
pub struct OperatorMetrics {
    reconciles: Counter,
    durations: Histogram,
    errors: Family<ErrorLabels, Counter>,
    leading: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    class: &'static str,
}

impl OperatorMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Counter::default(),
            durations: Histogram::new(exponential_buckets(0.001, 4.0, 8)),
            errors: Family::default(),
            leading: Gauge::default(),
        };
        registry.register("redisbench_reconcile", "Reconciliations", metrics.reconciles.clone());
        registry.register(
            "redisbench_reconcile_duration_seconds",
            "Duration of reconciliations",
            metrics.durations.clone(),
        );
        registry.register(
            "redisbench_reconcile_errors",
            "Failed reconciliations, which are retried, by class of error",
            metrics.errors.clone(),
        );
        registry.register("redisbench_leader", "1 if this operator holds the Lease", metrics.leading.clone());
        metrics
    }

    /// Counts a reconciliation, and the class of its error if it failed.
    pub fn reconciled(&self, took: Duration, error: Option<&'static str>) {
        self.reconciles.inc();
        self.durations.observe(took.as_secs_f64());
        if let Some(class) = error {
            self.errors.get_or_create(&ErrorLabels { class }).inc();
        }
    }

    /// Sets whether this operator holds the Lease.
    pub fn set_leading(&self, leading: bool) {
        self.leading.set(i64::from(leading));
    }
}

/// Registers the metrics of all current and future benchmarks of `source`.
pub fn register_benchmarks(registry: &mut Registry, source: Source, tasks: TaskRegistry) {
    registry.register_collector(Box::new(BenchmarkMetrics::new(
        Box::new(move || source.samples()),
        Box::new(move || tasks.merges()),
    )));
}
