//! Keeps contact with shards that only a later trial needs: they hold no connections, and exit after long without a call.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use tokio::sync::watch;
use tokio::time::sleep;

use super::trial::CALLS_IN_FLIGHT;
use super::{ShardCalls, ShardPresence};

/// Pause between two calls: far below the ten minutes without contact after which a shard exits, so that some calls may fail.
const KEEP_CONTACT: Duration = Duration::from_secs(60);

/// Calls all shards except the first `needed` periodically, for as long as it is polled. Errors are ignored here: the trial that needs the
/// shard handles them.
pub async fn keep_alive<C: ShardCalls>(
    calls: Arc<C>,
    presence: watch::Receiver<Vec<ShardPresence>>,
    needed: usize,
) -> Infallible {
    loop {
        let idle = presence
            .borrow()
            .iter()
            .skip(needed)
            .filter_map(|presence| match presence {
                ShardPresence::Present(endpoint) => Some(endpoint.clone()),
                _ => None,
            })
            .collect::<Vec<_>>();
        let asked = idle.into_iter().map(|endpoint| {
            let calls = Arc::clone(&calls);
            async move { drop(calls.state(&endpoint).await) }
        });
        let asked: Vec<_> = asked.collect();
        stream::iter(asked).buffer_unordered(CALLS_IN_FLIGHT).collect::<()>().await;
        sleep(KEEP_CONTACT).await;
    }
}
