//! Brings all shards to Armed and measures their clock offsets.

use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::{AbortRequest, AbortThen, PlanRequest, RefusalCode};

use super::event::{Answered, Event};
use super::exchange::ExchangeClocks;
use super::rounds::{Round, Turn};
use super::shards::{Shard, Standing};
use super::trial::{Conductor, Step};
use super::{Call, CallError, ConductStage, Ending, Endpoint, Failure, Reply, reason};

/// A preload that advanced within this time extends the prepare timeout.
const PRELOAD_STALLED: Duration = Duration::from_secs(30);

/// Wait after the first failed shard, so that the message can count the failed ones.
const FAILURE_COUNTED_FOR: Duration = Duration::from_secs(1);

/// State of the prepare timeout.
struct Patience {
    until: Duration,
    preloaded: u64,
    advanced_at: Duration,
    failed_at: Option<Duration>,
}

/// Until all shards are armed and their clocks are measured.
pub struct Prepare {
    patience: Patience,
    round: Round,
    /// Once all shards are armed.
    clocks: Option<ExchangeClocks>,
}

impl Prepare {
    pub fn begin(conductor: &Conductor) -> Self {
        let (now, limit) = (conductor.now, conductor.config.limits.prepare);
        let patience = Patience { until: now + limit, preloaded: 0, advanced_at: now, failed_at: None };
        Self { patience, round: Round::default(), clocks: None }
    }

    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<()> {
        if let Some(clocks) = &mut self.clocks {
            match clocks.step(conductor, event)? {
                None => return Ok(None),
                Some(true) => return Ok(Some(())),
                Some(false) => {
                    conductor.out.forget();
                    self.clocks = None;
                    self.rest(conductor)?;
                }
            }
        } else if let Event::Answered(answered) = event {
            hear(conductor, *answered)?;
        }
        loop {
            match self.round.turn(conductor) {
                Turn::Ask => {
                    observe_presence(conductor)?;
                    ask(conductor);
                }
                Turn::Judge => {
                    conductor.publish_counts(ConductStage::Preparing);
                    if conductor.shards.iter().all(|shard| shard.standing == Standing::Armed) {
                        self.clocks = Some(ExchangeClocks::begin(conductor));
                        return self.step(conductor, Event::Due);
                    }
                    self.rest(conductor)?;
                }
                Turn::Wait => return Ok(None),
            }
        }
    }

    fn rest(&mut self, conductor: &Conductor) -> Result<(), Ending> {
        let limit = conductor.config.limits.prepare;
        judge(&conductor.shards, limit, &mut self.patience, conductor.now).map_err(Ending::Failed)?;
        self.round.rest(conductor);
        Ok(())
    }
}

fn observe_presence(conductor: &mut Conductor) -> Result<(), Ending> {
    let seen = conductor.seen();
    let desired = seen.len();
    for (shard, presence) in conductor.shards.iter_mut().zip(&seen) {
        shard.observe_before_start(presence).map_err(|why| {
            let message = format!("shard {} of {desired} ended before the start: {why}; see its log", shard.index());
            Ending::Failed(Failure::new(reason::SHARD_LOST, message))
        })?;
    }
    Ok(())
}

/// Makes one call to every present shard: the one that brings it closer to Armed.
fn ask(conductor: &mut Conductor) {
    for index in 0..conductor.shards.len() {
        let shard = &conductor.shards[index];
        let after_failures = shard.failures_in_a_row;
        if let Some(call) = next_call(conductor, shard)
            && let Some(ask) = conductor.ask(index, call)
        {
            let at = conductor.now + spread_retry(&ask.endpoint, after_failures);
            conductor.out.call_at(at, ask);
        }
    }
}

fn next_call(conductor: &Conductor, shard: &Shard) -> Option<Call> {
    let epoch = conductor.config.epoch;
    Some(match shard.standing {
        Standing::Unplanned => {
            let plan = Arc::clone(&conductor.config.plan);
            Call::Plan(conductor.config.trial, PlanRequest { epoch, hash: shard.hash.clone(), plan })
        }
        // Naming the attempt closes it, in case its start is still in flight.
        Standing::MustRearm => {
            let attempt = Some(conductor.attempt.max(shard.held_attempt));
            Call::Abort(conductor.config.trial, AbortRequest { epoch, attempt, then: AbortThen::Rearm })
        }
        Standing::Preparing | Standing::Armed => Call::State,
        Standing::Absent | Standing::Failed(_) | Standing::Running | Standing::Finished | Standing::Lost(_) => {
            return None;
        }
    })
}

/// Spreads the retries of shards that failed together by their index. At most half a second, because a round waits for its slowest call.
fn spread_retry(endpoint: &Endpoint, failures: u32) -> Duration {
    if failures > 0 {
        tracing::debug!(shard = endpoint.shard, failures, "calling again");
    }
    Duration::from_millis(100) * failures.min(5) * (endpoint.shard % 16) / 16
}

fn hear(conductor: &mut Conductor, answered: Answered) -> Result<(), Ending> {
    let shard = &mut conductor.shards[answered.ask.shard];
    match answered.reply.and_then(Reply::state) {
        Ok(state) => {
            (shard.unreachable, shard.failures_in_a_row) = (None, 0);
            shard.observe_state(state).map_err(Ending::Failed)?;
            // New attempts get higher numbers than any that a shard has received.
            conductor.attempt = conductor.attempt.max(shard.held_attempt);
        }
        Err(error) if error.is_stale_epoch() => return Err(Ending::Superseded),
        Err(CallError::Unreachable(how)) => {
            shard.unreachable = Some(how);
            shard.failures_in_a_row += 1;
        }
        Err(CallError::Refused(refusal)) => match refusal.code {
            RefusalCode::WrongPhase | RefusalCode::Unavailable => {
                shard.unreachable = None;
                // Its state will show why it cannot be re-armed.
                if shard.standing == Standing::MustRearm {
                    shard.standing = Standing::Preparing;
                }
            }
            // The shard may be a new process by now, without a plan.
            RefusalCode::Unknown if shard.standing == Standing::MustRearm => {
                shard.unreachable = None;
                shard.standing = Standing::Unplanned;
            }
            code => {
                let message = format!("shard {} refused its plan: {}", shard.index(), refusal.message);
                return Err(Ending::Failed(Failure::new(format!("{code:?}"), message)));
            }
        },
    }
    Ok(())
}

/// Decides whether preparing continues.
///
/// # Errors
/// If a shard failed permanently, or on timeout.
fn judge(shards: &[Shard], limit: Duration, patience: &mut Patience, now: Duration) -> Result<(), Failure> {
    let failed: Vec<_> = shards
        .iter()
        .filter_map(|shard| match &shard.standing {
            Standing::Failed(failure) => Some((shard.index(), failure)),
            _ => None,
        })
        .collect();
    if let Some((index, failure)) = failed.first() {
        let since = *patience.failed_at.get_or_insert(now);
        if failed.len() == shards.len() || now >= since + FAILURE_COUNTED_FOR {
            let message =
                format!("{} of {} shards failed; shard {index}: {}", failed.len(), shards.len(), failure.message);
            return Err(Failure::new(format!("{:?}", failure.reason), message));
        }
        return Ok(());
    }
    let preloaded = shards.iter().map(|shard| shard.preparation.preloaded_keys).sum();
    if preloaded > patience.preloaded {
        (patience.preloaded, patience.advanced_at) = (preloaded, now);
    }
    let advancing = patience.preloaded > 0 && now < patience.advanced_at + PRELOAD_STALLED;
    if now < patience.until || advancing {
        return Ok(());
    }
    let waiting: Vec<_> = shards.iter().filter(|shard| shard.standing != Standing::Armed).collect();
    let obstacle = waiting.first().map_or_else(
        || "its clock could not be read".to_owned(),
        |shard| format!("shard {}: {}", shard.index(), shard.obstacle()),
    );
    let message = format!(
        "{} of {} shards were not armed after {} s; {obstacle}. If they only need more time, raise shards.prepareTimeout",
        waiting.len(),
        shards.len(),
        limit.as_secs()
    );
    Err(Failure::new(reason::PREPARE_TIMED_OUT, message))
}
