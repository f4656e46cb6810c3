use redisbench_benchmark::api::status::{Artifact, ComparisonResult};
use redisbench_benchmark::report::repeats::Experiment;

/// What the repeats of all cells came to, as the end of the run tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// For the status.
    pub experiment: Experiment,
    /// The pieces of its document, as the status lists them.
    pub artifacts: Vec<Artifact>,
    /// What they are beside a benchmark of before, if that was asked for.
    pub against: Vec<ComparisonResult>,
    /// Why something of it is missing, if it is.
    pub failure: Option<String>,
}
