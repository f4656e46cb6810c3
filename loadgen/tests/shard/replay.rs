//! Recordings that the plan does not carry.

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::FailureReason;
use redisbench_wire::plan::{Bound, Preload, Trace, TrialPlan};

use crate::client::Shard;
use crate::plans::{SECOND, plan};
use crate::refusals::assert_refused_with;

fn replaying(endpoint: &str) -> TrialPlan {
    let mut plan = TrialPlan {
        preload: Preload::None,
        warmup_nanoseconds: 0,
        bound: Bound::Duration { nanoseconds: 60 * SECOND },
        trace: Some(Trace { repeats: false, recorded: None }),
        ..plan(endpoint)
    };
    plan.workload_mut().operations.clear();
    plan
}

#[tokio::test]
async fn a_recording_is_sent_once() {
    let redis = RedisServer::start(&[]);
    let trace = "OK\n\
                 1.000000 [3 127.0.0.1:1] \"select\" \"3\"\n\
                 1.000001 [3 127.0.0.1:1] \"rpush\" \"list\" \"a\"\n\
                 1.000002 [3 127.0.0.1:1] \"set\" \"text\" \"\\x00\\\"\"\n\
                 1.000003 [3 127.0.0.1:1] \"rpush\" \"list\" \"b\"\n";
    let shard = Shard::start_with(None, &[("data/trace", trace)]).await;
    let snapshot = shard.run_plan(&replaying(&redis.endpoint())).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (3, 0), "{:?}", snapshot.errors);
    let operations: Vec<_> = snapshot.operations.iter().map(|one| (one.name.as_str(), one.tally.succeeded)).collect();
    assert_eq!(operations, [("trace", 3)]);
    assert_eq!(redis.ask::<Vec<String>>(&["LRANGE", "list", "0", "-1"]), ["a", "b"]);
    assert_eq!(redis.ask::<String>(&["GET", "text"]), "\0\"");
}

#[tokio::test]
async fn a_recording_with_an_unknown_command_is_refused() {
    let redis = RedisServer::start(&[]);
    let trace = "1.000000 [0 127.0.0.1:1] \"rb.search\" \"hunter2\"\n";
    let parts = ["spec.workload.trace: rb-search: the server has no command RB.SEARCH"];
    let plan = replaying(&redis.endpoint());
    let files = [("data/trace", trace)];
    let failure = assert_refused_with(&plan, None, &files, FailureReason::CommandRefused, &parts).await;
    assert!(!failure.message.contains("hunter2"), "{failure:?}");
}
