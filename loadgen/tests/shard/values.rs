//! Values and keys from files that the plan does not carry.

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::FailureReason;
use redisbench_wire::plan::{KeyFile, TrialPlan, ValueContent};

use crate::client::Shard;
use crate::plans::plan;
use crate::refusals::assert_refused;

fn from_a_file(endpoint: &str) -> TrialPlan {
    let mut plan = plan(endpoint);
    plan.workload_mut().values.content = ValueContent::Lines;
    plan
}

#[tokio::test]
async fn lines_are_written_in_turns() {
    let redis = RedisServer::start(&[]);
    let files = [("data/values", "one\n{\"id\": 2}\n")];
    let shard = Shard::start_with(None, &files).await;
    shard.prepared(&from_a_file(&redis.endpoint())).await;
    for (key, line) in [("rb:000", "one"), ("rb:001", "{\"id\": 2}"), ("rb:998", "one")] {
        assert_eq!(redis.ask::<String>(&["GET", key]), line, "{key}");
    }
    let total = shard.run(1).await.total;
    assert_eq!((total.succeeded, total.errors), (5000, 0));
    let lengths = [3_u64, 9];
    for key in ["rb:000", "rb:500", "rb:999"] {
        assert!(lengths.contains(&redis.ask::<u64>(&["STRLEN", key])), "{key}");
    }
}

#[tokio::test]
async fn lines_are_keys_from_the_preload_to_the_cleanup() {
    let redis = RedisServer::start(&[]);
    redis.ask::<()>(&["SET", "user", "another's"]);
    let files = [("data/keys", "user:1\r\n{a}:2\nlast")];
    let shard = Shard::start_with(None, &files).await;
    let mut plan = plan(&redis.endpoint());
    (plan.workload_mut().key_file, plan.workload_mut().keys.count) = (Some(KeyFile::default()), 3);
    shard.prepared(&plan).await;
    let total = shard.run(1).await.total;
    assert_eq!((total.succeeded, total.errors), (5000, 0));
    let mut keys: Vec<String> = redis.ask(&["KEYS", "*"]);
    keys.sort_unstable();
    assert_eq!(keys, ["last", "user", "user:1", "{a}:2"]);
    assert_eq!(shard.cleaned_up().await, 3);
    assert_eq!(redis.ask::<Vec<String>>(&["KEYS", "*"]), ["user"]);
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let parts = ["spec.workload.values.content.file.configMapRef", "did not exist when the shard started"];
    assert_refused(&from_a_file("127.0.0.1:1"), FailureReason::BadPlan, &parts).await;
}
