//! Judges how short of processor time a shard was in each measured second. Pure arithmetic over its own counts per second.
//!
//! The mean of a run hides a few bad seconds, and these alone decide its highest percentiles.

use std::collections::BTreeMap;
use std::ops::Range;

use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::strain::{Point, Shares, Strain};

use super::thresholds::{BUSY, STOLEN, THROTTLED, WAITING};
use crate::api::status::{Lack, WorstSecond};
use crate::measurement::merge::{measured_until, since_start};

const SECOND: u64 = 1_000_000_000;
/// Per hundredth of a per cent.
const MILLIONTHS: u64 = 100;

/// All resources that a shard may lack.
pub(super) const LACKS: [Lack; 5] = [Lack::BusiestWorker, Lack::RunQueue, Lack::Throttled, Lack::Stolen, Lack::Machine];

/// The share from which on it is a lack, in millionths.
pub(super) fn bound(lack: Lack) -> u64 {
    match lack {
        Lack::BusiestWorker => BUSY,
        Lack::RunQueue | Lack::Machine => WAITING,
        Lack::Throttled => THROTTLED,
        Lack::Stolen => STOLEN,
    }
}

/// One lack over the seconds of a measurement. Shares are in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seconds {
    pub(super) mean: u64,
    /// In the worst second.
    pub(super) worst: u64,
    /// Beginning of that second, in nanoseconds after the beginning of the measurement.
    pub(super) worst_at: u64,
    /// Share of the time in seconds beyond the bound, and their length in nanoseconds.
    pub(super) beyond: u64,
    pub(super) nanoseconds: u64,
}

/// Waiting time of the workers of all shards on a machine, summed per second, in hundredths of a per cent of its length.
pub(super) type Waits = BTreeMap<(u64, u32), u64>;

pub(super) fn add(waits: &mut Waits, snapshot: &Snapshot) {
    for point in snapshot.generator.strain.iter().flat_map(Strain::points) {
        let sum = waits.entry((point.from, point.seconds)).or_default();
        *sum = sum.saturating_add(point.mean.run_queue.into());
    }
}

/// A second of a measurement, or a longer span where seconds are not kept. Shares are in millionths, in the order of [`LACKS`].
struct Stretch {
    /// Its measured part, in nanoseconds after the start.
    measured: Range<u64>,
    mean: [u64; 5],
    /// Each in its worst second.
    worst: [u64; 5],
}

impl Stretch {
    fn length(&self) -> u64 {
        self.measured.end - self.measured.start
    }

    /// The part of it that is seconds with a share of at least `bound`, in nanoseconds. If its mean is less, only its worst second is
    /// certain.
    fn beyond(&self, index: usize, bound: u64) -> u64 {
        match (self.mean[index] >= bound, self.worst[index] >= bound) {
            (true, _) => self.length(),
            (false, true) => self.length().min(SECOND),
            (false, false) => 0,
        }
    }
}

/// A shard's measurement in order. A second is left out if less than half of it was measured.
fn stretches(snapshot: &Snapshot, waits: &Waits) -> impl Iterator<Item = Stretch> {
    let generator = &snapshot.generator;
    let from = since_start(snapshot, snapshot.window.measure_from_nanoseconds);
    let to = since_start(snapshot, measured_until(snapshot));
    let processors = u64::from(generator.processors.max(1));
    // If the kernel counts waits, a worker lost at most its waiting time to a quota.
    let counts_waits = generator.run_queue_nanoseconds > 0;
    let shares = move |shares: Shares, crowd: u64| {
        let waiting = u64::from(shares.longest_waiting_worker);
        let throttled = u64::from(shares.throttled);
        let throttled = if counts_waits { throttled.min(waiting) } else { throttled };
        [shares.busiest_worker.into(), waiting, throttled, shares.stolen.into(), crowd / processors]
            .map(|share: u64| share.saturating_mul(MILLIONTHS))
    };
    generator.strain.iter().flat_map(Strain::points).filter_map(move |point| {
        let measured = within(&point, from, to)?;
        let crowd = waits.get(&(point.from, point.seconds)).copied().unwrap_or_default();
        Some(Stretch { measured, mean: shares(point.mean, crowd), worst: shares(point.worst, crowd) })
    })
}

/// The seconds of a shard's measurement, in the order of [`LACKS`]. Of a second that was measured in part, that part counts. None if no
/// second is left, or the shard reports none.
pub(super) fn measured(snapshot: &Snapshot, waits: &Waits) -> Option<[Seconds; 5]> {
    measured_by(snapshot, waits, bound)
}

/// Like [`measured`], by other bounds.
pub(super) fn measured_by(snapshot: &Snapshot, waits: &Waits, bound: impl Fn(Lack) -> u64) -> Option<[Seconds; 5]> {
    let from = since_start(snapshot, snapshot.window.measure_from_nanoseconds);
    let mut all = [Seconds::default(); 5];
    let (mut time, mut sums) = (0_u64, [0_u128; 5]);
    for stretch in stretches(snapshot, waits) {
        let length = stretch.length();
        time = time.saturating_add(length);
        for (index, lack) in LACKS.into_iter().enumerate() {
            let (seconds, worst) = (&mut all[index], stretch.worst[index]);
            sums[index] += u128::from(stretch.mean[index]) * u128::from(length);
            seconds.nanoseconds = seconds.nanoseconds.saturating_add(stretch.beyond(index, bound(lack)));
            if worst > seconds.worst {
                (seconds.worst, seconds.worst_at) = (worst, stretch.measured.start.saturating_sub(from));
            }
        }
    }
    for (seconds, sum) in all.iter_mut().zip(sums) {
        seconds.mean = u64::try_from(sum / u128::from(time.max(1))).unwrap_or(u64::MAX);
        seconds.beyond = share(seconds.nanoseconds, time);
    }
    (time > 0).then_some(all)
}

/// The part of `spans`, which are in order, that lies in stretches of a shard's measurement whose mean shares fit, in nanoseconds.
pub(super) fn time_within(
    spans: &[Range<u64>],
    snapshot: &Snapshot,
    waits: &Waits,
    fit: impl Fn(&[u64; 5]) -> bool,
) -> u64 {
    let overlap = |stretch: Stretch| {
        let Range { start, end } = stretch.measured;
        let first = spans.partition_point(|span| span.end <= start);
        let common = spans[first..].iter().take_while(|span| span.start < end);
        common.map(|span| span.end.min(end) - span.start.max(start)).sum::<u64>()
    };
    stretches(snapshot, waits).filter(|stretch| fit(&stretch.mean)).map(overlap).sum()
}

/// The measured part of a point, if that is at least half of it.
fn within(point: &Point, from: u64, to: u64) -> Option<Range<u64>> {
    let measured = point.from.max(from)..point.until.min(to);
    let length = measured.end.saturating_sub(measured.start);
    (length > 0 && length >= u64::from(point.seconds) * SECOND / 2).then_some(measured)
}

/// The worst second of the shard's worst lack, relative to its bound.
pub(super) fn worst(all: &[Seconds; 5]) -> WorstSecond {
    let severity = |(lack, seconds): &(Lack, &Seconds)| seconds.worst.saturating_mul(100) / bound(*lack);
    let (lack, seconds) = LACKS.into_iter().zip(all).max_by_key(severity).unwrap_or((Lack::BusiestWorker, &all[0]));
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    WorstSecond {
        lack,
        after_milliseconds: seconds.worst_at / 1_000_000,
        percent: number(seconds.worst / 10_000),
        beyond_basis_points: number(seconds.beyond / MILLIONTHS),
    }
}

/// `part` of `whole` in millionths; 0 if nothing was measured.
pub(super) fn share(part: u64, whole: u64) -> u64 {
    let millionths = (u128::from(part) * 1_000_000).checked_div(u128::from(whole)).unwrap_or_default();
    u64::try_from(millionths).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
