//! How short of processor time a load generator was in each second since the start instant.
//!
//! A mean over the load hides some bad seconds of many, and these alone shape its highest percentiles.

use serde::{Deserialize, Serialize};

use crate::timeline::SPAN_SECONDS;
use crate::{bounded, limits};

const SECOND: u64 = 1_000_000_000;

/// What is older than these many seconds is kept by the minute, and older than as many minutes by the hour.
const KEPT: usize = 3_600;

/// Shares of some time, in hundredths of a per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// CPU time of the worker that ran longest.
    pub busiest_worker: u32,
    /// Time that a worker was ready and had no processor: of the worker that waited longest.
    pub longest_waiting_worker: u32,
    /// Time that all workers together were ready and had no processor: more than the whole, if several waited.
    pub run_queue: u32,
    /// Time for which a CPU quota held the process's cgroup back.
    pub throttled: u32,
    /// Time that a hypervisor gave to other machines, of the time of all processors.
    pub stolen: u32,
}

/// Such shares, one after the other.
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
    /// How many there are. A column that a shard does not send is 0.
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

    /// Takes out the first `count`: `fold` makes one of them.
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

/// Minutes or hours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Folded {
    /// The mean over each.
    mean: Columns,
    /// Each share in the second of it in which that share was highest.
    worst: Columns,
}

/// Every second of a load in bounded memory: the last hour by the second, what is older by the minute, then by the hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strain {
    /// The first one begins at the start instant.
    hours: Folded,
    /// These follow.
    minutes: Folded,
    /// And these.
    seconds: Columns,
    /// How much of the last second is known.
    last_nanoseconds: u64,
}

/// Some time of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// When it begins, in nanoseconds since the start instant.
    pub from: u64,
    /// When it ends, or what is known of it.
    pub until: u64,
    /// Its length, in seconds: one of [`SPAN_SECONDS`].
    pub seconds: u32,
    /// Means over it.
    pub mean: Shares,
    /// The same of a second, if that is its length; else each share in the second of it in which it was highest.
    pub worst: Shares,
}

impl Strain {
    /// Adds the next second. Of one that is shorter than a second, `nanoseconds` are known, and it is the last.
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

    /// All of it, in order.
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
