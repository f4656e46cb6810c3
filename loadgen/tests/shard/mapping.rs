//! A cluster whose announced addresses are unreachable from the shard. Each node is reached through its own proxy.

use redisbench_testkit::haproxy::HaProxy;
use redisbench_testkit::servers::RedisCluster;
use redisbench_wire::plan::AddressMapping;

use crate::changes::hand_over;
use crate::client::Shard;
use crate::plans::clustered;

#[tokio::test]
async fn announced_addresses_are_mapped_in_maps_and_redirects() {
    let cluster = RedisCluster::steady(3);
    let servers: Vec<_> = cluster.nodes.iter().map(|node| [node.endpoint()]).collect();
    let proxy = HaProxy::start(&servers.iter().map(<[String; 1]>::as_slice).collect::<Vec<_>>());
    let map: Vec<_> = std::iter::zip(&cluster.nodes, proxy.endpoints())
        .map(|(node, reachable)| AddressMapping { announced: node.endpoint(), reachable })
        .collect();
    let mut plan = clustered(&map[0].reachable);
    plan.target.address_map.clone_from(&map);
    let shard = Shard::armed(&plan).await;
    // Makes the shard's map stale from the first request on.
    let has_keys = |slot: &usize| cluster.nodes[0].ask::<u64>(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]) > 0;
    hand_over(&cluster, cluster.slots(0).find(has_keys).unwrap(), 0, 1);
    let snapshot = shard.run(1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    // The first redirect updates the shard's map, maybe during the warm-up.
    let hops = snapshot.total.redirect_hops + snapshot.warmup.redirect_hops;
    assert!(hops > 0, "{:?} {:?}", snapshot.total, snapshot.warmup);
    let mut reached: Vec<_> = snapshot.nodes.iter().map(|node| node.address.clone()).collect();
    let mut reachable: Vec<_> = map.into_iter().map(|mapping| mapping.reachable).collect();
    reached.sort();
    reachable.sort();
    assert_eq!(reached, reachable);
}
