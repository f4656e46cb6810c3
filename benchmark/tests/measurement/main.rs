//! From the shards' snapshots to numbers and verdict: what a merge must keep, and what each number means.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod merging;
mod quantiles;
mod shards;
mod verdicts;
