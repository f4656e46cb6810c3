//! The load generator: one shard of a benchmark. Knows no Kubernetes.

pub mod cluster;
pub mod control;
pub mod engine;
pub mod resp;
mod target;
pub mod workload;
