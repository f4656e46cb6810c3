//! One conducting task per running benchmark, spawned and stopped by reconcile.
//!
//! A task ends by itself only when the trial has finished and its shards are released. Dropping its entry stops it at once and leaves the
//! shards as they are, for the next conductor.

#[cfg(test)]
mod fake;
mod gathered;
mod journal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use prometheus_client::metrics::counter::Counter;
use redisbench_benchmark::api::status::{Artifact, ComparisonResult};
use redisbench_benchmark::conductor::client::{CallTimeouts, ShardClient};
use redisbench_benchmark::conductor::{
    CallCounts, ConductProgress, ConductorConfig, Control, PolledShards, ResultMemory, ShardCalls, ShardPresence,
    conduct, release,
};
use redisbench_benchmark::credential::{CredentialError, RunCredential};
use redisbench_benchmark::measurement::{Ending, Failure, Outcome};
use redisbench_benchmark::plan::Trial;
use redisbench_benchmark::report::Finished;
use redisbench_benchmark::report::repeats::Experiment;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use gathered::Gathered;
pub use journal::StatusJournal;

use crate::build::Run;
use crate::environment::Compute;
use crate::metrics::{Records, Setting, TrialSample, error_kinds};
use crate::telemetry::chain;

/// The longest time that released shards may take to exit before their Job is deleted.
pub const RELEASE_LIMIT: Duration = Duration::from_secs(30);
/// The longest time that the conductor of a deleted benchmark may take to stop the load.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// The longest delay of the end by refused ConfigMaps of a result.
pub const ARTIFACTS_LIMIT: Duration = Duration::from_secs(60);
/// Progress wakes the reconciler at most this often.
const WAKE_INTERVAL: Duration = Duration::from_millis(250);

/// The outcome of a conducting task in this process.
#[derive(Clone, Debug)]
pub enum Ended {
    Superseded,
    /// A bug ended it: it panicked, or its results could not be merged. The shards still hold theirs.
    Broken,
    Over(Arc<Finished>),
}

#[derive(Clone, Debug)]
pub enum TaskView {
    Running(Box<ConductProgress>),
    Ended {
        ended: Ended,
        /// Time since then.
        since: Duration,
        /// Why the full result cannot be written, once the retries have timed out.
        artifacts_failure: Option<String>,
        /// All shards have exited, or were given up.
        released: bool,
    },
}

/// The conducting tasks of this process, by the benchmarks' UIDs.
#[derive(Clone, Default)]
pub struct TaskRegistry {
    entries: Arc<Mutex<HashMap<String, Arc<ConductTask>>>>,
    /// Finished trials, for the metrics.
    records: Arc<Mutex<Records>>,
    /// Number of snapshots merged, for the metrics.
    merges: Counter,
    /// Calls to shards, for the metrics.
    calls: Arc<CallCounts>,
    /// For the final snapshots of all benchmarks.
    memory: Arc<ResultMemory>,
    /// The shards of all benchmarks that are polled.
    polled: Arc<PolledShards>,
    /// For the long computations of all benchmarks.
    compute: Compute,
    /// Changed only under the lock of `entries`.
    closed: Arc<AtomicBool>,
    runner: Runner,
}

type RunTask = dyn Fn(TaskInput, TaskChannels, Weak<ConductTask>, TaskRegistry) -> Result<BoxFuture<'static, ()>, CredentialError>
    + Send
    + Sync;

/// Runs conducting tasks. Replaced in simulations.
#[derive(Clone)]
struct Runner(Arc<RunTask>);

impl Default for Runner {
    fn default() -> Self {
        Self(Arc::new(|input, channels, entry, tasks| {
            let client =
                ShardClient::new(&input.run.id, &input.credential, CallTimeouts::default())?.counted(tasks.calls());
            let client = client.within(tasks.memory());
            Ok(run_task(input, Arc::new(client), channels, entry, tasks).boxed())
        }))
    }
}

#[derive(Debug)]
pub struct ConductTask {
    run: Run,
    presence: watch::Sender<Vec<ShardPresence>>,
    control: watch::Sender<Control>,
    release: watch::Sender<bool>,
    progress: watch::Receiver<ConductProgress>,
    ended: OnceLock<(Ended, Instant)>,
    pub epoch: u64,
    /// The index of its trial, from 0.
    pub trial: u32,
    /// Its trial's place among the others.
    pub setting: Setting,
    superseded: OnceLock<Instant>,
    released: AtomicBool,
    /// The benchmark was deleted while this task ran.
    deleted: AtomicBool,
    state: Mutex<TaskState>,
    /// Locked while a reconciliation merges the trials.
    pub gathered: tokio::sync::Mutex<Gathered>,
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

/// State of a run between reconciliations.
#[derive(Debug, Default)]
struct TaskState {
    /// The time at which the API server first refused the full result.
    artifacts_refused: Option<Instant>,
    artifacts_failure: Option<String>,
    obstacle: Option<(Instant, Option<String>)>,
    /// The time at which the aggregate of the repeats first could not be computed or written.
    aggregate_refused: Option<Instant>,
    aggregate: Option<Arc<Aggregate>>,
    /// Kinds of error that have series.
    kinds: Vec<String>,
}

/// The aggregate of the repeats of all cells, for the end of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aggregate {
    /// For the status.
    pub experiment: Experiment,
    /// The pieces of its document, as listed in the status.
    pub artifacts: Vec<Artifact>,
    /// The comparison with a previous benchmark, if the spec asks for one.
    pub against: Vec<ComparisonResult>,
    /// Why a part is missing, if one is.
    pub failure: Option<String>,
}

pub struct TaskInput {
    pub run: Run,
    /// The trial's place among the others.
    pub setting: Setting,
    /// The plan, the epoch and the limits.
    pub config: ConductorConfig,
    /// The current presence of the shards. Needed for a takeover: a shard that is absent after the start is lost.
    pub presence: Vec<ShardPresence>,
    /// Authenticates conductor and shards to each other.
    pub credential: RunCredential,
    pub journal: StatusJournal,
    /// Computes the report from the trial's outcome.
    pub finish: Box<dyn FnOnce(Outcome) -> Finished + Send>,
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

impl TaskRegistry {
    /// No tasks yet; together they ask `snapshots` shards per second.
    pub fn asking(snapshots: u32) -> Self {
        Self { polled: Arc::new(PolledShards::new(snapshots)), ..Self::default() }
    }

    /// Conducting tasks for a simulation: `dial` provides the calls to shards, `host` wraps every task before it is spawned, and all work
    /// stays on the thread.
    pub fn simulated<C: ShardCalls>(
        dial: impl Fn(&Run) -> Arc<C> + Send + Sync + 'static,
        host: impl Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        let runner = Runner(Arc::new(move |input, channels, entry, tasks| {
            let calls = dial(&input.run);
            Ok(host(run_task(input, calls, channels, entry, tasks).boxed()))
        }));
        Self { runner, compute: Compute::Here, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ConductTask>>> {
        // The map is consistent between calls, so a panic elsewhere leaves no partial change.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, uid: &str) -> Option<Arc<ConductTask>> {
        self.lock().get(uid).cloned()
    }

    /// Stops the task of the benchmark `uid`, if there is one.
    pub fn stop(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Stops all tasks, and starts none any more: a reconciliation may still be at work.
    pub fn stop_all(&self) {
        let mut entries = self.lock();
        self.closed.store(true, Ordering::Relaxed);
        entries.clear();
    }

    /// Stops the load of the deleted benchmark `uid` on all shards, if it has a task, and drops what they measured. The deletion of their
    /// pods alone may take the garbage collector minutes, and with `--cascade=orphan` they are not deleted at all.
    pub fn stop_load(&self, uid: &str) {
        let Some(entry) = self.lock().remove(uid) else { return };
        entry.deleted.store(true, Ordering::Relaxed);
        entry.abort();
        tokio::spawn(async move {
            tokio::time::sleep(STOP_LIMIT).await;
            drop(entry);
        });
    }

    /// Stops the load of a deleted benchmark, and drops its records.
    pub fn forget(&self, uid: &str) {
        // First the flag, then the records: a task that ends meanwhile adds none after that.
        self.stop_load(uid);
        self.lock_records().forget(uid);
    }

    /// Keeps the record of a finished trial, unless its benchmark was deleted.
    fn keep(&self, entry: &ConductTask, record: TrialSample) {
        let mut records = self.lock_records();
        // Checked under the lock, so that it cannot be set and the records be forgotten before this one is added.
        if !entry.deleted.load(Ordering::Relaxed) {
            records.add(&entry.run.uid, record);
        }
    }

    /// The UIDs of benchmarks with a task in `namespace`, or in all namespaces.
    pub fn of_namespace(&self, namespace: Option<&str>) -> Vec<String> {
        let entries = self.lock();
        let inside = entries.iter().filter(|(_, entry)| namespace.is_none_or(|name| name == entry.run.namespace));
        inside.map(|(uid, _)| uid.clone()).collect()
    }

    /// The newest finished trials of `uid` that this process conducted.
    pub fn records(&self, uid: &str) -> BTreeMap<u32, Arc<TrialSample>> {
        self.lock_records().of(uid)
    }

    fn lock_records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn calls(&self) -> Arc<CallCounts> {
        self.calls.clone()
    }

    /// The memory for final snapshots.
    pub fn memory(&self) -> Arc<ResultMemory> {
        self.memory.clone()
    }

    /// The shards that are polled.
    pub fn polled(&self) -> Arc<PolledShards> {
        self.polled.clone()
    }

    /// Where long computations run. The limit counts the merges of all benchmarks; the computations of reconciliations wait for none.
    pub fn compute(&self) -> Compute {
        self.compute.clone()
    }

    pub fn merges(&self) -> u64 {
        self.merges.get()
    }

    /// Starts a conducting task in place of any earlier one of the benchmark.
    ///
    /// # Errors
    /// If TLS cannot be set up with the credential.
    pub fn start(&self, input: TaskInput) -> Result<(), CredentialError> {
        let now = input.config.wall_clock.unix_nanoseconds();
        let (publish, progress) = watch::channel(ConductProgress::at_first(&input.config, now));
        let (epoch, trial) = (input.config.epoch, input.config.trial);
        let entry = ConductTask::new(input.run.clone(), epoch, trial, input.setting.clone(), progress.clone());
        entry.presence.send_replace(input.presence.clone());
        let channels = TaskChannels {
            presence: entry.presence.subscribe(),
            control: entry.control.subscribe(),
            release: entry.release.subscribe(),
            publish,
            progress,
        };
        let entry = Arc::new(entry);
        let mut entries = self.lock();
        if self.closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let wake = input.wake.clone();
        // The task has only a weak reference to its entry, because dropping the entry stops the task.
        let task = (self.runner.0)(input, channels, Arc::downgrade(&entry), self.clone())?;
        let _ = entry.task.set(Task(tokio::spawn(until_broken(task, Arc::downgrade(&entry), wake))));
        entries.insert(entry.run.uid.clone(), entry);
        Ok(())
    }
}

struct TaskChannels {
    presence: watch::Receiver<Vec<ShardPresence>>,
    control: watch::Receiver<Control>,
    release: watch::Receiver<bool>,
    publish: watch::Sender<ConductProgress>,
    progress: watch::Receiver<ConductProgress>,
}

async fn run_task<C: ShardCalls>(
    input: TaskInput,
    client: Arc<C>,
    mut channels: TaskChannels,
    entry: Weak<ConductTask>,
    tasks: TaskRegistry,
) {
    let TaskInput { run, config, journal, finish, wake, .. } = input;
    let epoch = config.epoch;
    tracing::info!(namespace = run.namespace, benchmark = run.benchmark, run = run.id, epoch, "conducting");
    let conducting =
        conduct(config, client.clone(), journal, channels.presence.clone(), channels.control, channels.publish);
    let outcome = tokio::select! {
        biased;
        outcome = conducting => outcome,
        () = announce(channels.progress, wake.clone(), tasks.merges.clone()) => return,
    };
    let superseded = outcome.ending == Ending::Superseded;
    tracing::info!(namespace = run.namespace, benchmark = run.benchmark, ending = ?outcome.ending, "trial finished");
    let ended = if superseded {
        Ended::Superseded
    } else {
        match tasks.compute.merge(move || finish(outcome)).await {
            Ok(finished) => Ended::Over(Arc::new(finished)),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "failed to merge the results");
                return;
            }
        }
    };
    tasks.merges.inc();
    match entry.upgrade() {
        Some(entry) => {
            if let Ended::Over(finished) = &ended {
                let kinds = |errors: &[(String, u64)], all| entry.error_kinds(errors, all);
                let record = TrialSample::of_finished(entry.setting.clone(), finished, &entry.progress(), kinds);
                if let Some(record) = record {
                    tasks.keep(&entry, record);
                }
            }
            let _ = entry.ended.set((ended, Instant::now()));
        }
        None => return,
    }
    wake();
    if superseded || channels.release.wait_for(|release| *release).await.is_err() {
        return;
    }
    let _ = tokio::time::timeout(RELEASE_LIMIT, release(epoch, client, channels.presence)).await;
    if let Some(entry) = entry.upgrade() {
        entry.released.store(true, Ordering::Relaxed);
    }
    wake();
}

/// Runs `task`. If a bug ends it, wakes the reconciler at once, because until then no conductor is in charge of the shards.
async fn until_broken(task: BoxFuture<'static, ()>, entry: Weak<ConductTask>, wake: Arc<dyn Fn() + Send + Sync>) {
    let panicked = AssertUnwindSafe(task).catch_unwind().await.is_err();
    let Some(entry) = entry.upgrade() else { return };
    if panicked || entry.ended.get().is_none() {
        entry.released.store(true, Ordering::Relaxed);
        // Unless it panicked after the end of the trial.
        let _ = entry.ended.set((Ended::Broken, Instant::now()));
        wake();
    }
}

/// Wakes the reconciler when progress changes. Never returns, so that the caller waits for the conductor.
async fn announce(mut progress: watch::Receiver<ConductProgress>, wake: Arc<dyn Fn() + Send + Sync>, merges: Counter) {
    let mut known = None;
    while progress.changed().await.is_ok() {
        let live = progress.borrow_and_update().live.as_ref().map(Arc::as_ptr).map(|live| live as usize);
        if live != known {
            known = live;
            merges.inc();
        }
        wake();
        tokio::time::sleep(WAKE_INTERVAL).await;
    }
    // The conductor has dropped its end, so its outcome is available.
    std::future::pending::<()>().await;
}

impl ConductTask {
    fn new(run: Run, epoch: u64, trial: u32, setting: Setting, progress: watch::Receiver<ConductProgress>) -> Self {
        Self {
            run,
            presence: watch::Sender::default(),
            control: watch::Sender::default(),
            release: watch::Sender::default(),
            progress,
            ended: OnceLock::new(),
            epoch,
            trial,
            setting,
            superseded: OnceLock::new(),
            released: AtomicBool::new(false),
            deleted: AtomicBool::new(false),
            state: Mutex::default(),
            gathered: tokio::sync::Mutex::default(),
            task: OnceLock::new(),
        }
    }

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

    pub fn progress(&self) -> ConductProgress {
        self.progress.borrow().clone()
    }

    /// Of `all` errors of its trial by kind, those with series, which stay the same.
    pub fn error_kinds(&self, errors: &[(String, u64)], all: u64) -> Vec<(String, u64)> {
        error_kinds(&mut self.state().kinds, errors, all)
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
    pub fn view(&self) -> TaskView {
        if let Some(at) = self.superseded.get() {
            return TaskView::Ended {
                ended: Ended::Superseded,
                since: at.elapsed(),
                artifacts_failure: None,
                released: true,
            };
        }
        match self.ended.get() {
            Some((ended, at)) => TaskView::Ended {
                ended: ended.clone(),
                since: at.elapsed(),
                artifacts_failure: self.state().artifacts_failure.clone(),
                released: self.released.load(Ordering::Relaxed),
            },
            None => TaskView::Running(Box::new(self.progress())),
        }
    }

    fn state(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the API server refused the full result. After [`ARTIFACTS_LIMIT`] of refusals it is given up.
    pub fn note_artifacts_refused(&self, why: String) {
        let mut state = self.state();
        let since = state.artifacts_refused.get_or_insert_with(Instant::now);
        if since.elapsed() >= ARTIFACTS_LIMIT {
            state.artifacts_failure = Some(why);
        }
    }

    /// Forgets refusals of the full result, because the API server refuses other writes too.
    pub fn forgive_artifacts(&self) {
        let mut state = self.state();
        (state.artifacts_refused, state.artifacts_failure) = (None, None);
    }

    /// The aggregate of the repeats, once computed.
    pub fn aggregate(&self) -> Option<Arc<Aggregate>> {
        self.state().aggregate.clone()
    }

    pub fn store_aggregate(&self, aggregate: Aggregate) {
        self.state().aggregate = Some(Arc::new(aggregate));
    }

    /// Records that the aggregate of the repeats could not be computed or written. Returns true if it must be given up.
    pub fn note_aggregate_refused(&self) -> bool {
        let mut state = self.state();
        let since = state.aggregate_refused.get_or_insert_with(Instant::now);
        since.elapsed() >= ARTIFACTS_LIMIT
    }

    /// The last looked-up obstacle of the shards, if the look-up is younger than `age`.
    pub fn recent_obstacle(&self, age: Duration) -> Option<Option<String>> {
        self.state().obstacle.as_ref().filter(|(at, _)| at.elapsed() < age).map(|(_, what)| what.clone())
    }

    pub fn note_obstacle(&self, what: Option<String>) {
        self.state().obstacle = Some((Instant::now(), what));
    }
}

/// Merges and judges `outcome`. Its ending is never superseded.
pub fn finish(run: &Run, trial: &Trial, outcome: Outcome) -> Finished {
    Finished::of(&run.benchmark, &run.id, trial, outcome).unwrap_or_else(|error| {
        let message = format!("the shards' results are unusable: {}", chain(&error));
        let failure = Failure { reason: "ResultUnusable".into(), message };
        Finished::unmeasured(trial.of, trial.spec.plan.shards, Ending::Failed(failure))
    })
}
