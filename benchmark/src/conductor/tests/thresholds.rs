//! Thresholds that stop the load.

use std::time::Duration;

use tokio::time::sleep; // virtual time: it passes at once, and says when a fault comes

use super::super::{Ending, ShardPresence, reason};
use super::{MEASURED, Rig, failure, succeeded};
use crate::threshold::{Limit, Quantile, Scope, Threshold};

fn p99(milliseconds: u64) -> Threshold {
    let limit =
        Limit::ResponseTime { quantile: Quantile::parse("0.99").unwrap(), max: Duration::from_millis(milliseconds) };
    Threshold { name: "p99".into(), limit, scope: Scope::Total, window: None, abort_on_fail: true }
}

#[tokio::test(start_paused = true)]
async fn a_threshold_stops_the_load_of_every_shard_and_what_was_measured_is_kept() {
    // Shard i answers in i + 1 ms: of four, p99 of all is 4 ms.
    let mut rig = Rig::new(4);
    rig.config.thresholds = vec![p99(10), p99(3)];
    let outcome = rig.conduct().await;
    let failure = failure(&outcome);
    assert_eq!(failure.reason, reason::THRESHOLD_FAILED);
    assert!(failure.message.contains("threshold p99: p99 of response time is 4.0"), "{failure}");
    assert!((0..4).all(|shard| !rig.shards.has_load(shard)));
    // Each makes 1,000 a second, and the first counts show it.
    assert!(succeeded(&outcome).iter().all(|count| (1..=2_000).contains(count)), "{:?}", succeeded(&outcome));
    assert_eq!(
        outcome.thresholds.iter().map(|one| one.standing.holds()).collect::<Vec<_>>(),
        [Some(true), Some(false)]
    );
}

#[tokio::test(start_paused = true)]
async fn thresholds_that_hold_stop_nothing() {
    let mut rig = Rig::new(2);
    let windowed = Threshold { window: Some(Duration::from_secs(10)), ..p99(3) };
    rig.config.thresholds = vec![p99(3), windowed];
    let outcome = rig.conduct().await;
    assert_eq!(outcome.ending, Ending::Completed);
    let windows: Vec<_> = outcome.thresholds.iter().map(|one| one.standing.windows).collect();
    assert_eq!(windows[0], 0);
    assert!(windows[1] >= 40, "a window ends every second: {windows:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_shard_shows_in_the_throughput_of_the_others() {
    let mut rig = Rig::new(2);
    let limit = Limit::Throughput { min_per_second: 1_500 };
    let name = "throughput".to_owned();
    let window = Some(Duration::from_secs(5));
    rig.config.thresholds = vec![Threshold { name, limit, scope: Scope::Total, window, abort_on_fail: true }];
    let conducting = rig.spawn();
    rig.until_measuring().await;
    sleep(MEASURED / 4).await;
    rig.set_presence(1, ShardPresence::Gone { why: "evicted".into(), replaced: true });
    let outcome = conducting.await.unwrap();
    assert_eq!(failure(&outcome).reason, reason::THRESHOLD_FAILED);
    assert!(succeeded(&outcome)[0] < 30_000, "{:?}", succeeded(&outcome));
}
