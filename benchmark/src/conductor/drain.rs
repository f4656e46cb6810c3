//! Drains the shards between two trials: no connection of the previous trial remains when the next one begins.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use redisbench_wire::{AbortRequest, AbortThen, EpochRequest, RefusalCode};
use tokio::time::Instant;

use super::intervals::polling_interval;
use super::trial::{CALLS_IN_FLIGHT, Conductor, Stop};
use super::{CallError, ConductStage, Endpoint, Failure, Journal, ShardCalls, ShardPresence, reason};

/// Pause between two calls to a shard that only waits.
const KEEP_CONTACT: Duration = Duration::from_secs(30);

/// A shard's answer about the previous trial.
enum Word {
    /// It has no connection of the previous trial.
    Drained,
    /// It has connections, or may have some.
    NotYet(String),
    Superseded,
}

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Makes every shard of the run close its connections, including those that this trial does not need. Then waits for the interval
    /// between trials. A shard that already has this trial's plan counts as drained.
    pub async fn drain(&mut self) -> Result<(), Stop> {
        let until = Instant::now() + self.config.limits.prepare;
        let mut drained = BTreeSet::new();
        while !self.drained {
            let mut waiting = self.present();
            waiting.retain(|endpoint| !drained.contains(&endpoint.incarnation));
            let mut last = self.leaving();
            let words: Vec<_> = waiting.into_iter().map(|endpoint| self.word(endpoint)).collect();
            let mut words = stream::iter(words).buffer_unordered(CALLS_IN_FLIGHT);
            while let Some((endpoint, word)) = words.next().await {
                match word {
                    Word::Drained => {
                        drained.insert(endpoint.incarnation);
                    }
                    Word::NotYet(why) => last = Some(format!("shard {}: {why}", endpoint.shard)),
                    Word::Superseded => return Err(Stop::Superseded),
                }
            }
            let Some(last) = last else {
                self.drained = true;
                break;
            };
            if Instant::now() >= until {
                let limit = self.config.limits.prepare.as_secs();
                let message = format!("shards kept connections of the previous trial for {limit} s; {last}");
                return Err(Stop::Failed(Failure::new(reason::PREPARE_TIMED_OUT, message)));
            }
            self.publish_counts(ConductStage::Preparing);
            self.pause(polling_interval(self.shards.len())).await;
        }
        self.keep_interval().await;
        Ok(())
    }

    /// Waits between two trials. Polls meanwhile, because a shard exits after long without contact.
    async fn keep_interval(&mut self) {
        let until = Instant::now() + std::mem::take(&mut self.config.interval);
        while Instant::now() < until {
            let asked = self.present().into_iter().map(|endpoint| {
                let calls = Arc::clone(&self.calls);
                async move { drop(calls.state(&endpoint).await) }
            });
            let asked: Vec<_> = asked.collect();
            stream::iter(asked).buffer_unordered(CALLS_IN_FLIGHT).collect::<()>().await;
            let rest = until.saturating_duration_since(Instant::now());
            self.pause(rest.min(KEEP_CONTACT)).await;
        }
    }

    /// Endpoints of all present shards, whether this trial needs them or not.
    fn present(&self) -> Vec<Endpoint> {
        let seen = self.presence.borrow();
        let present = seen.iter().filter_map(|presence| match presence {
            ShardPresence::Present(endpoint) => Some(endpoint.clone()),
            _ => None,
        });
        present.collect()
    }

    /// A process that is about to be replaced keeps its connections until it has ended.
    fn leaving(&self) -> Option<String> {
        let seen = self.presence.borrow();
        let mut leaving = seen.iter().enumerate().filter_map(|(shard, presence)| match presence {
            ShardPresence::Gone { why, replaced: true } => Some(format!("shard {shard}: {why}; not replaced yet")),
            _ => None,
        });
        leaving.next()
    }

    fn word(&self, endpoint: Endpoint) -> impl Future<Output = (Endpoint, Word)> + Send + use<C, J> {
        let (calls, epoch, trial) = (Arc::clone(&self.calls), self.config.epoch, self.trial);
        let planned = self.shards.iter().find(|shard| shard.index() == endpoint.shard);
        let hash = planned.map(|shard| shard.hash.clone());
        async move {
            let word = word(calls.as_ref(), &endpoint, hash, epoch, trial).await;
            (endpoint, word)
        }
    }
}

async fn word<C: ShardCalls>(calls: &C, endpoint: &Endpoint, hash: Option<String>, epoch: u64, trial: u32) -> Word {
    match calls.state(endpoint).await {
        Ok(state) if hash.is_some() && state.plan_hash == hash => return Word::Drained,
        Ok(_) => {}
        Err(error) => return Word::NotYet(error.to_string()),
    }
    let why = match calls.drain(endpoint, &EpochRequest { epoch }).await {
        Ok(_) => return Word::Drained,
        Err(error) if error.is_stale_epoch() => return Word::Superseded,
        Err(error) => error,
    };
    // A shard that was given up may still run the load of any earlier trial.
    if why.refusal() == Some(RefusalCode::WrongPhase) {
        let request = AbortRequest { epoch, attempt: None, then: AbortThen::Stop };
        for trial in (0..trial).rev() {
            match calls.abort(endpoint, trial, &request).await {
                Err(CallError::Refused(refusal)) if refusal.code == RefusalCode::Unknown => {}
                Err(error) if error.is_stale_epoch() => return Word::Superseded,
                _ => break,
            }
        }
    }
    Word::NotYet(why.to_string())
}
