//! Tests from snapshots to numbers and verdict: invariants of a merge, and the meaning of each number.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod merging;
mod quantiles;
mod shards;
mod verdicts;
