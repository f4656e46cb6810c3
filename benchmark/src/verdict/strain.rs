//! How short of processor time a shard was in the seconds that it measured. Pure arithmetic over its own counts by the second.
//!
//! The mean of a run hides some bad seconds, and these alone decide its highest percentiles.

use std::collections::BTreeMap;

use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::strain::{Point, Shares, Strain};

use super::thresholds::{BUSY, STOLEN, THROTTLED, WAITING};
use crate::api::status::{Lack, WorstSecond};
use crate::measurement::merge::{measured_until, since_start};

const SECOND: u64 = 1_000_000_000;
/// Of hundredths of a per cent.
const MILLIONTHS: u64 = 100;

/// All that a shard may lack.
pub(super) const LACKS: [Lack; 5] = [Lack::BusiestWorker, Lack::RunQueue, Lack::Throttled, Lack::Stolen, Lack::Machine];

/// From which share on it is a lack, in millionths.
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
    /// When that began, in nanoseconds after the measurement did.
    pub(super) worst_at: u64,
    /// How much of the time lies in seconds beyond the bound.
    pub(super) beyond: u64,
}

/// What the workers of all shards on a machine waited in each second, added up, in hundredths of a per cent of its length.
pub(super) type Waits = BTreeMap<(u64, u32), u64>;

/// Adds a shard's.
pub(super) fn add(waits: &mut Waits, snapshot: &Snapshot) {
    for point in snapshot.generator.strain.iter().flat_map(Strain::points) {
        let sum = waits.entry((point.from, point.seconds)).or_default();
        *sum = sum.saturating_add(point.mean.run_queue.into());
    }
}

/// The seconds of a shard's measurement, in the order of [`LACKS`]. A second of which less than half was measured is left
/// out, and of the others as much counts as was. None if none is left, or the shard does not say.
pub(super) fn measured(snapshot: &Snapshot, waits: &Waits) -> Option<[Seconds; 5]> {
    let generator = &snapshot.generator;
    let from = since_start(snapshot, snapshot.window.measure_from_nanoseconds);
    let to = since_start(snapshot, measured_until(snapshot));
    let processors = u64::from(generator.processors.max(1));
    // A kernel that counts no waits says nothing of them; else a worker lost no more by a quota than it waited.
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
                // A minute of which one second was for certain.
                seconds.beyond = seconds.beyond.saturating_add(length.min(SECOND));
            }
            if worst[index] > seconds.worst {
                (seconds.worst, seconds.worst_at) = (worst[index], point.from.saturating_sub(from));
            }
        }
    }
    for (seconds, sum) in all.iter_mut().zip(sums) {
        seconds.mean = u64::try_from(sum / u128::from(time.max(1))).unwrap_or(u64::MAX);
        seconds.beyond = super::generator::share(seconds.beyond, time);
    }
    (time > 0).then_some(all)
}

/// How much of a point was measured, if that is half of it or more.
fn within(point: &Point, from: u64, to: u64) -> Option<u64> {
    let length = point.until.min(to).saturating_sub(point.from.max(from));
    (length > 0 && length >= u64::from(point.seconds) * SECOND / 2).then_some(length)
}

/// The second that was worst of what the shard lacked most, by its bound.
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

#[cfg(test)]
#[path = "strain_tests.rs"]
mod tests;
