//! What goes on beside the driver and tells it something.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// One look at a target is told before the next begins.
const WAITING: usize = 4;

/// Something under way that tells `T`. Dropping it ends it.
#[derive(Debug)]
pub struct Background<T> {
    results: mpsc::Receiver<T>,
    task: JoinHandle<()>,
}

impl<T: Send + 'static> Background<T> {
    /// Begins `work` with `spawn`. So many results may wait to be heard as one look at a target tells.
    pub fn begin<F>(spawn: impl FnOnce(F) -> JoinHandle<()>, work: impl FnOnce(mpsc::Sender<T>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, results) = mpsc::channel(WAITING);
        Self { results, task: spawn(work(sender)) }
    }

    /// The next result; none once it has ended.
    pub async fn next(&mut self) -> Option<T> {
        self.results.recv().await
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
