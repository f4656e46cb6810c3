//! A cluster whose nodes announce addresses that are not for us: each is reached through a forwarder of its own.

use std::io::copy;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use redisbench_wire::ShardPhase;
use redisbench_wire::plan::AddressMapping;

use crate::client::Shard;
use crate::plans::clustered;
use crate::support::RedisCluster;

/// Passes on everything, both ways, until the test ends.
fn forward(to: SocketAddr) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let far = TcpStream::connect(to).unwrap();
            for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                thread::spawn(move || {
                    let _ = copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    address
}

#[tokio::test]
async fn announced_addresses_are_mapped_in_maps_and_redirects() {
    let cluster = RedisCluster::steady(3);
    let map: Vec<_> = cluster
        .nodes
        .iter()
        .map(|node| AddressMapping { announced: node.endpoint(), reachable: forward(node.address()) })
        .collect();
    let mut plan = clustered(&map[0].reachable);
    plan.target.address_map.clone_from(&map);
    let shard = Shard::start(None).await;
    shard.plan(1, &plan).await.unwrap();
    shard.phase(ShardPhase::Armed).await;
    // What the shard knows is out of date from the first request on. Slots without keys can change their owner so.
    let (from, to) = (0, 1);
    for slot in cluster.slots(from) {
        let slot = u16::try_from(slot).unwrap();
        let keys: u64 = cluster.nodes[from].ask(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]);
        if keys == 0 {
            continue;
        }
        let id = &cluster.ids()[to];
        let listed: Vec<String> = cluster.nodes[from].ask(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "100"]);
        for key in &listed {
            let _: u64 = cluster.nodes[from].ask(&["DEL", key]);
        }
        for node in [to, from] {
            let _: () = cluster.nodes[node].ask(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", id]);
        }
        break;
    }
    let snapshot = shard.run(1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    // The first that is led elsewhere mends the shard's map, be it in the warm-up.
    let hops = snapshot.total.redirect_hops + snapshot.warmup.redirect_hops;
    assert!(hops > 0, "{:?} {:?}", snapshot.total, snapshot.warmup);
    let mut reached: Vec<_> = snapshot.nodes.iter().map(|node| node.address.clone()).collect();
    let mut reachable: Vec<_> = map.into_iter().map(|mapping| mapping.reachable).collect();
    reached.sort();
    reachable.sort();
    assert_eq!(reached, reachable);
}
