//! Tests of the conductor on virtual time, against shards in memory; and of its client against a real server.

mod barrier;
mod cleanup;
mod fake;
mod hostile;
mod hostile_server;
mod https;
mod probing;
mod running;
mod settling;
mod simulation;
mod taking_over;
mod thresholds;
mod trials;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redisbench_wire::plan::{Bound, Breakdown, Limits, ShardPlan, Timeouts, TrialPlan};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::fake::FakeShards;
use super::{
    ConductStage, ConductorConfig, ConductorLimits, Control, Ending, Failure, Journal, JournalError, Outcome, Progress,
    ShardPresence, StartRecord, WallClock, conduct, reason,
};

pub use self::fake::bare_snapshot as snapshot;
pub use crate::api::spec::OnLost;

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
        limits: Limits { trial_nanoseconds: 1, armed_nanoseconds: 600_000_000_000, finished_nanoseconds: 1 },
        ..TrialPlan::basic("redis:6379")
    }
}

pub fn part(shard: u32, shards: u32) -> ShardPlan {
    plan(shards).of_shard(shard)
}

/// A journal that keeps its records for the test.
#[derive(Default)]
struct Records {
    written: Mutex<Vec<(StartRecord, Instant)>>,
    refuse: Mutex<Option<JournalError>>,
    takes: Mutex<Duration>,
}

impl Journal for Arc<Records> {
    async fn record_start(&self, record: StartRecord) -> Result<(), JournalError> {
        self.written.lock().unwrap().push((record, Instant::now()));
        let takes = *self.takes.lock().unwrap();
        tokio::time::sleep(takes).await; // virtual time: how long the journal takes
        self.refuse.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

/// A run with everything around its conductor.
struct Rig {
    shards: Arc<FakeShards>,
    config: ConductorConfig,
    journal: Arc<Records>,
    presence: watch::Sender<Vec<ShardPresence>>,
    control: watch::Sender<Control>,
    progress: watch::Sender<Progress>,
}

impl Rig {
    fn new(count: u32) -> Self {
        let shards = Arc::new(FakeShards::new(count));
        let presence = (0..count).map(|shard| ShardPresence::Present(shards.endpoint(shard))).collect();
        Self {
            config: ConductorConfig {
                epoch: 1,
                plan: Arc::new(plan(count)),
                run: "run".into(),
                trial: 0,
                of: 1,
                interval: Duration::ZERO,
                limits: ConductorLimits::default(),
                on_lost: OnLost::Invalidate,
                cleanup: false,
                resume: None,
                attempts: 0,
                thresholds: Vec::new(),
                standings: Vec::new(),
                probe: None,
                wall_clock: WallClock::default(),
            },
            shards,
            journal: Arc::default(),
            presence: watch::Sender::new(presence),
            control: watch::Sender::default(),
            progress: watch::Sender::default(),
        }
    }

    /// The plan, to change it.
    fn plan(&mut self) -> &mut TrialPlan {
        Arc::make_mut(&mut self.config.plan)
    }

    fn spawn(&self) -> JoinHandle<Outcome> {
        tokio::spawn(conduct(
            self.config.clone(),
            Arc::clone(&self.shards),
            Arc::clone(&self.journal),
            self.presence.subscribe(),
            self.control.subscribe(),
            self.progress.clone(),
        ))
    }

    async fn conduct(&self) -> Outcome {
        self.spawn().await.unwrap()
    }

    fn set_presence(&self, shard: usize, presence: ShardPresence) {
        self.presence.send_modify(|all| all[shard] = presence);
    }

    /// Waits until `seen` holds for the published progress. Bounded, so that a fault ends the test.
    async fn until(&self, seen: impl FnMut(&Progress) -> bool) {
        let mut progress = self.progress.subscribe();
        tokio::time::timeout(Duration::from_secs(3_600), progress.wait_for(seen)).await.unwrap().unwrap();
    }

    async fn until_measuring(&self) {
        self.until(|progress| {
            progress.stage == ConductStage::Running && progress.live.as_ref().is_some_and(|live| live.measuring)
        })
        .await;
    }

    /// Turns the rig into that of a successor. The wall clock does not follow virtual time, so the record is moved into the past by the
    /// virtual time since it was written.
    fn succeed(&mut self) {
        self.config.epoch += 1;
        self.config.resume = self.journal.written.lock().unwrap().last().map(|(record, at)| StartRecord {
            start_at_unix_nanoseconds: record.start_at_unix_nanoseconds
                - u64::try_from(at.elapsed().as_nanos()).unwrap(),
            ..*record
        });
        self.progress = watch::Sender::default();
    }

    fn attempts(&self) -> Vec<u32> {
        self.journal.written.lock().unwrap().iter().map(|(record, _)| record.attempt).collect()
    }
}

fn failure(outcome: &Outcome) -> &Failure {
    match &outcome.ending {
        Ending::Failed(failure) => failure,
        other => panic!("{other:?}, not Failed"),
    }
}

fn succeeded(outcome: &Outcome) -> Vec<u64> {
    outcome.shards.iter().map(|shard| shard.snapshot.as_ref().map_or(0, |s| s.total.succeeded)).collect()
}
