//! Memory for final snapshots, shared by all benchmarks of a process. A final snapshot may be 100 times as long as a live one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// For final snapshots that are being read and parsed.
const READING_BYTES: usize = 64 << 20;
/// For those that are kept until their trial is merged, so that the full result has a record of each shard.
const KEPT_BYTES: usize = 64 << 20;
/// The most that one trial keeps. Beyond it, its snapshots are merged as they arrive.
const KEPT_BYTES_PER_TRIAL: usize = 16 << 20;
/// Permits of the semaphores are of this size.
const UNIT: usize = 1 << 10;

/// Bounds the memory for final snapshots.
#[derive(Debug)]
pub struct ResultMemory {
    reading: Semaphore,
    kept: Arc<Semaphore>,
    /// Permits of both in all.
    units: [usize; 2],
    waiting: AtomicUsize,
    /// The most that one trial keeps.
    per_trial: usize,
}

impl Default for ResultMemory {
    fn default() -> Self {
        Self::new(READING_BYTES, KEPT_BYTES, KEPT_BYTES_PER_TRIAL)
    }
}

impl ResultMemory {
    pub(crate) fn new(reading: usize, kept: usize, per_trial: usize) -> Self {
        let units = [reading / UNIT, kept / UNIT];
        Self {
            reading: Semaphore::new(units[0]),
            kept: Arc::new(Semaphore::new(units[1])),
            units,
            waiting: AtomicUsize::new(0),
            per_trial,
        }
    }

    /// Bytes that are reserved: for reading, and for kept snapshots.
    pub fn used(&self) -> [usize; 2] {
        let free = [self.reading.available_permits(), self.kept.available_permits()];
        [0, 1].map(|part| self.units[part].saturating_sub(free[part]) * UNIT)
    }

    /// Final snapshots that wait to be read.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// One benchmark's access to the memory for reading. It gets at most half, so that the others can read while it reads from all its shards.
#[derive(Debug)]
pub struct Reader {
    memory: Arc<ResultMemory>,
    own: Semaphore,
    units: usize,
}

/// Memory that is reserved until this is dropped.
pub type Reading<'a> = [SemaphorePermit<'a>; 2];

impl Reader {
    pub fn of(memory: Arc<ResultMemory>) -> Self {
        let units = memory.units[0] / 2;
        Self { memory, own: Semaphore::new(units), units }
    }

    /// The most bytes that one answer can reserve.
    pub fn most(&self) -> usize {
        self.units * UNIT
    }

    /// Waits for `bytes` to read a snapshot into, or for [`Self::most`] if that is less.
    pub async fn read(&self, bytes: usize) -> Option<Reading<'_>> {
        let units = units(bytes.min(self.most()));
        // Its own part first, so that a reader with memory of all never waits.
        let free = || Some([self.own.try_acquire_many(units).ok()?, self.memory.reading.try_acquire_many(units).ok()?]);
        if let Some(permits) = free() {
            return Some(permits);
        }
        let _waiting = Waiting::new(&self.memory.waiting);
        // The semaphores are never closed.
        let own = self.own.acquire_many(units).await.ok()?;
        Some([own, self.memory.reading.acquire_many(units).await.ok()?])
    }
}

/// Counts a caller that waits, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The memory of a trial's kept snapshots. It is given back when the last clone is dropped.
#[derive(Clone, Default)]
pub struct Kept {
    permits: Vec<Arc<OwnedSemaphorePermit>>,
    bytes: usize,
}

impl Kept {
    /// Reserves `bytes` more. Returns false if the trial or the process has no room for them.
    pub fn grow(&mut self, memory: &ResultMemory, bytes: usize) -> bool {
        if self.bytes + bytes > memory.per_trial {
            return false;
        }
        let Ok(permit) = Arc::clone(&memory.kept).try_acquire_many_owned(units(bytes)) else { return false };
        self.permits.push(Arc::new(permit));
        self.bytes += bytes;
        true
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Kept({} bytes)", self.bytes)
    }
}

/// The memory says nothing about an outcome.
impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_waits_until_another_has_finished() {
        let memory = Arc::new(ResultMemory::new(2 << 20, 0, 0));
        let reader = Reader::of(memory.clone());
        let first = reader.read(800 << 10).await;
        assert!(tokio::time::timeout(Duration::from_secs(1), reader.read(300 << 10)).await.is_err());
        // Who gave up waiting is not counted.
        assert_eq!(memory.waiting(), 0);
        let second = reader.read(300 << 10);
        tokio::pin!(second);
        assert!(tokio::time::timeout(Duration::from_secs(1), second.as_mut()).await.is_err());
        assert_eq!(memory.waiting(), 1);
        drop(first);
        assert!(second.await.is_some());
        assert_eq!(memory.waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_benchmark_reads_into_half_of_the_memory() {
        let memory = Arc::new(ResultMemory::new(2 << 20, 0, 0));
        let [one, other, third] = [(); 3].map(|()| Reader::of(memory.clone()));
        let waits =
            async |reader: &Reader| tokio::time::timeout(Duration::from_secs(1), reader.read(1 << 10)).await.is_err();
        let long = one.read(100 << 20).await;
        assert_eq!(memory.used()[0], 1 << 20);
        assert!(waits(&one).await && !waits(&other).await);
        let _all = other.read(1 << 20).await;
        assert!(waits(&third).await);
        drop(long);
        assert!(!waits(&third).await && !waits(&one).await);
    }

    #[test]
    fn a_trial_and_a_process_keep_a_bounded_part() {
        let memory = ResultMemory::new(0, 4 << 10, 3 << 10);
        let (mut one, mut other) = (Kept::default(), Kept::default());
        assert!(one.grow(&memory, 3 << 10));
        assert!(!one.grow(&memory, 1));
        assert!(!other.grow(&memory, 2 << 10));
        let clone = one.clone();
        drop(one);
        assert!(!other.grow(&memory, 2 << 10));
        drop(clone);
        assert!(other.grow(&memory, 2 << 10));
    }
}
