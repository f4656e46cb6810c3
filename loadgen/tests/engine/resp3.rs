//! RESP3 with a real server that sends push messages between replies.

use redisbench_loadgen::engine::{Access, Handshake};
use redisbench_loadgen::resp::append_command;
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::plan::{Bound, Load};

use crate::harness::{Bench, SECOND, open_loop, plan, standalone};

#[tokio::test]
async fn invalidations_are_no_replies() {
    for (load, pipeline) in [(Load::ClosedLoop, 1), (Load::ClosedLoop, 16), (open_loop(20_000), 16)] {
        let server = RedisServer::start(&[]);
        let mut plan = plan();
        (plan.load, plan.pipeline, plan.connections) = (load, pipeline, 4);
        // Few keys, so that almost every SET invalidates a tracked key.
        plan.workload_mut().keys.count = 20;
        plan.bound = Bound::Requests { count: 10_000, max_nanoseconds: 60 * SECOND };
        let mut bytes = Vec::new();
        append_command(&mut bytes, &[b"HELLO", b"3"]);
        append_command(&mut bytes, &[b"CLIENT", b"TRACKING", b"ON"]);
        let access = Access { handshake: Handshake::new(bytes, 2), ..Access::default() };
        let snapshot = Bench::with(plan, standalone(&server), 2, access).run().await;
        assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (10_000, 0), "{:?}", snapshot.errors);
        assert_eq!(server.calls("get") + server.calls("set"), 10_000 + snapshot.warmup.succeeded);
        // More bytes arrived than in the replies, each 100 bytes or "OK": the push messages.
        let replies = server.calls("get") * 108 + server.calls("set") * 5;
        assert!(snapshot.total.received_bytes > replies, "no message was pushed: {:?}", snapshot.total);
    }
}
