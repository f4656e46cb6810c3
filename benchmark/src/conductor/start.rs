//! The barrier: one start instant, recorded, named to every shard on its own clock, and acknowledged by all in time.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use redisbench_wire::{AcceptedStart, StartRequest};
use tokio::time::{Instant, sleep, timeout_at};

use super::barrier::{ACKNOWLEDGE_BEFORE, lead};
use super::clock::nanoseconds;
use super::drive::{CALLS_IN_FLIGHT, Conductor, Stop};
use super::shards::Standing;
use super::{CallError, ConductStage, Endpoint, Journal, JournalError, ShardCalls, StartRecord};

/// Between two calls to a shard that did not acknowledge.
const RETRY_AFTER: Duration = Duration::from_millis(100);

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Orders the next attempt. All shards must be armed and their clocks known. The inner error says why the attempt
    /// was missed; shards may then hold its start, and must be re-armed.
    pub async fn start(&mut self) -> Result<Result<(), String>, Stop> {
        // The number may come from a status that anyone can edit.
        self.attempt = self.attempt.saturating_add(1);
        let lead = lead(self.clock_uncertainty.unwrap_or_default() * 2, self.shards.len());
        let start_at = self.clock.now().saturating_add(nanoseconds(lead));
        let start_at_unix_nanoseconds =
            self.config.wall_clock.unix_nanoseconds() + u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX);
        let until = self.clock.instant(start_at) - ACKNOWLEDGE_BEFORE;
        let record = StartRecord { attempt: self.attempt, start_at_unix_nanoseconds };
        // Recorded first: a conductor that takes over must know of an attempt before any shard can.
        match timeout_at(until, self.journal.record_start(record)).await {
            Ok(Ok(())) => {}
            Ok(Err(JournalError::Superseded)) => return Err(Stop::Superseded),
            Ok(Err(JournalError::Failed(why))) => return Ok(Err(format!("the start could not be recorded: {why}"))),
            Err(_) => return Ok(Err("recording the start took too long".to_owned())),
        }
        if let Err(why) = self.order(start_at, until).await? {
            return Ok(Err(why));
        }
        for shard in &mut self.shards {
            shard.standing = Standing::Running;
        }
        self.start_at = Some(start_at);
        self.start_at_unix_nanoseconds = Some(start_at_unix_nanoseconds);
        self.publish(ConductStage::Running);
        Ok(Ok(()))
    }

    async fn order(&mut self, start_at: i64, until: Instant) -> Result<Result<(), String>, Stop> {
        let mut orders = Vec::with_capacity(self.shards.len());
        for (index, shard) in self.shards.iter().enumerate() {
            let (Some(endpoint), Some(clock)) = (shard.endpoint.clone(), shard.clock) else {
                return Ok(Err(format!("shard {} is not there any more", shard.index())));
            };
            let request = StartRequest {
                epoch: self.config.epoch,
                attempt: self.attempt,
                start_nanoseconds: clock.to_shard(start_at),
            };
            let (calls, trial) = (Arc::clone(&self.calls), self.trial);
            orders.push(async move { (index, order(calls.as_ref(), &endpoint, trial, request, until).await) });
        }
        let mut orders = stream::iter(orders).buffer_unordered(CALLS_IN_FLIGHT);
        while let Some((index, acknowledged)) = orders.next().await {
            match acknowledged {
                Ok(()) => {}
                Err(Missed::Superseded) => return Err(Stop::Superseded),
                // One is enough: the others need not be waited for.
                Err(Missed::Because(why)) => {
                    return Ok(Err(format!("shard {}: {why}", self.shards[index].index())));
                }
            }
        }
        Ok(Ok(()))
    }
}

enum Missed {
    Superseded,
    Because(String),
}

/// Names the start to one shard until it acknowledges. Repeating is harmless: the first accepted instant stands.
async fn order<C: ShardCalls>(
    calls: &C,
    endpoint: &Endpoint,
    trial: u32,
    request: StartRequest,
    until: Instant,
) -> Result<(), Missed> {
    let wanted = AcceptedStart { attempt: request.attempt, start_nanoseconds: request.start_nanoseconds };
    let mut last = "it did not acknowledge the start in time".to_owned();
    loop {
        let Ok(answer) = timeout_at(until, calls.start(endpoint, trial, &request)).await else {
            return Err(Missed::Because(last));
        };
        match answer {
            Ok(accepted) if accepted == wanted => return Ok(()),
            Ok(accepted) => {
                return Err(Missed::Because(format!("it accepted another start, of attempt {}", accepted.attempt)));
            }
            Err(error) if error.is_stale_epoch() => return Err(Missed::Superseded),
            Err(CallError::Refused(refusal)) => return Err(Missed::Because(refusal.to_string())),
            Err(CallError::Unreachable(how)) => last = how.to_string(),
        }
        if Instant::now() + RETRY_AFTER >= until {
            return Err(Missed::Because(last));
        }
        sleep(RETRY_AFTER).await;
    }
}
