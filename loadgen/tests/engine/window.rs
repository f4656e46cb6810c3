//! The borders of the measurement, with replies that the test times: each request counts exactly once, in the period of its due time or its
//! send.

use redisbench_wire::plan::{Bound, Load, TrialPlan};
use redisbench_wire::snapshot::{Snapshot, Stage};

use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, plan};
use crate::peer::Peer;

/// Two connections with two requests each.
const WINDOW: usize = 4;
/// Longer than a busy machine needs for the first sends.
const WHILE: u64 = 500 * MILLISECOND;

fn plan_of(load: Load) -> TrialPlan {
    let mut plan = plan();
    plan.load = load;
    (plan.connections, plan.pipeline) = (2, 2);
    plan.timeouts.request_nanoseconds = 30 * SECOND;
    plan
}

/// Starts against a server that does not reply, and waits until the connections are full.
async fn started(plan: TrialPlan, peer: &Peer) -> Bench {
    peer.hold();
    let bench = Bench::started(plan, peer.topology(), 1).await;
    peer.wait_for_commands(WINDOW);
    bench
}

/// Polls until `condition` holds.
async fn until(bench: &Bench, condition: impl Fn(&Snapshot) -> bool) -> Snapshot {
    loop {
        let snapshot = bench.live().await;
        assert!(snapshot.total.balances() && snapshot.warmup.balances(), "{snapshot:?}");
        assert!(snapshot.stage != Stage::Done || condition(&snapshot), "{snapshot:?}");
        if condition(&snapshot) {
            return snapshot;
        }
    }
}

async fn until_stage(bench: &Bench, stage: Stage) -> Snapshot {
    until(bench, |snapshot| snapshot.stage == stage).await
}

#[tokio::test]
async fn a_reply_beyond_measure_from_counts_for_the_warmup_that_sent_it() {
    let peer = Peer::start();
    let mut plan = plan_of(Load::ClosedLoop);
    plan.warmup_nanoseconds = WHILE;
    plan.bound = Bound::Requests { count: 101, max_nanoseconds: 20 * SECOND };
    let mut bench = started(plan, &peer).await;
    let measuring = until_stage(&bench, Stage::Measuring).await;
    assert_eq!((measuring.warmup.scheduled, measuring.warmup.in_flight, measuring.total.scheduled), (4, 4, 0));
    peer.release();
    let snapshot = bench.completed(1).await;
    assert_eq!((snapshot.warmup.scheduled, snapshot.warmup.succeeded), (4, 4));
    assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (101, 101));
    assert_eq!(peer.received().len(), WINDOW + 101);
}

#[tokio::test]
async fn what_was_due_in_the_warmup_stays_there_however_late_it_is_sent() {
    let peer = Peer::start();
    let mut plan = plan_of(open_loop(1000));
    plan.warmup_nanoseconds = WHILE;
    plan.bound = Bound::Requests { count: 101, max_nanoseconds: 20 * SECOND };
    let mut bench = started(plan, &peer).await;
    let measuring = until_stage(&bench, Stage::Measuring).await;
    assert_eq!((measuring.warmup.scheduled, measuring.warmup.in_flight), (500, 500));
    assert_eq!(peer.received().len(), WINDOW);
    peer.release();
    let snapshot = bench.completed(1).await;
    assert_eq!((snapshot.warmup.scheduled, snapshot.warmup.succeeded), (500, 500));
    assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (101, 101));
    assert_eq!(peer.received().len(), 601);
}

#[tokio::test]
async fn a_reply_beyond_measure_to_counts_and_nothing_is_sent_for_it() {
    for (load, scheduled) in [(Load::ClosedLoop, 4), (open_loop(1000), 500)] {
        let peer = Peer::start();
        let mut plan = plan_of(load.clone());
        plan.bound = Bound::Duration { nanoseconds: WHILE };
        let mut bench = started(plan, &peer).await;
        let draining = until_stage(&bench, Stage::Draining).await;
        assert_eq!((draining.total.scheduled, draining.total.in_flight), (scheduled, 4));
        peer.release();
        let snapshot = bench.completed(1).await;
        assert_eq!((snapshot.total.succeeded, snapshot.total.unsent), (4, scheduled - 4));
        assert_eq!(snapshot.total.unsent_at_end, snapshot.total.unsent);
        assert_eq!((snapshot.total.scheduled, snapshot.warmup.scheduled), (scheduled, 0));
        assert_eq!(peer.received().len(), WINDOW);
        assert!(snapshot.window.drained_nanoseconds > snapshot.window.measure_to_nanoseconds);
        assert_eq!(snapshot.window.measure_to_nanoseconds - snapshot.window.measure_from_nanoseconds, WHILE);
    }
}

#[tokio::test]
async fn an_abort_in_mid_flight_counts_what_is_in_flight_and_late_replies_nowhere() {
    for load in [Load::ClosedLoop, open_loop(1000)] {
        let peer = Peer::start();
        let mut plan = plan_of(load.clone());
        plan.warmup_nanoseconds = 0;
        plan.bound = Bound::Requests { count: 300, max_nanoseconds: 30 * SECOND };
        let mut bench = started(plan, &peer).await;
        peer.answer(0, 1);
        peer.wait_for_commands(WINDOW + 1);
        until(&bench, |snapshot| snapshot.total.succeeded == 1).await;
        bench.engine.abort().unwrap();
        let aborted = bench.finished(1).await;
        assert!(aborted.aborted);
        assert_eq!((aborted.total.succeeded, aborted.total.errors, aborted.total.unsent), (1, 0, 0));
        assert_eq!(aborted.total.in_flight, aborted.total.scheduled - 1);
        if load == Load::ClosedLoop {
            assert_eq!(aborted.total.scheduled, 5);
        }
        // The next start comes while requests are still in flight. Their replies make room for it and count for nothing else.
        bench.engine.rearm().unwrap();
        bench.start(2);
        until_stage(&bench, Stage::Measuring).await;
        let sent = peer.received().len();
        assert_eq!(sent, WINDOW + 1);
        peer.release();
        let snapshot = bench.completed(2).await;
        assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (300, 300));
        assert_eq!(peer.received().len(), sent + 300);
    }
}

#[tokio::test]
async fn shards_with_unequal_numbers_each_send_their_own() {
    for load in [Load::ClosedLoop, open_loop(1000)] {
        let peer = Peer::start();
        let counts = [3, 40];
        let mut benches = Vec::new();
        for (shard, count) in counts.into_iter().enumerate() {
            let plan = TrialPlan { shards: 2, connections: 4, ..plan_of(load.clone()) };
            let mut part = plan.of_shard(shard as u32);
            part.bound = Bound::Requests { count, max_nanoseconds: 20 * SECOND };
            benches.push(Bench::connected(part, peer.topology(), 2).await);
        }
        for bench in &benches {
            bench.start(1);
        }
        for (bench, count) in benches.iter_mut().zip(counts) {
            let snapshot = bench.completed(1).await;
            assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (count, count));
            let window = snapshot.window;
            assert!(window.measure_to_nanoseconds >= window.measure_from_nanoseconds);
            assert!(window.measure_to_nanoseconds <= window.drained_nanoseconds);
        }
        assert_eq!(peer.received().len(), 43);
    }
}
