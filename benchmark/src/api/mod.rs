//! The API `redisbench.dev/v1alpha1`: types, the schema that the API server holds objects against, and the validation
//! that the operator and the command line share.

mod duration;
pub mod spec;
pub mod status;
mod template;

pub use duration::{DurationError, GoDuration};
pub use spec::{RedisBenchmark, RedisBenchmarkSpec};
pub use status::RedisBenchmarkStatus;
pub use template::ShardTemplate;
