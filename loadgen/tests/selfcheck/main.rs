//! The load generator's measurements of itself. Each condition is created for real and must be reported, and a quiet run must not report
//! it.
//!
//! The tests measure the machine, so they run one at a time. Those that fail on a busy machine are ignored by default; `make test-timing`
//! runs them. The others hold on any machine, because a delay that the test causes can only become longer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::large_stack_arrays,
    reason = "tests end at the first surprise, and their numbers are small"
)]

#[path = "../engine/harness.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod harness;
#[path = "../support/open_loop.rs"]
mod open_loop;

mod idle;
mod lateness;
mod machine;
mod network;
mod processors;
mod receiving;
mod sending;
