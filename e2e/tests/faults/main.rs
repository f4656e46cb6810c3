//! The faults that only a cluster can show: each is applied to a real Kubernetes with real parts, followed by the checks of a report. All
//! others are drawn by the simulation.
//!
//! `make test-faults` runs this; see `e2e/README.md`.

mod benchmark_deleted;
mod control_plane;
mod links;
mod nodes;
mod operator_killed;
mod operator_replaced;
mod shards;
