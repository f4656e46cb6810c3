//! Connections that calls take in turn.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::outcome::CallError;

/// Connections of a library whose handles are cheap to clone.
#[derive(Debug)]
pub enum Turns<C> {
    /// Each call uses the next one, however many use it already.
    Shared { all: Box<[C]>, next: AtomicUsize },
    /// A connection has one call at a time; others wait until one is free.
    Exclusive { free: Mutex<Vec<C>>, permits: Semaphore },
}

impl<C: Clone> Turns<C> {
    pub fn shared(all: Vec<C>) -> Self {
        Self::Shared { all: all.into(), next: AtomicUsize::new(0) }
    }

    pub fn exclusive(all: Vec<C>) -> Self {
        let permits = Semaphore::new(all.len());
        Self::Exclusive { free: Mutex::new(all), permits }
    }

    /// A connection for one call.
    ///
    /// # Errors
    /// Fails if none is free within `patience`.
    pub async fn take(&self, patience: Duration) -> Result<Turn<'_, C>, CallError> {
        let none = || CallError::connection("no connection").unsent();
        match self {
            Self::Shared { all, next } => {
                let connection = all.get(next.fetch_add(1, Relaxed) % all.len().max(1)).cloned();
                Ok(Turn { connection: Some(connection.ok_or_else(none)?), back: None })
            }
            Self::Exclusive { free, permits } => {
                let permit = match permits.try_acquire() {
                    Ok(permit) => permit,
                    Err(_) => timeout(patience, permits.acquire())
                        .await
                        .map_err(|_| CallError::timeout("no connection was free in time").unsent())?
                        .map_err(|_| none())?,
                };
                let connection = lock(free).pop();
                Ok(Turn { connection: Some(connection.ok_or_else(none)?), back: Some((free, permit)) })
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection during one call. Dropping it gives it back.
pub struct Turn<'a, C> {
    /// Set until dropped.
    connection: Option<C>,
    back: Option<(&'a Mutex<Vec<C>>, SemaphorePermit<'a>)>,
}

impl<C> Drop for Turn<'_, C> {
    fn drop(&mut self) {
        // The permit is released after the connection is back.
        if let (Some((free, _permit)), Some(connection)) = (self.back.take(), self.connection.take()) {
            lock(free).push(connection);
        }
    }
}

impl<C> Turn<'_, C> {
    /// # Errors
    /// Never fails: a turn has its connection until it is dropped.
    pub fn connection(&mut self) -> Result<&mut C, CallError> {
        self.connection.as_mut().ok_or_else(|| CallError::connection("no connection"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn shared_connections_go_round_and_exclusive_ones_wait() {
        let shared = Turns::shared(vec![1, 2]);
        for expected in [1, 2, 1] {
            assert_eq!(shared.take(PATIENCE).await.unwrap().connection(), Ok(&mut { expected }));
        }
        let exclusive = Turns::exclusive(vec![1]);
        let first = exclusive.take(PATIENCE).await.unwrap();
        // The clock of this test moves on once nothing else can run.
        let late = exclusive.take(PATIENCE).await.err().unwrap();
        assert_eq!((late.kind.as_str(), late.answered), ("Timeout", false));
        let second = exclusive.take(PATIENCE);
        drop(first);
        assert_eq!(second.await.unwrap().connection(), Ok(&mut 1));
    }
}
