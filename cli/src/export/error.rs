//! Why a result has no file of a format.

use redisbench_wire::histogram::HistogramError;

/// Why a result has no file of a format. For people: says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("nothing was measured{0}")]
    NotMeasured(String),
    #[error(
        "this format needs the full results of the trials, which a saved object does not have: add -f with the directory of \
         `local --output-dir`, or export NAME from the cluster. The formats csv and github-summary, and the report, show \
         what the object has"
    )]
    NoResults,
    #[error("--trial {0}: there is no full result of it; there are: {1}")]
    NoSuchTrial(u32, String),
    #[error("this format has one trial, and there are {0}: choose one with --trial INDEX, from 0")]
    SeveralTrials(usize),
    #[error(
        "trial {0}: this format needs the seconds, which a saved object does not have, and a full result only within its \
         size limit; export NAME from the cluster, or the directory of `local --output-dir`"
    )]
    NoSeconds(u32),
    #[error(
        "trial {0}: this format needs the distribution of all requests, which is only in the full result; export NAME from \
         the cluster, or the directory of `local --output-dir`"
    )]
    NoDistribution(u32),
    #[error("trial {0} has no start instant, so its times are unknown")]
    NoStart(u32),
    #[error("failed to read a histogram of the result")]
    Histogram(#[from] HistogramError),
    #[error("failed to write {0}: {1}")]
    Write(&'static str, Box<dyn std::error::Error + Send + Sync>),
}
