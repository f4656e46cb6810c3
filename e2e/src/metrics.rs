//! The operator's metrics, in the text format of Prometheus.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::cluster::{Cluster, OPERATOR, SYSTEM};
use crate::tools::kubectl;

#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The name, with suffixes such as `_total`.
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// A scrape of every pod of the operator.
#[derive(Clone, Debug, Default)]
pub struct Scrape {
    /// The unparsed text.
    pub text: String,
    samples: Vec<Sample>,
}

impl Scrape {
    /// Reads the metrics of every pod of the operator through the API server.
    pub async fn take() -> Result<Self> {
        let pods: Api<Pod> = Api::namespaced(Cluster::get().client().await?, SYSTEM);
        let mut text = String::new();
        for pod in pods.list(&ListParams::default().labels(OPERATOR)).await? {
            let named = |port: &&k8s_openapi::api::core::v1::ContainerPort| port.name.as_deref() == Some("metrics");
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let port =
                containers.flat_map(|c| c.ports.iter().flatten()).find(named).context("no port named metrics")?;
            let pod =
                format!("/api/v1/namespaces/{SYSTEM}/pods/{}:{}/proxy/metrics", pod.name_any(), port.container_port);
            text += &kubectl(&["get", "--raw", &pod]).await?;
        }
        let samples = parse(&text)?;
        Ok(Self { text, samples })
    }

    /// The samples of a metric with all of these labels.
    pub fn find<'a>(&'a self, name: &'a str, labels: &'a [(&str, &str)]) -> impl Iterator<Item = &'a Sample> + 'a {
        self.samples.iter().filter(move |sample| {
            let has = |(key, value): &(&str, &str)| sample.labels.get(*key).is_some_and(|v| v == value);
            sample.name == name && labels.iter().all(has)
        })
    }

    /// The sum of the samples with all of these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Result<f64> {
        let values: Vec<f64> = self.find(name, labels).map(|sample| sample.value).collect();
        if values.is_empty() {
            let near: Vec<&str> =
                self.samples.iter().map(|s| s.name.as_str()).filter(|n| n.contains("redisbench")).collect();
            anyhow::bail!("no metric {name} with {labels:?}; similar: {near:?}");
        }
        Ok(values.iter().sum())
    }
}

fn parse(text: &str) -> Result<Vec<Sample>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse_line(line).with_context(|| format!("failed to read the metric {line}"))).collect()
}

fn parse_line(line: &str) -> Result<Sample> {
    let (head, rest) = match line.split_once('{') {
        Some((name, rest)) => (name, Some(rest)),
        None => (line.split_whitespace().next().unwrap_or_default(), None),
    };
    let mut labels = BTreeMap::new();
    let mut tail = rest.unwrap_or_else(|| line[head.len()..].trim());
    if rest.is_some() {
        while let Some(after) = tail.strip_prefix(',').or(Some(tail)).filter(|t| !t.starts_with('}')) {
            let (key, quoted) = after.split_once('=').context("a label without a value")?;
            // Its escapes are those of JSON.
            let mut values = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
            labels.insert(key.to_owned(), values.next().context("a label without a value")??);
            tail = &quoted[values.byte_offset()..];
        }
        tail = tail.trim_start_matches('}');
    }
    // A timestamp or an exemplar may follow the value.
    let value = tail.split_whitespace().next().context("no value")?;
    Ok(Sample { name: head.to_owned(), labels, value: value.parse()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels() {
        let text =
            "# HELP a b\na_total{x=\"1\",y=\"q \\\"2\\\", }\"} 3\nb 4.5\nc_bucket{le=\"+Inf\"} 6 # {} 1\n# EOF\n";
        let samples = parse(text).unwrap();
        assert_eq!(samples.len(), 3);
        assert_eq!(samples[0].labels["y"], "q \"2\", }");
        assert!((samples[1].value - 4.5).abs() < f64::EPSILON);
        assert_eq!(samples[2].name, "c_bucket");
    }
}
