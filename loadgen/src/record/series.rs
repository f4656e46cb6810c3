use redisbench_wire::limits;
use redisbench_wire::plan::{Bound, TrialPlan};
use redisbench_wire::snapshot::Series;

const FINE: u64 = 100_000_000;
const COARSE: u64 = 1_000_000_000;
/// Runs up to this length, in nanoseconds, have fine points.
const FINE_UNTIL: u64 = 600_000_000_000;

/// Completions per point of time. The first point begins at the start instant.
#[derive(Clone, Debug)]
pub struct Completions {
    start: u64,
    interval: u64,
    points: Vec<u64>,
}

impl Default for Completions {
    fn default() -> Self {
        Self { start: 0, interval: FINE, points: Vec::new() }
    }
}

impl Completions {
    /// Points of 100 ms, or of 1 s if the plan is longer than 10 min. A run with a number of requests may end at any time: it begins with
    /// points of 100 ms and switches to 1 s after 10 min.
    pub(super) fn of_plan(plan: &TrialPlan) -> Self {
        let interval = match plan.bound {
            Bound::Duration { nanoseconds } if plan.warmup_nanoseconds.saturating_add(nanoseconds) > FINE_UNTIL => {
                COARSE
            }
            _ => FINE,
        };
        let expected =
            plan.warmup_nanoseconds.saturating_add(plan.bound.longest_nanoseconds()).min(FINE_UNTIL) / interval + 2;
        Self { start: 0, interval, points: Vec::with_capacity(expected as usize) }
    }

    /// Sets the start of the first point.
    pub fn begin(&mut self, start: u64) {
        self.start = start;
    }

    /// Adds `count` requests that succeeded at `now`.
    #[inline]
    pub fn add(&mut self, now: u64, count: u64) {
        let point = (now.saturating_sub(self.start) / self.interval) as usize;
        if let Some(points) = self.points.get_mut(point) {
            *points += count;
        } else {
            self.grow(now, count);
        }
    }

    #[cold]
    fn grow(&mut self, now: u64, count: u64) {
        if count == 0 {
            return;
        }
        let time = now.saturating_sub(self.start);
        if self.interval == FINE && time >= FINE_UNTIL {
            self.coarsen();
        }
        let point = ((time / self.interval) as usize).min(limits::SERIES_POINTS - 1);
        if point >= self.points.len() {
            self.points.resize(point + 1, 0);
        }
        self.points[point] += count;
    }

    fn coarsen(&mut self) {
        if self.interval == FINE {
            self.points = self.points.chunks((COARSE / FINE) as usize).map(|points| points.iter().sum()).collect();
            self.interval = COARSE;
        }
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        if other.interval > self.interval {
            self.coarsen();
        } else if self.interval > other.interval {
            other.coarsen();
        }
        if self.points.len() < other.points.len() {
            self.points.resize(other.points.len(), 0);
        }
        self.points.iter_mut().zip(other.points).for_each(|(mine, its)| *mine += its);
    }

    pub(super) fn into_series(self) -> Series {
        Series { interval_nanoseconds: self.interval, completed: self.points }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completions(interval: u64) -> Completions {
        Completions { start: 1000, interval, points: Vec::new() }
    }

    #[test]
    fn points_begin_at_the_start() {
        let mut series = completions(FINE);
        series.add(1000, 1);
        series.add(1000 + FINE - 1, 2);
        series.add(1000 + 3 * FINE, 4);
        series.add(1000 + 9 * FINE, 0);
        assert_eq!(series.into_series().completed, [3, 0, 0, 4]);
    }

    #[test]
    fn beyond_ten_minutes_points_are_seconds() {
        let mut series = completions(FINE);
        series.add(1000 + 15 * FINE, 1);
        series.add(1000 + FINE_UNTIL, 5);
        let mut early = completions(FINE);
        early.add(1000 + 19 * FINE, 2);
        early.merge(series);
        let series = early.into_series();
        assert_eq!((series.interval_nanoseconds, series.completed.len()), (COARSE, 601));
        assert_eq!((series.completed[1], series.completed[600]), (3, 5));
    }
}
