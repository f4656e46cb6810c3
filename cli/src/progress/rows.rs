//! Tables of shards and Redis nodes while the load runs.

use redisbench_benchmark::api::status::{NodeProgress, ShardProgress};
use redisbench_benchmark::human::{count, latency, rate};

/// Heads of [`shard`] after the first.
pub const SHARD_HEADS: [&str; 4] = ["rate", "failed", "busy", "queued"];

/// Heads of [`node`] after the first.
pub const NODE_HEADS: [&str; 3] = ["rate", "errors", "p99"];

/// A shard's index and state, and its numbers.
pub fn shard(shard: &ShardProgress) -> [String; 5] {
    let state = match shard {
        ShardProgress { lost: true, .. } => " lost",
        ShardProgress { unreachable: true, .. } => " silent",
        _ => "",
    };
    [
        format!("{}{state}", shard.index),
        rate(shard.achieved_per_second),
        count(shard.failed_requests),
        format!("{} %", shard.busiest_worker_percent),
        format!("{} %", shard.run_queue_percent),
    ]
}

/// A Redis node's address and numbers.
pub fn node(node: &NodeProgress) -> [String; 4] {
    let p99 = node.p99_nanoseconds.map_or_else(|| "-".to_owned(), latency);
    [node.address.clone(), rate(node.requests_per_second), count(node.errors), p99]
}

/// The head of the first column of nodes.
pub fn nodes_head(left_out: u64) -> String {
    if left_out > 0 { format!("node, and {left_out} more") } else { "node".to_owned() }
}
