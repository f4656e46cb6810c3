//! Releases the shards.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::EpochRequest;
use tokio::sync::watch;
use tokio::time::timeout;

use super::calls::call_all;
use super::{Call, CallError, ShardCalls, ShardPresence};

/// First and longest pause between two rounds of releasing; doubled in between.
const ROUNDS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// Releases every present shard, repeatedly if it does not reply, until none is left that could be present, or `presence` has lost
/// its sender. Returns early when another conductor has taken over.
pub async fn release<C: ShardCalls>(epoch: u64, calls: Arc<C>, mut presence: watch::Receiver<Vec<ShardPresence>>) {
    let mut wait = ROUNDS[0];
    // A shard that answered exits. Thousands of exits are as many changes of presence, and must not cost a call to every shard each.
    let mut released = BTreeSet::new();
    loop {
        let seen = presence.borrow_and_update().clone();
        let over = |shard: &ShardPresence| {
            matches!(shard, ShardPresence::Done | ShardPresence::Queued | ShardPresence::Gone { replaced: false, .. })
        };
        if seen.iter().all(over) {
            return;
        }
        let present = seen.iter().filter_map(ShardPresence::endpoint);
        let present = present.filter(|endpoint| !released.contains(&endpoint.incarnation)).cloned();
        let replies = call_all(Arc::clone(&calls), present.collect(), Call::Release(EpochRequest { epoch })).await;
        // A shard that has just exited no longer answers. The platform's report decides.
        if replies.iter().any(|(_, reply)| reply.as_ref().is_err_and(CallError::is_stale_epoch)) {
            return;
        }
        let answered = replies.into_iter().filter(|(_, reply)| reply.is_ok());
        released.extend(answered.map(|(endpoint, _)| endpoint.incarnation));
        if timeout(wait, presence.changed()).await.is_ok_and(|changed| changed.is_err()) {
            return;
        }
        wait = (wait * 2).min(ROUNDS[1]);
    }
}
