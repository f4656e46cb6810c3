//! One conducting task per running benchmark, spawned and stopped by reconcile.
//!
//! A task ends by itself only when the trial is over and its shards are released. Dropping its entry stops it at once
//! and leaves the shards as they are, for the next conductor.

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

/// What a trial came to, for this process.
#[derive(Clone, Debug)]
pub enum Ended {
    /// Another conductor has taken over.
    Superseded,
    /// It is over.
    Over(Arc<Finished>),
}

/// The conducting tasks of this process, by the benchmarks' UIDs.
#[derive(Clone, Debug, Default)]
pub struct Conducts {
    entries: Arc<Mutex<HashMap<String, Arc<Conduct>>>>,
    /// Bytes that finished runs sent and received, which their statuses do not hold.
    bytes: Arc<Mutex<HashMap<String, Bytes>>>,
    /// Merges of snapshots so far, for the metrics.
    merges: Arc<AtomicU64>,
    stage: Stage,
}

type Perform =
    dyn Fn(Score, Wires, Weak<Conduct>, Conducts) -> Result<BoxFuture<'static, ()>, CredentialError> + Send + Sync;

/// Where scores are performed: how shards are called, and where results are merged.
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
    /// Merging thousands of histograms takes a while, and other tasks want the thread.
    OnAnotherThread,
    /// What is simulated has one thread.
    Here,
}

/// A conducting task and the wires into it.
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

/// A task that ends when it is dropped.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Bytes by direction.
pub(crate) type Bytes = [(&'static str, u64); 2];

/// What reconciling remembers about a run from one time to the next.
#[derive(Debug, Default)]
struct Notes {
    /// Since when the full result is refused.
    artifacts_refused: Option<Instant>,
    artifacts_failure: Option<String>,
    obstacle: Option<(Instant, Option<String>)>,
    /// Since when what the repeats came to cannot be found out, or written.
    gathering_refused: Option<Instant>,
    gathered: Option<Arc<Gathered>>,
}

/// What a conducting task is made of.
pub struct Score {
    /// Whose run it is.
    pub run: Run,
    /// The plans, the epoch and the limits.
    pub config: ConductorConfig,
    /// Where the shards are now. Who takes over must know: a shard that is not there after the start is lost.
    pub presence: Vec<ShardPresence>,
    /// What conductor and shards know each other by.
    pub credential: RunCredential,
    /// Where starts are written down.
    pub journal: StatusJournal,
    /// Makes the trial's outcome into what is reported.
    pub finish: Box<dyn FnOnce(Outcome) -> Finished + Send>,
    /// Makes reconcile look at the benchmark.
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

impl Conducts {
    /// Conducting tasks for a simulation: shards are called through what `dial` gives, every task goes through `host`
    /// before it is spawned, and nothing leaves the thread.
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
        // A map is whole between any two calls, so a panic elsewhere leaves nothing half done.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of the benchmark `uid`.
    pub fn get(&self, uid: &str) -> Option<Arc<Conduct>> {
        self.lock().get(uid).cloned()
    }

    /// Stops the task of the benchmark `uid`, if there is one.
    pub fn stop(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Stops all tasks.
    pub fn stop_all(&self) {
        self.lock().clear();
    }

    /// Stops the task of a benchmark that no longer exists, and forgets what it measured.
    pub fn forget(&self, uid: &str) {
        self.stop(uid);
        self.bytes().remove(uid);
    }

    /// The UIDs of benchmarks that are conducted in `namespace`, or in all.
    pub fn of_namespace(&self, namespace: Option<&str>) -> Vec<String> {
        let entries = self.lock();
        let inside = entries.iter().filter(|(_, entry)| namespace.is_none_or(|name| name == entry.run.namespace));
        inside.map(|(uid, _)| uid.clone()).collect()
    }

    /// Bytes that the finished run of `uid` sent and received, if it ran under this process.
    pub fn final_bytes(&self, uid: &str) -> Vec<(&'static str, u64)> {
        self.bytes().get(uid).map(|bytes| bytes.to_vec()).unwrap_or_default()
    }

    fn bytes(&self) -> MutexGuard<'_, HashMap<String, Bytes>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many snapshots were merged so far.
    pub fn merges(&self) -> u64 {
        self.merges.load(Ordering::Relaxed)
    }

    /// A run of which the trial is over, with nobody to release.
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

    /// Begins to conduct, instead of any task that the benchmark had.
    ///
    /// # Errors
    /// When TLS cannot be set up with the credential.
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
        // The task holds its entry weakly: dropping the entry is what stops the task.
        let task = (self.stage.0)(score, wires, Arc::downgrade(&entry), self.clone())?;
        let _ = entry.task.set(Task(tokio::spawn(task)));
        self.lock().insert(entry.run.uid.clone(), entry);
        Ok(())
    }
}

/// The mean rate that the measurement of a trial asks for; none in a closed loop.
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
    tracing::info!(namespace = run.namespace, benchmark = run.benchmark, ending = ?outcome.ending, "trial is over");
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
        // Of several trials, those that this process has seen.
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

/// Wakes the reconciler when progress changes. Never returns while there is progress to come.
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
    // The conductor has dropped its end, so its outcome is there.
    std::future::pending::<()>().await;
}

impl Conduct {
    /// Tells the task where the shards are.
    pub fn set_presence(&self, presence: Vec<ShardPresence>) {
        self.presence.send_if_modified(|known| {
            let changed = *known != presence;
            *known = presence;
            changed
        });
    }

    /// Stops the load.
    pub fn abort(&self) {
        self.control.send_if_modified(|control| !std::mem::replace(&mut control.abort, true));
    }

    /// Lets the shards go, once the trial is over.
    pub fn release(&self) {
        self.release.send_if_modified(|release| !std::mem::replace(release, true));
    }

    /// Where the trial is.
    pub fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// The trial that it conducts, from 0.
    pub fn trial(&self) -> u32 {
        self.trial
    }

    /// Requests per second that its trial asks for; none in a closed loop.
    pub fn target_rate(&self) -> Option<u64> {
        self.target_rate
    }

    /// The epoch of its conductor.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Another conductor has taken over: what this one knows is of no interest any more. Who only reads from shards
    /// would never learn it from them.
    pub fn supersede(&self) {
        self.superseded.get_or_init(Instant::now);
        if let Some(task) = self.task.get() {
            task.0.abort();
        }
    }

    /// What reconcile decides by.
    pub fn view(&self) -> ConductView {
        if let Some(at) = self.superseded.get() {
            return ConductView::Ended {
                ended: Ended::Superseded,
                since: at.elapsed(),
                artifacts_failure: None,
                released: true,
            };
        }
        // Looked at first: a task that ends between the two looks has said how it ended.
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

    /// The API server refused the full result. Once it has done so for [`ARTIFACTS_LIMIT`], it is given up.
    pub fn note_artifacts_refused(&self, why: String) {
        let mut notes = self.notes();
        let since = notes.artifacts_refused.get_or_insert_with(Instant::now);
        if since.elapsed() >= ARTIFACTS_LIMIT {
            notes.artifacts_failure = Some(why);
        }
    }

    /// The API server takes nothing else either: the full result is to be tried again.
    pub fn forgive_artifacts(&self) {
        let mut notes = self.notes();
        (notes.artifacts_refused, notes.artifacts_failure) = (None, None);
    }

    /// What the repeats came to, once it is known.
    pub fn gathered(&self) -> Option<Arc<Gathered>> {
        self.notes().gathered.clone()
    }

    /// What the repeats came to.
    pub fn note_gathered(&self, gathered: Gathered) {
        self.notes().gathered = Some(Arc::new(gathered));
    }

    /// What the repeats came to could not be found out, or written; says whether it is to be given up.
    pub fn note_gathering_refused(&self) -> bool {
        let mut notes = self.notes();
        let since = notes.gathering_refused.get_or_insert_with(Instant::now);
        since.elapsed() >= ARTIFACTS_LIMIT
    }

    /// What was found to hinder the shards, if it was looked for within `age`.
    pub fn recent_obstacle(&self, age: Duration) -> Option<Option<String>> {
        self.notes().obstacle.as_ref().filter(|(at, _)| at.elapsed() < age).map(|(_, what)| what.clone())
    }

    /// Remembers what hinders the shards.
    pub fn note_obstacle(&self, what: Option<String>) {
        self.notes().obstacle = Some((Instant::now(), what));
    }
}
