//! Takes over a trial from an earlier conductor, based on what the shards accepted.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use redisbench_wire::{AcceptedStart, ShardFailure, ShardPhase, ShardState};
use tokio::time::Instant;

use super::clock::ClockEstimate;
use super::intervals::polling_interval;
use super::prepare::exchange;
use super::shards::{REPLACED, Shard, Standing, failure_of};
use super::trial::{CALLS_IN_FLIGHT, Conductor, Stop};
use super::{CallError, Journal, ShardCalls, ShardPresence};

/// How long to wait for the first answers. After that, silent shards are polled while the others are measured.
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

/// What to do with the recorded attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    CarryOn,
    NewAttempt,
}

/// Carries on if all shards accepted, otherwise begins a new attempt. Two kinds of shards do not force a new attempt: a silent one may be
/// running, and a new attempt would stop its load; once the start instant has passed, a replaced one is lost and never armed again for this
/// trial.
fn course(words: &[Word], start_has_passed: bool) -> Course {
    let any_possible = words.iter().any(|word| matches!(word, Word::Accepted(_) | Word::Silent));
    let any_missing = words.iter().any(|word| match word {
        Word::Accepted(_) | Word::Failed(_) | Word::Silent => false,
        Word::NotAccepted => true,
        Word::NotTheSame(_) => !start_has_passed,
    });
    if any_possible && !any_missing { Course::CarryOn } else { Course::NewAttempt }
}

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Determines how far the recorded attempt has come, if there is one. Returns whether it continues.
    pub async fn take_over(&mut self) -> Result<bool, Stop> {
        let Some(record) = self.config.resume else { return Ok(false) };
        let until = Instant::now() + ASK_FOR;
        let mut states: Vec<Option<ShardState>> = vec![None; self.shards.len()];
        let words = loop {
            self.adopt();
            self.ask(&mut states).await;
            let seen = self.seen();
            let words: Vec<_> = (self.shards.iter().zip(&states).zip(&seen))
                .map(|((shard, state), seen)| word(shard, state.as_ref(), seen, record.attempt))
                .collect();
            // A platform that has only just been observed may not list every process yet.
            let settled = !words.iter().any(|word| matches!(word, Word::Silent | Word::NotTheSame(_)));
            if settled || Instant::now() >= until {
                break words;
            }
            self.pause(polling_interval(self.shards.len())).await;
        };
        let unix_now = self.config.wall_clock.unix_nanoseconds();
        let course = course(&words, unix_now >= record.start_at_unix_nanoseconds);
        tracing::info!(attempt = record.attempt, ?course, "took over");
        if course == Course::NewAttempt {
            self.missed = record.attempt;
            return Ok(false);
        }
        self.start_at_unix_nanoseconds = Some(record.start_at_unix_nanoseconds);
        // The wall clock gives only a first rough estimate.
        let rough = i128::from(record.start_at_unix_nanoseconds) - i128::from(unix_now) + i128::from(self.clock.now());
        (self.start_at, self.start_is_rough) = (i64::try_from(rough).ok(), true);
        for (shard, word) in self.shards.iter_mut().zip(words) {
            shard.standing = match word {
                Word::Accepted(accepted) => {
                    if let Some(clock) = shard.clock {
                        let said = clock.to_conductor(accepted.start_nanoseconds);
                        if i128::from(said).abs_diff(rough) <= DAY_TIMES_DIFFER.as_nanos() {
                            self.start_at = Some(said);
                            self.start_is_rough = false;
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
        for shard in &self.shards {
            if let Standing::Failed(failure) = &shard.standing {
                return Err(Stop::Failed(shard.failed_in_trial(failure)));
            }
        }
        self.publish(self.stage());
        Ok(true)
    }

    /// Dials every present process. The incarnation that took part was never recorded; it shows in what the shards accepted.
    fn adopt(&mut self) {
        let seen = self.seen();
        for (shard, presence) in self.shards.iter_mut().zip(&seen) {
            // Processes that have ended are judged with the others, once all have been asked.
            let _ = shard.observe_before_start(presence);
        }
    }

    async fn ask(&mut self, states: &mut [Option<ShardState>]) {
        let questions: Vec<_> = self
            .shards
            .iter()
            .enumerate()
            .filter(|(index, _)| states[*index].is_none())
            .filter_map(|(index, shard)| {
                let endpoint = shard.endpoint.clone()?;
                let (calls, clock) = (Arc::clone(&self.calls), self.clock);
                Some(async move {
                    let estimate = exchange(calls.as_ref(), &endpoint, clock).await;
                    let state = calls.state(&endpoint).await;
                    (index, estimate, state)
                })
            })
            .collect();
        let mut questions = stream::iter(questions).buffer_unordered(CALLS_IN_FLIGHT);
        while let Some((index, estimate, state)) = questions.next().await {
            let shard = &mut self.shards[index];
            if let Ok(estimate) = estimate {
                shard.clock = Some(ClockEstimate::better(shard.clock, estimate));
            }
            shard.unreachable = match state {
                Ok(state) => {
                    states[index] = Some(state);
                    None
                }
                Err(CallError::Unreachable(how)) => Some(how),
                Err(CallError::Refused(_)) => None,
            };
        }
    }
}

fn word(shard: &Shard, state: Option<&ShardState>, presence: &ShardPresence, attempt: u32) -> Word {
    match (state, presence) {
        (_, ShardPresence::Gone { why, .. }) => Word::NotTheSame(why.clone()),
        (_, ShardPresence::Absent { why }) => {
            Word::NotTheSame(why.clone().unwrap_or_else(|| "its process no longer exists".to_owned()))
        }
        (_, ShardPresence::Done) => Word::NotTheSame("it exited before its final snapshot was fetched".to_owned()),
        (None, ShardPresence::Present(_)) => Word::Silent,
        (Some(state), ShardPresence::Present(_)) if state.phase == ShardPhase::Failed => {
            Word::Failed(failure_of(state.failure.clone()))
        }
        (Some(state), ShardPresence::Present(_)) => match state.accepted {
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
        assert_eq!(course(&[accepted(), accepted()], true), Course::CarryOn);
        assert_eq!(course(&[accepted(), accepted()], false), Course::CarryOn);
        assert_eq!(course(&[accepted(), Word::NotAccepted], true), Course::NewAttempt);
        assert_eq!(course(&[Word::NotAccepted, Word::NotAccepted], false), Course::NewAttempt);
    }

    #[test]
    fn after_the_start_the_replaced_do_not_hold_the_rest_up() {
        let replaced = Word::NotTheSame(String::new());
        assert_eq!(course(&[accepted(), replaced.clone()], true), Course::CarryOn);
        assert_eq!(course(&[accepted(), replaced.clone()], false), Course::NewAttempt);
        assert_eq!(course(&[replaced.clone(), replaced], true), Course::NewAttempt);
    }

    #[test]
    fn the_silent_may_be_running() {
        for passed in [true, false] {
            assert_eq!(course(&[accepted(), Word::Silent], passed), Course::CarryOn);
            assert_eq!(course(&[Word::Silent, Word::Silent], passed), Course::CarryOn);
            assert_eq!(course(&[Word::NotAccepted, Word::Silent], passed), Course::NewAttempt);
        }
        assert_eq!(course(&[Word::Silent, Word::NotTheSame(String::new())], true), Course::CarryOn);
    }
}
