//! Fake conducting tasks for tests.

use super::{
    Arc, AtomicBool, ConductTask, Ended, Finished, Instant, Mutex, OnceLock, Progress, Run, Setting, TaskRegistry,
    watch,
};

impl TaskRegistry {
    /// A task whose progress the test sets through the returned sender.
    pub(crate) fn put_running(&self, run: Run, epoch: u64, progress: Progress) -> watch::Sender<Progress> {
        let trial = progress.trial;
        let (publish, progress) = watch::channel(progress);
        let entry = ConductTask {
            run,
            presence: watch::Sender::default(),
            control: watch::Sender::default(),
            release: watch::Sender::default(),
            progress,
            ended: OnceLock::new(),
            epoch,
            trial,
            setting: Setting { trial, ..Setting::default() },
            superseded: OnceLock::new(),
            released: AtomicBool::new(false),
            state: Mutex::default(),
            task: OnceLock::new(),
        };
        self.lock().insert(entry.run.uid.clone(), Arc::new(entry));
        publish
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
