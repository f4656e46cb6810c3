//! RedisBenchmark on Kubernetes: the controller, the conducting tasks, metrics and leader election.

mod client;
pub mod controller;
mod http;
mod leader;
mod metrics;
pub mod options;
mod run;
pub mod tasks;
mod telemetry;
#[cfg(test)]
mod testing;

pub use run::{RunError, run};
