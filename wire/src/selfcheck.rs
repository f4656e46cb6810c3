//! The load generator's measurements of itself, so that its limits are not mistaken for the target's.

use serde::{Deserialize, Serialize};

use crate::strain::Strain;
use crate::{bounded, limits};

/// The load generator's measurements of itself during its load, warm-up included. Fields that an older shard does not send are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Generator {
    /// The name of the machine, or of the Kubernetes node if known.
    #[serde(deserialize_with = "bounded::name")]
    pub host: String,
    /// Workers of this shard.
    pub workers: u32,
    /// Wall time of the load so far: the longest of all workers.
    pub load_nanoseconds: u64,
    /// CPU time of the busiest worker over the wall time of its load so far, in millionths.
    pub busiest_worker_millionths: u32,
    /// Run-queue wait of the worker that waited longest (runnable without a CPU), over the wall time of its load so far, in millionths.
    /// From `/proc/thread-self/schedstat`.
    pub longest_waiting_worker_millionths: u32,
    /// CPU time of all workers.
    pub cpu_nanoseconds: u64,
    /// Run-queue wait of all workers together.
    pub run_queue_nanoseconds: u64,
    /// Time for which the CPU quota throttled the process's cgroup, over all its threads. From `cpu.stat`.
    pub throttled_nanoseconds: u64,
    /// Number of the machine's processors.
    pub processors: u32,
    /// Steal time over all processors. From `/proc/stat`.
    pub stolen_nanoseconds: u64,
    /// The same shares by the second, from the start instant. Only in a full snapshot of a finished load. None if the kernel does not count
    /// the times of threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strain: Option<Strain>,
    /// Total time by which workers turned to the next request later than it was due although it could have been sent. Sums the delays above
    /// one millisecond over all workers. Excludes waits for room in a pipeline. Open loop only.
    pub delayed_nanoseconds: u64,
    /// The longest of these delays.
    pub longest_delay_nanoseconds: u64,
    /// All these delays by length, including those below one millisecond, in the steps of [`ReceiveDelay::counts`].
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::DELAY_STEPS}>")]
    pub send_delays: Vec<u64>,
    /// Measured requests that waited for room in a pipeline, or for a connection, before they were sent. The target caused their lateness
    /// at least in part. None if the shard does not count them.
    pub waited_for_room: Option<u64>,
    /// The unused share of the requests that ready connections had room for while the load was sending, in millionths: 1 - X W / (C P) with
    /// throughput X, latency W, C connections and a window of P, from exact sums. None in an open loop.
    pub idle_millionths: Option<u32>,
    /// Limits of sending on some connections. None if the kernel does not report it.
    pub sending: Option<Sending>,
    /// The network interface with the most traffic during the load.
    pub interface: Option<Interface>,
    /// The machine's settings when the load began. Only in a full snapshot.
    pub environment: Option<Environment>,
    /// The time for which replies waited in the kernel. None if that is unknown, as on UNIX sockets and with client libraries.
    pub receive_delay: Option<ReceiveDelay>,
    /// Connections that broke and were reopened.
    pub reconnects: u64,
}

/// Delay from the arrival of the last byte of a read in the kernel (`SO_TIMESTAMPNS`) until the worker had it. Measured on one connection
/// in 16.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReceiveDelay {
    /// The number of connections measured.
    pub connections: u32,
    /// Reads by delay. Step i, from 0, begins at (4 + i mod 4) * 2^(i / 4) ns; the first begins at 0, and the last has no end.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::DELAY_STEPS}>")]
    pub counts: Vec<u64>,
}

impl ReceiveDelay {
    /// The upper end of the step that contains the quantile, which is given in millionths. None if there are no reads.
    pub fn quantile_nanoseconds(&self, millionths: u32) -> Option<u64> {
        let all = self.counts.iter().fold(0_u128, |sum, count| sum + u128::from(*count));
        let rank = (all * u128::from(millionths)).div_ceil(1_000_000).max(1);
        let mut sum = 0_u128;
        let step = self.counts.iter().position(|count| {
            sum += u128::from(*count);
            sum >= rank
        })?;
        Some(delay_step(step as u64 + 1))
    }

    /// The sum of the delays of at least `least`, each counted as the beginning of its step. The true sum is up to a quarter higher.
    pub fn waited_nanoseconds(&self, least: u64) -> u64 {
        let steps = (0..).map(delay_step).zip(&self.counts).filter(|(begin, _)| *begin >= least);
        steps.fold(0, |sum, (begin, count)| sum.saturating_add(begin.saturating_mul(*count)))
    }
}

/// The beginning of a step of a histogram of delays, in nanoseconds: see [`ReceiveDelay::counts`].
pub fn delay_step(step: u64) -> u64 {
    let doubled = u32::try_from(step / 4).ok().filter(|doubled| *doubled < 61);
    doubled.map_or(u64::MAX, |doubled| (4 + step % 4) << doubled)
}

/// Limits of sending, from `TCP_INFO` of up to 64 connections of each worker, while the load was sending. A share is a time divided by
/// that of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sending {
    /// The number of connections measured.
    pub connections: u32,
    /// The time during which the load was sending, summed over these connections.
    pub connection_nanoseconds: u64,
    /// The time with sent but unacknowledged data.
    pub busy_nanoseconds: u64,
    /// Part of the busy time: limited by the peer's receive window, because the target did not read.
    pub peer_limited_nanoseconds: u64,
    /// Part of the busy time: limited by a full send buffer. The rest of the busy time is spent in the network or waiting for it.
    pub buffer_limited_nanoseconds: u64,
}

/// Traffic of a network interface, including headers and other programs, from `/proc/net/dev`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interface {
    /// The machine's network that it belongs to: shards with the same number share its counters. 0 if the kernel does not report it.
    pub network: u64,
    /// Its name.
    #[serde(deserialize_with = "bounded::name")]
    pub name: String,
    /// The observed time.
    pub nanoseconds: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// The receive rate of the busiest 100 ms.
    pub busiest_received_bytes_per_second: u64,
    /// The send rate of the busiest 100 ms.
    pub busiest_sent_bytes_per_second: u64,
    /// The receive rate that four of five intervals of 100 ms reached, from the start on.
    pub sustained_received_bytes_per_second: u64,
    /// The send rate that four of five intervals of 100 ms reached, from the start on.
    pub sustained_sent_bytes_per_second: u64,
}

impl Interface {
    /// Linux's name of the loopback interface.
    pub const LOOPBACK: &str = "lo";
}

/// Settings of a machine that may influence a result. None where they could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Environment {
    /// The soft limit of open files. None also if it is unlimited.
    pub open_files_soft: Option<u64>,
    /// The hard limit of open files. None also if it is unlimited.
    pub open_files_hard: Option<u64>,
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// `net.ipv4.tcp_congestion_control`.
    #[serde(deserialize_with = "bounded::optional_name")]
    pub congestion_control: Option<String>,
    /// The setting of `/sys/kernel/mm/transparent_hugepage/enabled`.
    #[serde(deserialize_with = "bounded::optional_name")]
    pub transparent_huge_pages: Option<String>,
}
