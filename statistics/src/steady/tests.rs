use super::*;
use crate::noise::Noise;

/// As in the verdict.
const RULE: Rule = Rule { trend: 31, tolerance: 0.1 };

/// Ten parts of a throughput with noise around `level`.
fn parts(deviation: f64, alike: f64, seed: u64, level: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut noise = Noise::new(seed, alike);
    (0..10).map(|part| 50_000.0 * level((f64::from(part) + 0.5) / 10.0) * (1.0 + deviation * noise.next())).collect()
}

/// The share of 2000 series that drifted.
fn share(deviation: f64, alike: f64, level: impl Fn(f64) -> f64 + Copy) -> f64 {
    let found = (0..2_000).filter(|&seed| drift(&parts(deviation, alike, seed, level), &RULE).is_some());
    found.count() as f64 / 2_000.0
}

#[test]
fn what_is_steady_is_rarely_called_otherwise() {
    for (alike, most) in [(0.0, 0.005), (0.5, 0.05)] {
        for deviation in [0.01, 0.03, 0.1, 0.3] {
            let found = share(deviation, alike, |_| 1.0);
            println!("deviation {deviation}, correlation {alike}: {found}");
            assert!(found <= most, "deviation {deviation}, correlation {alike}: {found}");
        }
    }
}

#[test]
fn what_drifts_is_called_so() {
    // A fall of a fifth; a fill that slows down; a warm-up over the first third.
    let falling = |time: f64| 1.1 - 0.2 * time;
    let slowing = |time: f64| 0.7 + 0.3 * (1.0 - (-3.0 * time).exp());
    let warming = |time: f64| if time < 0.33 { 0.7 + 0.9 * time } else { 1.0 };
    for alike in [0.0, 0.5] {
        let found = [share(0.02, alike, falling), share(0.02, alike, slowing), share(0.02, alike, warming)];
        println!("fall, fill and warm-up, correlation {alike}: {found:?}");
        assert!(found[..2].iter().all(|&found| found >= 0.95), "correlation {alike}: {found:?}");
    }
}

#[test]
fn a_small_drift_is_steady_however_certain() {
    assert_eq!(drift(&parts(0.0001, 0.0, 1, |time| 1.0 + 0.08 * time), &RULE), None);
}

/// At any place and of any depth.
#[test]
fn one_part_that_is_off_is_no_drift() {
    for (off, depth) in (0..10).flat_map(|off| [(off, 0.0), (off, 0.5), (off, 3.0)]) {
        let mut parts = parts(0.005, 0.0, 3, |_| 1.0);
        parts[off] *= depth;
        assert_eq!(drift(&parts, &RULE), None, "part {off} at {depth}");
    }
}

#[test]
fn the_size_is_that_of_the_line() {
    let rising: Vec<f64> = (0..10).map(|part| 1_000.0 + 30.0 * f64::from(part)).collect();
    let found = drift(&rising, &RULE).unwrap();
    assert!((found - 270.0 / 1_135.0).abs() < 1e-12, "{found}");
    let falling: Vec<f64> = rising.iter().rev().copied().collect();
    assert!((drift(&falling, &RULE).unwrap() + found).abs() < 1e-12);
}

#[test]
fn nothing_says_nothing() {
    for parts in [&[][..], &[1.0], &[0.0; 10]] {
        assert_eq!(drift(parts, &RULE), None);
    }
}

/// As in the verdict, for the median and for the 99th percentile.
const LATENCIES: [Rule; 2] = [Rule { trend: 39, tolerance: 0.15 }, Rule { trend: 39, tolerance: 0.25 }];

/// The noise of a latency from second to second.
#[derive(Clone, Copy, Debug)]
struct Seconds {
    deviation: f64,
    alike: f64,
    /// One second in 20 is longer by a Pareto-distributed factor, which has no useful mean.
    heavy: bool,
    /// The interval of stalls in seconds; a second with a stall is 50 times as long.
    stall: Option<u64>,
}

impl Seconds {
    fn of(deviation: f64, alike: f64) -> Self {
        Self { deviation, alike, heavy: false, stall: None }
    }

    /// Latencies in ns that rise by a share over `seconds`.
    fn series(self, seconds: usize, rise: f64, seed: u64) -> Vec<Option<f64>> {
        let (mut noise, mut tail) = (Noise::new(seed, self.alike), Noise::new(!seed, 0.0));
        let second = |at: usize| {
            let level = 1.0 + rise * (at as f64 + 0.5) / seconds as f64;
            let mut latency = 1_000_000.0 * level * (self.deviation * noise.next()).exp();
            if self.heavy && tail.even() < 0.05 {
                latency *= 1.0 + (1.0 - tail.even()).powf(-1.0 / 1.2);
            }
            if self.stall.is_some_and(|every| (at as u64 + seed).is_multiple_of(every)) {
                latency *= 50.0;
            }
            Some(latency)
        };
        (0..seconds).map(second).collect()
    }

    /// The share of 1,000 series in which either rule finds a shift. The percentiles of real seconds correlate, so independent ones are the
    /// worst case.
    fn found(self, seconds: usize, rise: f64) -> f64 {
        let shifts = |&seed: &u64| {
            (0..).zip(&LATENCIES).any(|(nth, rule)| shift(&self.series(seconds, rise, 2 * seed + nth), rule).is_some())
        };
        let share = (0..1_000).filter(shifts).count() as f64 / 1_000.0;
        println!("{self:?}, a rise of {rise} over {seconds} s: {:.1} %", 100.0 * share);
        share
    }
}

#[test]
fn a_steady_latency_is_rarely_called_otherwise() {
    let mut noises: Vec<Seconds> = [(0.02, 0.0), (0.1, 0.0), (0.1, 0.5), (0.3, 0.5)]
        .map(|(deviation, alike)| Seconds::of(deviation, alike))
        .to_vec();
    noises.push(Seconds { heavy: true, ..Seconds::of(0.1, 0.3) });
    noises.extend([3, 5, 7, 13].map(|every| Seconds { stall: Some(every), ..Seconds::of(0.1, 0.3) }));
    for (noise, seconds) in noises.into_iter().flat_map(|noise| [10, 20, 30, 60].map(|seconds| (noise, seconds))) {
        let share = noise.found(seconds, 0.0);
        assert!(share <= 0.005, "{noise:?} over {seconds} s: {share}");
    }
}

#[test]
fn a_latency_that_rises_is_called_so() {
    for (alike, seconds) in [(0.0, 30), (0.5, 30), (0.0, 60), (0.5, 60)] {
        let share = Seconds::of(0.02, alike).found(seconds, 0.3);
        assert!(share >= 0.95, "{seconds} s, correlation {alike}: {share}");
    }
    let share = Seconds::of(0.1, 0.3).found(60, 1.0);
    assert!(share >= 0.95, "{share}");
}

#[test]
fn a_shift_says_from_where_to_where() {
    let rising: Vec<Option<f64>> = (0..40).map(|at| Some(1_000.0 + 10.0 * f64::from(at))).collect();
    let rule = &LATENCIES[0];
    assert_eq!(shift(&rising, rule), Some(Shift { first: 1_015.0, last: 1_375.0 }));
    let falling: Vec<Option<f64>> = rising.iter().rev().copied().collect();
    assert_eq!(shift(&falling, rule), Some(Shift { first: 1_375.0, last: 1_015.0 }));
    // Seconds without enough requests are unknown. A tenth with only such seconds makes the result unknown.
    let mut holes = rising.clone();
    holes.iter_mut().skip(1).step_by(2).for_each(|second| *second = None);
    assert!(shift(&holes, rule).is_some());
    holes[..4].fill(None);
    assert_eq!(shift(&holes, rule), None);
    assert_eq!(shift(&rising[..9], rule), None, "too short");
    assert_eq!(shift(&[], rule), None);
}
