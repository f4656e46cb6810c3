//! Reasons that the counts of a running measurement already give. The others need the whole measurement.

use std::collections::BTreeMap;
use std::time::Duration;

use redisbench_wire::snapshot::Tally;
use redisbench_wire::topology::Outage;

use super::generator::{Machine, crowded};
use super::reason::reason;
use super::thresholds::{BUSY, WAITING};
use super::{errors, servers, start_skew, strain};
use crate::api::status::{Lack, ReasonKind, VerdictReason, VerdictValue};
use crate::human;
use crate::measurement::topology::MergedTopology;

/// Requests before shares of processor time are judged: until then, the start of a worker decides them.
const REQUIRED: u64 = 1_000;

/// Counts of a running measurement.
#[derive(Debug)]
pub(crate) struct SoFar<'a> {
    pub tally: &'a Tally,
    /// The kind of the most frequent errors.
    pub most_frequent: Option<&'a str>,
    pub topology: &'a MergedTopology,
    /// Shards of the trial.
    pub shards: usize,
    pub lost: usize,
    pub start_skew: Option<Duration>,
    pub max_start_skew: Duration,
    /// One entry per shard.
    pub processors: Vec<&'a ShardProcessors>,
}

/// Processor time of a shard since the start of its load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardProcessors {
    /// The name of its machine; empty if unknown.
    pub host: String,
    /// Processors of the machine.
    pub processors: u32,
    /// Length of the load.
    pub load_nanoseconds: u64,
    /// Run-queue wait of all its workers together.
    pub waited_nanoseconds: u64,
    /// CPU time of the busiest worker over the wall time.
    pub busiest_worker_millionths: u32,
    /// Run-queue wait of the worker that waited longest, over the wall time.
    pub run_queue_millionths: u32,
}

/// In the order of [`super::verdict`].
pub(crate) fn so_far(counted: &SoFar) -> Vec<VerdictReason> {
    let reasons = [
        lost(counted),
        start_skew(counted.max_start_skew, counted.start_skew, counted.topology),
        errors(counted.tally, 0, counted.most_frequent.map(str::to_owned)),
        unavailable(counted.topology),
        servers::topology_changed(counted.topology, u64::MAX),
        processors(counted),
    ];
    reasons.into_iter().flatten().collect()
}

fn lost(counted: &SoFar) -> Option<VerdictReason> {
    let (shards, are) = (human::counted(counted.shards as u64, "shard"), human::are(counted.shards as u64));
    let message = format!("{} of {shards} {are} lost, with their measurements", counted.lost);
    (counted.lost > 0).then(|| reason(ReasonKind::ShardLost, VerdictValue::Invalid, &message))
}

fn unavailable(topology: &MergedTopology) -> Option<VerdictReason> {
    let longest = topology.outages_within(u64::MAX).max_by_key(Outage::nanoseconds)?;
    let message =
        format!("no replies for {} from {}; see status.topology", human::latency(longest.nanoseconds()), longest.node);
    Some(reason(ReasonKind::Unavailable, VerdictValue::Degraded, &message))
}

/// A shard lacks processor time by its own workers, or because all workers on its machine together wait for too long.
fn processors(counted: &SoFar) -> Option<VerdictReason> {
    if counted.tally.scheduled < REQUIRED {
        return None;
    }
    let crowds = crowds(&counted.processors);
    let lacking = |shard: &&ShardProcessors| {
        u64::from(shard.busiest_worker_millionths) >= BUSY
            || u64::from(shard.run_queue_millionths) > WAITING
            || crowds.contains_key(shard.host.as_str())
    };
    let lacking: Vec<_> = counted.processors.iter().copied().filter(lacking).collect();
    if lacking.is_empty() {
        return None;
    }
    let percent =
        |share: fn(&ShardProcessors) -> u32| lacking.iter().map(|shard| share(shard)).max().unwrap_or(0) / 10_000;
    let worst = crowds.iter().max_by_key(|(_, share)| **share);
    let message = format!(
        "{} of {} shards lack processor time so far: a worker ran for up to {} % of the time, and waited for a processor \
         for up to {} %{}",
        lacking.len(),
        counted.shards,
        percent(|shard| shard.busiest_worker_millionths),
        percent(|shard| shard.run_queue_millionths),
        worst.map_or_else(String::new, |(host, share)| format!("; {}", crowded(host, *share)))
    );
    Some(reason(ReasonKind::GeneratorCPU, VerdictValue::Degraded, &message))
}

/// Machines whose processors are crowded, and their waiting workers per processor in millionths. The waits of all shards are added up, so
/// the number of shards on a machine does not matter.
fn crowds<'a>(shards: &[&'a ShardProcessors]) -> BTreeMap<&'a str, u64> {
    let mut machines = BTreeMap::<&str, Machine>::new();
    for &shard in shards {
        let machine = machines.entry(shard.host.as_str()).or_default();
        machine.add(shard.waited_nanoseconds, shard.load_nanoseconds, shard.processors);
    }
    // Shards of unknown machines are not assumed to share one.
    machines.remove("");
    let crowds = machines.into_iter().map(|(host, machine)| (host, machine.crowd()));
    crowds.filter(|(_, share)| *share >= strain::bound(Lack::Machine)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The reasons of 100,000 requests on two shards, `failed` of which failed, with these shares of processor time of one shard.
    fn reasons(scheduled: u64, failed: u64, lost: usize, skew: u64, processors: (u32, u32)) -> Vec<ReasonKind> {
        let tally = Tally { scheduled, succeeded: scheduled - failed, errors: failed, ..Tally::default() };
        let shard = |(busiest_worker_millionths, run_queue_millionths)| ShardProcessors {
            busiest_worker_millionths,
            run_queue_millionths,
            ..ShardProcessors::default()
        };
        let shards = [shard((500_000, 0)), shard(processors)];
        let counted = SoFar {
            tally: &tally,
            most_frequent: Some("Timeout"),
            topology: &MergedTopology::default(),
            shards: 2,
            lost,
            start_skew: Some(Duration::from_millis(skew)),
            max_start_skew: Duration::from_millis(10),
            processors: shards.iter().collect(),
        };
        so_far(&counted).into_iter().map(|reason| reason.reason).collect()
    }

    #[test]
    fn a_run_gives_no_reason_until_there_is_one() {
        assert_eq!(reasons(100_000, 0, 0, 1, (900_000, 100_000)), []);
        assert_eq!(reasons(100_000, 0, 1, 1, (0, 0)), [ReasonKind::ShardLost]);
        assert_eq!(reasons(100_000, 0, 0, 1_000, (0, 0)), [ReasonKind::StartSkew]);
        assert_eq!(reasons(100_000, 11, 0, 1, (0, 0)), [ReasonKind::Errors]);
        assert_eq!(reasons(100_000, 0, 0, 1, (960_000, 0)), [ReasonKind::GeneratorCPU]);
        assert_eq!(reasons(100_000, 0, 0, 1, (0, 300_000)), [ReasonKind::GeneratorCPU]);
        assert_eq!(reasons(999, 0, 0, 1, (1_000_000, 0)), [], "the start of a worker decides its share");
    }

    /// The message about shards that ran for ten seconds on machines of four processors, and waited for this share of the time each.
    fn waiting<'a>(waited_millionths: u32, hosts: impl Iterator<Item = &'a str>) -> Option<String> {
        let shard = |host: &str| ShardProcessors {
            host: host.to_owned(),
            processors: 4,
            load_nanoseconds: 10 * SECOND,
            waited_nanoseconds: u64::from(waited_millionths) * 10 * SECOND / 1_000_000,
            busiest_worker_millionths: 20_000,
            run_queue_millionths: waited_millionths,
        };
        let processors: Vec<_> = hosts.map(shard).collect();
        let counted = SoFar {
            tally: &Tally { scheduled: 100_000, succeeded: 100_000, ..Tally::default() },
            most_frequent: None,
            topology: &MergedTopology::default(),
            shards: processors.len(),
            lost: 0,
            start_skew: None,
            max_start_skew: Duration::from_millis(10),
            processors: processors.iter().collect(),
        };
        let mut reasons = so_far(&counted);
        assert!(reasons.len() <= 1, "{reasons:?}");
        let reason = reasons.pop()?;
        assert_eq!((reason.reason, reason.severity), (ReasonKind::GeneratorCPU, VerdictValue::Degraded));
        Some(reason.message)
    }

    #[test]
    fn what_the_shards_of_a_machine_wait_adds_up_while_they_run() {
        let on = |host, count| std::iter::repeat_n(host, count);
        let expected = "200 of 200 shards lack processor time so far: a worker ran for up to 2 % of the time, and waited for \
             a processor for up to 5 %; on n1 2.50 workers waited for each processor on average";
        assert_eq!(waiting(50_000, on("n1", 200)).as_deref(), Some(expected));
        assert_eq!(waiting(50_000, on("n1", 2)), None);
        assert_eq!(waiting(50_000, on("", 200)), None, "machines that are unknown");
        let names: Vec<String> = (0..200).map(|machine| format!("n{machine}")).collect();
        assert_eq!(waiting(50_000, names.iter().map(String::as_str)), None, "a machine for each");
        // The bound does not depend on the number of shards: a fifth of the time of four processors.
        assert!(waiting(200_000, on("n1", 4)).is_some());
        assert_eq!(waiting(199_999, on("n1", 4)), None);
        assert!(waiting(4_000, on("n1", 200)).is_some());
        assert_eq!(waiting(3_999, on("n1", 200)), None);
        // Only those of the crowded machine lack time.
        let mixed = waiting(50_000, on("n1", 200).chain(on("n2", 2))).unwrap();
        assert!(mixed.starts_with("200 of 202 shards lack processor time"), "{mixed}");
    }
}
