//! Judges how short of processor time a shard was in each measured second. Pure arithmetic over its own counts per second.
//!
//! The mean of a run hides a few bad seconds, and these alone decide its highest percentiles.

use std::collections::BTreeMap;

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
    /// Share of the time in seconds beyond the bound.
    pub(super) beyond: u64,
}

/// Waiting time of the workers of all shards on a machine, summed per second, in hundredths of a per cent of its length.
pub(super) type Waits = BTreeMap<(u64, u32), u64>;

pub(super) fn add(waits: &mut Waits, snapshot: &Snapshot) {
    for point in snapshot.generator.strain.iter().flat_map(Strain::points) {
        let sum = waits.entry((point.from, point.seconds)).or_default();
        *sum = sum.saturating_add(point.mean.run_queue.into());
    }
}

/// The seconds of a shard's measurement, in the order of [`LACKS`]. A second is left out if less than half of it was measured; otherwise
/// its measured part counts. None if no second is left, or the shard reports none.
pub(super) fn measured(snapshot: &Snapshot, waits: &Waits) -> Option<[Seconds; 5]> {
    let generator = &snapshot.generator;
    let from = since_start(snapshot, snapshot.window.measure_from_nanoseconds);
    let to = since_start(snapshot, measured_until(snapshot));
    let processors = u64::from(generator.processors.max(1));
    // If the kernel counts waits, a worker lost at most its waiting time to a quota.
    let counts_waits = generator.run_queue_nanoseconds > 0;
    let shares = |shares: Shares, crowd: u64| {
        let waiting = u64::from(shares.longest_waiting_worker);
        let throttled = u64::from(shares.throttled);
        let throttled = if counts_waits { throttled.min(waiting) } else { throttled };
        [shares.busiest_worker.into(), waiting, throttled, shares.stolen.into(), crowd / processors]
            .map(|share: u64| share.saturating_mul(MILLIONTHS))
    };
    let mut all = [Seconds::default(); 5];
    let (mut time, mut sums) = (0_u64, [0_u128; 5]);
    for point in generator.strain.iter().flat_map(Strain::points) {
        let Some(length) = within(&point, from, to) else { continue };
        time = time.saturating_add(length);
        let crowd = waits.get(&(point.from, point.seconds)).copied().unwrap_or_default();
        let (means, worst) = (shares(point.mean, crowd), shares(point.worst, crowd));
        for (index, lack) in LACKS.into_iter().enumerate() {
            let (seconds, bound) = (&mut all[index], bound(lack));
            sums[index] += u128::from(means[index]) * u128::from(length);
            if means[index] >= bound {
                seconds.beyond = seconds.beyond.saturating_add(length);
            } else if worst[index] >= bound {
                // Of a minute, only one second is certain.
                seconds.beyond = seconds.beyond.saturating_add(length.min(SECOND));
            }
            if worst[index] > seconds.worst {
                (seconds.worst, seconds.worst_at) = (worst[index], point.from.saturating_sub(from));
            }
        }
    }
    for (seconds, sum) in all.iter_mut().zip(sums) {
        seconds.mean = u64::try_from(sum / u128::from(time.max(1))).unwrap_or(u64::MAX);
        seconds.beyond = share(seconds.beyond, time);
    }
    (time > 0).then_some(all)
}

/// The measured length of a point, if that is at least half of it.
fn within(point: &Point, from: u64, to: u64) -> Option<u64> {
    let length = point.until.min(to).saturating_sub(point.from.max(from));
    (length > 0 && length >= u64::from(point.seconds) * SECOND / 2).then_some(length)
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
