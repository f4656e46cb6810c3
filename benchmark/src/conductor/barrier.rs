//! The barrier: one start instant, recorded, sent to every shard on its own clock, and acknowledged by all in time.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use redisbench_wire::{AcceptedStart, StartRequest};
use tokio::time::{Instant, sleep, timeout_at};

use super::clock::nanoseconds;
use super::intervals::{ACKNOWLEDGE_BEFORE, lead};
use super::shards::Standing;
use super::trial::{CALLS_IN_FLIGHT, Conductor, Stop};
use super::{CallError, ConductStage, Endpoint, Failure, Journal, JournalError, ShardCalls, StartRecord, reason};

/// First and longest pause before another start is recorded.
const JOURNAL_PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(5)];

/// Maximum added to the lead for a slow journal.
const LONGEST_ALLOWANCE: Duration = Duration::from_secs(30);

/// Pause before a call to a shard is retried.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(100);

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Orders the next attempt. All shards must be armed and their clocks measured. The inner error is the reason why the attempt was
    /// missed; shards may then hold its start and must be re-armed.
    pub async fn start(&mut self) -> Result<Result<(), Missed>, Stop> {
        // Saturates: the number may come from a status that anyone can edit.
        self.attempt = self.attempt.saturating_add(1);
        let lead = lead(self.clock_uncertainty.unwrap_or_default() * 2, self.shards.len()) + self.recording.allowance;
        let start_at = self.clock.now().saturating_add(nanoseconds(lead));
        let start_at_unix_nanoseconds =
            self.config.wall_clock.unix_nanoseconds() + u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX);
        let until = self.clock.instant(start_at) - ACKNOWLEDGE_BEFORE;
        let record = StartRecord { attempt: self.attempt, start_at_unix_nanoseconds };
        // Recorded first: after a takeover, an attempt that a shard may hold must be known.
        match timeout_at(until, self.journal.record_start(record)).await {
            Ok(Ok(())) => {}
            Ok(Err(JournalError::Superseded)) => return Err(Stop::Superseded),
            Ok(Err(JournalError::Failed(why))) => return Ok(Err(Missed::NotRecorded(why))),
            Err(_) => {
                self.recording.took_too_long(lead);
                return Ok(Err(Missed::NotRecorded("recording it timed out".to_owned())));
            }
        }
        self.recording.worked();
        if let Err(why) = self.order(start_at, until).await? {
            return Ok(Err(Missed::NotAcknowledged(why)));
        }
        for shard in &mut self.shards {
            shard.standing = Standing::Running;
        }
        (self.start_at, self.start_is_rough) = (Some(start_at), false);
        self.start_at_unix_nanoseconds = Some(start_at_unix_nanoseconds);
        self.publish(ConductStage::Running);
        Ok(Ok(()))
    }

    /// Waits before the next start is recorded: shards stay armed, and the journal may recover.
    pub async fn wait_for_journal(&mut self, why: String) -> Result<(), Stop> {
        let limit = self.config.plan.limits.armed_nanoseconds;
        let (attempt, now) = (self.attempt, Instant::now());
        let since = *self.recording.failing_since.get_or_insert(now);
        tracing::warn!(attempt, why, "failed to record the start");
        // Shards do not stay armed any longer.
        if now.duration_since(since) >= Duration::from_nanos(limit) {
            let seconds = now.duration_since(since).as_secs();
            let message = format!("failed to record a start for {seconds} s, the last time because {why}");
            return Err(Stop::Failed(Failure::new(reason::START_MISSED, message)));
        }
        self.publish_counts(ConductStage::Preparing);
        sleep(self.recording.pause(&self.config.run)).await;
        Ok(())
    }

    async fn order(&mut self, start_at: i64, until: Instant) -> Result<Result<(), String>, Stop> {
        let mut orders = Vec::with_capacity(self.shards.len());
        for (index, shard) in self.shards.iter().enumerate() {
            let (Some(endpoint), Some(clock)) = (shard.endpoint.clone(), shard.clock) else {
                return Ok(Err(format!("shard {} no longer exists", shard.index())));
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
                Err(Unordered::Superseded) => return Err(Stop::Superseded),
                // One failure misses the attempt; there is no need to wait for the others.
                Err(Unordered::Because(why)) => {
                    return Ok(Err(format!("shard {}: {why}", self.shards[index].index())));
                }
            }
        }
        Ok(Ok(()))
    }
}

#[derive(Debug)]
pub enum Missed {
    /// Not recorded, or too late. No shard has received it.
    NotRecorded(String),
    /// Not every shard acknowledged it in time. Some may hold it.
    NotAcknowledged(String),
}

/// History of recording starts.
#[derive(Debug, Default)]
pub struct Recording {
    failing_since: Option<Instant>,
    failures: u32,
    /// Added to the lead, for a slow journal.
    allowance: Duration,
}

impl Recording {
    /// Keeps the allowance: a slow journal usually stays slow.
    fn worked(&mut self) {
        *self = Self { allowance: self.allowance, ..Self::default() };
    }

    /// Gives the next record more time.
    fn took_too_long(&mut self, lead: Duration) {
        self.allowance = (self.allowance + lead).min(LONGEST_ALLOWANCE);
    }

    /// Pause before the next try: doubled each time, with jitter from the run's identity, so that runs which failed together do not retry
    /// together.
    fn pause(&mut self, run: &str) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let pause = JOURNAL_PAUSES[0].saturating_mul(1 << self.failures.min(8)).min(JOURNAL_PAUSES[1]);
        let mut hasher = DefaultHasher::new();
        (run, self.failures).hash(&mut hasher);
        pause / 2 + pause * u32::try_from(hasher.finish() % 1024).unwrap_or(0) / 1024
    }
}

enum Unordered {
    Superseded,
    Because(String),
}

/// Sends the start to one shard until it acknowledges. Repeating is harmless: the first accepted instant stands.
async fn order<C: ShardCalls>(
    calls: &C,
    endpoint: &Endpoint,
    trial: u32,
    request: StartRequest,
    until: Instant,
) -> Result<(), Unordered> {
    let wanted = AcceptedStart { attempt: request.attempt, start_nanoseconds: request.start_nanoseconds };
    let mut last = "it did not acknowledge the start in time".to_owned();
    loop {
        let Ok(answer) = timeout_at(until, calls.start(endpoint, trial, &request)).await else {
            return Err(Unordered::Because(last));
        };
        match answer {
            Ok(accepted) if accepted == wanted => return Ok(()),
            Ok(accepted) => {
                return Err(Unordered::Because(format!("it accepted another start, of attempt {}", accepted.attempt)));
            }
            Err(error) if error.is_stale_epoch() => return Err(Unordered::Superseded),
            Err(CallError::Refused(refusal)) => return Err(Unordered::Because(refusal.to_string())),
            Err(CallError::Unreachable(how)) => last = how.to_string(),
        }
        if Instant::now() + RETRY_AFTER >= until {
            return Err(Unordered::Because(last));
        }
        sleep(RETRY_AFTER).await;
    }
}
