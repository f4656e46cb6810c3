//! Deletes the keys after the load, each shard its own part. A failure here does not change the result.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use redisbench_wire::{CleanupState, EpochRequest, RefusalCode};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::shards::{Shard, Standing};
use super::trial::{CALLS_IN_FLIGHT, Conductor};
use super::{CallError, Cleanup, Endpoint, Journal, ShardCalls};

/// For all shards together, because the status waits for it.
const WITHIN: Duration = Duration::from_secs(60);

/// Pause between two rounds of polling.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// A shard is given up after this many consecutive calls without an answer.
const SILENCES: u32 = 3;

/// One shard's part of the keys.
struct Part {
    shard: u32,
    endpoint: Option<Endpoint>,
    removed: u64,
    silences: u32,
    /// None while polling continues.
    over: Option<Result<(), String>>,
}

impl Part {
    fn of(shard: &Shard, started: bool) -> Self {
        let over = match &shard.standing {
            Standing::Lost(why) => Some(Err(format!("it is lost: {why}"))),
            _ if shard.unacknowledged => Some(Err("it did not acknowledge the abort".to_owned())),
            // Its process exits by itself and deletes nothing.
            Standing::Failed(failure) if started || shard.preparation.preloaded_keys > 0 => {
                Some(Err(failure.message.clone()))
            }
            Standing::Failed(_) => Some(Ok(())),
            _ if shard.endpoint.is_none() => Some(Ok(())),
            _ => None,
        };
        Self { shard: shard.index(), endpoint: shard.endpoint.clone(), removed: 0, silences: 0, over }
    }

    fn hear(&mut self, answer: Result<CleanupState, CallError>) {
        match answer {
            Ok(state) => {
                (self.removed, self.silences) = (state.removed_keys, 0);
                self.over = state.failure.map(Err).or(state.done.then_some(Ok(())));
            }
            Err(error) => {
                self.silences += 1;
                let waits = error.refusal().is_none_or(|code| code == RefusalCode::Unavailable);
                if !waits || self.silences == SILENCES {
                    self.over = Some(Err(error.to_string()));
                }
            }
        }
    }
}

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Makes every present shard delete its part of the keys. Returns none if another conductor has taken over.
    pub async fn clean_up(&mut self) -> Option<Cleanup> {
        let until = Instant::now() + WITHIN;
        let started = self.start_at_unix_nanoseconds.is_some();
        let mut parts: Vec<_> = self.shards.iter().map(|shard| Part::of(shard, started)).collect();
        let request = EpochRequest { epoch: self.config.epoch };
        while Instant::now() < until && parts.iter().any(|part| part.over.is_none()) {
            let asked: Vec<_> = parts
                .iter()
                .enumerate()
                .filter(|(_, part)| part.over.is_none())
                .filter_map(|(index, part)| {
                    let (calls, endpoint) = (Arc::clone(&self.calls), part.endpoint.clone()?);
                    Some(async move { (index, timeout_at(until, calls.cleanup(&endpoint, &request)).await) })
                })
                .collect();
            let mut answers = stream::iter(asked).buffer_unordered(CALLS_IN_FLIGHT);
            while let Some((index, answer)) = answers.next().await {
                match answer {
                    Ok(Err(error)) if error.is_stale_epoch() => return None,
                    Ok(answer) => parts[index].hear(answer),
                    Err(_) => {}
                }
            }
            if parts.iter().any(|part| part.over.is_none()) {
                sleep_until(until.min(Instant::now() + ASK_AGAIN_AFTER)).await;
            }
        }
        let mut cleanup = Cleanup::default();
        for part in parts {
            cleanup.removed_keys = cleanup.removed_keys.saturating_add(part.removed);
            match part.over {
                Some(Ok(())) => {}
                Some(Err(why)) => cleanup.left.push((part.shard, why)),
                None => cleanup.left.push((part.shard, format!("not finished within {} s", WITHIN.as_secs()))),
            }
        }
        tracing::info!(removed = cleanup.removed_keys, left = cleanup.left.len(), "the keys were deleted");
        Some(cleanup)
    }
}
