use super::*;
use crate::noise::Noise;

const INTERVAL: Duration = Duration::from_millis(100);

/// Distribution of a target's service time.
#[derive(Clone, Copy, Debug)]
enum Service {
    /// Constant.
    Even,
    /// Normal, with a tenth of the mean as standard deviation.
    Regular,
    /// Exponential: a D/M/1 queue.
    Exponential,
    /// Exponential, with one stop of half a second at a random time.
    Pausing,
}

/// Completions in a window of `seconds` at `rate`, after a warm-up of two seconds, by one server with utilisation `load`.
fn completions(service: Service, rate: f64, load: f64, seconds: u32, seed: u64) -> Vec<u64> {
    let mut noise = Noise::new(seed, 0.0);
    let (warmup, end) = (2.0, 2.0 + f64::from(seconds));
    let pause = if matches!(service, Service::Pausing) { end * noise.even() } else { f64::INFINITY };
    let mut points = vec![0; seconds as usize * 10];
    let (mut free, mut paused, mut k) = (0.0_f64, false, 0.0);
    loop {
        let due = k / rate;
        k += 1.0;
        let share = match service {
            Service::Even => 1.0,
            Service::Regular => (1.0 + 0.1 * noise.normal()).max(0.0),
            Service::Exponential | Service::Pausing => -(1.0 - noise.even()).ln(),
        };
        free = free.max(due) + load / rate * share;
        if !paused && free > pause {
            paused = true;
            free += 0.5;
        }
        if due >= end {
            return points;
        }
        if free >= warmup && free < end {
            points[tenth(free - warmup)] += 1;
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of some seconds")]
fn tenth(seconds: f64) -> usize {
    (seconds * 10.0) as usize
}

/// The share of `windows` whose backlog grew.
fn found(service: Service, rate: f64, load: f64, seconds: u32, windows: u64) -> f64 {
    let grew = |seed: &u64| growth(rate, INTERVAL, &completions(service, rate, load, seconds, *seed), 0).is_some();
    let share = (0..windows).filter(grew).count() as f64 / windows as f64;
    println!("{service:?}, {rate}/s at {load} for {seconds} s: {:.2} %", 100.0 * share);
    share
}

#[test]
fn a_queue_below_its_capacity_is_rarely_called_growing() {
    for service in [Service::Regular, Service::Exponential, Service::Pausing] {
        for (rate, seconds) in [(100.0, 12), (100.0, 30), (400.0, 12)] {
            for load in [0.5, 0.8, 0.9] {
                // At 0.9 the target needs five seconds to catch up with half a second, and a window of 12 s may end before.
                if matches!(service, Service::Pausing) && load > 0.8 {
                    continue;
                }
                let share = found(service, rate, load, seconds, 1_000);
                assert!(share <= 0.005, "{service:?}, {rate}/s at {load} for {seconds} s: {share}");
            }
        }
    }
}

#[test]
fn a_half_per_cent_too_much_is_found() {
    for service in [Service::Even, Service::Regular] {
        for rate in [500.0, 1_000.0] {
            let share = found(service, rate, 1.0 / 0.995, 12, 200);
            assert!(share >= 0.9, "{service:?}, {rate}/s: {share}");
        }
    }
    let share = found(Service::Exponential, 500.0, 1.05, 12, 200);
    assert!(share >= 0.5, "{share}");
}

#[test]
fn the_growth_is_what_is_missing() {
    let grew = growth(10_000.0, INTERVAL, &[995; 120], 0).unwrap();
    assert!((grew.per_second - 50.0).abs() < 1.0 && (grew.share - 0.005).abs() < 0.0001, "{grew:?}");
    assert_eq!(growth(10_000.0, INTERVAL, &[998; 120], 0), None, "less than is to be found");
    assert_eq!(growth(10_000.0, INTERVAL, &[1_040; 120], 0), None, "it shrinks");
}

#[test]
fn what_is_no_trend_is_no_growth() {
    // The first round trip, and pauses with and without time to catch up.
    let mut late = vec![1_000; 120];
    late[..15].fill(0);
    assert_eq!(growth(10_000.0, INTERVAL, &late, 0), None);
    let mut stopped = vec![1_000; 120];
    stopped[110..].fill(0);
    assert_eq!(growth(10_000.0, INTERVAL, &stopped, 0), None);
}

#[test]
fn requests_that_failed_are_no_backlog() {
    assert_eq!(growth(10_000.0, INTERVAL, &[990; 120], 1_200), None);
    // All failures are in the last seconds, but `growth` does not get their times.
    let mut outage = vec![1_000; 120];
    outage[60..].fill(980);
    assert_eq!(growth(10_000.0, INTERVAL, &outage, 1_200), None);
    assert!(growth(10_000.0, INTERVAL, &[970; 120], 1_200).is_some(), "more than failed is missing");
}

#[test]
fn too_little_says_nothing() {
    for points in [&[][..], &[0; 9], &[0; 49]] {
        assert_eq!(growth(10_000.0, INTERVAL, points, 0), None);
    }
    assert_eq!(growth(0.0, INTERVAL, &[0; 100], 0), None);
    assert_eq!(growth(0.0, INTERVAL, &[0; 100], u64::MAX), None);
}
