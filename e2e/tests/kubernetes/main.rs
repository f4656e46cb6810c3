//! A user's tasks with redisbench on a real Kubernetes, and their possible failures.
//!
//! `make test-e2e` runs this; see `e2e/README.md`.

mod documents;
mod failures;
mod lifecycle;
mod plugin;
mod queue;
mod quickstart;
mod recovery;
mod redis_cluster;
mod refusals;
mod search;
mod secrecy;
mod seeds;
mod tls;
mod trials;
