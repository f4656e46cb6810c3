//! What a benchmark is, wherever its shards run: the API with its validation, the plan, the conductor, and the merge,
//! verdict and export of what was measured. Knows neither a Kubernetes client nor a command line.

pub mod api;
pub mod conductor;
pub mod credential;
pub mod evidence;
pub mod export;
pub mod merge;
pub mod people;
pub mod plan;
pub mod quantile;
pub mod report;
#[cfg(test)]
mod sample;
mod seconds;
pub mod stats;
pub mod threshold;
pub mod topology;
pub mod verdict;
