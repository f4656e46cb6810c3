//! Why there is no report.

use redisbench_wire::histogram::HistogramError;

use super::chart::ChartError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("--trial {0}: there is no full result of it; there are: {1}")]
    NoSuchTrial(u32, String),
    #[error("failed to read a histogram of the result")]
    Histogram(#[from] HistogramError),
    #[error(transparent)]
    Chart(#[from] ChartError),
    #[error("failed to write the manifest")]
    Manifest(#[from] serde_yaml::Error),
}
