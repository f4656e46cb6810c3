//! A primary that becomes a replica closes no connection; only READONLY errors reveal it.

use redisbench_loadgen::engine::EngineEvent;
use redisbench_testkit::servers::{RedisServer, wait_until};
use redisbench_wire::plan::{Bound, Topology};

use crate::harness::{Bench, SECOND, open_loop, operation, plan, standalone};

#[tokio::test]
async fn with_sentinels_a_refused_write_is_a_reason_to_look_who_the_primary_is() {
    let [old, new] = [RedisServer::start(&[]), RedisServer::start(&[])];
    let mut plan = plan();
    plan.target.topology = Topology::Sentinel;
    plan.target.master_name = Some("mymaster".into());
    plan.workload_mut().operations = vec![operation("write", 1, "SET __key__ __data__")];
    plan.load = open_loop(1000);
    plan.bound = Bound::Duration { nanoseconds: 4 * SECOND };
    let mut bench = Bench::started(plan, standalone(&old), 1).await;
    wait_until("some requests", || old.calls("set") > 100);
    old.ask::<()>(&["REPLICAOF", "127.0.0.1", &new.address().port().to_string()]);
    bench.until(|event| *event == EngineEvent::TopologyStale).await;
    bench.engine.update_topology(&standalone(&new).into()).unwrap();
    let snapshot = bench.completed(1).await;
    let kinds: Vec<_> = snapshot.errors.iter().map(|error| error.kind.as_str()).collect();
    // Requests in flight end with the abandoned connection.
    assert!(kinds.contains(&"READONLY") && kinds.len() <= 2, "{:?}", snapshot.errors);
    assert!(new.calls("set") > 500, "{:?}", snapshot.total);
}
