//! What a shard tells of itself, so that the load generator's limits are not taken for the target's.

use serde::{Deserialize, Serialize};

use crate::bounded;

/// What the load generator measured of itself during its load, warm-up included. What a shard does not say, as one of an
/// earlier version may not, is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Generator {
    /// The machine's name, the Kubernetes node if known.
    #[serde(deserialize_with = "bounded::name")]
    pub host: String,
    /// Workers of this shard.
    pub workers: u32,
    /// Wall time of the load so far, of the worker whose load took longest.
    pub load_nanoseconds: u64,
    /// CPU time of the busiest worker over the wall time of its load so far, in millionths.
    pub busiest_worker_millionths: u32,
    /// Time that a worker was ready and had no processor, over the wall time of its load so far, in millionths: of the
    /// worker that waited longest. From `/proc/thread-self/schedstat`.
    pub longest_waiting_worker_millionths: u32,
    /// CPU time of all workers.
    pub cpu_nanoseconds: u64,
    /// Time that all workers together were ready and had no processor.
    pub run_queue_nanoseconds: u64,
    /// Time for which a CPU quota held the process's cgroup back, over all its threads. From `cpu.stat`.
    pub throttled_nanoseconds: u64,
    /// Processors of the machine.
    pub processors: u32,
    /// Time that a hypervisor gave to other machines, over all processors. From `/proc/stat`.
    pub stolen_nanoseconds: u64,
    /// Time by which workers turned to the next request later than it was due although it could have been sent, summed up
    /// over delays of more than a millisecond and all workers: what is late for want of room in a pipeline is not in it.
    /// Open loop only.
    pub delayed_nanoseconds: u64,
    /// The longest single delay of that kind.
    pub longest_delay_nanoseconds: u64,
    /// Connections that broke and were made again.
    pub reconnects: u64,
}
