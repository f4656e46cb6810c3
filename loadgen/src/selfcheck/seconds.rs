//! The workers' shortage of processor time in each second since the start instant. Pure: times are clock readings.

use redisbench_wire::strain::{Shares, Strain};

use super::run_queue::Times;

const SECOND: u64 = 1_000_000_000;
const WHOLE: u128 = 10_000;

/// The kernel's counters at one time. All are monotonic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// The monotonic clock.
    pub(super) at: u64,
    /// Time throttled by a CPU quota.
    pub(super) throttled: u64,
    /// Processors of the machine.
    pub(super) processors: u32,
    /// Steal time over all processors.
    pub(super) stolen: u64,
    pub(super) workers: Vec<Times>,
}

impl Sample {
    /// Interpolates the counters at `instant`, between `self` and `later`.
    fn until(&self, later: &Self, instant: u64) -> Self {
        let (whole, part) = (later.at.saturating_sub(self.at), instant.saturating_sub(self.at));
        let between = |from: u64, to: u64| {
            let risen = u128::from(to.saturating_sub(from)) * u128::from(part.min(whole)) / u128::from(whole.max(1));
            from.saturating_add(u64::try_from(risen).unwrap_or(u64::MAX))
        };
        let worker = |(from, to): (&Times, &Times)| Times {
            ran: between(from.ran, to.ran),
            waited: between(from.waited, to.waited),
        };
        Self {
            at: self.at.saturating_add(part.min(whole)),
            throttled: between(self.throttled, later.throttled),
            processors: later.processors,
            stolen: between(self.stolen, later.stolen),
            workers: self.workers.iter().zip(&later.workers).map(worker).collect(),
        }
    }

    /// The increase from `self` to `later` as shares of the time between.
    fn shares(&self, later: &Self) -> Shares {
        let time = later.at.saturating_sub(self.at);
        let share = |from: u64, to: u64, time: u128| {
            let share = u128::from(to.saturating_sub(from)) * WHOLE / time.max(1);
            u32::try_from(share).unwrap_or(u32::MAX)
        };
        let each = |of: fn(&Times) -> u64| {
            let workers = self.workers.iter().zip(&later.workers);
            workers.map(move |(from, to)| share(of(from), of(to), time.into()))
        };
        let processors = u128::from(later.processors.max(1));
        Shares {
            busiest_worker: each(|worker| worker.ran).max().unwrap_or_default(),
            longest_waiting_worker: each(|worker| worker.waited).max().unwrap_or_default(),
            run_queue: each(|worker| worker.waited).fold(0, u32::saturating_add),
            throttled: share(self.throttled, later.throttled, time.into()),
            stolen: share(self.stolen, later.stolen, u128::from(time) * processors),
        }
    }
}

/// The seconds of a load so far.
#[derive(Debug)]
pub(super) struct StrainSeconds {
    /// The beginning of the next second. The first one begins at the start instant.
    border: u64,
    /// The counters at the beginning of the present second; `None` before the start.
    began: Option<Sample>,
    last: Sample,
    strain: Strain,
}

impl StrainSeconds {
    /// For a load that starts at `start`, which may be later than `first`.
    pub(super) fn begin(start: u64, first: Sample) -> Self {
        Self { border: start, began: None, last: first, strain: Strain::default() }
    }

    /// The time of the next sample. The closer it is taken, the less is attributed to the neighbouring second.
    pub(super) fn border(&self) -> u64 {
        self.border
    }

    /// Takes later counters.
    pub(super) fn take(&mut self, sample: Sample) {
        while sample.at >= self.border {
            let at_border = self.last.until(&sample, self.border);
            if let Some(began) = &self.began {
                self.strain.push(began.shares(&at_border), SECOND);
            }
            self.began = Some(at_border);
            self.border = self.border.saturating_add(SECOND);
        }
        self.last = sample;
    }

    /// Takes the counters at the end of the load.
    pub(super) fn end(&mut self, sample: Sample) {
        self.take(sample);
        if let Some(began) = self.began.take().filter(|began| began.at < self.last.at) {
            self.strain.push(began.shares(&self.last), self.last.at - began.at);
        }
    }

    /// The seconds that have ended.
    pub(super) fn strain(&self) -> &Strain {
        &self.strain
    }
}

#[cfg(test)]
mod tests {
    use redisbench_wire::strain::Point;

    use super::*;

    const START: u64 = 77 * SECOND + 123_456_789;
    const TENTH: u64 = SECOND / 10;

    /// A machine of four processors with one worker. It runs for `busy` of each millisecond since the start, in hundredths of a per cent,
    /// and waits for the rest of the time.
    fn sample(at: u64, busy: impl Fn(u64) -> u64) -> Sample {
        let milliseconds = at.saturating_sub(START) / 1_000_000;
        let ran = (0..milliseconds).map(|millisecond| busy(millisecond) * 100).sum();
        let time = milliseconds * 1_000_000;
        let waited = time - ran;
        Sample { at, throttled: time / 10, processors: 4, stolen: time, workers: vec![Times { ran, waited }] }
    }

    fn points(seconds: &StrainSeconds) -> Vec<Point> {
        seconds.strain().points().collect()
    }

    #[test]
    fn seconds_are_aligned_to_the_start_however_the_samples_fall() {
        // Only the third second is fully busy.
        let busy = |millisecond: u64| if millisecond / 1000 == 2 { 10_000 } else { 2_000 };
        let mut seconds = StrainSeconds::begin(START, sample(START - 3 * SECOND / 2, busy));
        assert_eq!(seconds.border(), START);
        // Some samples are late.
        for at in [0, 9, 10, 18, 20, 21, 29, 30, 31, 47] {
            seconds.take(sample(START + at * TENTH, busy));
        }
        seconds.end(sample(START + 52 * TENTH, busy));
        let points = points(&seconds);
        let busiest: Vec<u32> = points.iter().map(|point| point.mean.busiest_worker).collect();
        assert_eq!(busiest, [2_000, 2_000, 10_000, 2_000, 2_000, 2_000]);
        assert_eq!((points[5].from, points[5].until), (5 * SECOND, 5 * SECOND + SECOND / 5));
        let Shares { longest_waiting_worker, run_queue, throttled, stolen, .. } = points[0].mean;
        assert_eq!((longest_waiting_worker, run_queue, throttled, stolen), (8_000, 8_000, 1_000, 2_500));
        assert_eq!(seconds.border(), START + 6 * SECOND);
    }

    #[test]
    fn between_two_samples_counters_rise_evenly() {
        let mut seconds = StrainSeconds::begin(START, sample(START - SECOND, |_| 0));
        seconds.take(sample(START + SECOND / 2, |_| 4_000));
        seconds.end(sample(START + 5 * SECOND / 2, |_| 4_000));
        // Interpolation attributes two thirds of the first sample to the time before the start; no more is known.
        let busiest: Vec<u32> = points(&seconds).iter().map(|point| point.mean.busiest_worker).collect();
        assert_eq!(busiest, [2_666, 4_000, 4_000]);
    }

    #[test]
    fn what_came_before_the_start_is_no_second() {
        let mut seconds = StrainSeconds::begin(START, sample(START - 5 * SECOND, |_| 0));
        seconds.take(sample(START - SECOND, |_| 0));
        assert_eq!(points(&seconds), []);
        seconds.end(sample(START - TENTH, |_| 0));
        assert_eq!(points(&seconds), []);
    }

    #[test]
    fn hours_take_bounded_memory() {
        let at = |second: u64| Sample {
            at: START + second * SECOND,
            workers: vec![Times { ran: second * SECOND / 2, waited: 0 }],
            ..Sample::default()
        };
        let mut seconds = StrainSeconds::begin(START, at(0));
        for second in 1..=6 * 3_600 {
            seconds.take(at(second));
        }
        let points = points(&seconds);
        assert!(points.len() < 3_660 + 6 * 60, "{}", points.len());
        assert_eq!(points.last().unwrap().until, 6 * 3_600 * SECOND);
        assert!(points.iter().all(|point| point.mean.busiest_worker == 5_000));
    }
}
