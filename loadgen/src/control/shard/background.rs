//! Tasks that run beside the shard's loop and report results to it.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Capacity of the results channel. A look at a target finishes before the next begins, so few results wait.
const WAITING: usize = 4;

/// A running task that reports `T`. Dropping this aborts it.
#[derive(Debug)]
pub struct Background<T> {
    results: mpsc::Receiver<T>,
    task: JoinHandle<()>,
}

impl<T: Send + 'static> Background<T> {
    /// Starts `work` with `spawn`.
    pub fn begin<F>(spawn: impl FnOnce(F) -> JoinHandle<()>, work: impl FnOnce(mpsc::Sender<T>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, results) = mpsc::channel(WAITING);
        Self { results, task: spawn(work(sender)) }
    }

    /// The next result, or `None` once the task has ended.
    pub async fn next(&mut self) -> Option<T> {
        self.results.recv().await
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
