//! Recordings that shards replay: the server ends with what the recorded one had.

use std::collections::BTreeMap;

use redisbench_loadgen::cluster::slot_of;
use redisbench_testkit::servers::{RedisCluster, RedisServer};
use redisbench_wire::plan::{Bound, Load, Recorded, Topology, Trace, TrialPlan};

use crate::harness::{SECOND, open_loop, plan, run, standalone, topology};

const COMMANDS: u64 = 2_000;

/// Appends to few keys in a row, so that any other order shows. Returns what each key must hold in the end.
fn recorded() -> (Recorded, BTreeMap<String, String>) {
    let key = |number: u64| format!("key:{}", number * number % 41);
    let line = |number: u64| {
        format!("1.{:06} [0 127.0.0.1:60866] \"append\" \"{}\" \"{number},\"\n", number * 10, key(number))
    };
    let text: String = (0..COMMANDS).map(line).collect();
    let mut values = BTreeMap::<String, String>::new();
    for number in 0..COMMANDS {
        values.entry(key(number)).or_default().extend([number.to_string(), ",".to_owned()]);
    }
    (Recorded::of_monitor(text.as_bytes(), u64::MAX).unwrap(), values)
}

/// Both shards replay it once.
fn replaying(load: Load, recorded: &Recorded) -> TrialPlan {
    let mut plan = TrialPlan {
        shards: 2,
        connections: 10,
        pipeline: 4,
        bound: Bound::Duration { nanoseconds: 60 * SECOND },
        trace: Some(Trace { repeats: false, recorded: None }),
        load,
        ..plan()
    };
    plan.replay(recorded.clone());
    plan
}

#[tokio::test]
async fn each_key_gets_its_commands_in_their_order() {
    let server = RedisServer::start(&[]);
    let (recorded, values) = recorded();
    // Its own times, in a hundredth of the time; a rate; and as fast as replies come.
    let paced = Load::Recorded {
        pace_millionths: 99_000_000,
        pacing_grid_nanoseconds: 0,
        unsent_after_nanoseconds: 30 * SECOND,
    };
    for load in [paced, open_loop(200_000), Load::ClosedLoop] {
        server.ask::<String>(&["FLUSHALL"]);
        server.reset_statistics();
        let plan = replaying(load.clone(), &recorded);
        let shard = |shard| run(plan.clone().of_shard(shard), standalone(&server), 2);
        let (first, second) = tokio::join!(shard(0), shard(1));
        let all = [first.total, second.total];
        assert!(all.iter().all(|total| total.errors == 0 && total.succeeded > 0), "{load:?}: {all:?}");
        assert_eq!(all.map(|total| total.succeeded).iter().sum::<u64>(), COMMANDS, "{load:?}");
        assert_eq!(server.calls("append"), COMMANDS);
        for (key, value) in &values {
            assert_eq!(server.ask::<String>(&["GET", key]), *value, "{key}, {load:?}");
        }
        // An open loop ends for all shards with the recording, not when they have sent the last command of their own keys.
        if load != Load::ClosedLoop {
            let lengths = [first, second].map(|one| one.window.measure_to_nanoseconds - one.window.start_nanoseconds);
            assert_eq!(lengths[0], lengths[1], "{load:?}");
        }
    }
}

#[tokio::test]
async fn a_cluster_s_nodes_get_the_commands_of_their_keys() {
    let cluster = RedisCluster::steady(3);
    let (recorded, values) = recorded();
    let mut plan = replaying(Load::ClosedLoop, &recorded);
    plan.target.topology = Topology::Cluster;
    let shard = |shard| run(plan.clone().of_shard(shard), topology(&cluster), 2);
    let (first, second) = tokio::join!(shard(0), shard(1));
    let all = [first.total, second.total];
    assert_eq!(all.map(|total| total.succeeded).iter().sum::<u64>(), COMMANDS, "{all:?}");
    assert_eq!(all.map(|total| total.redirect_hops), [0, 0]);
    for (key, value) in &values {
        let owner = &cluster.nodes[cluster.owner(slot_of(key.as_bytes()))];
        assert_eq!(owner.ask::<String>(&["GET", key]), *value, "{key}");
    }
}
