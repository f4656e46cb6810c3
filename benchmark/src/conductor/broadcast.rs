//! Sends one call to all shards before a deadline.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use tokio::time::{Instant, sleep, timeout_at};

use super::barrier::RETRY_AFTER;
use super::shards::Standing;
use super::trial::{CALLS_IN_FLIGHT, Conductor, Stop};
use super::{CallError, Endpoint, Journal, ShardCalls};

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Makes the idempotent `call` to every shard with this standing until each has answered. Returns the answers in shard order, or the
    /// reason if a shard refuses or does not answer before `until`.
    pub async fn broadcast<T, F>(
        &self,
        standing: &Standing,
        until: Instant,
        call: impl Fn(Arc<C>, Endpoint, u32) -> F,
    ) -> Result<Result<Vec<T>, String>, Stop>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let (call, trial) = (&call, self.trial);
        let told = self.shards.iter().filter(|shard| shard.standing == *standing).map(|shard| async move {
            let Some(endpoint) = &shard.endpoint else {
                return Ok(Err(format!("shard {}: it no longer exists", shard.index())));
            };
            let told = insist(until, || call(Arc::clone(&self.calls), endpoint.clone(), trial)).await;
            match told {
                Err(Some(error)) if error.is_stale_epoch() => Err(Stop::Superseded),
                Ok(answer) => Ok(Ok(answer)),
                Err(Some(error)) => Ok(Err(format!("shard {}: {error}", shard.index()))),
                Err(None) => Ok(Err(format!("shard {}: it did not reply in time", shard.index()))),
            }
        });
        let told: Vec<_> = told.collect();
        let mut answers = Vec::with_capacity(told.len());
        let mut told = stream::iter(told).buffered(CALLS_IN_FLIGHT);
        while let Some(answer) = told.next().await {
            // One failure decides; there is no need to wait for the others.
            match answer? {
                Ok(answer) => answers.push(answer),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(answers))
    }
}

/// Calls one shard until it answers. Returns its last error if it does not.
async fn insist<T, F>(until: Instant, call: impl Fn() -> F) -> Result<T, Option<CallError>>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut last = None;
    loop {
        match timeout_at(until, call()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error @ CallError::Refused(_))) => return Err(Some(error)),
            Ok(Err(error)) => last = Some(error),
            Err(_) => return Err(last),
        }
        if Instant::now() + RETRY_AFTER >= until {
            return Err(last);
        }
        sleep(RETRY_AFTER).await;
    }
}
