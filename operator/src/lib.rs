//! RedisBenchmark on Kubernetes: the controller, the conducting tasks, metrics and leader election.

pub mod build;
mod client;
pub mod controller;
pub mod environment;
mod http;
mod leader;
mod metrics;
pub mod options;
mod run;
mod scrape;
pub mod tasks;
pub mod telemetry;
#[cfg(test)]
mod testing;

pub use run::{RunError, run};
