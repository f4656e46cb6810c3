//! The seconds of a trial in a bounded number of intervals. Counts and histograms are added, quantiles never averaged.

use redisbench_benchmark::report::measurement::Second;
use redisbench_wire::timeline::{Buckets, Coarse, Outcomes};

/// Lengths of intervals in seconds. Longer runs have multiples of the last.
const LENGTHS: [u32; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600];

/// Measured requests of a part of the run.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Its first second after the start.
    pub from: u32,
    /// The first second after it.
    pub to: u32,
    pub counts: Outcomes,
    /// Response time of succeeded requests.
    pub response: Buckets,
    /// Succeeded requests per second in its slowest and its fastest second.
    pub slowest: f64,
    pub fastest: f64,
}

impl Interval {
    /// Succeeded requests per second.
    pub fn rate(&self) -> f64 {
        self.counts.succeeded as f64 / f64::from(self.to.saturating_sub(self.from).max(1))
    }

    /// Its middle, in seconds after the start.
    pub fn middle(&self) -> f64 {
        f64::midpoint(f64::from(self.from), f64::from(self.to))
    }
}

/// Requests of an interval that is not complete.
#[derive(Default)]
struct Open {
    response: Coarse,
    interval: Interval,
    /// Seconds that had requests.
    busy: u32,
}

impl Open {
    fn add(&mut self, second: &Second) {
        let rate = second.total.counts.succeeded as f64 / f64::from(second.seconds.max(1));
        let interval = &mut self.interval;
        (interval.slowest, interval.fastest) =
            if self.busy == 0 { (rate, rate) } else { (interval.slowest.min(rate), interval.fastest.max(rate)) };
        interval.to = interval.to.max(second.second.saturating_add(second.seconds));
        interval.counts.add(&second.total.counts);
        self.response.add(&second.total.response);
        self.busy = self.busy.saturating_add(second.seconds);
    }

    fn close(self) -> Interval {
        let idle = self.busy < self.interval.to.saturating_sub(self.interval.from);
        let slowest = if idle { 0.0 } else { self.interval.slowest };
        Interval { response: self.response.buckets(), slowest, ..self.interval }
    }
}

/// At most `most` intervals of the measured `seconds`, without a gap between them.
pub fn intervals(seconds: &[Second], most: u32) -> Vec<Interval> {
    let measured = || seconds.iter().filter(|second| second.total.counts != Outcomes::default());
    let Some(first) = measured().next().map(|second| second.second) else { return Vec::new() };
    let end = measured().map(|second| second.second.saturating_add(second.seconds)).max().unwrap_or(first);
    let length = length(end.saturating_sub(first), most);
    let mut intervals: Vec<Interval> = Vec::new();
    let mut open: Option<(u32, Open)> = None;
    for second in measured() {
        let nth = second.second.saturating_sub(first) / length;
        if open.as_ref().is_none_or(|(at, _)| *at != nth) {
            let after = open.take().map_or(first, |(_, open)| {
                let closed = open.close();
                let after = closed.to;
                intervals.push(closed);
                after
            });
            let from = first.saturating_add(nth.saturating_mul(length)).max(after);
            // Seconds without requests are not listed.
            if from > after {
                intervals.push(Interval { from: after, to: from, ..Interval::default() });
            }
            // The last interval may be a shorter one.
            let to = from.saturating_add(length).min(end);
            open = Some((nth, Open { interval: Interval { from, to, ..Interval::default() }, ..Open::default() }));
        }
        if let Some((_, open)) = &mut open {
            open.add(second);
        }
    }
    intervals.extend(open.map(|(_, open)| open.close()));
    intervals
}

/// The shortest length of which `most` cover `seconds`.
fn length(seconds: u32, most: u32) -> u32 {
    let fits = |length: &u32| seconds.div_ceil(*length) <= most;
    let longest = LENGTHS[LENGTHS.len() - 1];
    LENGTHS.into_iter().find(fits).unwrap_or_else(|| seconds.div_ceil(most.max(1)).next_multiple_of(longest))
}
