//! What the load generator says of itself: each condition is made for real and must show, and a quiet run must not show it.
//!
//! They are about the machine, so they run one at a time. Those whose outcome depends on how busy it is are ignored by default:
//! `make test-timing` runs them. What is left holds on any machine: delays that the test itself makes can only be exceeded.
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
#[path = "../support/mod.rs"]
mod support;

mod idle;
mod lateness;
mod machine;
mod network;
mod processors;
mod receiving;
mod sending;
