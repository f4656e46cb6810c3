//! One conducting task per running benchmark, spawned and stopped by reconcile.
//!
//! A task ends by itself only when the trial has finished and its shards are released. Dropping its entry stops it at once and leaves the
//! shards as they are, for the next conductor.

mod finished;
mod gathered;
mod journal;
#[cfg(test)]
mod staged;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use redisbench_benchmark::conductor::client::{CallTimeouts, ShardClient};
use redisbench_benchmark::conductor::{
    ConductorConfig, Control, Progress, ShardCalls, ShardPresence, conduct, release,
};
use redisbench_benchmark::credential::{CredentialError, RunCredential};
use redisbench_benchmark::measurement::{Ending, Outcome};
use redisbench_wire::plan::{Bound, ShardPlan};
use redisbench_wire::rate::CumulativeRate;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use finished::Finished;
pub use gathered::Gathered;
pub use journal::StatusJournal;

use crate::controller::build::Run;
use crate::controller::decide::{ARTIFACTS_LIMIT, ConductView, RELEASE_LIMIT};

/// Progress wakes the reconciler at most this often.
const WAKE_INTERVAL: Duration = Duration::from_millis(250);

/// How a conducting task ended in this process.
#[derive(Clone, Debug)]
pub enum Ended {
    /// Another conductor has taken over.
    Superseded,
    /// The trial has finished.
    Over(Arc<Finished>),
}

/// The conducting tasks of this process, by the benchmarks' UIDs.
#[derive(Clone, Debug, Default)]
pub struct Conducts {
    entries: Arc<Mutex<HashMap<String, Arc<Conduct>>>>,
    /// Bytes that finished runs sent and received, because their statuses do not have them.
    bytes: Arc<Mutex<HashMap<String, Bytes>>>,
    /// Number of snapshots merged, for the metrics.
    merges: Arc<AtomicU64>,
    stage: Stage,
}

type Perform =
    dyn Fn(Score, Wires, Weak<Conduct>, Conducts) -> Result<BoxFuture<'static, ()>, CredentialError> + Send + Sync;

/// Performs scores: calls the shards and merges the results. Replaced in simulations.
#[derive(Clone)]
struct Stage(Arc<Perform>);

impl Default for Stage {
    fn default() -> Self {
        Self(Arc::new(|score, wires, entry, conducts| {
            let client = Arc::new(ShardClient::new(&score.run.id, &score.credential, CallTimeouts::default())?);
            Ok(perform(score, client, wires, entry, conducts, Merging::OnAnotherThread).boxed())
        }))
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Stage")
    }
}

/// Where the results of a trial are merged.
#[derive(Clone, Copy)]
enum Merging {
    /// Merging thousands of histograms takes long, and other tasks need the thread.
    OnAnotherThread,
    /// Simulations have only one thread.
    Here,
}

/// A conducting task and the channels to it.
#[derive(Debug)]
pub struct Conduct {
    run: Run,
    presence: watch::Sender<Vec<ShardPresence>>,
    control: watch::Sender<Control>,
    release: watch::Sender<bool>,
    progress: watch::Receiver<Progress>,
    ended: OnceLock<(Ended, Instant)>,
    epoch: u64,
    trial: u32,
    target_rate: Option<u64>,
    superseded: OnceLock<Instant>,
    released: AtomicBool,
    notes: Mutex<Notes>,
    task: OnceLock<Task>,
}

/// A task that is aborted on drop.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) type Bytes = [(&'static str, u64); 2];

/// State of a run between reconciliations.
#[derive(Debug, Default)]
struct Notes {
    /// When the API server first refused the full result.
    artifacts_refused: Option<Instant>,
    artifacts_failure: Option<String>,
    obstacle: Option<(Instant, Option<String>)>,
    /// When the aggregate of the repeats first could not be computed or written.
    gathering_refused: Option<Instant>,
    gathered: Option<Arc<Gathered>>,
}

/// The input of a conducting task.
pub struct Score {
    pub run: Run,
    /// The plans, the epoch and the limits.
    pub config: ConductorConfig,
    /// The current presence of the shards. Needed for a takeover: a shard that is absent after the start is lost.
    pub presence: Vec<ShardPresence>,
    /// Authenticates conductor and shards to each other.
    pub credential: RunCredential,
    /// Where starts are recorded.
    pub journal: StatusJournal,
    /// Computes the report from the trial's outcome.
    pub finish: Box<dyn FnOnce(Outcome) -> Finished + Send>,
    /// Triggers a reconciliation of the benchmark.
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

impl Conducts {
    /// Conducting tasks for a simulation: `dial` provides the calls to shards, `host` wraps every task before it is spawned, and all work
    /// stays on the thread.
    pub fn simulated<C: ShardCalls>(
        dial: impl Fn(&Run) -> Arc<C> + Send + Sync + 'static,
        host: impl Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        let stage = Stage(Arc::new(move |score, wires, entry, conducts| {
            let calls = dial(&score.run);
            Ok(host(perform(score, calls, wires, entry, conducts, Merging::Here).boxed()))
        }));
        Self { stage, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Conduct>>> {
        // The map is consistent between calls, so a panic elsewhere leaves no partial change.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, uid: &str) -> Option<Arc<Conduct>> {
        self.lock().get(uid).cloned()
    }

    /// Stops the task of the benchmark `uid`, if there is one.
    pub fn stop(&self, uid: &str) {
        self.lock().remove(uid);
    }

    pub fn stop_all(&self) {
        self.lock().clear();
    }

    /// Stops the task of a deleted benchmark, and drops its byte counts.
    pub fn forget(&self, uid: &str) {
        self.stop(uid);
        self.bytes().remove(uid);
    }

    /// The UIDs of benchmarks with a task in `namespace`, or in all namespaces.
    pub fn of_namespace(&self, namespace: Option<&str>) -> Vec<String> {
        let entries = self.lock();
        let inside = entries.iter().filter(|(_, entry)| namespace.is_none_or(|name| name == entry.run.namespace));
        inside.map(|(uid, _)| uid.clone()).collect()
    }

    /// Bytes that the finished run of `uid` sent and received, if this process conducted it.
    pub fn final_bytes(&self, uid: &str) -> Vec<(&'static str, u64)> {
        self.bytes().get(uid).map(|bytes| bytes.to_vec()).unwrap_or_default()
    }

    fn bytes(&self) -> MutexGuard<'_, HashMap<String, Bytes>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of snapshots merged so far.
    pub fn merges(&self) -> u64 {
        self.merges.load(Ordering::Relaxed)
    }

    /// A run whose trial has ended, with no shards to release.
    #[cfg(test)]
    pub(crate) fn put_ended(&self, run: Run, epoch: u64, finished: Finished) {
        let entry = Conduct {
            presence: watch::Sender::default(),
            control: watch::Sender::default(),
            release: watch::Sender::default(),
            progress: watch::channel(Progress::default()).1,
            trial: finished.report.trial.as_ref().map_or(0, |trial| trial.index),
            ended: OnceLock::from((Ended::Over(Arc::new(finished)), Instant::now())),
            epoch,
            target_rate: None,
            superseded: OnceLock::new(),
            released: AtomicBool::new(true),
            notes: Mutex::default(),
            task: OnceLock::new(),
            run,
        };
        self.lock().insert(entry.run.uid.clone(), Arc::new(entry));
    }

    /// Starts a conducting task in place of any earlier one of the benchmark.
    ///
    /// # Errors
    /// If TLS cannot be set up with the credential.
    pub fn start(&self, score: Score) -> Result<(), CredentialError> {
        let (presence, presence_seen) = watch::channel(score.presence.clone());
        let (control, control_seen) = watch::channel(Control::default());
        let (publish, progress) = watch::channel(Progress::at_first(&score.config));
        let (release, release_seen) = watch::channel(false);
        let entry = Arc::new(Conduct {
            run: score.run.clone(),
            presence,
            control,
            release,
            progress: progress.clone(),
            ended: OnceLock::new(),
            epoch: score.config.epoch,
            trial: score.config.plans.first().map_or(0, |plan| plan.trial),
            target_rate: score.config.plans.first().and_then(target_rate),
            superseded: OnceLock::new(),
            released: AtomicBool::new(false),
            notes: Mutex::default(),
            task: OnceLock::new(),
        });
        let wires = Wires { presence: presence_seen, control: control_seen, release: release_seen, publish, progress };
        // The task has only a weak reference to its entry, because dropping the entry stops the task.
        let task = (self.stage.0)(score, wires, Arc::downgrade(&entry), self.clone())?;
        let _ = entry.task.set(Task(tokio::spawn(task)));
        self.lock().insert(entry.run.uid.clone(), entry);
        Ok(())
    }
}

/// The mean rate that the measurement of a trial requests. None in a closed loop.
fn target_rate(plan: &ShardPlan) -> Option<u64> {
    let (Bound::Duration { nanoseconds } | Bound::Requests { max_nanoseconds: nanoseconds, .. }) = plan.bound;
    let begin = plan.warmup_nanoseconds;
    CumulativeRate::of(plan).map(|rate| rate.mean_per_second(begin, begin.saturating_add(nanoseconds)))
}

struct Wires {
    presence: watch::Receiver<Vec<ShardPresence>>,
    control: watch::Receiver<Control>,
    release: watch::Receiver<bool>,
    publish: watch::Sender<Progress>,
    progress: watch::Receiver<Progress>,
}

async fn perform<C: ShardCalls>(
    score: Score,
    client: Arc<C>,
    mut wires: Wires,
    entry: Weak<Conduct>,
    conducts: Conducts,
    merging: Merging,
) {
    let Score { run, config, journal, finish, wake, .. } = score;
    let epoch = config.epoch;
    tracing::info!(namespace = run.namespace, benchmark = run.benchmark, run = run.id, epoch, "conducting");
    let conducting = conduct(config, client.clone(), journal, wires.presence.clone(), wires.control, wires.publish);
    let outcome = tokio::select! {
        biased;
        outcome = conducting => outcome,
        () = announce(wires.progress, wake.clone(), conducts.merges.clone()) => return,
    };
    let superseded = outcome.ending == Ending::Superseded;
    tracing::info!(namespace = run.namespace, benchmark = run.benchmark, ending = ?outcome.ending, "trial finished");
    let ended = if superseded {
        Ended::Superseded
    } else {
        let finished = match merging {
            Merging::OnAnotherThread => tokio::task::spawn_blocking(move || finish(outcome)).await,
            Merging::Here => Ok(finish(outcome)),
        };
        match finished {
            Ok(finished) => Ended::Over(Arc::new(finished)),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "failed to merge the results");
                return;
            }
        }
    };
    conducts.merges.fetch_add(1, Ordering::Relaxed);
    if let Ended::Over(finished) = &ended
        && finished.report.result.is_some()
    {
        // With several trials, only those that this process conducted.
        let mut all = conducts.bytes();
        let known = all.entry(run.uid.clone()).or_insert_with(|| finished.bytes.map(|(direction, _)| (direction, 0)));
        for ((_, sum), (_, bytes)) in known.iter_mut().zip(finished.bytes) {
            *sum = sum.saturating_add(bytes);
        }
    }
    match entry.upgrade() {
        Some(entry) => {
            let _ = entry.ended.set((ended, Instant::now()));
        }
        None => return,
    }
    wake();
    if superseded || wires.release.wait_for(|release| *release).await.is_err() {
        return;
    }
    let _ = tokio::time::timeout(RELEASE_LIMIT, release(epoch, client, wires.presence)).await;
    if let Some(entry) = entry.upgrade() {
        entry.released.store(true, Ordering::Relaxed);
    }
    wake();
}

/// Wakes the reconciler when progress changes. Never returns, so that the caller waits for the conductor.
async fn announce(mut progress: watch::Receiver<Progress>, wake: Arc<dyn Fn() + Send + Sync>, merges: Arc<AtomicU64>) {
    let mut known = None;
    while progress.changed().await.is_ok() {
        let live = progress.borrow_and_update().live.as_ref().map(Arc::as_ptr).map(|live| live as usize);
        if live != known {
            known = live;
            merges.fetch_add(1, Ordering::Relaxed);
        }
        wake();
        tokio::time::sleep(WAKE_INTERVAL).await;
    }
    // The conductor has dropped its end, so its outcome is available.
    std::future::pending::<()>().await;
}

impl Conduct {
    /// Updates where the shards are.
    pub fn set_presence(&self, presence: Vec<ShardPresence>) {
        self.presence.send_if_modified(|known| {
            let changed = *known != presence;
            *known = presence;
            changed
        });
    }

    pub fn abort(&self) {
        self.control.send_if_modified(|control| !std::mem::replace(&mut control.abort, true));
    }

    /// Releases the shards after the trial.
    pub fn release(&self) {
        self.release.send_if_modified(|release| !std::mem::replace(release, true));
    }

    pub fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// The index of its trial, from 0.
    pub fn trial(&self) -> u32 {
        self.trial
    }

    /// The rate that its trial requests, in requests per second. None in a closed loop.
    pub fn target_rate(&self) -> Option<u64> {
        self.target_rate
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Discards this task's state, because another conductor has taken over. A task that only reads from shards would not learn it from
    /// them.
    pub fn supersede(&self) {
        self.superseded.get_or_init(Instant::now);
        if let Some(task) = self.task.get() {
            task.0.abort();
        }
    }

    /// The state on which reconcile decides.
    pub fn view(&self) -> ConductView {
        if let Some(at) = self.superseded.get() {
            return ConductView::Ended {
                ended: Ended::Superseded,
                since: at.elapsed(),
                artifacts_failure: None,
                released: true,
            };
        }
        // Checked first: a task that finishes between the two checks has already set how it ended.
        let is_finished = self.task.get().is_some_and(|task| task.0.is_finished());
        match self.ended.get() {
            Some((ended, at)) => ConductView::Ended {
                ended: ended.clone(),
                since: at.elapsed(),
                artifacts_failure: self.notes().artifacts_failure.clone(),
                released: self.released.load(Ordering::Relaxed),
            },
            None if is_finished => ConductView::Ended {
                ended: Ended::Over(Arc::new(Finished::broken(self.progress.borrow().of, self.presence.borrow().len()))),
                since: Duration::ZERO,
                artifacts_failure: None,
                released: true,
            },
            None => ConductView::Running(Box::new(self.progress())),
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the API server refused the full result. After [`ARTIFACTS_LIMIT`] of refusals it is given up.
    pub fn note_artifacts_refused(&self, why: String) {
        let mut notes = self.notes();
        let since = notes.artifacts_refused.get_or_insert_with(Instant::now);
        if since.elapsed() >= ARTIFACTS_LIMIT {
            notes.artifacts_failure = Some(why);
        }
    }

    /// Forgets refusals of the full result, because the API server refuses other writes too.
    pub fn forgive_artifacts(&self) {
        let mut notes = self.notes();
        (notes.artifacts_refused, notes.artifacts_failure) = (None, None);
    }

    /// The aggregate of the repeats, once computed.
    pub fn gathered(&self) -> Option<Arc<Gathered>> {
        self.notes().gathered.clone()
    }

    /// Stores the aggregate of the repeats.
    pub fn note_gathered(&self, gathered: Gathered) {
        self.notes().gathered = Some(Arc::new(gathered));
    }

    /// Records that the aggregate of the repeats could not be computed or written. Returns true if it must be given up.
    pub fn note_gathering_refused(&self) -> bool {
        let mut notes = self.notes();
        let since = notes.gathering_refused.get_or_insert_with(Instant::now);
        since.elapsed() >= ARTIFACTS_LIMIT
    }

    /// The last looked-up obstacle of the shards, if the look-up is younger than `age`.
    pub fn recent_obstacle(&self, age: Duration) -> Option<Option<String>> {
        self.notes().obstacle.as_ref().filter(|(at, _)| at.elapsed() < age).map(|(_, what)| what.clone())
    }

    /// Stores the obstacle of the shards.
    pub fn note_obstacle(&self, what: Option<String>) {
        self.notes().obstacle = Some((Instant::now(), what));
    }
}
