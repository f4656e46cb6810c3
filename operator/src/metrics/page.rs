//! All series of a scrape.

use std::collections::BTreeMap;
use std::sync::Arc;

use prometheus_client::metrics::MetricType;

use super::buckets::Buckets;
use super::catalogue::{Metric, Of};

#[derive(Clone, Debug)]
pub enum Value {
    Count(u64),
    Number(f64),
    Histogram(Arc<Buckets>),
}

impl Value {
    /// The number of its lines in text.
    fn samples(&self) -> usize {
        match self {
            Self::Count(_) | Self::Number(_) => 1,
            Self::Histogram(buckets) => buckets.classic().len() + 2,
        }
    }

    fn is_of(&self, kind: MetricType) -> bool {
        match self {
            Self::Count(_) => matches!(kind, MetricType::Counter | MetricType::Gauge),
            Self::Number(_) => matches!(kind, MetricType::Gauge),
            Self::Histogram(_) => matches!(kind, MetricType::Histogram),
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Count(value)
    }
}

impl From<Arc<Buckets>> for Value {
    fn from(value: Arc<Buckets>) -> Self {
        Self::Histogram(value)
    }
}

/// The entity that some series describe.
#[derive(Clone, Debug)]
pub struct Entity {
    pub of: Of,
    /// The values of the labels of `of`.
    pub labels: Arc<[String]>,
    /// The beginning of its counters, in seconds since the Unix epoch.
    pub created: Option<f64>,
}

#[derive(Debug)]
pub struct Series {
    entity: Entity,
    labels: Vec<String>,
    pub value: Value,
}

impl Series {
    pub fn created(&self) -> Option<f64> {
        self.entity.created
    }

    /// Names and values of all labels of this series of `metric`.
    pub fn labels<'a>(&'a self, metric: &'a Metric) -> impl Iterator<Item = (&'a str, &'a str)> {
        let names = metric.of.labels().iter().chain(metric.labels);
        names.copied().zip(self.entity.labels.iter().chain(&self.labels).map(String::as_str))
    }
}

/// All series of a scrape, by metric.
#[derive(Debug, Default)]
pub struct Page {
    families: BTreeMap<&'static str, (&'static Metric, Vec<Series>)>,
    samples: usize,
}

impl Page {
    /// Adds a series of `metric` for `entity`, with the values of its further labels.
    pub fn add(&mut self, metric: &'static Metric, entity: &Entity, labels: &[&str], value: impl Into<Value>) {
        let labels: Vec<_> = labels.iter().map(|label| (*label).to_owned()).collect();
        let series = Series { entity: entity.clone(), labels, value: value.into() };
        debug_assert!(metric.of == entity.of && metric.labels.len() == series.labels.len(), "{}", metric.name);
        debug_assert!(series.value.is_of(metric.kind), "{}", metric.name);
        self.samples += series.value.samples();
        self.families.entry(metric.name).or_insert_with(|| (metric, Vec::new())).1.push(series);
    }

    /// The number of its lines in text, without comments.
    pub fn samples(&self) -> usize {
        self.samples
    }

    pub fn families(&self) -> impl Iterator<Item = (&'static Metric, &[Series])> {
        self.families.values().map(|(metric, series)| (*metric, series.as_slice()))
    }
}
