//! Brings all shards to Armed and measures their clock offsets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::{AbortRequest, AbortThen, PlanRequest, RefusalCode};

use super::event::{Answered, Event};
use super::exchange_clocks::ExchangeClocks;
use super::intervals::{longest_polling_interval, polling_interval};
use super::polled::Share;
use super::shards::{Shard, Standing};
use super::trial::{Conductor, Step};
use super::{Call, CallError, ConductStage, Ending, Endpoint, Failure, Reply, ShardPresence, reason};
use crate::human;

/// A preload that advanced within this time extends the prepare timeout.
const PRELOAD_STALLED: Duration = Duration::from_secs(30);

/// Wait after the first failed shard, so that the message can count the failed ones.
const FAILURE_COUNTED_FOR: Duration = Duration::from_secs(1);

/// An armed shard is asked this often whether it still is. Each call prolongs the time that it stays armed.
const ARMED_ASKED_EVERY: Duration = Duration::from_secs(5);

/// First and longest pause before a shard that did not reply is called again.
const RETRIES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];

/// The interval at which failures and the timeout are judged, and the counts published.
const JUDGED_EVERY: Duration = Duration::from_millis(200);

/// State of the prepare timeout.
struct Patience {
    until: Duration,
    preloaded: u64,
    advanced_at: Duration,
    failed_at: Option<Duration>,
}

/// Until all shards are armed and their clocks are measured. Each shard is called at its own times, so that none waits for another.
pub struct Prepare {
    patience: Patience,
    /// Its part of all polls.
    share: Share,
    /// The next call of each shard that is not being called.
    due: BTreeSet<(Duration, usize)>,
    /// Calls in flight, by shard and incarnation. A process gets one at a time, because each reply schedules the next call.
    calling: BTreeSet<(usize, String)>,
    /// Shards whose last reply was not that they are armed.
    unconfirmed: BTreeSet<usize>,
    /// The time of each shard's last reply that it is armed.
    armed_at: Vec<Duration>,
    /// The time at which each shard accepted its plan; at first that of the beginning.
    planned_at: Vec<Duration>,
    /// The beginning of the first exchange of clocks.
    clocks_since: Option<Duration>,
    judge_at: Duration,
    /// No shard gets its plan yet, because it would preload.
    holds_plans: bool,
    /// Once all shards are armed.
    clocks: Option<ExchangeClocks>,
}

impl Prepare {
    pub fn begin(conductor: &mut Conductor) -> Self {
        conductor.news = true;
        let (now, limit) = (conductor.now, conductor.config.limits.prepare);
        let patience = Patience { until: now + limit, preloaded: 0, advanced_at: now, failed_at: None };
        // A run that cannot start must not fill the database. Before an attempt, all shards have preloaded.
        let holds_plans = conductor.config.plan.has_preload() && conductor.attempt == 0;
        if holds_plans {
            // Shards that wait have nothing to do, and are called as idle ones are.
            conductor.busy = 0;
        }
        let all = 0..conductor.shards.len();
        Self {
            patience,
            share: Share::preparing(Arc::clone(&conductor.config.polled), all.len()),
            due: all.clone().map(|index| (now, index)).collect(),
            calling: BTreeSet::new(),
            unconfirmed: all.clone().collect(),
            armed_at: vec![Duration::ZERO; all.len()],
            planned_at: vec![now; all.len()],
            clocks_since: None,
            judge_at: now,
            holds_plans,
            clocks: None,
        }
    }

    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<()> {
        if let Some(clocks) = &mut self.clocks {
            match clocks.step(conductor, event)? {
                None => return Ok(None),
                Some(true) => return Ok(Some(())),
                Some(false) => {
                    conductor.out.forget();
                    self.clocks = None;
                    self.ask_all_again(conductor);
                }
            }
        } else if let Event::Answered(answered) = event {
            self.hear(conductor, *answered)?;
        }
        if conductor.news {
            self.observe_presence(conductor)?;
            self.pass_on_plans(conductor);
        }
        if self.all_are_armed(conductor) {
            // Only reads of states are left.
            conductor.out.forget();
            self.calling.clear();
            conductor.publish_counts(ConductStage::Preparing);
            self.clocks_since.get_or_insert(conductor.now);
            self.clocks = Some(ExchangeClocks::begin(conductor));
            return self.step(conductor, Event::Due);
        }
        self.ask(conductor);
        if conductor.now >= self.judge_at {
            conductor.publish_counts(ConductStage::Preparing);
            let limit = conductor.config.limits.prepare;
            if conductor.presence.contains(&ShardPresence::Queued) {
                self.patience.until = conductor.now + limit;
            }
            judge(&conductor.shards, limit, &mut self.patience, conductor.now).map_err(Ending::Failed)?;
            self.judge_at = conductor.now + JUDGED_EVERY;
        }
        conductor.out.wake_by(self.due.first().map_or(self.judge_at, |(at, _)| self.judge_at.min(*at)));
        Ok(None)
    }

    /// Returns whether all shards are armed, and confirmed it within two intervals: after one interval the next call is still in flight.
    /// Those that confirmed it earlier are called again.
    fn all_are_armed(&mut self, conductor: &Conductor) -> bool {
        if !self.unconfirmed.is_empty() {
            return false;
        }
        let since = conductor.now.saturating_sub(armed_interval(conductor.shards.len()) * 2);
        let old = (0..).zip(&self.armed_at).filter(|(_, at)| **at < since).map(|(index, _)| index);
        for index in old.collect::<Vec<usize>>() {
            self.call_now(conductor, index);
            self.unconfirmed.insert(index);
        }
        self.unconfirmed.is_empty()
    }

    /// After a shard's clock could not be read. The calls of the exchange are forgotten.
    fn ask_all_again(&mut self, conductor: &Conductor) {
        let trying = conductor.now.saturating_sub(self.clocks_since.unwrap_or(conductor.now));
        let again_at = conductor.now + polling_interval(conductor.shards.len(), self.share.interval(), trying);
        let all = 0..conductor.shards.len();
        self.due = all.clone().map(|index| (again_at, index)).collect();
        self.unconfirmed = all.collect();
        self.judge_at = conductor.now;
    }

    /// Makes the shard due, unless its process is being called.
    fn call_now(&mut self, conductor: &Conductor, index: usize) {
        let called = |known: &Endpoint| self.calling.contains(&(index, known.incarnation.clone()));
        self.due.retain(|(_, other)| *other != index);
        if !conductor.shards[index].endpoint.as_ref().is_some_and(called) {
            self.due.insert((conductor.now, index));
        }
    }

    fn observe_presence(&mut self, conductor: &mut Conductor) -> Result<(), Ending> {
        let seen = conductor.seen();
        let desired = seen.len();
        for (index, presence) in seen.iter().take(conductor.shards.len()).enumerate() {
            let shard = &mut conductor.shards[index];
            let is_new = match presence {
                ShardPresence::Present(endpoint) => {
                    shard.endpoint.as_ref().is_none_or(|known| known.incarnation != endpoint.incarnation)
                }
                _ => false,
            };
            shard.observe_before_start(presence).map_err(|why| {
                let message =
                    format!("shard {} of {desired} ended before the start: {why}; see its log", shard.index());
                Ending::Failed(Failure::new(reason::SHARD_LOST, message))
            })?;
            if shard.standing != Standing::Armed {
                self.unconfirmed.insert(index);
            }
            if is_new {
                self.call_now(conductor, index);
            }
        }
        Ok(())
    }

    /// Passes the plans on once every shard has a process. One that ends later does not hold back the others.
    fn pass_on_plans(&mut self, conductor: &mut Conductor) {
        if self.holds_plans && conductor.shards.iter().all(|shard| shard.standing != Standing::Absent) {
            self.holds_plans = false;
            conductor.busy = conductor.shards.len();
            (0..conductor.shards.len()).for_each(|index| self.call_now(conductor, index));
        }
    }

    /// Calls the shards that are due, each with the call that brings it closer to Armed. The platform's next report wakes those without a
    /// process.
    fn ask(&mut self, conductor: &mut Conductor) {
        while self.due.first().is_some_and(|(at, _)| *at <= conductor.now)
            && let Some((_, index)) = self.due.pop_first()
        {
            let shard = &conductor.shards[index];
            let is_held = self.holds_plans && shard.standing == Standing::Unplanned;
            let call = if is_held { None } else { next_call(conductor, shard) };
            if let Some(ask) = call.and_then(|call| conductor.ask(index, call)) {
                self.calling.insert((index, ask.endpoint.incarnation.clone()));
                conductor.out.call(ask);
            }
        }
    }

    /// Applies a reply, and decides when the shard is called again.
    fn hear(&mut self, conductor: &mut Conductor, answered: Answered) -> Result<(), Ending> {
        let index = answered.ask.shard;
        self.calling.remove(&(index, answered.ask.endpoint.incarnation.clone()));
        let before = &conductor.shards[index];
        let same = |known: &Endpoint| known.incarnation == answered.ask.endpoint.incarnation;
        if !before.endpoint.as_ref().is_some_and(same) {
            // Its successor is called already.
            return Ok(());
        }
        let before = before.standing.clone();
        hear(conductor, answered)?;
        let shard = &conductor.shards[index];
        if before == Standing::Unplanned && shard.standing != before {
            self.planned_at[index] = conductor.now;
        }
        let confirmed = shard.standing == Standing::Armed && shard.unreachable.is_none();
        if confirmed {
            self.armed_at[index] = conductor.now;
            self.unconfirmed.remove(&index);
        } else {
            self.unconfirmed.insert(index);
        }
        let pause = match &shard.standing {
            _ if shard.unreachable.is_some() => retry_pause(shard),
            after @ (Standing::Unplanned | Standing::MustRearm) if *after != before => Duration::ZERO,
            Standing::Armed => armed_interval(conductor.shards.len()),
            // Armed shards are called rarely, so the others can be called more often.
            _ => {
                let preparing = conductor.now.saturating_sub(self.planned_at[index]);
                polling_interval(self.unconfirmed.len(), self.share.interval(), preparing)
            }
        };
        self.due.insert((conductor.now + pause, index));
        Ok(())
    }
}

/// An armed shard is asked this often whether it still is.
fn armed_interval(shards: usize) -> Duration {
    longest_polling_interval(shards).max(ARMED_ASKED_EVERY)
}

/// Doubled with each failure, and spread by index, so that shards that failed together are not called together again.
fn retry_pause(shard: &Shard) -> Duration {
    let failures = shard.failures_in_a_row.max(1);
    let pause = RETRIES[0].saturating_mul(1 << (failures - 1).min(8)).min(RETRIES[1]);
    tracing::debug!(shard = shard.index(), failures, "calling again");
    pause + pause * (shard.index() % 16) / 32
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
            let all = human::counted(shards.len() as u64, "shard");
            let message = format!("{} of {all} failed; shard {index}: {}", failed.len(), failure.message);
            return Err(Failure::new(format!("{:?}", failure.reason), message));
        }
        return Ok(());
    }
    let preloaded = shards.iter().map(|shard| shard.preparation.preload_done).sum();
    if preloaded > patience.preloaded {
        (patience.preloaded, patience.advanced_at) = (preloaded, now);
    }
    let advancing = patience.preloaded > 0 && now < patience.advanced_at + PRELOAD_STALLED;
    if now < patience.until || advancing {
        return Ok(());
    }
    let is_waiting = |shard: &&Shard| shard.standing != Standing::Armed || shard.unreachable.is_some();
    let waiting: Vec<_> = shards.iter().filter(is_waiting).collect();
    // Shards without a process hold back the preload of all others.
    let obstacle = waiting.iter().find(|shard| shard.standing == Standing::Absent).or(waiting.first());
    let obstacle = obstacle.map_or_else(
        || "its clock could not be read".to_owned(),
        |shard| format!("shard {}: {}", shard.index(), shard.obstacle()),
    );
    let all = shards.len() as u64;
    let message = format!(
        "{} of {} {} not armed after {} s; {obstacle}. If they only need more time, raise shards.prepareTimeout",
        waiting.len(),
        human::counted(all, "shard"),
        human::were(all),
        limit.as_secs()
    );
    Err(Failure::new(reason::PREPARE_TIMED_OUT, message))
}
