//! The harness of the end-to-end tests: a cluster with the operator installed by Helm, a namespace per test, and access to Redis,
//! benchmarks and metrics.
//!
//! It shares no code with the product. It treats benchmarks as JSON, and uses `helm` and `kubectl` as a user would.

#![allow(clippy::missing_errors_doc, reason = "an error is a failed test, and its message says why")]

pub mod accounts;
pub mod benchmark;
pub mod cluster;
pub mod faults;
pub mod install;
pub mod json;
pub mod metrics;
pub mod namespace;
pub mod redis;
pub mod tools;
pub mod wait;

pub use benchmark::Benchmark;
pub use cluster::Cluster;
pub use namespace::{TestNamespace, run, run_alone, run_within};
