//! From the shards' snapshots to numbers and verdict: what a merge must keep, and what each number means.

mod merging;
mod quantiles;
mod shards;
mod verdicts;
