//! The place of a worker among all of the benchmark.

/// One of N shards and one of its W workers. Local request j belongs to worker `j mod W`, and is request `k = j*N + i` of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// The shard, i.
    pub shard: u32,
    /// N.
    pub shards: u32,
    /// The worker, w.
    pub worker: u32,
    /// W.
    pub workers: u32,
}

impl Seat {
    /// This worker's first request.
    pub fn first(self) -> u64 {
        u64::from(self.worker) * u64::from(self.shards) + u64::from(self.shard)
    }

    /// The distance between its consecutive requests.
    pub fn step(self) -> u64 {
        u64::from(self.workers) * u64::from(self.shards)
    }

    /// Returns whether the worker takes the requests of `lane`.
    pub fn has(self, lane: u64) -> bool {
        lane % self.step().max(1) == self.first()
    }

    /// The number of `lane` among those of the worker.
    pub fn own_lane(self, lane: u64) -> u64 {
        lane / self.step().max(1)
    }

    /// The number of the shard's `count` local requests from `first` on that are this worker's.
    pub fn share(self, first: u64, count: u64) -> u64 {
        let workers = u64::from(self.workers);
        // The offset of this worker's first request from `first`.
        let place = (u64::from(self.worker) + workers - first % workers) % workers;
        count / workers + u64::from(place < count % workers)
    }
}
