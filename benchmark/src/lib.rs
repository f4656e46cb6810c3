//! What a benchmark is, wherever its shards run. Knows no Kubernetes client and no command line.

pub mod conductor;
pub mod credential;
