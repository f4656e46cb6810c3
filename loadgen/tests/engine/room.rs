//! Requests of an open loop that wait for room on a connection, which counts as the target's fault.

use redisbench_wire::plan::{Bound, TrialPlan};

use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, operation, plan, run};
use crate::peer::Peer;

fn reads(connections: u32, per_second: u64, nanoseconds: u64) -> TrialPlan {
    let (load, bound) = (open_loop(per_second), Bound::Duration { nanoseconds });
    let mut plan = TrialPlan { connections, load, bound, ..plan() };
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    plan
}

#[tokio::test]
async fn with_a_connection_for_each_request_none_waits() {
    let peer = Peer::start();
    let snapshot = run(reads(64, 50, 400 * MILLISECOND), peer.topology(), 1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.generator.waited_for_room), (20, Some(0)));
}

#[tokio::test]
async fn requests_that_found_no_room_are_counted() {
    let peer = Peer::start();
    let mut bench = Bench::connected(reads(1, 200, 2 * SECOND), peer.topology(), 1).await;
    peer.hold();
    bench.start(1);
    // One request fills the only connection, and ten wait behind it.
    while bench.live().await.total.in_flight < 11 {}
    peer.release();
    let snapshot = bench.completed(1).await;
    let waited = snapshot.generator.waited_for_room.unwrap();
    assert!((10..snapshot.total.scheduled).contains(&waited), "{waited} of {:?}", snapshot.total);
}
