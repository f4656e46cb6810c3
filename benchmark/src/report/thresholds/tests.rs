use super::*;
use crate::api::{Limit, Scope, Threshold};
use crate::api::{RedisBenchmarkStatus, status, status_problems};
use crate::quantile::Quantile;

fn threshold() -> Threshold {
    let quantile = Quantile::parse("0.99").unwrap();
    let limit = Limit::ResponseTime { quantile, max: Duration::from_millis(2) };
    Threshold { name: "p99".into(), limit, scope: Scope::Total, window: None, abort_on_fail: true }
}

fn judged(observed: Option<Observed>, holds: bool) -> Judged {
    let at = Some(Duration::from_millis(4_500));
    let worst = observed.map(|observed| Worst { observed, interval: None, holds, node: None, at });
    Judged { threshold: threshold(), standing: ThresholdState { worst, windows: 7, failed_windows: u64::from(!holds) } }
}

#[test]
fn who_takes_over_goes_on_from_the_status() {
    for observed in [
        Observed::Latency(Censored::Known(1_000_000)),
        Observed::Latency(Censored::MoreThan(9)),
        Observed::Errors { failed: 3, of: 10 },
        Observed::PerSecond(12),
    ] {
        for holds in [true, false] {
            let judged = judged(Some(observed), holds);
            let [written] = &running(std::slice::from_ref(&judged), None)[..] else { panic!() };
            assert_eq!(standing(written), judged.standing);
        }
    }
    assert_eq!(standing(&running(&[judged(None, true)], None)[0]).worst, None);
}

#[test]
fn an_interval_is_in_the_status() {
    for high in [None, Some(1_100_000)] {
        let mut judged = judged(Some(Observed::Latency(Censored::Known(1_000_000))), true);
        let worst = judged.standing.worst.as_mut().unwrap();
        worst.interval = Some(Interval { low: 900_000, high });
        let [written] = &running(std::slice::from_ref(&judged), None)[..] else { panic!() };
        assert_eq!((written.low_nanoseconds, written.high_nanoseconds), (Some(900_000), high));
        assert_eq!(standing(written), judged.standing);
    }
}

#[test]
fn of_several_trials_the_worst_stays() {
    let of = |trial: u32, nanoseconds: u64| {
        let holds = nanoseconds <= 2_000_000;
        running(&[judged(Some(Observed::Latency(Censored::Known(nanoseconds))), holds)], Some(trial))
    };
    let mut all = Vec::new();
    for (trial, nanoseconds) in [(0, 1_000_000), (1, 5_000_000), (2, 1_500_000)] {
        all = worse(&all, &of(trial, nanoseconds));
    }
    assert_eq!((all.len(), all[0].trial, all[0].outcome), (1, Some(1), ThresholdOutcome::Failed));
    // A second report on the same trial replaces the first one.
    assert_eq!(worse(&of(1, 5_000_000), &of(1, 1_000_000))[0].outcome, ThresholdOutcome::Pending);
    assert_eq!(worse(&all, &[]), all);
}

#[test]
fn the_condition_names_what_failed() {
    use ThresholdOutcome::{Failed, NotJudged, Passed, Pending};
    let one = |outcome: ThresholdOutcome| status(&judged(Some(Observed::PerSecond(1)), false), outcome, None);
    let of =
        |outcomes: &[ThresholdOutcome]| condition(&outcomes.iter().map(|outcome| one(*outcome)).collect::<Vec<_>>());
    assert_eq!(of(&[]), None);
    let truth = |outcomes: &[ThresholdOutcome]| of(outcomes).unwrap().0;
    assert_eq!(truth(&[Passed, Passed]), Truth::True);
    assert_eq!(truth(&[Passed, NotJudged]), Truth::Unknown);
    assert_eq!(truth(&[Pending, Passed]), Truth::Unknown);
    assert_eq!(truth(&[Passed, Failed, NotJudged]), Truth::False);
    let (_, why, message) = of(&[Passed, Failed]).unwrap();
    assert_eq!(why, reason::THRESHOLD_FAILED);
    assert!(message.starts_with("1 of 2 thresholds failed: p99: "), "{message}");
}

#[test]
fn the_longest_status_is_one_that_the_api_server_takes() {
    let mut judged = judged(Some(Observed::Latency(Censored::MoreThan(u64::MAX))), false);
    judged.threshold.name = "n".repeat(63);
    judged.threshold.scope = Scope::Operation("o".repeat(63));
    if let Some(worst) = &mut judged.standing.worst {
        worst.node = Some("\"".repeat(600));
    }
    let thresholds = running(&[judged], Some(3));
    let status = RedisBenchmarkStatus { phase: status::Phase::Running, thresholds, ..RedisBenchmarkStatus::default() };
    assert_eq!(status_problems(&status), []);
}
