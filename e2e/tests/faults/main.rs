//! The matrix of faults: each is applied to a real Kubernetes with real parts, followed by the checks of an account.
//!
//! `make test-faults` runs this; see `e2e/README.md`.

mod benchmark_deleted;
mod benchmark_suspended;
mod control_plane;
mod links;
mod name_taken;
mod nodes;
mod operator_killed;
mod operator_replaced;
mod shards;
mod stage;
mod target;
