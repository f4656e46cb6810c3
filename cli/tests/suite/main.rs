//! Tests of the built program. Its shards need the load generator's program in the same directory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy's own exception ends at test functions"
)]

mod ci;
mod cluster;
mod colours;
mod documents;
mod drivers;
mod examples;
mod experiments;
mod exports;
mod flags;
mod init;
mod local;
mod output;
mod presets;
mod refusals;
mod search;
mod seeds;
mod stall;
mod support;
mod terminal;
mod thresholds;
mod tls;
mod usage;
mod warmup;
mod windows;
