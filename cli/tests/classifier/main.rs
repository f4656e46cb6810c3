//! The verdict as a classifier: situations made for real, by the built programs and real servers, each with what it must be
//! called. docs/verdict.md has the table of what they came to.
//!
//! They are about the machine, so they run one at a time. A run that other work on the machine disturbed says so of itself
//! (`GeneratorCPU`, `SendLate`, `StartSkew` where none is expected), and is made again. Those that are ignored by default
//! need root: a cgroup with a quota, a network of their own. `make test-selfcheck` runs all of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests end at the first surprise, and clippy's own exception ends at test functions"
)]

mod bad;
mod clean;
mod cluster;
mod disk;
mod group;
mod limits;
mod memory;
mod network;
mod persistence;
mod processors;
mod proxy;
mod search;
#[path = "../../../loadgen/tests/support/mod.rs"]
mod servers;
mod situation;
mod start;
#[path = "../suite/support.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;
