//! Clusters whose nodes are not alike, or do not stay.

use crate::group::Group;
use crate::servers::RedisCluster;
use crate::situation::{Expected, Manifest, alone, as_others, go_first, in_the_midst, judge};

fn manifest(cluster: &RedisCluster) -> Manifest {
    let target = format!("type: Cluster, endpoints: ['{}']", cluster.nodes[1].endpoint());
    Manifest { target, ..Manifest::new("") }
}

#[test]
fn a_failover() {
    let _machine = alone();
    let mut cluster = RedisCluster::start(3);
    cluster.add_replica(0);
    let load =
        "type: OpenLoop, openLoop: {rate: 900}, connections: 6, duration: 6s, warmup: 500ms, timeouts: {request: 3s}";
    let expected = Expected {
        name: "a primary is killed and its replica takes over",
        value: "Degraded",
        limited_by: "Rate",
        component: "",
        reasons: &["Unavailable", "TopologyChanged", "NotReconciled"],
        besides: &["Errors", "RateMissed"],
        varies: false,
    };
    // It happens once: a disturbed run cannot be made again with the same cluster.
    judge(&expected, &Manifest { load: load.into(), ..manifest(&cluster) }, |_| {
        in_the_midst(&cluster.nodes[0]);
        cluster.nodes[0].kill();
    });
}

#[test]
fn one_hot_node() {
    let _machine = as_others();
    let cluster = RedisCluster::steady(3);
    let script = "local n = 0; for i = 1, 60000 do n = n + i % 7 end; return n";
    let manifest = Manifest {
        operations: "[{name: heavy, command: EVALSHA __script:heavy__ 1 __key__}]".into(),
        keys: "{count: 1}".into(),
        workload: format!("scripts: [{{name: heavy, source: '{script}'}}]"),
        load: "type: ClosedLoop, connections: 24, duration: 3s, warmup: 500ms".into(),
        spec: String::new(),
        ..manifest(&cluster)
    };
    let hot = cluster.owner(slot_of_the_only_key(&cluster));
    let _first = Group::first(cluster.nodes[hot].pid());
    go_first();
    let component: &'static str = Box::leak(format!("{}/MainThread", cluster.ids()[hot]).into_boxed_str());
    let expected = Expected {
        limited_by: "Target",
        component,
        ..Expected::clean("one hot node of a cluster, at 100 % of a processor")
    };
    judge(&expected, &manifest, |_| {});
}

fn slot_of_the_only_key(cluster: &RedisCluster) -> u16 {
    cluster.nodes[0].ask(&["CLUSTER", "KEYSLOT", "rb:0"])
}
