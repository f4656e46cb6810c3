//! Releases the shards.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use redisbench_wire::EpochRequest;
use tokio::sync::watch;
use tokio::time::timeout;

use super::trial::CALLS_IN_FLIGHT;
use super::{ShardCalls, ShardPresence};

/// First and longest pause between two rounds of releasing; doubled in between.
const ROUNDS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// Releases every present shard repeatedly, until each is [`ShardPresence::Done`] or gone without replacement, or `presence` has lost its
/// sender. Returns early when another conductor has taken over.
pub async fn release<C: ShardCalls>(epoch: u64, calls: Arc<C>, mut presence: watch::Receiver<Vec<ShardPresence>>) {
    let mut wait = ROUNDS[0];
    loop {
        let seen = presence.borrow_and_update().clone();
        let over =
            |shard: &ShardPresence| matches!(shard, ShardPresence::Done | ShardPresence::Gone { replaced: false, .. });
        if seen.iter().all(over) {
            return;
        }
        let orders: Vec<_> = seen
            .into_iter()
            .filter_map(|shard| match shard {
                ShardPresence::Present(endpoint) => {
                    let calls = Arc::clone(&calls);
                    Some(async move { calls.release(&endpoint, &EpochRequest { epoch }).await })
                }
                _ => None,
            })
            .collect();
        let mut answers = stream::iter(orders).buffer_unordered(CALLS_IN_FLIGHT);
        while let Some(answer) = answers.next().await {
            // A shard that has just exited no longer answers. The platform's report decides.
            if answer.is_err_and(|error| error.is_stale_epoch()) {
                return;
            }
        }
        if timeout(wait, presence.changed()).await.is_ok_and(|changed| changed.is_err()) {
            return;
        }
        wait = (wait * 2).min(ROUNDS[1]);
    }
}
