//! The load generator's shortage of CPU time in each second since the start instant.
//!
//! A mean over the whole load hides a few bad seconds, which alone determine the highest percentiles.

use serde::{Deserialize, Serialize};

use crate::timeline::SPAN_SECONDS;
use crate::{bounded, limits};

const SECOND: u64 = 1_000_000_000;

/// The number of seconds that are kept by the second, and of minutes that are kept by the minute. Older ones are merged into minutes and
/// hours.
const KEPT: usize = 3_600;

/// Shares of a span of time, in hundredths of a per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// CPU time of the busiest worker.
    pub busiest_worker: u32,
    /// Run-queue wait of the worker that waited longest.
    pub longest_waiting_worker: u32,
    /// Run-queue wait of all workers together. Above 100 % if several waited.
    pub run_queue: u32,
    /// Time for which the CPU quota throttled the process's cgroup.
    pub throttled: u32,
    /// Steal time, as a share of the time of all processors.
    pub stolen: u32,
}

/// A sequence of shares, stored by column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Columns {
    #[serde(deserialize_with = "column")]
    busiest_worker: Vec<u32>,
    #[serde(deserialize_with = "column")]
    longest_waiting_worker: Vec<u32>,
    #[serde(deserialize_with = "column")]
    run_queue: Vec<u32>,
    #[serde(deserialize_with = "column")]
    throttled: Vec<u32>,
    #[serde(deserialize_with = "column")]
    stolen: Vec<u32>,
}

fn column<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    bounded::list::<_, _, { limits::STRAIN_POINTS }>(deserializer)
}

impl Columns {
    /// The number of entries. A column that a shard does not send is 0.
    fn len(&self) -> usize {
        self.busiest_worker.len()
    }

    fn get(&self, index: usize) -> Shares {
        let of = |column: &[u32]| column.get(index).copied().unwrap_or_default();
        Shares {
            busiest_worker: of(&self.busiest_worker),
            longest_waiting_worker: of(&self.longest_waiting_worker),
            run_queue: of(&self.run_queue),
            throttled: of(&self.throttled),
            stolen: of(&self.stolen),
        }
    }

    fn all(&mut self) -> [&mut Vec<u32>; 5] {
        [
            &mut self.busiest_worker,
            &mut self.longest_waiting_worker,
            &mut self.run_queue,
            &mut self.throttled,
            &mut self.stolen,
        ]
    }

    fn push(&mut self, shares: Shares) {
        let Shares { busiest_worker, longest_waiting_worker, run_queue, throttled, stolen } = shares;
        let shares = [busiest_worker, longest_waiting_worker, run_queue, throttled, stolen];
        self.all().into_iter().zip(shares).for_each(|(column, share)| column.push(share));
    }

    /// Removes the first `count` entries and combines each column with `fold`.
    fn fold(&mut self, count: usize, fold: fn(&[u32]) -> u32) -> Shares {
        let [busiest_worker, longest_waiting_worker, run_queue, throttled, stolen] = self.all().map(|column| {
            let folded = fold(&column[..count]);
            column.drain(..count);
            folded
        });
        Shares { busiest_worker, longest_waiting_worker, run_queue, throttled, stolen }
    }
}

fn mean(shares: &[u32]) -> u32 {
    let sum = shares.iter().map(|share| u64::from(*share)).sum::<u64>();
    u32::try_from(sum / shares.len().max(1) as u64).unwrap_or(u32::MAX)
}

fn worst(shares: &[u32]) -> u32 {
    shares.iter().copied().max().unwrap_or_default()
}

/// Shares by the minute or by the hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Folded {
    /// The mean of each.
    mean: Columns,
    /// For each share, the second in which it was highest.
    worst: Columns,
}

/// Every second of a load in bounded memory: the last hour by the second, older times by the minute, then by the hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strain {
    /// The first hour begins at the start instant.
    hours: Folded,
    /// The minutes after these hours.
    minutes: Folded,
    /// The seconds after these minutes.
    seconds: Columns,
    /// The known part of the last second.
    last_nanoseconds: u64,
}

/// A span of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its beginning, in nanoseconds since the start instant.
    pub from: u64,
    /// Its end, or the end of its known part.
    pub until: u64,
    /// Its nominal length in seconds: one of [`SPAN_SECONDS`].
    pub seconds: u32,
    /// The mean over it.
    pub mean: Shares,
    /// For each share, the second in which it was highest. Equals `mean` if the span is one second.
    pub worst: Shares,
}

impl Strain {
    /// Adds the next second. A second with fewer `nanoseconds` is the last.
    pub fn push(&mut self, shares: Shares, nanoseconds: u64) {
        self.seconds.push(shares);
        self.last_nanoseconds = nanoseconds;
        let [minute, hour] = [SPAN_SECONDS[1], SPAN_SECONDS[2] / SPAN_SECONDS[1]].map(|count| count as usize);
        if self.seconds.len() > KEPT + minute {
            let highest = self.seconds.clone().fold(minute, worst);
            self.minutes.mean.push(self.seconds.fold(minute, mean));
            self.minutes.worst.push(highest);
        }
        if self.minutes.mean.len() > KEPT + hour {
            self.hours.mean.push(self.minutes.mean.fold(hour, mean));
            self.hours.worst.push(self.minutes.worst.fold(hour, worst));
        }
    }

    /// All spans in order.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        let all = |mean, worst, length| (0..Columns::len(mean)).map(move |index| (mean, worst, index, length));
        let [second, minute, hour] = SPAN_SECONDS;
        let hours = all(&self.hours.mean, &self.hours.worst, hour);
        let minutes = all(&self.minutes.mean, &self.minutes.worst, minute);
        let seconds = all(&self.seconds, &self.seconds, second);
        let mut from = 0_u64;
        let mut left = self.hours.mean.len() + self.minutes.mean.len() + self.seconds.len();
        hours.chain(minutes).chain(seconds).map(move |(mean, worst, index, seconds)| {
            left -= 1;
            let length = if left == 0 && seconds == second { self.last_nanoseconds.min(SECOND) } else { SECOND };
            let begin = from;
            from += u64::from(seconds) * SECOND;
            let until = begin + u64::from(seconds) * length;
            Point { from: begin, until, seconds, mean: mean.get(index), worst: worst.get(index) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(share: u32) -> Shares {
        Shares { busiest_worker: share, ..Shares::default() }
    }

    #[test]
    fn seconds_begin_at_the_start_and_the_last_may_be_shorter() {
        let mut strain = Strain::default();
        strain.push(
            Shares { busiest_worker: 1, longest_waiting_worker: 2, run_queue: 3, throttled: 4, stolen: 5 },
            SECOND,
        );
        strain.push(busy(10_000), SECOND / 4);
        let read: Strain = serde_json::from_str(&serde_json::to_string(&strain).unwrap()).unwrap();
        assert_eq!(read, strain);
        let points: Vec<Point> = read.points().collect();
        assert_eq!(
            points.iter().map(|point| (point.from, point.until, point.seconds)).collect::<Vec<_>>(),
            [(0, SECOND, 1), (SECOND, SECOND + SECOND / 4, 1)]
        );
        assert_eq!((points[0].mean.longest_waiting_worker, points[0].mean.stolen), (2, 5));
        assert_eq!(points[1].worst, busy(10_000));
    }

    #[test]
    fn what_is_older_than_an_hour_is_kept_by_the_minute_with_its_worst_second() {
        let mut strain = Strain::default();
        for second in 0..10 * 3_600 {
            strain.push(busy(if second == 65 { 9_900 } else { 600 }), SECOND);
        }
        let points: Vec<Point> = strain.points().collect();
        assert!(points.len() < KEPT + 60 + 10 * 60, "{}", points.len());
        assert_eq!(points[1].from, 60 * SECOND);
        assert_eq!((points[1].mean, points[1].worst, points[1].seconds), (busy(755), busy(9_900), 60));
        assert_eq!((points[2].mean, points[2].worst), (busy(600), busy(600)));
        assert!(points.windows(2).all(|pair| pair[0].until == pair[1].from));
        assert_eq!(points.last().unwrap().until, 10 * 3_600 * SECOND);
        assert!(points[points.len() - KEPT..].iter().all(|point| point.seconds == 1));
    }

    #[test]
    fn a_trial_of_days_turns_to_hours() {
        let mut strain = Strain::default();
        for second in 0..4 * 86_400 {
            strain.push(busy(second % 2), SECOND);
        }
        let points: Vec<Point> = strain.points().collect();
        assert!(points.len() < 2 * (KEPT + 60) + 96, "{}", points.len());
        assert_eq!((points[0].seconds, points[0].worst), (3_600, busy(1)));
        assert!(points.windows(2).all(|pair| pair[0].until == pair[1].from));
        assert_eq!(points.last().unwrap().until, 4 * 86_400 * SECOND);
    }
}
