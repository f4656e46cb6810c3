//! Deletes the keys after the load, each shard its own part. A failure here does not change the result.

use std::time::Duration;

use redisbench_wire::{CleanupState, EpochRequest, RefusalCode};

use super::event::Event;
use super::shards::{Shard, Standing};
use super::trial::{Conductor, Step};
use super::{Call, CallError, Ending, Reply};
use crate::measurement::Cleanup;

/// For all shards together, because the status waits for it.
const WITHIN: Duration = Duration::from_secs(60);

/// Pause between two rounds of polling.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// A shard is given up after this many consecutive calls without an answer.
const SILENCES: u32 = 3;

/// One shard's part of the keys.
struct ShardCleanup {
    shard: u32,
    removed: u64,
    silences: u32,
    /// None while polling continues.
    over: Option<Result<(), String>>,
}

impl ShardCleanup {
    fn of(shard: &Shard, started: bool) -> Self {
        let over = match &shard.standing {
            Standing::Lost(why) => Some(Err(format!("it is lost: {why}"))),
            _ if shard.unacknowledged => Some(Err("it did not acknowledge the abort".to_owned())),
            // Its process exits by itself and deletes nothing.
            Standing::Failed(failure) if started || shard.preparation.preload_done > 0 => {
                Some(Err(failure.message.clone()))
            }
            Standing::Failed(_) => Some(Ok(())),
            _ if shard.endpoint.is_none() => Some(Ok(())),
            _ => None,
        };
        Self { shard: shard.index(), removed: 0, silences: 0, over }
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

/// Makes every present shard delete its part of the keys.
pub struct CleanUp {
    ending: Ending,
    until: Duration,
    ask_at: Duration,
    parts: Vec<ShardCleanup>,
}

impl CleanUp {
    pub fn begin(conductor: &Conductor, ending: Ending) -> Self {
        let started = conductor.start_at_unix_nanoseconds.is_some();
        let parts = conductor.shards.iter().map(|shard| ShardCleanup::of(shard, started)).collect();
        Self { ending, until: conductor.now + WITHIN, ask_at: conductor.now, parts }
    }

    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<(Ending, Option<Cleanup>)> {
        if let Event::Answered(answered) = event {
            let reply = answered.reply.and_then(Reply::cleanup);
            if reply.as_ref().is_err_and(CallError::is_stale_epoch) {
                return Err(Ending::Superseded);
            }
            self.parts[answered.ask.shard].hear(reply);
            self.ask_at = conductor.now + ASK_AGAIN_AFTER;
        }
        let finished = self.parts.iter().all(|part| part.over.is_some());
        if finished || conductor.now >= self.until {
            return Ok(Some((self.ending.clone(), Some(self.outcome()))));
        }
        if conductor.out.unanswered == 0 && conductor.now >= self.ask_at {
            let request = EpochRequest { epoch: conductor.config.epoch };
            let left = self.parts.iter().enumerate().filter(|(_, part)| part.over.is_none());
            left.for_each(|(index, _)| conductor.call(index, Call::Cleanup(request)));
        }
        conductor.out.wake_by(if conductor.out.unanswered == 0 { self.ask_at.min(self.until) } else { self.until });
        Ok(None)
    }

    fn outcome(&mut self) -> Cleanup {
        let mut cleanup = Cleanup::default();
        for part in self.parts.drain(..) {
            cleanup.removed_keys = cleanup.removed_keys.saturating_add(part.removed);
            match part.over {
                Some(Ok(())) => {}
                Some(Err(why)) => cleanup.left.push((part.shard, why)),
                None => cleanup.left.push((part.shard, format!("not finished within {} s", WITHIN.as_secs()))),
            }
        }
        tracing::info!(removed = cleanup.removed_keys, left = cleanup.left.len(), "the keys were deleted");
        cleanup
    }
}
