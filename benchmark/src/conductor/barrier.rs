//! The barrier: one start instant, recorded, sent to every shard on its own clock, and acknowledged by all in time.

use std::time::Duration;

use redisbench_wire::StartRequest;

use super::broadcast::Broadcast;
use super::clock::nanoseconds;
use super::event::{Action, Ask, Event};
use super::intervals::{ACKNOWLEDGE_BEFORE, MISSED_STARTS, lead, reach_all};
use super::shards::{Shard, Standing};
use super::trial::{Conductor, Step};
use super::{Call, ConductStage, Ending, Failure, JournalError, Reply, StartRecord, reason};
use crate::api::settling::SHORTEST_LEAD;

/// One attempt to start. All shards must be armed and their clocks measured.
pub struct Start {
    lead: Duration,
    /// The estimated time for the calls to all shards.
    calls: Duration,
    /// On the conductor's clock.
    at: i64,
    unix_nanoseconds: u64,
    /// The deadline for all acknowledgements.
    until: Duration,
    stage: Stage,
}

enum Stage {
    Recording,
    Ordering(Broadcast),
    /// It was not recorded. Shards stay armed, and the journal may recover.
    Resting(Duration),
}

impl Start {
    pub fn begin(conductor: &mut Conductor) -> Self {
        // Saturates: the number may come from a status that anyone can edit.
        conductor.attempt = conductor.attempt.saturating_add(1);
        let round_trip = conductor.clock_uncertainty.unwrap_or_default() * 2;
        let calls = time_of_calls(conductor);
        let lead = lead(round_trip, SHORTEST_LEAD) + calls + conductor.recording.allowance;
        let unix_nanoseconds = conductor.unix_now.saturating_add(u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX));
        // Recorded first: after a takeover, an attempt that a shard may hold must be known.
        let record = StartRecord { attempt: conductor.attempt, start_at_unix_nanoseconds: unix_nanoseconds };
        conductor.out.actions.push(Action::Record(record));
        Self {
            lead,
            calls,
            at: conductor.clock().saturating_add(nanoseconds(lead)),
            unix_nanoseconds,
            until: (conductor.now + lead).saturating_sub(ACKNOWLEDGE_BEFORE),
            stage: Stage::Recording,
        }
    }

    /// Returns whether the trial has started. If not, the attempt was missed; shards may hold its start and must be re-armed.
    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<bool> {
        match (&mut self.stage, event) {
            // No time is left for the calls, and no shard has the start yet.
            (Stage::Recording, Event::Recorded(Ok(()))) if conductor.now + self.calls >= self.until => {
                conductor.recording.took_too_long(self.lead);
                self.stage = Stage::Resting(not_recorded(conductor, "recording it took too long")?);
            }
            (Stage::Recording, Event::Recorded(Ok(()))) => {
                conductor.recording.worked();
                match self.orders(conductor) {
                    Ok(orders) => self.stage = Stage::Ordering(orders),
                    Err(why) => return missed(conductor, &why),
                }
            }
            (Stage::Recording, Event::Recorded(Err(JournalError::Superseded))) => return Err(Ending::Superseded),
            (Stage::Recording, Event::Recorded(Err(JournalError::Failed(why)))) => {
                self.stage = Stage::Resting(not_recorded(conductor, &why)?);
            }
            (Stage::Recording, _) if conductor.now >= self.until => {
                conductor.out.forget();
                conductor.recording.took_too_long(self.lead);
                self.stage = Stage::Resting(not_recorded(conductor, "recording it timed out")?);
            }
            (Stage::Ordering(orders), event) => match orders.step(conductor, event, as_ordered)? {
                Ok(true) => {
                    self.started(conductor);
                    return Ok(Some(true));
                }
                Ok(false) => {}
                Err(why) => return missed(conductor, &why),
            },
            (Stage::Resting(until), _) if conductor.now >= *until => return Ok(Some(false)),
            _ => {}
        }
        conductor.out.wake_by(if let Stage::Resting(until) = self.stage { until } else { self.until });
        Ok(None)
    }

    fn orders(&self, conductor: &mut Conductor) -> Result<Broadcast, String> {
        let (epoch, attempt, trial) = (conductor.config.epoch, conductor.attempt, conductor.config.trial);
        let asks = conductor.asks(&Standing::Armed, |shard| {
            let start_nanoseconds = shard.clock?.to_shard(self.at);
            Some(Call::Start(trial, StartRequest { epoch, attempt, start_nanoseconds }))
        })?;
        // Repeating is harmless: the first accepted instant stands.
        Ok(Broadcast::begin(conductor, asks, self.until))
    }

    fn started(&self, conductor: &mut Conductor) {
        for shard in &mut conductor.shards {
            shard.standing = Standing::Running;
        }
        (conductor.start_at, conductor.start_is_rough) = (Some(self.at), false);
        conductor.start_at_unix_nanoseconds = Some(self.unix_nanoseconds);
        conductor.publish(ConductStage::Running);
    }
}

/// Estimates the time for one call to each shard: the exchange of clocks has just made several. After a missed start, the longest time.
fn time_of_calls(conductor: &Conductor) -> Duration {
    let longest = reach_all(conductor.shards.len());
    if conductor.misses == 0 { conductor.clocks_took.min(longest) } else { longest }
}

fn as_ordered(ask: &Ask, reply: Reply) -> Result<(), String> {
    let (Call::Start(_, ordered), Reply::Start(accepted)) = (&ask.call, reply) else {
        return Err("it replied to another call".to_owned());
    };
    if (accepted.attempt, accepted.start_nanoseconds) == (ordered.attempt, ordered.start_nanoseconds) {
        return Ok(());
    }
    Err(format!("it accepted another start, of attempt {}", accepted.attempt))
}

/// Not every shard acknowledged the start in time. Some may hold it.
fn missed(conductor: &mut Conductor, why: &str) -> Step<bool> {
    note_missed(conductor);
    conductor.misses += 1;
    tracing::warn!(attempt = conductor.attempt, why, "start missed");
    if conductor.misses == MISSED_STARTS {
        let message = format!("missed {} starts, the last because {why}", conductor.misses);
        return Err(Ending::Failed(Failure::new(reason::START_MISSED, message)));
    }
    conductor.shards.iter_mut().for_each(Shard::give_up_attempt);
    Ok(Some(false))
}

/// No shard has received the start, so only time is lost. Returns when another start may be recorded.
fn not_recorded(conductor: &mut Conductor, why: &str) -> Result<Duration, Ending> {
    note_missed(conductor);
    let (attempt, now) = (conductor.attempt, conductor.now);
    let since = *conductor.recording.failing_since.get_or_insert(now);
    tracing::warn!(attempt, why, "failed to record the start");
    let failing = now.saturating_sub(since);
    // The longest that a shard stays armed without a call.
    if failing >= Duration::from_nanos(conductor.config.plan.limits.armed_nanoseconds) {
        let seconds = failing.as_secs();
        let message = format!("failed to record a start for {seconds} s, the last time because {why}");
        return Err(Ending::Failed(Failure::new(reason::START_MISSED, message)));
    }
    let pause = conductor.recording.pause(&conductor.config.run);
    conductor.publish_counts(ConductStage::Preparing);
    Ok(now + pause)
}

fn note_missed(conductor: &mut Conductor) {
    if conductor.restarts == 0 {
        conductor.missed = conductor.attempt;
    }
}
