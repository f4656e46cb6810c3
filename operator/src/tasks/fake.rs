//! Fake conducting tasks for tests.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{Arc, ConductProgress, ConductTask, Ended, Finished, Instant, Run, Runner, Setting, TaskRegistry, watch};

/// As a panic does, without its message on stderr.
fn panic() -> BoxFuture<'static, ()> {
    async { std::panic::resume_unwind(Box::new("a bug")) }.boxed()
}

impl TaskRegistry {
    /// A registry whose tasks panic at once.
    pub(crate) fn panicking() -> Self {
        Self { runner: Runner(Arc::new(|_, _, _, _| Ok(panic()))), ..Self::default() }
    }

    /// A task whose progress the test sets through the returned sender.
    pub(crate) fn put_running(
        &self,
        run: Run,
        epoch: u64,
        progress: ConductProgress,
    ) -> watch::Sender<ConductProgress> {
        let trial = progress.trial;
        let (publish, progress) = watch::channel(progress);
        let setting = Setting { trial, ..Setting::default() };
        let entry = ConductTask::new(run, epoch, trial, setting, progress);
        self.lock().insert(entry.run.uid.clone(), Arc::new(entry));
        publish
    }

    /// A run whose trial has ended, with no shards to release.
    pub(crate) fn put_ended(&self, run: Run, epoch: u64, finished: Finished) {
        let trial = finished.trial.as_ref().map_or(0, |trial| trial.index);
        let progress = watch::channel(ConductProgress::default()).1;
        let entry = ConductTask::new(run, epoch, trial, Setting::default(), progress);
        entry.end(Arc::new(finished));
        self.lock().insert(entry.run.uid.clone(), Arc::new(entry));
    }
}

impl ConductTask {
    pub(crate) fn end(&self, finished: Arc<Finished>) {
        let _ = self.ended.set((Ended::Over(finished), Instant::now()));
        self.released.store(true, super::Ordering::Relaxed);
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.control.borrow().abort
    }

    pub(crate) fn may_go(&self) -> bool {
        *self.release.borrow()
    }
}
