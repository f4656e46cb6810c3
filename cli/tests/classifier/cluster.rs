//! Clusters whose nodes differ, or disappear.

use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};

use crate::group::Group;
use crate::limits::{HEAVY, SCRIPT};
use crate::situation::{Given, Manifest, far, go_first, in_the_midst, run, run_full};

/// Makes the nodes announce addresses with a long delay.
pub fn far_cluster(cluster: &RedisCluster) -> Manifest {
    let ways: Vec<String> = cluster.nodes.iter().map(|node| far(node.address())).collect();
    let ports: Vec<&str> = ways.iter().map(|way| way.rsplit(':').next().unwrap()).collect();
    for (node, port) in cluster.nodes.iter().zip(&ports) {
        node.ask::<()>(&["CONFIG", "SET", "cluster-announce-port", port]);
    }
    wait_until("every node knows the ways to all", || {
        let known = |node: &RedisServer| {
            let nodes: String = node.ask(&["CLUSTER", "NODES"]);
            ports.iter().all(|port| nodes.contains(&format!(":{port}@")))
        };
        cluster.nodes.iter().all(known)
    });
    Manifest { target: format!("type: Cluster, endpoints: ['{}']", ways[1]), ..Manifest::new("") }
}

fn manifest(cluster: &RedisCluster) -> Manifest {
    let target = format!("type: Cluster, endpoints: ['{}']", cluster.nodes[1].endpoint());
    Manifest { target, ..Manifest::new("") }
}

pub fn a_failover() -> Given {
    let mut cluster = RedisCluster::start(3);
    cluster.add_replica(0);
    let load =
        "type: OpenLoop, openLoop: {rate: 900}, connections: 48, duration: 6s, warmup: 500ms, timeouts: {request: 3s}";
    run(&Manifest { load: load.into(), ..far_cluster(&cluster) }, |_| {
        in_the_midst(&cluster.nodes[0]);
        cluster.nodes[0].kill();
    })
}

pub fn one_hot_node() -> Given {
    let cluster = RedisCluster::steady(3);
    let manifest = Manifest {
        operations: HEAVY.into(),
        keys: "{count: 1}".into(),
        workload: SCRIPT.into(),
        load: "type: ClosedLoop, connections: 24, duration: 3s, warmup: 500ms".into(),
        spec: String::new(),
        ..manifest(&cluster)
    };
    let hot = cluster.owner(slot_of_the_only_key(&cluster));
    let _first = Group::first(cluster.nodes[hot].pid());
    go_first();
    run_full(&cluster.nodes[hot], &manifest).of_node(&cluster.ids()[hot])
}

fn slot_of_the_only_key(cluster: &RedisCluster) -> u16 {
    cluster.nodes[0].ask(&["CLUSTER", "KEYSLOT", "rb:0"])
}
