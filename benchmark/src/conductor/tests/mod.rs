//! Tests of the conductor's machine in virtual time, against shards in memory; of its driver; and of its client against a real server.

mod barrier;
mod cleanup;
mod driver;
mod fake;
mod hostile;
mod hostile_server;
mod https;
mod leaving;
mod probing;
mod running;
mod settling;
mod taking_over;
mod thresholds;
mod trials;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::{Bound, Breakdown, Limits, ShardPlan, Timeouts, TrialPlan};

use self::fake::{FakeShards, RATE};
use super::event::{Action, Answered, Ask, Event, Now};
use super::machine::StateMachine;
use super::{
    Call, CallError, ConductProgress, ConductStage, ConductorConfig, ConductorLimits, Control, Ending, Endpoint,
    Failure, JournalError, Outcome, Reply, ShardPresence, StartRecord,
};

pub use self::fake::bare_snapshot as snapshot;
pub use crate::api::spec::OnLost;
use crate::sample;

pub const WARMUP: Duration = Duration::from_secs(5);
pub const MEASURED: Duration = Duration::from_secs(60);

pub fn plan(shards: u32) -> TrialPlan {
    let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap();
    TrialPlan {
        shards,
        connections: shards,
        warmup_nanoseconds: nanoseconds(WARMUP),
        bound: Bound::Duration { nanoseconds: nanoseconds(MEASURED) },
        timeouts: Timeouts { connect_nanoseconds: 1, request_nanoseconds: 1_000_000_000 },
        breakdown: Breakdown::default(),
        limits: Limits {
            trial_nanoseconds: 1,
            armed_nanoseconds: 600_000_000_000,
            finished_nanoseconds: 1,
            unattended_nanoseconds: 0,
        },
        ..TrialPlan::basic("redis:6379")
    }
}

pub fn part(shard: u32, shards: u32) -> ShardPlan {
    plan(shards).of_shard(shard)
}

/// Replies of a shard are changed by this before the conductor gets them.
type Lie = Box<dyn FnMut(&Endpoint, Result<Reply, CallError>) -> Result<Reply, CallError>>;

/// The journal's records, with the times of writing.
#[derive(Default)]
struct Records {
    written: Vec<(StartRecord, Duration)>,
    refuse: Option<JournalError>,
    takes: Duration,
}

/// An event that reaches the conductor later in virtual time.
enum Coming {
    /// A call that was sent at this time reaches its shard.
    Delivered(Ask, Duration),
    Answered(Ask, Duration, Result<Reply, CallError>),
    Recorded,
}

/// A run with everything around its conductor, in virtual time: each step happens as soon as the previous one is done.
struct Rig {
    shards: Arc<FakeShards>,
    config: ConductorConfig,
    journal: Records,
    presence: Vec<ShardPresence>,
    progress: ConductProgress,
    lie: Option<Lie>,
    /// The lag of the conductor's wall clock.
    behind: Duration,
    control: Control,
    machine: Option<StateMachine>,
    began: Duration,
    wake_at: Duration,
    coming: BTreeMap<(Duration, usize), Coming>,
    number: usize,
    outcome: Option<Outcome>,
}

/// Virtual time zero, since 1970.
const BEGINNING: Duration = Duration::from_secs(1_767_225_600);

/// Upper bound of the virtual time for which a test waits, so that a fault ends it.
const PATIENCE: Duration = Duration::from_secs(7_200);

impl Rig {
    fn new(count: u32) -> Self {
        let shards = Arc::new(FakeShards::new(count));
        let presence = (0..count).map(|shard| ShardPresence::Present(shards.endpoint(shard))).collect();
        Self {
            config: ConductorConfig {
                plan: Arc::new(plan(count)),
                limits: ConductorLimits::default(),
                probe: None,
                ..ConductorConfig::of(&sample::trial(sample::open_loop(count)), "run", 1)
            },
            shards,
            journal: Records::default(),
            presence,
            progress: ConductProgress::default(),
            lie: None,
            behind: Duration::ZERO,
            control: Control::default(),
            machine: None,
            began: Duration::ZERO,
            wake_at: Duration::MAX,
            coming: BTreeMap::new(),
            number: 0,
            outcome: None,
        }
    }

    /// A rig whose shards measure.
    fn measuring(count: u32) -> Self {
        let mut rig = Self::new(count);
        rig.until_measuring();
        rig
    }

    /// The plan, to change it.
    fn plan(&mut self) -> &mut TrialPlan {
        Arc::make_mut(&mut self.config.plan)
    }

    fn now(&self) -> Duration {
        self.shards.now()
    }

    fn since(&self, begun: Duration) -> Duration {
        self.now().checked_sub(begun).unwrap()
    }

    /// The time by the conductor's clocks.
    fn clocks(&self) -> Now {
        let unix = BEGINNING.saturating_sub(self.behind) + self.now();
        Now { elapsed: self.since(self.began), unix_nanoseconds: u64::try_from(unix.as_nanos()).unwrap() }
    }

    /// Starts a conductor.
    fn begin(&mut self) {
        self.began = self.now();
        self.outcome = None;
        self.machine = Some(StateMachine::new(self.config.clone(), self.presence.clone(), self.clocks()));
        self.step(Event::Control(self.control));
    }

    /// Kills the conductor.
    fn kill(&mut self) {
        self.machine = None;
        self.coming.clear();
        self.wake_at = Duration::MAX;
    }

    fn step(&mut self, event: Event) {
        let now = self.clocks();
        let Some(machine) = &mut self.machine else { return };
        for action in machine.step(now, event) {
            match action {
                Action::Call(ask) => match self.shards.way(&ask.endpoint, &ask.call) {
                    Ok(way) => self.add(way, Coming::Delivered(ask, now.elapsed)),
                    Err((after, error)) => self.add(after, Coming::Answered(ask, now.elapsed, Err(error))),
                },
                Action::KeepContact(shards) => {
                    for shard in &shards {
                        drop(self.shards.answer(shard, &Call::State));
                    }
                }
                Action::Record(record) => {
                    self.journal.written.push((record, self.shards.now()));
                    self.add(self.journal.takes, Coming::Recorded);
                }
                Action::Forget => self.coming.clear(),
                Action::Publish(progress) => self.progress = *progress,
                Action::WakeAt(at) => self.wake_at = self.began + at,
                Action::Done(outcome) => {
                    self.outcome = Some(*outcome);
                    self.kill();
                }
            }
        }
    }

    fn add(&mut self, after: Duration, coming: Coming) {
        self.number += 1;
        self.coming.insert((self.now() + after, self.number), coming);
    }

    /// Lets the next thing happen. Returns whether there is any until then.
    fn advance(&mut self, until: Duration) -> bool {
        let next = self.coming.first_key_value().map_or(Duration::MAX, |((at, _), _)| *at);
        let at = next.min(self.wake_at);
        if at > until {
            self.shards.set_now(until.max(self.now()));
            return false;
        }
        // Overdue events come now.
        self.shards.set_now(at.max(self.now()));
        if self.wake_at < next {
            self.step(Event::Due);
            return true;
        }
        let Some((_, coming)) = self.coming.pop_first() else { return false };
        match coming {
            Coming::Delivered(ask, sent) => {
                let mut reply = self.shards.answer(&ask.endpoint, &ask.call);
                if let Some(lie) = &mut self.lie {
                    reply = lie(&ask.endpoint, reply);
                }
                let way = self.shards.shard(ask.endpoint.shard).round_trip / 2;
                self.add(way, Coming::Answered(ask, sent, reply));
            }
            Coming::Answered(ask, sent, reply) => {
                let received = self.since(self.began);
                self.step(Event::Answered(Box::new(Answered { ask, sent, received, reply })));
            }
            Coming::Recorded => {
                let recorded = self.journal.refuse.clone().map_or(Ok(()), Err);
                self.step(Event::Recorded(recorded));
            }
        }
        true
    }

    /// Lets virtual time pass.
    fn pass(&mut self, time: Duration) {
        let until = self.now() + time;
        while self.advance(until) {}
    }

    /// Conducts until `seen` holds for the published progress.
    fn until(&mut self, mut seen: impl FnMut(&ConductProgress) -> bool) {
        self.run_until(|rig| seen(&rig.progress));
    }

    /// Lets virtual time pass until `holds`, with a new conductor if there is none.
    fn run_until(&mut self, mut holds: impl FnMut(&Self) -> bool) {
        if self.machine.is_none() && self.outcome.is_none() {
            self.begin();
        }
        let until = self.now() + PATIENCE;
        while !holds(self) {
            assert!(self.advance(until), "it does not come; {:?}", self.progress);
        }
    }

    fn until_measuring(&mut self) {
        self.until(measuring);
    }

    /// Conducts to the end.
    fn conduct(&mut self) -> Outcome {
        self.run_until(|rig| rig.outcome.is_some());
        self.outcome.take().unwrap()
    }

    /// Conducts a trial that must be completed in this attempt.
    fn complete(&mut self, attempt: u32) -> Outcome {
        let outcome = self.conduct();
        assert_eq!((&outcome.ending, outcome.attempt), (&Ending::Completed, attempt));
        outcome
    }

    /// Conducts a trial that every shard must measure to its end in this attempt.
    fn complete_all(&mut self, attempt: u32) -> Outcome {
        let outcome = self.complete(attempt);
        assert_eq!(succeeded(&outcome), vec![RATE * MEASURED.as_secs(); outcome.shards.len()]);
        outcome
    }

    /// Conducts a trial that must fail.
    fn fail(&mut self) -> Failure {
        failure(&self.conduct()).clone()
    }

    fn abort(&mut self) {
        self.control.abort = true;
        self.step(Event::Control(self.control));
    }

    fn set_presence(&mut self, shard: u32, presence: ShardPresence) {
        self.presence[usize::try_from(shard).unwrap()] = presence;
        self.step(Event::Presence(self.presence.clone()));
    }

    /// Puts another process in the shard's place.
    fn replace(&mut self, shard: u32) {
        self.shards.replace(shard);
        self.set_presence(shard, ShardPresence::Present(self.shards.endpoint(shard)));
    }

    /// Turns the rig into that of a successor.
    fn succeed(&mut self) {
        self.kill();
        self.config.epoch += 1;
        self.config.resume = self.journal.written.last().map(|(record, _)| *record);
        self.progress = ConductProgress::default();
    }

    /// Counts the replies with a clock, and those with a snapshot, from now on.
    fn count_replies(&mut self) -> Rc<Cell<[u32; 2]>> {
        let counts = Rc::new(Cell::new([0; 2]));
        let counted = Rc::clone(&counts);
        self.lie = Some(Box::new(move |_, reply| {
            let [clocks, snapshots] = counted.get();
            counted.set(match &reply {
                Ok(Reply::Clock(_)) => [clocks + 1, snapshots],
                Ok(Reply::Snapshot(_)) => [clocks, snapshots + 1],
                _ => [clocks, snapshots],
            });
            reply
        }));
        counts
    }

    fn attempts(&self) -> Vec<u32> {
        self.journal.written.iter().map(|(record, _)| record.attempt).collect()
    }
}

fn evicted() -> ShardPresence {
    ShardPresence::Gone { why: "evicted".into(), replaced: true }
}

fn measuring(progress: &ConductProgress) -> bool {
    progress.stage == ConductStage::Running && progress.live.as_ref().is_some_and(|live| live.measuring)
}

fn failure(outcome: &Outcome) -> &Failure {
    match &outcome.ending {
        Ending::Failed(failure) => failure,
        other => panic!("{other:?}, not Failed"),
    }
}

/// The lost shards, and whether they have a part of their measurement.
fn lost(outcome: &Outcome) -> Vec<(u32, bool)> {
    outcome.lost().map(|shard| (shard.shard, shard.partial)).collect()
}

fn succeeded(outcome: &Outcome) -> Vec<u64> {
    outcome.shards.iter().map(|shard| shard.snapshot.as_ref().map_or(0, |s| s.total.succeeded)).collect()
}
