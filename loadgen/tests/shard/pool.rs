//! Several servers at once that form no cluster.

use redisbench_loadgen::cluster::slot_of;
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::plan::{Distribution, Topology, TrialPlan};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{AbortThen, Detail};

use crate::client::{Shard, eventually};
use crate::load::{assert_balanced, endless};
use crate::plans::{plan, steady};

fn pooled(endpoints: Vec<String>, distribution: Distribution) -> TrialPlan {
    let mut plan = plan(&endpoints[0]);
    plan.target.topology = Topology::Pool;
    plan.target.endpoints = endpoints;
    plan.target.distribution = distribution;
    plan.measurement.server_stats = true;
    plan
}

async fn measured(plan: &TrialPlan) -> Snapshot {
    let shard = Shard::armed(plan).await;
    let snapshot = shard.run(1).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    snapshot
}

#[tokio::test]
async fn keys_select_the_server_by_their_slots() {
    let servers = [(); 3].map(|()| RedisServer::start(&[]));
    let plan = pooled(servers.iter().map(RedisServer::endpoint).collect(), Distribution::ByKey);
    let snapshot = measured(&plan).await;
    assert_eq!(snapshot.operations[0].nil_replies, 0, "every read goes where the preload wrote its key");
    let keys = servers.each_ref().map(|server| server.ask::<u64>(&["DBSIZE"]));
    assert_eq!(keys.iter().sum::<u64>(), 1000, "no key is on two servers");
    for (place, server) in servers.iter().enumerate() {
        for key in server.ask::<Vec<String>>(&["KEYS", "*"]) {
            assert_eq!(usize::from(slot_of(key.as_bytes())) * 3 / 16_384, place, "{key}");
        }
    }
    assert_eq!(snapshot.nodes.iter().map(|node| node.requests).sum::<u64>(), 5000);
    assert_eq!(snapshot.nodes.iter().map(|node| node.address.clone()).collect::<Vec<_>>(), plan.target.endpoints);
    assert_eq!((snapshot.topology.primaries, snapshot.topology.replicas), (3, 0));
}

#[tokio::test]
async fn an_even_pool_shares_the_requests_and_its_one_server_is_counted_once() {
    let redis = RedisServer::start(&["--bind", "127.0.0.1 127.0.0.2"]);
    let port = redis.address().port();
    let endpoints = [1, 2].map(|last| format!("127.0.0.{last}:{port}")).to_vec();
    let snapshot = measured(&pooled(endpoints, Distribution::Even)).await;
    // The plan's seed determines which request goes where.
    let shares: Vec<u64> = snapshot.nodes.iter().map(|node| node.requests).collect();
    assert!(shares.iter().all(|share| share.abs_diff(2500) < 150), "{shares:?}");
    assert_eq!(snapshot.operations[0].nil_replies, 0);
    let nodes = snapshot.servers.expect("the plan asks for it").nodes;
    assert_eq!(nodes.len(), 1, "{nodes:?}");
    let sent = snapshot.total.succeeded + snapshot.warmup.succeeded + snapshot.preload_commands;
    assert_eq!(redis.calls("get") + redis.calls("set"), sent);
}

#[tokio::test]
async fn a_server_of_a_pool_that_dies_fails_its_own_slots_alone() {
    let mut servers = [(); 2].map(|()| RedisServer::start(&[]));
    let plan = pooled(servers.iter().map(RedisServer::endpoint).collect(), Distribution::ByKey);
    let shard = Shard::armed(&endless(steady(plan, 2000, 50))).await;
    shard.begin(1).await;
    let loaded = eventually("the load runs", async || {
        (shard.snapshot(Detail::Live).await.unwrap().body.total.succeeded > 0).then_some(())
    });
    loaded.await;
    servers[1].kill();
    let missing = eventually("requests of the dead server fail or stay unsent", async || {
        let total = shard.snapshot(Detail::Live).await.unwrap().body.total;
        (total.errors + total.unsent > 100 && total.succeeded > 1000).then_some(())
    });
    missing.await;
    shard.abort(AbortThen::Stop).await.unwrap();
    let snapshot = shard.finished().await;
    assert_balanced(&snapshot);
    assert_eq!(snapshot.nodes[0].errors, 0, "{:?}", snapshot.errors);
    let outages: Vec<_> =
        snapshot.topology.outages.iter().map(|outage| (outage.node.clone(), outage.slots.first)).collect();
    assert_eq!(outages, [(servers[1].endpoint(), 8192)]);
}
