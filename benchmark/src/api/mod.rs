//! The API `redisbench.dev/v1alpha1`: types, the schema for the API server, and the validation that the operator and the command line
//! share.

#![warn(missing_docs)]

pub mod caching;
pub mod client;
mod command;
pub mod comparison;
mod crd;
mod duration;
mod endpoint;
mod fields;
pub mod file;
pub mod keys;
pub mod lifetime;
mod limit;
pub mod load;
mod measurement;
mod patterns;
mod placeholder;
pub mod preload;
pub mod preset;
mod problem;
mod reads;
pub mod repeats;
mod rules;
pub mod safety;
mod schema;
pub mod script;
pub mod search;
pub(crate) mod settling;
mod size;
pub mod spec;
pub mod status;
pub mod sweep;
mod sweepable;
pub mod target;
mod template;
pub mod threshold;
pub mod trace;
pub mod transaction;
mod validate;
mod validated;
pub mod values;
pub mod verify;
pub mod workload;

/// Label of all objects of a run: its runId.
pub const RUN_LABEL: &str = "redisbench.dev/run";

pub use crd::{chart_crd_template, crd_yaml, custom_resource_definition, first_sentence, schema as object_schema};
pub use duration::{DurationError, GoDuration};
pub use limit::{Limit, Scope, Threshold, watches_nodes};
pub use problem::Problem;
pub use rules::NAME_LENGTH;
pub use size::json_bytes;
pub use spec::{RedisBenchmark, RedisBenchmarkSpec};
pub use status::RedisBenchmarkStatus;
pub use template::ShardTemplate;
pub(crate) use validate::{admission, check_search, check_sweep, check_swept_operations, combinations, preload_rate};
pub use validate::{check_drivers, read, validate};
#[cfg(test)]
pub(crate) use validate::{status_problems, sweepable_fields};
pub use validated::{Shards, Validated};
