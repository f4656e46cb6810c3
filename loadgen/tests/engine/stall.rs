//! A server that stops for a while. The latency that callers would see is known exactly and must be reported.
//!
//! The figures need a machine with time to sample the drain, so `make test-timing` runs these tests. `stalled.rs` checks on any machine that
//! the whole stop is counted.

mod cluster;
mod drain;
mod quiet;
mod standalone;
