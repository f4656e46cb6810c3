//! What a shard tells of itself, so that the load generator's limits are not taken for the target's.

use serde::{Deserialize, Serialize};

use crate::strain::Strain;
use crate::{bounded, limits};

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
    /// The same shares by the second, aligned to the start instant. Only in a full snapshot of a finished load; none where the kernel
    /// does not count a thread's times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strain: Option<Strain>,
    /// Time by which workers turned to the next request later than it was due although it could have been sent, summed up
    /// over delays of more than a millisecond and all workers: what is late for want of room in a pipeline is not in it.
    /// Open loop only.
    pub delayed_nanoseconds: u64,
    /// The longest single delay of that kind.
    pub longest_delay_nanoseconds: u64,
    /// All delays of that kind by length, those of less than a millisecond too, in the steps of [`ReceiveDelay::counts`].
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::DELAY_STEPS}>")]
    pub send_delays: Vec<u64>,
    /// Measured requests that waited for room in a pipeline, or for a connection, before they were sent. What these were late by
    /// is the target's doing, at least in part. None of a shard that does not count them.
    pub waited_for_room: Option<u64>,
    /// Of the requests that ready connections had room for, over the time in which the load sent, the share that was not in
    /// flight, in millionths: 1 - X W / (C P) with throughput X, latency W, C connections and a window of P, from exact sums.
    /// None in an open loop.
    pub idle_millionths: Option<u32>,
    /// What held up the sending of some of its connections; none where the kernel does not say.
    pub sending: Option<Sending>,
    /// The network interface that carried most while the load ran.
    pub interface: Option<Interface>,
    /// Settings of the machine when the load began. Only in a full snapshot.
    pub environment: Option<Environment>,
    /// How long replies waited in the kernel.
    pub receive_delay: Option<ReceiveDelay>,
    /// Connections that broke and were made again.
    pub reconnects: u64,
}

/// From when the kernel had the last byte of what a read took until the worker had it, on one connection in 16. The kernel
/// notes the arrival (`SO_TIMESTAMPNS`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReceiveDelay {
    /// Connections that were looked at.
    pub connections: u32,
    /// Reads by delay: step i from 0 on begins at (4 + i mod 4) * 2^(i / 4) ns; the first one at 0, and the last one does not
    /// end.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::DELAY_STEPS}>")]
    pub counts: Vec<u64>,
}

impl ReceiveDelay {
    /// Where the step ends that holds the quantile, given in millionths; none without a read.
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

    /// The sum of the delays of `least` and more, each by where its step begins: in truth it is up to a quarter more.
    pub fn waited_nanoseconds(&self, least: u64) -> u64 {
        let steps = (0..).map(delay_step).zip(&self.counts).filter(|(begin, _)| *begin >= least);
        steps.fold(0, |sum, (begin, count)| sum.saturating_add(begin.saturating_mul(*count)))
    }
}

/// Where a step of a histogram of delays begins, in nanoseconds: see [`ReceiveDelay::counts`].
pub fn delay_step(step: u64) -> u64 {
    let doubled = u32::try_from(step / 4).ok().filter(|doubled| *doubled < 61);
    doubled.map_or(u64::MAX, |doubled| (4 + step % 4) << doubled)
}

/// What held up the sending of up to 64 connections of each worker, from `TCP_INFO`, while the load sent. A share is a
/// time over that of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sending {
    /// Connections that were looked at.
    pub connections: u32,
    /// The time that the load sent, summed up over them.
    pub connection_nanoseconds: u64,
    /// Something was sent and not acknowledged yet.
    pub busy_nanoseconds: u64,
    /// Of this, held up because the target had no room to receive: it did not read.
    pub peer_limited_nanoseconds: u64,
    /// Of this, held up because the send buffer was full. The rest of the busy time was on the network, or waited there.
    pub buffer_limited_nanoseconds: u64,
}

/// Bytes on a network interface, headers and all other traffic included, from `/proc/net/dev`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interface {
    /// Which network of the machine it belongs to: shards with the same number share its counters. 0 if the kernel does not
    /// tell.
    pub network: u64,
    /// Its name.
    #[serde(deserialize_with = "bounded::name")]
    pub name: String,
    /// The time over which it was watched.
    pub nanoseconds: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// The rate of the 100 ms in which it received most.
    pub busiest_received_bytes_per_second: u64,
    /// The rate of the 100 ms in which it sent most.
    pub busiest_sent_bytes_per_second: u64,
    /// In four of five intervals of 100 ms from the start on it received at this rate or more.
    pub sustained_received_bytes_per_second: u64,
    /// The same of what it sent.
    pub sustained_sent_bytes_per_second: u64,
}

impl Interface {
    /// What Linux calls the interface of what stays within a machine.
    pub const LOOPBACK: &str = "lo";
}

/// Settings of a machine that a result may depend on. None where they could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Environment {
    /// The soft limit of open files; none also if there is no limit.
    pub open_files_soft: Option<u64>,
    /// The hard limit of open files; none also if there is no limit.
    pub open_files_hard: Option<u64>,
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// `net.ipv4.tcp_congestion_control`.
    #[serde(deserialize_with = "bounded::optional_name")]
    pub congestion_control: Option<String>,
    /// The choice in `/sys/kernel/mm/transparent_hugepage/enabled`.
    #[serde(deserialize_with = "bounded::optional_name")]
    pub transparent_huge_pages: Option<String>,
}
