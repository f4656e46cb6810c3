//! Tests of the built program. Its shards need the load generator's program in the same directory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy's own exception ends at test functions"
)]

mod cluster;
mod examples;
mod experiments;
#[path = "../../../loadgen/tests/support/haproxy.rs"]
mod haproxy;
mod local;
mod output;
mod presets;
mod search;
mod seeds;
#[path = "../../../loadgen/tests/support/mod.rs"]
mod servers;
mod stall;
mod support;
mod thresholds;
mod tls;
mod usage;
mod warmup;
mod windows;
