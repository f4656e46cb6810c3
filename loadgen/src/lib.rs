//! The load generator: one shard of a benchmark. Knows no Kubernetes.

pub mod cluster;
pub mod engine;
pub mod resp;
pub mod workload;
