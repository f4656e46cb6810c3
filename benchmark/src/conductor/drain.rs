//! Drains the shards between two trials: no connection of the previous trial remains when the next one begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redisbench_wire::{AbortRequest, AbortThen, EpochRequest, RefusalCode, ShardState};

use super::event::{Answered, Ask, Event};
use super::rounds::{Round, Turn};
use super::trial::{Conductor, Step};
use super::{Call, ConductStage, Ending, Failure, Reply, ShardPresence, reason};

/// Makes every shard of the run close its connections, including those that this trial does not need. Then waits for the interval between
/// trials. A shard that already has this trial's plan counts as drained.
pub struct Drain {
    until: Duration,
    round: Round,
    /// Incarnations without connections of the previous trial.
    drained: BTreeSet<String>,
    /// Why shards that have load refused to drain.
    refusals: BTreeMap<usize, String>,
    /// The last shard of this round that has connections of the previous trial, or may have some.
    last: Option<String>,
    /// The end of the interval between two trials, once all shards are drained.
    interval_ends: Option<Duration>,
}

impl Drain {
    pub fn begin(conductor: &Conductor) -> Self {
        Self {
            until: conductor.now + conductor.config.limits.prepare,
            round: Round::default(),
            drained: BTreeSet::new(),
            refusals: BTreeMap::new(),
            last: None,
            interval_ends: None,
        }
    }

    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<()> {
        if let Event::Answered(answered) = event {
            self.hear(conductor, *answered)?;
        }
        while !conductor.drained {
            match self.round.turn(conductor) {
                Turn::Ask => {
                    self.last = leaving(&conductor.presence);
                    let present: Vec<_> = conductor.present().collect();
                    for (shard, endpoint) in present {
                        if !self.drained.contains(&endpoint.incarnation) {
                            conductor.out.call(Ask { shard, endpoint, call: Call::State });
                        }
                    }
                }
                Turn::Judge => {
                    let Some(last) = &self.last else {
                        conductor.drained = true;
                        break;
                    };
                    if conductor.now >= self.until {
                        let limit = conductor.config.limits.prepare.as_secs();
                        let message = format!("shards kept connections of the previous trial for {limit} s; {last}");
                        return Err(Ending::Failed(Failure::new(reason::PREPARE_TIMED_OUT, message)));
                    }
                    conductor.publish_counts(ConductStage::Preparing);
                    self.round.rest(conductor);
                }
                Turn::Wait => return Ok(None),
            }
        }
        Ok(self.keep_interval(conductor))
    }

    /// Waits between two trials.
    fn keep_interval(&mut self, conductor: &mut Conductor) -> Option<()> {
        let now = conductor.now;
        let until = *self.interval_ends.get_or_insert_with(|| now + std::mem::take(&mut conductor.config.interval));
        if now >= until {
            conductor.busy = conductor.shards.len();
            return Some(());
        }
        conductor.busy = 0;
        conductor.out.wake_by(until);
        None
    }

    fn hear(&mut self, conductor: &mut Conductor, answered: Answered) -> Result<(), Ending> {
        let Answered { ask, reply, .. } = answered;
        let state = match reply.and_then(Reply::state) {
            Err(error) if error.is_stale_epoch() => return Err(Ending::Superseded),
            state => state,
        };
        let (epoch, trial) = (conductor.config.epoch, conductor.config.trial);
        let next = match (&ask.call, state) {
            (Call::State, Ok(state)) if !has_plan(conductor, &ask, &state) => Call::Drain(EpochRequest { epoch }),
            (Call::State | Call::Drain(_), Ok(_)) => {
                self.drained.insert(ask.endpoint.incarnation);
                return Ok(());
            }
            // A shard that was given up may still run the load of any earlier trial.
            (Call::Drain(_), Err(error)) if error.refusal() == Some(RefusalCode::WrongPhase) && trial > 0 => {
                self.refusals.insert(ask.shard, error.to_string());
                stop_trial(epoch, trial - 1)
            }
            (Call::Abort(trial, _), Err(error)) if error.refusal() == Some(RefusalCode::Unknown) && *trial > 0 => {
                stop_trial(epoch, trial - 1)
            }
            (_, state) => {
                let refusal = self.refusals.remove(&ask.shard).or_else(|| state.err().map(|error| error.to_string()));
                let shard = ask.endpoint.shard;
                self.last = Some(format!("shard {shard}: {}", refusal.unwrap_or_default()));
                return Ok(());
            }
        };
        conductor.out.call(Ask { call: next, ..ask });
        Ok(())
    }
}

fn stop_trial(epoch: u64, trial: u32) -> Call {
    Call::Abort(trial, AbortRequest { epoch, attempt: None, then: AbortThen::Stop })
}

/// True if the shard already has its plan of this trial.
fn has_plan(conductor: &Conductor, ask: &Ask, state: &ShardState) -> bool {
    let mut planned = conductor.shards.iter().filter(|shard| shard.index() == ask.endpoint.shard);
    planned.any(|shard| state.plan_hash.as_ref() == Some(&shard.hash))
}

/// A process that is about to be replaced keeps its connections until it has ended.
fn leaving(presence: &[ShardPresence]) -> Option<String> {
    let mut leaving = presence.iter().enumerate().filter_map(|(shard, presence)| match presence {
        ShardPresence::Gone { why, replaced: true } | ShardPresence::Leaving { why, .. } => {
            Some(format!("shard {shard}: {why}; not replaced yet"))
        }
        _ => None,
    });
    leaving.next()
}
