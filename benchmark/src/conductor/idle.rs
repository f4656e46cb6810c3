//! Shards that this trial does not need, and a later one may: they hold no connections, and end by themselves if nobody
//! calls them for long.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use tokio::sync::watch;
use tokio::time::sleep;

use super::drive::CALLS_IN_FLIGHT;
use super::{ShardCalls, ShardPresence};

/// Between two calls: far below the ten minutes after which a shard takes itself for forgotten, so that some may be lost.
const KEEP_CONTACT: Duration = Duration::from_secs(60);

/// Calls every shard but the first `needed` now and then, for as long as it is polled. One that does not answer is the
/// concern of the trial that needs it.
pub async fn keep<C: ShardCalls>(
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
