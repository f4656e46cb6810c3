//! Takes over a trial from an earlier conductor, based on what the shards accepted.

use std::time::Duration;

use redisbench_wire::{AcceptedStart, ShardFailure, ShardPhase, ShardState};

use super::event::{Answered, Event};
use super::rounds::{Round, Turn};
use super::shards::{REPLACED, Shard, Standing, failure_of};
use super::trial::{Conductor, Step};
use super::{Call, Ending, QUEUED, Reply, ShardPresence, StartRecord};

/// The longest wait for the first answers. After that, silent shards are polled while the others are measured.
const ASK_FOR: Duration = Duration::from_secs(10);

/// Allowed difference between the wall clocks of two operators. A start instant from a shard that is further away from the recorded one
/// would end the run at once, or never.
const DAY_TIMES_DIFFER: Duration = Duration::from_secs(300);

/// A shard's answer about the recorded attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// It accepted the start.
    Accepted(AcceptedStart),
    /// It is present with the plan and has not accepted.
    NotAccepted,
    /// It cannot be the process that was started: no process, or one without a plan.
    NotTheSame(String),
    /// It may have accepted the start, and has failed.
    Failed(ShardFailure),
    /// No answer.
    Silent,
}

/// True if the recorded attempt continues, because all shards accepted it. Otherwise a new one begins. Two kinds of shards do not force a
/// new attempt: a silent one may be running, and a new attempt would stop its load; once the start instant has passed, a replaced one is
/// lost and never armed again for this trial.
fn carries_on(words: &[Word], start_has_passed: bool) -> bool {
    let any_possible = words.iter().any(|word| matches!(word, Word::Accepted(_) | Word::Silent));
    let any_missing = words.iter().any(|word| match word {
        Word::Accepted(_) | Word::Failed(_) | Word::Silent => false,
        Word::NotAccepted => true,
        Word::NotTheSame(_) => !start_has_passed,
    });
    any_possible && !any_missing
}

/// Determines how far the recorded attempt has come.
pub struct TakeOver {
    record: StartRecord,
    until: Duration,
    states: Vec<Option<ShardState>>,
    round: Round,
}

impl TakeOver {
    pub fn begin(conductor: &Conductor, record: StartRecord) -> Self {
        Self {
            record,
            until: conductor.now + ASK_FOR,
            states: vec![None; conductor.shards.len()],
            round: Round::default(),
        }
    }

    /// Returns whether the attempt continues.
    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<bool> {
        if let Event::Answered(answered) = event {
            self.hear(conductor, *answered);
        }
        loop {
            match self.round.turn(conductor) {
                Turn::Ask => {
                    let seen = conductor.seen();
                    for (shard, presence) in conductor.shards.iter_mut().zip(seen) {
                        // Dials every process: only what it accepted shows whether it took part. Ended ones are judged with the others.
                        let _ = shard.observe_before_start(&presence.while_reachable());
                    }
                    for shard in (0..self.states.len()).filter(|shard| self.states[*shard].is_none()) {
                        conductor.call(shard, Call::Clock);
                    }
                }
                Turn::Judge => {
                    let words = self.words(conductor);
                    // A platform that has only just been observed may not list every process yet.
                    let settled = !words.iter().any(|word| matches!(word, Word::Silent | Word::NotTheSame(_)));
                    if settled || conductor.now >= self.until {
                        return decide(conductor, self.record, words).map(Some);
                    }
                    self.round.rest(conductor);
                }
                Turn::Wait => return Ok(None),
            }
        }
    }

    fn hear(&mut self, conductor: &mut Conductor, answered: Answered) {
        let index = answered.ask.shard;
        let shard = &mut conductor.shards[index];
        if answered.ask.call == Call::Clock {
            shard.take_clock(answered);
            return conductor.call(index, Call::State);
        }
        shard.unreachable = match answered.reply.and_then(Reply::state) {
            Ok(state) => {
                self.states[index] = Some(state);
                None
            }
            Err(error) => error.unreachable(),
        };
    }

    fn words(&self, conductor: &mut Conductor) -> Vec<Word> {
        let seen = conductor.seen();
        (conductor.shards.iter().zip(&self.states).zip(&seen))
            .map(|((shard, state), seen)| word(shard, state.as_ref(), seen, self.record.attempt))
            .collect()
    }
}

/// Carries on with the recorded attempt if `words` allow it. Returns whether it continues.
fn decide(conductor: &mut Conductor, record: StartRecord, words: Vec<Word>) -> Result<bool, Ending> {
    let carries_on = carries_on(&words, conductor.unix_now >= record.start_at_unix_nanoseconds);
    tracing::info!(attempt = record.attempt, carries_on, "took over");
    if !carries_on {
        conductor.missed = record.attempt;
        return Ok(false);
    }
    conductor.start_at_unix_nanoseconds = Some(record.start_at_unix_nanoseconds);
    // The wall clock gives only a first rough estimate.
    let rough =
        i128::from(record.start_at_unix_nanoseconds) - i128::from(conductor.unix_now) + i128::from(conductor.clock());
    (conductor.start_at, conductor.start_is_rough) = (i64::try_from(rough).ok(), true);
    for (shard, word) in conductor.shards.iter_mut().zip(words) {
        shard.standing = match word {
            Word::Accepted(accepted) => {
                if let Some(clock) = shard.clock {
                    let said = clock.to_conductor(accepted.start_nanoseconds);
                    if i128::from(said).abs_diff(rough) <= DAY_TIMES_DIFFER.as_nanos() {
                        conductor.start_at = Some(said);
                        conductor.start_is_rough = false;
                    }
                }
                Standing::Running
            }
            Word::NotTheSame(why) => Standing::Lost(why),
            Word::Failed(failure) => Standing::Failed(failure),
            Word::Silent | Word::NotAccepted => {
                shard.unheard = true;
                Standing::Running
            }
        };
    }
    for shard in &conductor.shards {
        if let Standing::Failed(failure) = &shard.standing {
            return Err(Ending::Failed(shard.failed_in_trial(failure)));
        }
    }
    conductor.publish(conductor.stage());
    Ok(true)
}

fn word(shard: &Shard, state: Option<&ShardState>, presence: &ShardPresence, attempt: u32) -> Word {
    match (state, presence) {
        (_, ShardPresence::Gone { why, .. }) => Word::NotTheSame(why.clone()),
        (_, ShardPresence::Absent { why }) => {
            Word::NotTheSame(why.clone().unwrap_or_else(|| "its process no longer exists".to_owned()))
        }
        (_, ShardPresence::Queued) => Word::NotTheSame(QUEUED.to_owned()),
        (_, ShardPresence::Done) => Word::NotTheSame("it exited before its final snapshot was fetched".to_owned()),
        (None, ShardPresence::Present(_) | ShardPresence::Leaving { .. }) => Word::Silent,
        (Some(state), ShardPresence::Present(_) | ShardPresence::Leaving { .. })
            if state.phase == ShardPhase::Failed =>
        {
            Word::Failed(failure_of(state.failure.clone()))
        }
        (Some(state), ShardPresence::Present(_) | ShardPresence::Leaving { .. }) => match state.accepted {
            Some(start) if shard.accepted(state, attempt) => Word::Accepted(start),
            _ if state.phase == ShardPhase::Idle => Word::NotTheSame(REPLACED.to_owned()),
            _ => Word::NotAccepted,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted() -> Word {
        Word::Accepted(AcceptedStart { attempt: 1, start_nanoseconds: 1 })
    }

    #[test]
    fn all_carry_on_and_fewer_begin_again() {
        assert!(carries_on(&[accepted(), accepted()], true));
        assert!(carries_on(&[accepted(), accepted()], false));
        assert!(!carries_on(&[accepted(), Word::NotAccepted], true));
        assert!(!carries_on(&[Word::NotAccepted, Word::NotAccepted], false));
    }

    #[test]
    fn after_the_start_the_replaced_do_not_hold_the_rest_up() {
        let replaced = Word::NotTheSame(String::new());
        assert!(carries_on(&[accepted(), replaced.clone()], true));
        assert!(!carries_on(&[accepted(), replaced.clone()], false));
        assert!(!carries_on(&[replaced.clone(), replaced], true));
    }

    #[test]
    fn the_silent_may_be_running() {
        for passed in [true, false] {
            assert!(carries_on(&[accepted(), Word::Silent], passed));
            assert!(carries_on(&[Word::Silent, Word::Silent], passed));
            assert!(!carries_on(&[Word::NotAccepted, Word::Silent], passed));
        }
        assert!(carries_on(&[Word::Silent, Word::NotTheSame(String::new())], true));
    }
}
