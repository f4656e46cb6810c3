use redisbench_benchmark::api::status::{Artifact, ComparisonResult};
use redisbench_benchmark::report::repeats::Experiment;

/// The aggregate of the repeats of all cells, for the end of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aggregate {
    /// For the status.
    pub experiment: Experiment,
    /// The pieces of its document, as listed in the status.
    pub artifacts: Vec<Artifact>,
    /// The comparison with a previous benchmark, if the spec asks for one.
    pub against: Vec<ComparisonResult>,
    /// Why a part is missing, if one is.
    pub failure: Option<String>,
}
