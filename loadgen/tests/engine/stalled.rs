//! A server that stalls: response times must include the whole stall, however busy the machine is.

use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::Bound;

use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, plan};
use crate::peer::Peer;

const RATE: u64 = 1000;
const REQUESTS: u64 = 900;

/// Every request due during the stall waited at least from its due time, whether it was sent or not.
#[tokio::test]
async fn who_falls_due_while_a_server_stands_still_waits_from_then_on() {
    for pipeline in [1, 16] {
        let peer = Peer::start();
        let mut plan = plan();
        plan.load = open_loop(RATE);
        plan.pipeline = pipeline;
        plan.bound = Bound::Requests { count: REQUESTS, max_nanoseconds: 60 * SECOND };
        let mut bench = Bench::connected(plan, peer.topology(), 1).await;
        let start = monotonic_nanoseconds() + 20 * MILLISECOND;
        // Requests before the stall are answered; all others wait.
        let answered = 199;
        peer.hold_at(answered + 1);
        bench.engine.start(start, 1).unwrap();
        while bench.live().await.total.scheduled < answered as u64 + 400 {}
        peer.wait_for_commands(answered + 2 * pipeline as usize);
        assert_eq!(peer.unanswered(), 2 * pipeline as usize, "as many as have room");
        let released = monotonic_nanoseconds();
        peer.release();
        let snapshot = bench.completed(1).await;
        assert_eq!((snapshot.total.succeeded, snapshot.total.unsent), (REQUESTS, 0));
        let response = snapshot.latency.response.decode(Kind::Request).unwrap();
        let waited: Vec<u64> =
            (answered as u64..REQUESTS).map_while(|k| released.checked_sub(start + k * SECOND / RATE)).collect();
        assert!(waited.len() >= 399, "{} of them", waited.len());
        for (index, least) in waited.iter().enumerate() {
            // Counts from the lower end of the histogram's bucket.
            let as_long = response.count_between(response.lowest_equivalent(*least), response.high());
            assert!(as_long > index as u64, "{as_long} waited {least} ns, and {} must have", index + 1);
        }
    }
}
