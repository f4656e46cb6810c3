//! One call to several shards before a deadline.

use std::collections::BTreeMap;
use std::time::Duration;

use super::event::{Answered, Ask, Event};
use super::shards::{Shard, Standing};
use super::trial::Conductor;
use super::{Call, CallError, Ending, Reply};

/// Pause before a call to a shard is repeated.
pub const RETRY_AFTER: Duration = Duration::from_millis(100);

/// An idempotent call to several shards, repeated until each has replied or the time is over.
#[derive(Debug)]
pub struct Broadcast {
    until: Duration,
    /// Shards without a final reply, with their last errors.
    waiting: BTreeMap<usize, Option<CallError>>,
}

impl Broadcast {
    pub fn begin(conductor: &mut Conductor, asks: Vec<Ask>, until: Duration) -> Self {
        let waiting = asks.iter().map(|ask| (ask.shard, None)).collect();
        for ask in asks {
            conductor.out.call(ask);
        }
        conductor.out.wake_by(until);
        Self { until, waiting }
    }

    /// Returns true once all shards have replied. The inner error is the reason why a shard did not, or gave the wrong reply; the others do
    /// not matter then.
    /// `note` takes each reply.
    pub fn step(
        &mut self,
        conductor: &mut Conductor,
        event: Event,
        note: impl FnOnce(&Ask, Reply) -> Result<(), String>,
    ) -> Result<Result<bool, String>, Ending> {
        let failed = |conductor: &Conductor, shard: usize, why| {
            Ok(Err(format!("shard {}: {why}", conductor.shards[shard].index())))
        };
        if let Event::Answered(answered) = event {
            let Answered { ask, reply, received, .. } = *answered;
            let again_at = conductor.now + RETRY_AFTER;
            match reply {
                Err(error) if error.is_stale_epoch() => return Err(Ending::Superseded),
                // A refusal is final.
                Err(error @ CallError::Unreachable(_)) if again_at < self.until => {
                    self.waiting.insert(ask.shard, Some(error));
                    conductor.out.call_at(again_at, ask);
                }
                Err(error) => return failed(conductor, ask.shard, error.why()),
                // A conductor that stood still finds replies that may have come too late.
                Ok(_) if received >= self.until => {}
                Ok(reply) => {
                    self.waiting.remove(&ask.shard);
                    if let Err(why) = note(&ask, reply) {
                        return failed(conductor, ask.shard, why);
                    }
                }
            }
        }
        if let Some((shard, error)) = self.waiting.first_key_value().filter(|_| conductor.now >= self.until) {
            let why = error.as_ref().map_or_else(|| "it did not reply in time".to_owned(), CallError::why);
            return failed(conductor, *shard, why);
        }
        conductor.out.wake_by(self.until);
        Ok(Ok(self.waiting.is_empty()))
    }
}

impl Conductor {
    /// Calls to all shards with this standing, or the reason why one cannot be called.
    pub fn asks(&self, standing: &Standing, call: impl Fn(&Shard) -> Option<Call>) -> Result<Vec<Ask>, String> {
        let shards = self.shards.iter().enumerate().filter(|(_, shard)| shard.standing == *standing);
        shards
            .map(|(index, shard)| {
                let ask = call(shard).and_then(|call| self.ask(index, call));
                ask.ok_or_else(|| format!("shard {}: it no longer exists", shard.index()))
            })
            .collect()
    }
}
