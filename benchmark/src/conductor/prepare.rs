//! Brings all shards to Armed and measures their clock offsets.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use redisbench_wire::plan::TrialPlan;
use redisbench_wire::{AbortRequest, AbortThen, PlanRequest, RefusalCode, ShardState};
use tokio::time::{Instant, sleep};

use super::clock::{ClockEstimate, ConductorClock};
use super::intervals::polling_interval;
use super::shards::{Shard, Standing};
use super::trial::{CALLS_IN_FLIGHT, Conductor, Stop};
use super::{CallError, ConductStage, Endpoint, Failure, Journal, ShardCalls, reason};

/// A preload that advanced within this time extends the prepare timeout.
const PRELOAD_STALLED: Duration = Duration::from_secs(30);

/// Wait after the first failed shard, so that the message can count the failed ones.
const FAILURE_COUNTED_FOR: Duration = Duration::from_secs(1);

/// Consecutive clock exchanges with one shard.
const EXCHANGES: usize = 5;

/// Rounds of exchanges before a clock counts as uncertain, and the time between them. Causes of a long round trip, such as the end of a
/// preload, are often temporary.
const CLOCK_ROUNDS: usize = 8;
const BETWEEN_CLOCK_ROUNDS: Duration = Duration::from_millis(250);

/// Concurrent clock exchanges: few, because waiting for a processor lengthens the round trip.
const CLOCKS_AT_ONCE: usize = 8;

/// State of the prepare timeout.
struct Patience {
    until: Instant,
    preloaded: u64,
    advanced_at: Instant,
    failed_at: Option<Instant>,
}

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Waits until all shards are armed and their clocks are measured.
    pub async fn prepare(&mut self) -> Result<(), Stop> {
        self.drain().await?;
        let begun = Instant::now();
        let mut patience =
            Patience { until: begun + self.config.limits.prepare, preloaded: 0, advanced_at: begun, failed_at: None };
        loop {
            self.observe_presence()?;
            self.step_all().await?;
            self.publish_counts(ConductStage::Preparing);
            if self.shards.iter().all(|shard| shard.standing == Standing::Armed) && self.exchange_clocks().await? {
                return Ok(());
            }
            judge(&self.shards, self.config.limits.prepare, &mut patience, Instant::now()).map_err(Stop::Failed)?;
            self.pause(polling_interval(self.shards.len())).await;
        }
    }

    fn observe_presence(&mut self) -> Result<(), Stop> {
        let seen = self.seen();
        let desired = seen.len();
        for (shard, presence) in self.shards.iter_mut().zip(&seen) {
            shard.observe_before_start(presence).map_err(|why| {
                let message =
                    format!("shard {} of {desired} ended before the start: {why}; see its log", shard.index());
                Stop::Failed(Failure::new(reason::SHARD_LOST, message))
            })?;
        }
        Ok(())
    }

    /// Makes one call to every present shard: the one that brings it closer to Armed.
    async fn step_all(&mut self) -> Result<(), Stop> {
        let (plan, epoch, trial, attempt) = (&self.config.plan, self.config.epoch, self.trial, self.attempt);
        let steps: Vec<_> = self
            .shards
            .iter()
            .enumerate()
            .filter_map(|(index, shard)| {
                let endpoint = shard.endpoint.clone()?;
                let step = Step::of(shard, plan, epoch, attempt)?;
                let calls = Arc::clone(&self.calls);
                Some(async move {
                    spread_retry(&endpoint, step.after_failures).await;
                    (index, step.take(calls.as_ref(), &endpoint, trial).await)
                })
            })
            .collect();
        let mut steps = stream::iter(steps).buffer_unordered(CALLS_IN_FLIGHT);
        while let Some((index, answer)) = steps.next().await {
            let shard = &mut self.shards[index];
            match answer {
                Ok(state) => {
                    (shard.unreachable, shard.failures_in_a_row) = (None, 0);
                    shard.observe_state(state).map_err(Stop::Failed)?;
                    // New attempts get higher numbers than any that a shard has received.
                    self.attempt = self.attempt.max(shard.held_attempt);
                }
                Err(error) if error.is_stale_epoch() => return Err(Stop::Superseded),
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
                        return Err(Stop::Failed(Failure::new(format!("{code:?}"), message)));
                    }
                },
            }
        }
        Ok(())
    }

    /// Exchanges clocks with every shard until each is precise enough. Returns false if a shard could not be reached, so that preparing
    /// continues.
    async fn exchange_clocks(&mut self) -> Result<bool, Stop> {
        let allowed = self.config.limits.max_start_skew / 2;
        for shard in &mut self.shards {
            shard.clock = None;
        }
        for round in 0..CLOCK_ROUNDS {
            let exchanges: Vec<_> = self
                .shards
                .iter()
                .enumerate()
                .filter(|(_, shard)| shard.clock.is_none_or(|clock| clock.half_round_trip() > allowed))
                .filter_map(|(index, shard)| {
                    let endpoint = shard.endpoint.clone()?;
                    let (calls, clock, mut best) = (Arc::clone(&self.calls), self.clock, shard.clock);
                    Some(async move {
                        for _ in 0..EXCHANGES {
                            match exchange(calls.as_ref(), &endpoint, clock).await {
                                Ok(estimate) => best = Some(ClockEstimate::better(best, estimate)),
                                Err(error) => return (index, Err(error)),
                            }
                        }
                        (index, Ok(best))
                    })
                })
                .collect();
            if exchanges.is_empty() {
                break;
            }
            if round > 0 {
                sleep(BETWEEN_CLOCK_ROUNDS).await;
            }
            let mut exchanges = stream::iter(exchanges).buffer_unordered(CLOCKS_AT_ONCE);
            while let Some((index, exchanged)) = exchanges.next().await {
                match exchanged {
                    Ok(clock) => self.shards[index].clock = clock,
                    Err(CallError::Unreachable(how)) => {
                        self.shards[index].unreachable = Some(how);
                        return Ok(false);
                    }
                    Err(CallError::Refused(_)) => return Ok(false),
                }
            }
        }
        let worst = self
            .shards
            .iter()
            .filter_map(|shard| Some((shard.clock?.half_round_trip(), shard.index())))
            .max()
            .unwrap_or_default();
        self.clock_uncertainty = Some(worst.0);
        if worst.0 <= allowed {
            return Ok(true);
        }
        let message = format!(
            "the clock uncertainty of shard {} is {} us, and maxStartSkew {} ms allows {} us; raise shards.maxStartSkew \
             or find what slows the network to the shard",
            worst.1,
            worst.0.as_micros(),
            self.config.limits.max_start_skew.as_millis(),
            allowed.as_micros()
        );
        Err(Stop::Failed(Failure::new(reason::CLOCK_UNCERTAIN, message)))
    }
}

pub async fn exchange<C: ShardCalls>(
    calls: &C,
    endpoint: &Endpoint,
    clock: ConductorClock,
) -> Result<ClockEstimate, CallError> {
    let sent_at = clock.now();
    let reading = calls.clock(endpoint).await?;
    Ok(ClockEstimate::from_exchange(sent_at, clock.now(), reading))
}

/// The next call to a shard, and how many have failed before it.
struct Step {
    ask: Ask,
    after_failures: u32,
}

enum Ask {
    Plan(PlanRequest),
    Rearm(AbortRequest),
    State,
}

impl Step {
    fn of(shard: &Shard, plan: &Arc<TrialPlan>, epoch: u64, attempt: u32) -> Option<Self> {
        let ask = match shard.standing {
            Standing::Unplanned => Ask::Plan(PlanRequest { epoch, hash: shard.hash.clone(), plan: Arc::clone(plan) }),
            // Naming the attempt closes it, in case its start is still in flight.
            Standing::MustRearm => {
                let attempt = Some(attempt.max(shard.held_attempt));
                Ask::Rearm(AbortRequest { epoch, attempt, then: AbortThen::Rearm })
            }
            Standing::Preparing | Standing::Armed => Ask::State,
            Standing::Absent | Standing::Failed(_) | Standing::Running | Standing::Finished | Standing::Lost(_) => {
                return None;
            }
        };
        Some(Self { ask, after_failures: shard.failures_in_a_row })
    }

    async fn take<C: ShardCalls>(self, calls: &C, endpoint: &Endpoint, trial: u32) -> Result<ShardState, CallError> {
        match self.ask {
            Ask::Plan(request) => calls.put_plan(endpoint, trial, &request).await,
            Ask::Rearm(request) => calls.abort(endpoint, trial, &request).await,
            Ask::State => calls.state(endpoint).await,
        }
    }
}

/// Spreads the retries of shards that failed together by their index. At most half a second, because a round waits for its slowest call.
async fn spread_retry(endpoint: &Endpoint, failures: u32) {
    if failures > 0 {
        tracing::debug!(shard = endpoint.shard, failures, "calling again");
        sleep(Duration::from_millis(100) * failures.min(5) * (endpoint.shard % 16) / 16).await;
    }
}

/// Whether preparing continues.
///
/// # Errors
/// If a shard failed permanently, or on timeout.
fn judge(shards: &[Shard], limit: Duration, patience: &mut Patience, now: Instant) -> Result<(), Failure> {
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
