//! Releases the shards.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::EpochRequest;
use tokio::sync::watch;
use tokio::time::timeout;

use super::calls::call_all;
use super::{Call, CallError, ShardCalls, ShardPresence};

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
        let present = seen.into_iter().filter_map(|shard| match shard {
            ShardPresence::Present(endpoint) => Some(endpoint),
            _ => None,
        });
        let replies = call_all(Arc::clone(&calls), present.collect(), Call::Release(EpochRequest { epoch })).await;
        // A shard that has just exited no longer answers. The platform's report decides.
        if replies.iter().any(|reply| reply.as_ref().is_err_and(CallError::is_stale_epoch)) {
            return;
        }
        if timeout(wait, presence.changed()).await.is_ok_and(|changed| changed.is_err()) {
            return;
        }
        wait = (wait * 2).min(ROUNDS[1]);
    }
}
