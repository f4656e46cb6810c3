//! The expected effect of a stop on the latencies, from the counts of the same run.
//!
//! Requests are due every `gap`. The server stops for S, and requests queue. It then answers them, oldest first, at the schedule's rate
//! divided by rho. A request due t after the stop began waits S - t*(1-rho). So over T seconds the quantile q is S - (1-q)*T*(1-rho), and
//! the mean grows by S*S/(2*T*(1-rho)).
//!
//! The speed of the drain depends on the machine and need not be steady. It is measured by polling the engine's count of answers every few
//! milliseconds. A quantile is about the requests that waited longest, so it uses the rho of the part of the drain that answered these. The
//! sum of all waits is the area under the backlog, whatever its shape (Little's law); for a steady drain that is the formula above.

/// The engine's count at one time, in nanoseconds of its own clock.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub time: u64,
    pub answered: u64,
}

/// A stop and its drain.
#[derive(Debug)]
pub struct Drain {
    /// The due time of request 0.
    pub start: u64,
    /// Time between due times.
    pub gap: u64,
    /// The times at which the server stopped and continued.
    pub stop: (u64, u64),
    /// From the end of the stop until the backlog was gone.
    pub samples: Vec<Sample>,
}

impl Drain {
    /// S.
    pub fn length(&self) -> f64 {
        (self.stop.1 - self.stop.0) as f64
    }

    /// Requests due before the stop.
    fn before(&self) -> f64 {
        (self.stop.0 - self.start) as f64 / self.gap as f64
    }

    /// The time at which the oldest `count` of the backlog were answered, and the sampling interval around it.
    fn answered(&self, count: f64) -> (f64, f64) {
        let wanted = self.before() + count;
        let (mut time, mut answered) = (self.stop.1 as f64, self.before());
        for sample in &self.samples {
            let (next_time, next_answered) = (sample.time as f64, sample.answered as f64);
            if next_answered >= wanted {
                let part = (wanted - answered) / (next_answered - answered).max(1.0);
                return (time + (next_time - time) * part.clamp(0.0, 1.0), next_time - time);
            }
            (time, answered) = (next_time, next_answered.max(answered));
        }
        (f64::NAN, f64::NAN)
    }

    /// rho while the oldest `count` of the backlog were answered.
    pub fn rho(&self, count: f64) -> f64 {
        (self.answered(count).0 - self.stop.1 as f64) / (count * self.gap as f64)
    }

    /// The latency that the oldest `count` of the backlog exceed.
    pub fn exceeded_by(&self, count: f64) -> f64 {
        self.length() - count * self.gap as f64 * (1.0 - self.rho(count))
    }

    /// Returns whether sampling was frequent enough to time the answers to the oldest `count`.
    pub fn is_seen(&self, count: f64) -> bool {
        self.answered(count).1 < 10e6
    }

    /// The sum of all waits.
    pub fn sum(&self) -> f64 {
        let backlog = |time: f64, answered: f64| (time - self.start as f64) / self.gap as f64 - answered;
        let stopped = self.length() * self.length() / self.gap as f64 / 2.0;
        let (mut time, mut waiting) = (self.stop.1 as f64, self.length() / self.gap as f64);
        let drained = self.samples.iter().map(|sample| {
            let (next_time, next_waiting) = (sample.time as f64, backlog(sample.time as f64, sample.answered as f64));
            let area = (next_time - time) * f64::midpoint(waiting, next_waiting);
            (time, waiting) = (next_time, next_waiting);
            area
        });
        stopped + drained.sum::<f64>()
    }
}

#[test]
fn a_steady_drain_gives_the_formulas() {
    // A request every 50 us, a stop of 500 ms, then 8 of 9 answers for the backlog: rho = 1/9 over 10 s.
    let (stop, gap) = ((4_000_000_000, 4_500_000_000), 50_000);
    let samples =
        (1..=100).map(|step| Sample { time: stop.1 + step * 625_000, answered: 80_000 + step * 112 + step / 2 });
    let drain = Drain { start: 0, gap, stop, samples: samples.collect() };
    let (length, whole, rho) = (0.5e9, 10e9, 1.0 / 9.0);
    for count in [200.0, 2000.0] {
        assert!((drain.rho(count) - rho).abs() < 0.003, "{}", drain.rho(count));
        let quantile = length - count * 50_000.0 * (1.0 - rho);
        assert!((drain.exceeded_by(count) / quantile - 1.0).abs() < 0.001);
        assert!(drain.is_seen(count));
    }
    let mean = length * length / (2.0 * whole * (1.0 - rho));
    assert!((drain.sum() / 200_000.0 / mean - 1.0).abs() < 0.002);
}
