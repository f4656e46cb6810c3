//! Judges the load generator: whether a shard was the limit, rather than the target.

use std::collections::BTreeMap;
use std::ops::Range;

use redisbench_wire::plan::{Client, Library};
use redisbench_wire::snapshot::{Generator, ReceiveDelay, Snapshot, delay_step};

use super::rate;
use super::reason::{reason, shards};
use super::strain::{self, LACKS, Seconds, Waits, share};
use super::thresholds::{
    BUSY, BUSY_FOR_LATENCIES, BUSY_SECONDS, BUSY_WHILE_BEHIND, FULL_WHILE_BEHIND, HELD, LATE, SECONDS_DOUBTFUL,
    SECONDS_TOLD, USED_UP,
};
use crate::api::status::{Lack, ReasonKind, VerdictReason, VerdictValue, WorstSecond};
use crate::measurement::merge::Merged;
use crate::measurement::{Outcome, ShardEvidence};
use crate::{human, measurement::latencies};

/// In millionths.
const P99: u32 = 990_000;
const MILLION: u64 = 1_000_000;

/// Shares of a shard's time, in millionths, in the order of [`LACKS`].
struct Processor {
    /// Over its measurement if its seconds are known, otherwise over its load.
    shares: [u64; 5],
    /// Over the seconds of its measurement.
    seconds: Option<[Seconds; 5]>,
}

/// Time that the workers of all shards on a machine waited for its processors. With many shards, each may wait only briefly although the
/// machine is overloaded.
struct Machines<'a> {
    known: BTreeMap<&'a str, Machine>,
    /// Shards of unknown machines are not assumed to share one.
    unknown: Machine,
}

#[derive(Default)]
pub(super) struct Machine {
    waited: u64,
    time: u64,
    seconds: Waits,
}

impl Machine {
    /// Adds a shard: the time that its workers waited together, the length of its load, and the processors of the machine.
    pub(super) fn add(&mut self, waited: u64, load: u64, processors: u32) {
        self.waited = self.waited.saturating_add(waited);
        self.time = self.time.max(load.saturating_mul(processors.max(1).into()));
    }

    /// Waiting workers per processor over the load, in millionths.
    pub(super) fn crowd(&self) -> u64 {
        share(self.waited, self.time)
    }
}

impl<'a> Machines<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        let mut known = BTreeMap::<&str, Machine>::new();
        for snapshot in outcome.snapshots() {
            let generator = &snapshot.generator;
            let machine = known.entry(&generator.host).or_default();
            machine.add(generator.run_queue_nanoseconds, generator.load_nanoseconds, generator.processors);
            strain::add(&mut machine.seconds, snapshot);
        }
        known.remove("");
        Self { known, unknown: Machine::default() }
    }

    fn of_shard(&self, snapshot: &Snapshot) -> &Machine {
        self.known.get(snapshot.generator.host.as_str()).unwrap_or(&self.unknown)
    }
}

impl Processor {
    fn of(snapshot: &Snapshot, machines: &Machines<'_>) -> Self {
        let machine = machines.of_shard(snapshot);
        let seconds = strain::measured(snapshot, &machine.seconds);
        let shares = match &seconds {
            Some(seconds) => seconds.map(|seconds| seconds.mean),
            None => Self::over_the_load(&snapshot.generator, machine.crowd()),
        };
        Self { shares, seconds }
    }

    /// `crowded`: total time that all workers on its machine waited, over the time of the machine's processors.
    fn over_the_load(generator: &Generator, crowded: u64) -> [u64; 5] {
        // A shard that never began was not throttled.
        let throttled = match generator.load_nanoseconds {
            0 => 0,
            load => share(generator.throttled_nanoseconds, load),
        };
        let waiting = generator.longest_waiting_worker_millionths.into();
        // The kernel sums throttled time over all processors, and includes threads that make no requests. So a worker's loss is at most its
        // waiting time. If no worker waited for even a nanosecond, the kernel does not count waits.
        let waited_at_most = if generator.run_queue_nanoseconds > 0 { waiting } else { u64::MAX };
        let busy = generator.busiest_worker_millionths.into();
        [busy, waiting, throttled.min(waited_at_most), stolen(generator), crowded]
    }

    /// The highest severity. From 100 on, the shard lacked processor time over the whole run.
    fn severity(&self) -> u64 {
        severity(&self.shares)
    }

    fn busy(&self) -> u64 {
        self.shares[0]
    }

    /// The share of the measurement that the bad seconds decide, per lack: their length, but at most what the shard's own delays explain.
    /// `delayed` returns the share explained by delays of at least a given length.
    fn decided(&self, delayed: impl Fn(u64) -> u64) -> [u64; 5] {
        let Some(seconds) = &self.seconds else { return [0; 5] };
        let mut lacks = LACKS.into_iter();
        seconds.map(|seconds| match (seconds.beyond, lacks.next()) {
            (0, _) => 0,
            // Requests queue before a worker that never rests, even if the queue is short, so delays of any length count.
            (beyond, Some(Lack::BusiestWorker)) => beyond.min(delayed(0)),
            (beyond, _) => beyond.min(delayed(LATE)),
        })
    }

    /// Returns whether it explains that replies lay unread for this share of the time.
    fn explains(&self, held: u64) -> bool {
        let beyond = self.seconds.iter().flatten().map(|seconds| seconds.beyond).max();
        self.severity() >= 100 || beyond.is_some_and(|beyond| beyond >= held)
    }

    /// Findings as text, the worst first, because the message may be cut. `decided` is the result of [`Self::decided`].
    fn evidence(&self, generator: &Generator, decided: [u64; 5]) -> Vec<String> {
        let severities = severities(&self.shares);
        let when = if self.seconds.is_some() { "measurement" } else { "load" };
        let mut found: Vec<_> = LACKS
            .into_iter()
            .enumerate()
            .filter_map(|(index, lack)| {
                let (share, severity) = (self.shares[index], severities[index]);
                let text = match lack {
                    Lack::BusiestWorker => Some(format!("its busiest worker ran for {} of the {when}", percent(share))),
                    Lack::RunQueue => (share >= MILLION / 100)
                        .then(|| format!("a worker waited for a processor for {} of the {when}", percent(share))),
                    Lack::Throttled => (generator.throttled_nanoseconds > 0).then(|| {
                        let held = human::latency(generator.throttled_nanoseconds);
                        format!(
                            "its CPU limit throttled it for {held} in {}",
                            human::latency(generator.load_nanoseconds)
                        )
                    }),
                    Lack::Stolen => {
                        (share >= MILLION / 100).then(|| format!("steal time took {} of its machine", percent(share)))
                    }
                    Lack::Machine => (severity >= 100 || decided[index] > 0).then(|| crowded(&generator.host, share)),
                };
                Some((if severity >= 100 { severity } else { 0 }, decided[index], severity, index, text?))
            })
            .collect();
        found.sort_by_key(|(beyond, decided, severity, ..)| std::cmp::Reverse((*beyond, *decided, *severity)));
        if let (Some((.., index, text)), Some(seconds)) = (found.first_mut(), &self.seconds) {
            let lack = LACKS[*index];
            text.push_str(&worst_second(lack, &seconds[*index], strain::bound(lack)));
        }
        found.into_iter().map(|(.., text)| text).collect()
    }
}

/// The worst second of a lack, and the share of the time in seconds of at least `bound`, as text behind its mean.
pub(super) fn worst_second(lack: Lack, seconds: &Seconds, bound: u64) -> String {
    let (worst, bound) = match lack {
        Lack::Machine => (format!("{} in", workers(seconds.worst)), workers(bound)),
        _ => (format!("{} of", percent(seconds.worst)), percent(bound)),
    };
    format!(
        " ({worst} the worst second, {} after the measurement began; {bound} or more for {} of the time)",
        human::latency(seconds.worst_at),
        tenths(seconds.beyond),
    )
}

/// Each of a shard's shares as a percentage of its bound; 100 and more is a lack.
fn severities(shares: &[u64; 5]) -> [u64; 5] {
    let mut lacks = LACKS.into_iter();
    shares.map(|share| lacks.next().map_or(0, |lack| share.saturating_mul(100) / strain::bound(lack)))
}

/// The highest of them.
fn severity(shares: &[u64; 5]) -> u64 {
    severities(shares).into_iter().max().unwrap_or_default()
}

/// Returns whether a worker hardly ever slept: it ran, waited for a processor, or was throttled. It used all the time that it got.
fn is_used_up(shares: &[u64; 5]) -> bool {
    let [busy, waiting, throttled, ..] = *shares;
    busy.saturating_add(waiting.max(throttled)) >= USED_UP
}

/// Text about a crowded machine, with the waiting workers per processor in millionths.
pub(super) fn crowded(host: &str, share: u64) -> String {
    format!("on {} {} workers waited for each processor on average", human::cut(host, 128), workers(share))
}

/// Waiting workers per processor, from millionths.
fn workers(share: u64) -> String {
    format!("{:.2}", f64::from(u32::try_from(share).unwrap_or(u32::MAX)) / 1e6)
}

/// From millionths.
fn percent(share: u64) -> String {
    format!("{} %", share / 10_000)
}

fn tenths(share: u64) -> String {
    format!("{}.{} %", share / 10_000, share / 1_000 % 10)
}

/// Steal time while the shard's load ran, in per cent of all its machine's processors.
pub fn stolen_percent(generator: &Generator) -> u32 {
    u32::try_from(stolen(generator).min(MILLION) / 10_000).unwrap_or(u32::MAX)
}

fn stolen(generator: &Generator) -> u64 {
    let time = generator.load_nanoseconds.saturating_mul(generator.processors.max(1).into());
    if time == 0 { 0 } else { share(generator.stolen_nanoseconds, time) }
}

/// Per shard, the worst second of its measurement; none where its seconds are unknown.
pub fn worst_seconds(outcome: &Outcome) -> Vec<Option<WorstSecond>> {
    let machines = Machines::of(outcome);
    let worst = |snapshot: &Snapshot| Processor::of(snapshot, &machines).seconds.as_ref().map(strain::worst);
    outcome.shards.iter().map(|shard| shard.snapshot.as_ref().and_then(worst)).collect()
}

/// The share of time that the busiest worker of each shard ran, in millionths.
pub(super) fn busiest_workers(outcome: &Outcome) -> impl Iterator<Item = (u64, u32)> {
    processors(outcome).into_iter().map(|(shard, _, processor)| (processor.busy(), shard.shard))
}

fn processors(outcome: &Outcome) -> Vec<(&ShardEvidence, &Snapshot, Processor)> {
    let machines = Machines::of(outcome);
    let known = outcome.shards.iter().filter_map(|shard| Some((shard, shard.snapshot.as_ref()?)));
    known.map(|(shard, snapshot)| (shard, snapshot, Processor::of(snapshot, &machines))).collect()
}

/// Returns whether the shares of at least half of the shards fit: over the whole run, or for `part` millionths of the seconds in which
/// requests fell `behind`.
fn fits_half(outcome: &Outcome, behind: &[Range<u64>], part: u64, fit: impl Fn(&[u64; 5]) -> bool) -> bool {
    let machines = Machines::of(outcome);
    let time = rate::length(behind);
    let while_behind = |snapshot: &Snapshot| {
        let waits = &machines.of_shard(snapshot).seconds;
        time > 0 && share(strain::time_within(behind, snapshot, waits, &fit), time) >= part
    };
    let fits = |snapshot: &&Snapshot| fit(&Processor::of(snapshot, &machines).shares) || while_behind(snapshot);
    2 * outcome.snapshots().filter(fits).count() >= outcome.shards.len().max(1)
}

/// True if at least half of the shards lacked processor time over the whole run.
pub(super) fn is_short(outcome: &Outcome) -> bool {
    fits_half(outcome, &[], MILLION, |shares| severity(shares) >= 100)
}

/// Returns whether the load generator's processors limited the throughput: at least half of the shards used all the processor time that
/// they got, over the whole run or while requests fell `behind`, such as at the top of a ramp. A shard that lacked time and still slept was
/// also waiting for something else.
pub(super) fn is_limit(outcome: &Outcome, behind: &[Range<u64>]) -> bool {
    fits_half(outcome, behind, FULL_WHILE_BEHIND, |shares| severity(shares) >= 100 && is_used_up(shares))
}

/// Returns whether at least half of the shards had a saturated worker, over the whole run or for half of the seconds in which requests fell
/// `behind`.
pub(super) fn is_busy(outcome: &Outcome, behind: &[Range<u64>]) -> bool {
    fits_half(outcome, behind, BUSY_WHILE_BEHIND, |[busy, ..]| *busy >= BUSY)
}

/// The shards with more than a few seconds in which a worker ran for [`BUSY_FOR_LATENCIES`] or more: the share of the measurement that
/// these seconds decide, and the seconds.
pub(super) fn busy_seconds(outcome: &Outcome, merged: &Merged) -> Vec<(u64, u32, Seconds)> {
    let busy = |shard: &ShardEvidence| {
        let snapshot = shard.snapshot.as_ref()?;
        let [busy, ..] = strain::measured_by(snapshot, &Waits::new(), |_| BUSY_FOR_LATENCIES)?;
        let decided = || busy.beyond.min(delayed(snapshot, merged, 0));
        (busy.nanoseconds > BUSY_SECONDS).then(|| (decided(), shard.shard, busy))
    };
    outcome.shards.iter().filter_map(busy).collect()
}

/// The time for which replies lay unread. None where that is unknown: the kernel stamps no data that arrives over a UNIX socket.
fn receive_delay(snapshot: &Snapshot) -> Option<&ReceiveDelay> {
    snapshot.generator.receive_delay.as_ref().filter(|delay| delay.counts.iter().any(|count| *count > 0))
}

/// The share of the shard's requests that its own delays of `least` and more may have slowed down, in millionths. If unknown, all of them.
fn delayed(snapshot: &Snapshot, merged: &Merged, least: u64) -> u64 {
    let late = own_late(snapshot, LATE.max(least)) / requests(snapshot).max(1) as f64;
    let unread = receive_delay(snapshot).map(|delay| {
        let reads = delay.counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count)).max(1);
        let mean = merged.total.service.as_ref().unwrap_or(&merged.total.response).mean();
        delay.waited_nanoseconds(least) as f64 / reads as f64 / mean.max(1.0)
    });
    let known = match unread {
        Some(unread) => late + unread,
        None if merged.has_due_times() && least > 0 => late,
        None => return MILLION,
    };
    latencies::round(known.min(1.0) * MILLION as f64)
}

/// Shards that lacked processor time: over the whole run, or in seconds that decide the highest percentiles.
pub(super) fn cpu(outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let mut short: Vec<_> = processors(outcome)
        .into_iter()
        .map(|(shard, snapshot, processor)| {
            let decided = processor.decided(|least| delayed(snapshot, merged, least));
            let most = decided.into_iter().max().unwrap_or_default();
            let all_along = Some(processor.severity()).filter(|severity| *severity >= 100);
            (all_along, most, decided, shard, snapshot, processor)
        })
        .filter(|(all_along, most, ..)| all_along.is_some() || *most > 0)
        .collect();
    short.sort_by_key(|(all_along, most, ..)| std::cmp::Reverse((*all_along, *most)));
    let (all_along, _, decided, shard, snapshot, processor) = short.first()?;
    // A shard's seconds are only its part of the total: the more shards there are, the less one of them decides.
    let sum = short.iter().fold(0_u64, |sum, (_, most, ..)| sum.saturating_add(*most));
    let part = sum / outcome.shards.len().max(1) as u64;
    let (severity, when) = match all_along {
        Some(_) => (VerdictValue::Degraded, String::new()),
        None if part >= SECONDS_DOUBTFUL => (VerdictValue::Degraded, " now and then".to_owned()),
        None if part >= SECONDS_TOLD => (VerdictValue::Valid, ", too briefly to affect p99".to_owned()),
        None => return None,
    };
    let message = format!(
        "{} lacked processor time{when}, shard {} the most: {}; give shards more CPU (spec.shards.template.resources), add \
         shards (spec.shards.count), or move other work off their machines",
        shards(short.len(), outcome),
        shard.shard,
        processor.evidence(&snapshot.generator, *decided).join(", "),
    );
    Some(reason(ReasonKind::GeneratorCPU, severity, &message))
}

/// Returns whether a shard's lack has its cause outside the shard: the CPU limit, the hypervisor, or other processes if each of its
/// workers, and `of_client` more threads of the client, could have had a processor. False if the shard does not report its workers.
fn is_from_outside(lack: Lack, generator: &Generator, of_client: u64) -> bool {
    match lack {
        Lack::BusiestWorker => false,
        Lack::Throttled | Lack::Stolen => true,
        Lack::RunQueue | Lack::Machine => {
            let needed = u64::from(generator.workers).saturating_add(of_client);
            generator.workers > 0 && needed <= u64::from(generator.processors)
        }
    }
}

/// Processors that the program of a driver kept busy beside the shard's workers, rounded up: its work is the client's own. 0 for a client
/// within the shard, and for a program that the shard cannot see.
fn of_program(client: &Client, snapshot: &Snapshot) -> u64 {
    let usage = snapshot.client.as_ref().filter(|_| matches!(client.library, Library::Driver { .. }));
    usage.map_or(0, |usage| {
        let time = usage.user_nanoseconds.saturating_add(usage.system_nanoseconds);
        time.div_ceil(snapshot.generator.load_nanoseconds.max(1))
    })
}

/// Returns whether something outside the shards and `client` took so much of their processor time that [`cpu`] reports more than a note
/// for it alone.
pub(super) fn is_deprived(client: &Client, outcome: &Outcome, merged: &Merged) -> bool {
    let mut sum = 0_u64;
    for (_, snapshot, processor) in processors(outcome) {
        let of_client = of_program(client, snapshot);
        let from_outside = |shares: [u64; 5]| {
            let is_outside = |lack: Lack| is_from_outside(lack, &snapshot.generator, of_client);
            let taken = LACKS.into_iter().zip(shares).filter(|(lack, _)| is_outside(*lack));
            taken.map(|(_, share)| share).max().unwrap_or_default()
        };
        if from_outside(severities(&processor.shares)) >= 100 {
            return true;
        }
        let decided = processor.decided(|least| delayed(snapshot, merged, least));
        sum = sum.saturating_add(from_outside(decided));
    }
    sum / outcome.shards.len().max(1) as u64 >= SECONDS_DOUBTFUL
}

/// Number of a shard's requests that were sent at least `least` late because a worker turned to them late. A delay begins with a request
/// that is due; requests that become due during the delay are late as well.
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

/// Late requests make the response time longer than the target made it. Lateness caused by a full pipeline or by a silent server is the
/// target's, and is not reported here. The shards' own delays must explain that at least one in a hundred of all requests was late.
pub(super) fn late(outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let late = latencies::quantile(merged.lateness.as_ref()?, P99)?;
    let response = latencies::response_time(&merged.total, &[]).p99_nanoseconds?;
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
        "p99 of response time is {}, and the shards themselves sent {:.1} % of the requests late by half of that or more, \
         shard {shard} by up to {}; give each shard its own processor (spec.shards.template.resources), or add shards \
         (spec.shards.count)",
        human::latency(response),
        (100.0 * own / all as f64).min(100.0),
        human::latency(longest(worst)),
    );
    Some(reason(ReasonKind::SendLate, VerdictValue::Degraded, &message))
}

/// The share of the time in which replies were available and a shard that had processor time did not read them, in millionths. Only delays
/// longer than reading other replies first takes count. A frozen shard does not show in processor times.
fn held(snapshot: &Snapshot, machines: &Machines<'_>, longest_turn: u64) -> Option<u64> {
    let delay = receive_delay(snapshot)?;
    let time = snapshot.generator.load_nanoseconds.saturating_mul(delay.connections.into());
    let held = share(delay.waited_nanoseconds(LATE.max(longest_turn)), time);
    (time > 0 && held >= HELD && !Processor::of(snapshot, machines).explains(held)).then_some(held)
}

/// Shards that stood still, the worst first.
fn standing<'a>(outcome: &'a Outcome, merged: &Merged) -> Vec<(u64, &'a ShardEvidence)> {
    // Between two replies of a connection all other connections have their turn, and on average this takes as long as a request.
    let longest_turn = latencies::round(2.0 * merged.total.response.mean());
    let machines = Machines::of(outcome);
    let held = |shard: &ShardEvidence| held(shard.snapshot.as_ref()?, &machines, longest_turn);
    let mut standing: Vec<_> = outcome.shards.iter().filter_map(|shard| Some((held(shard)?, shard))).collect();
    standing.sort_by_key(|(share, _)| std::cmp::Reverse(*share));
    standing
}

/// Returns whether at least half of the shards stood still: then requests may have queued only before the shards.
pub(super) fn stood_still(outcome: &Outcome, merged: &Merged) -> bool {
    2 * standing(outcome, merged).len() >= outcome.shards.len().max(1)
}

/// Replies that are read late make response times longer than the target made them, and a closed loop slower.
pub(super) fn unread(outcome: &Outcome, merged: &Merged) -> Option<VerdictReason> {
    let standing = standing(outcome, merged);
    let (part, shard) = standing.first()?;
    let delay = receive_delay(shard.snapshot.as_ref()?)?;
    let message = format!(
        "{} left replies unread although they had processor time, shard {} the most: for {} % of the time of its \
         connections, and up to {} at a time; possible causes: too little memory (spec.shards.template.resources), a \
         frozen container, a paused machine",
        shards(standing.len(), outcome),
        shard.shard,
        part / 10_000,
        human::latency(delay.quantile_nanoseconds(1_000_000).unwrap_or_default()),
    );
    Some(reason(ReasonKind::ReceiveLate, VerdictValue::Degraded, &message))
}

#[cfg(test)]
mod tests;
