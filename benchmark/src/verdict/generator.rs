//! What the load generator found of itself: whether a shard was the limit, rather than the target.

use std::collections::BTreeMap;

use redisbench_wire::snapshot::{Generator, Snapshot, delay_step};

use super::thresholds::{BUSY, HELD, LATE, STOLEN, THROTTLED, USED_UP, WAITING};
use super::{reason, shards};
use crate::api::status::{ReasonKind, VerdictReason, VerdictValue};
use crate::conductor::{Outcome, ShardOutcome};
use crate::merge::Merged;
use crate::{people, stats};

/// In millionths.
const P99: u32 = 990_000;
const MILLION: u64 = 1_000_000;

/// Shares of a shard's load, in millionths.
struct Processor {
    busy: u64,
    waiting: u64,
    /// Of the waiting, what a quota explains.
    throttled: u64,
    stolen: u64,
    /// What all workers on its machine waited together, over the time of the machine's processors.
    crowded: u64,
}

/// What the workers of all shards on a machine waited for its processors, over the time of these, in millionths. With many
/// shards none of them need wait for long: each has little to do, and all of it waits for the others.
struct Machines<'a>(BTreeMap<&'a str, u64>);

impl<'a> Machines<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        let mut sums = BTreeMap::<&str, (u64, u64)>::new();
        let generators = outcome.shards.iter().filter_map(|shard| shard.snapshot.as_ref());
        for generator in generators.map(|snapshot| &snapshot.generator).filter(|generator| !generator.host.is_empty()) {
            let (waited, time) = sums.entry(&generator.host).or_default();
            *waited = waited.saturating_add(generator.run_queue_nanoseconds);
            *time = generator.load_nanoseconds.saturating_mul(generator.processors.max(1).into()).max(*time);
        }
        Self(sums.into_iter().map(|(host, (waited, time))| (host, share(waited, time))).collect())
    }

    fn waited(&self, generator: &Generator) -> u64 {
        self.0.get(generator.host.as_str()).copied().unwrap_or_default()
    }
}

impl Processor {
    fn of(generator: &Generator, crowded: u64) -> Self {
        // A shard that never began has nothing to show.
        let of = |part: u64, processors: u64| match generator.load_nanoseconds {
            0 => 0,
            load => share(part, load.saturating_mul(processors)),
        };
        let waiting = generator.longest_waiting_worker_millionths.into();
        // The kernel adds up over all processors, and counts threads that make no requests too: a worker lost no more by it than
        // it waited at all. A worker that never waited for a nanosecond has a kernel that does not say.
        let waited_at_most = if generator.run_queue_nanoseconds > 0 { waiting } else { u64::MAX };
        Self {
            busy: generator.busiest_worker_millionths.into(),
            waiting,
            throttled: of(generator.throttled_nanoseconds, 1).min(waited_at_most),
            stolen: of(generator.stolen_nanoseconds, generator.processors.max(1).into()),
            crowded,
        }
    }

    /// How far beyond its bound each of these is, in hundredths of the bound; from 100 on it is.
    fn severities(&self) -> [u64; 5] {
        let bounds = [
            (self.busy, BUSY),
            (self.waiting, WAITING),
            (self.throttled, THROTTLED),
            (self.stolen, STOLEN),
            (self.crowded, WAITING),
        ];
        bounds.map(|(share, bound)| share.saturating_mul(100) / bound)
    }

    /// The worst of them.
    fn severity(&self) -> u64 {
        self.severities().into_iter().max().unwrap_or_default()
    }

    /// Whether a worker hardly ever slept: it ran, or had something to do and waited for a processor, or for its quota. All the
    /// time that it got was used.
    fn is_used_up(&self) -> bool {
        self.busy.saturating_add(self.waiting.max(self.throttled)) >= USED_UP
    }

    /// What was found, the worst first: it must be in a message that was cut.
    fn evidence(&self, generator: &Generator) -> Vec<String> {
        let percent = |share: u64| format!("{} %", share / 10_000);
        let [busy, waiting, throttled, stolen, crowded] = self.severities();
        let mut found = vec![(busy, format!("its busiest worker ran for {} of the load", percent(self.busy)))];
        if self.waiting >= MILLION / 100 {
            found.push((waiting, format!("a worker waited for a processor for {} of the load", percent(self.waiting))));
        }
        if generator.throttled_nanoseconds > 0 {
            let held = people::latency(generator.throttled_nanoseconds);
            let load = people::latency(generator.load_nanoseconds);
            found.push((throttled, format!("its CPU limit held it back for {held} in {load}")));
        }
        if self.stolen >= MILLION / 100 {
            found.push((stolen, format!("the hypervisor gave {} of its machine to others", percent(self.stolen))));
        }
        if crowded >= 100 {
            let of = f64::from(u32::try_from(self.crowded).unwrap_or(u32::MAX)) / 1e6;
            found.push((
                crowded,
                format!(
                    "on {} {of:.2} workers waited for each processor on the mean",
                    people::cut(&generator.host, 128)
                ),
            ));
        }
        found.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        found.into_iter().map(|(_, text)| text).collect()
    }
}

/// Machine time that went to other machines while the shard's load ran, in per cent of all its processors.
pub fn stolen_percent(generator: &Generator) -> u32 {
    u32::try_from(Processor::of(generator, 0).stolen.min(MILLION) / 10_000).unwrap_or(u32::MAX)
}

/// Shards that lacked processor time, the worst first.
fn short_of_cpu(outcome: &Outcome) -> Vec<(&ShardOutcome, &Snapshot, Processor)> {
    let machines = Machines::of(outcome);
    let with_evidence = outcome.shards.iter().filter_map(|shard| {
        let snapshot = shard.snapshot.as_ref()?;
        let processor = Processor::of(&snapshot.generator, machines.waited(&snapshot.generator));
        (processor.severity() >= 100).then_some((shard, snapshot, processor))
    });
    let mut short: Vec<_> = with_evidence.collect();
    short.sort_by_key(|(_, _, processor)| std::cmp::Reverse(processor.severity()));
    short
}

/// Whether the load generator's processors kept the throughput from being higher: half of the shards or more used all the
/// processor time that they got. A shard that lacked time and slept nevertheless waited for something else as well.
pub(super) fn is_limit(outcome: &Outcome) -> bool {
    let used_up = short_of_cpu(outcome).into_iter().filter(|(_, _, processor)| processor.is_used_up());
    2 * used_up.count() >= outcome.shards.len().max(1)
}

/// Whether half of the shards or more had a worker with nothing left to give.
pub(super) fn is_busy(outcome: &Outcome) -> bool {
    let busy = short_of_cpu(outcome).into_iter().filter(|(_, _, processor)| processor.busy >= BUSY);
    2 * busy.count() >= outcome.shards.len().max(1)
}

pub(super) fn cpu(outcome: &Outcome) -> Option<VerdictReason> {
    let short = short_of_cpu(outcome);
    let (shard, snapshot, processor) = short.first()?;
    let message = format!(
        "{} lacked processor time, shard {} the most: {}; give shards more CPU (spec.shards.template.resources), share the load \
         among more of them (spec.shards.count), or take other work off their machines",
        shards(short.len(), outcome),
        shard.shard,
        processor.evidence(&snapshot.generator).join(", "),
    );
    Some(reason(ReasonKind::GeneratorCPU, VerdictValue::Degraded, &message))
}

/// Of the requests of a shard, how many were sent at least `least` late because a worker turned to them so late. A delay begins
/// with a request that is due, and those that come due while it lasts are late as well.
fn own_late(snapshot: &Snapshot, least: u64) -> f64 {
    let generator = &snapshot.generator;
    let time = generator.load_nanoseconds.saturating_mul(generator.workers.max(1).into());
    let rate = requests(snapshot) as f64 / time.max(1) as f64;
    let delays = (0..).map(delay_step).zip(&generator.send_delays).filter(|(delay, _)| *delay >= least);
    delays.map(|(delay, count)| *count as f64 * (1.0 + rate * (delay - least) as f64)).sum()
}

/// Requests of the load whose delays are counted.
fn requests(snapshot: &Snapshot) -> u64 {
    snapshot.total.scheduled.saturating_add(snapshot.warmup.scheduled)
}

/// Requests that were sent late make the response time longer than the target made it. Late by want of room, or for a server that does
/// not answer, is the target's doing and is not told here: the shards' own delays must explain that one request in a hundred was so
/// late, of all shards together.
pub(super) fn late(outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let late = stats::quantile(merged.lateness.as_ref()?, P99)?;
    let response = stats::response_time(&merged.total, &[]).p99_nanoseconds?;
    let least = LATE.max(response.div_ceil(2));
    if late < least {
        return None;
    }
    let snapshots = || outcome.shards.iter().filter_map(|shard| Some((shard.shard, shard.snapshot.as_ref()?)));
    let own: f64 = snapshots().map(|(_, snapshot)| own_late(snapshot, least)).sum();
    let all: u64 = snapshots().map(|(_, snapshot)| requests(snapshot)).fold(0, u64::saturating_add);
    if own * 100.0 < all as f64 || own <= 0.0 {
        return None;
    }
    let longest = |snapshot: &Snapshot| snapshot.generator.longest_delay_nanoseconds;
    let (shard, worst) = snapshots().max_by_key(|(_, snapshot)| longest(snapshot))?;
    let message = format!(
        "1 % of the response times are {} or more, and shards turned to {:.1} % of the requests half as late or later by their own \
         doing, shard {shard} by up to {}; give shards a processor each (spec.shards.template.resources), or ask fewer requests of \
         each (spec.shards.count)",
        people::latency(response),
        (100.0 * own / all as f64).min(100.0),
        people::latency(longest(worst)),
    );
    Some(reason(ReasonKind::SendLate, VerdictValue::Degraded, &message))
}

/// The share of the time in which replies had come and a shard did not read them, in millionths: of one that had processors,
/// and for longer than it takes to read others first. What stops it as a whole is in no account of processor time.
fn held(snapshot: &Snapshot, crowded: u64, longest_turn: u64) -> Option<u64> {
    let generator = &snapshot.generator;
    let delay = generator.receive_delay.as_ref()?;
    let time = generator.load_nanoseconds.saturating_mul(delay.connections.into());
    let held = share(delay.waited_nanoseconds(LATE.max(longest_turn)), time);
    (time > 0 && held >= HELD && Processor::of(generator, crowded).severity() < 100).then_some(held)
}

/// Shards that stood still, the worst first.
fn standing<'a>(outcome: &'a Outcome, merged: &Merged) -> Vec<(u64, &'a ShardOutcome)> {
    // Between two replies of a connection all others have their turn, and a request takes as long, on the mean.
    let longest_turn = stats::round(2.0 * merged.total.response.mean());
    let machines = Machines::of(outcome);
    let held = |shard: &ShardOutcome| {
        let snapshot = shard.snapshot.as_ref()?;
        held(snapshot, machines.waited(&snapshot.generator), longest_turn)
    };
    let mut standing: Vec<_> = outcome.shards.iter().filter_map(|shard| Some((held(shard)?, shard))).collect();
    standing.sort_by_key(|(share, _)| std::cmp::Reverse(*share));
    standing
}

/// Whether half of the shards or more stood still: then requests queue before nothing but them.
pub(super) fn stood_still(outcome: &Outcome, merged: &Merged) -> bool {
    2 * standing(outcome, merged).len() >= outcome.shards.len().max(1)
}

/// Replies that are read late make response times longer than the target made them, and a closed loop slower.
pub(super) fn unread(outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let standing = standing(outcome, merged);
    let (part, shard) = standing.first()?;
    let delay = shard.snapshot.as_ref()?.generator.receive_delay.as_ref()?;
    let message = format!(
        "{} left replies unread though they had processor time, shard {} the most: for {} % of the time of its \
         connections, and up to {} at a time; something stopped them: memory that is short \
         (spec.shards.template.resources), a frozen container, a machine that was paused",
        shards(standing.len(), outcome),
        shard.shard,
        part / 10_000,
        people::latency(delay.quantile_nanoseconds(1_000_000).unwrap_or_default()),
    );
    Some(reason(ReasonKind::ReceiveLate, VerdictValue::Degraded, &message))
}

/// `part` of `whole` in millionths.
fn share(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * u128::from(MILLION) / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "generator_tests.rs"]
mod tests;
