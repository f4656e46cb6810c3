//! Reads from replicas of a real cluster, and their discovery.

use redisbench_loadgen::cluster::slot_of;
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::plan::{Preload, READS, ReadFrom, TrialPlan};
use redisbench_wire::snapshot::{NodeTally, Snapshot};
use redisbench_wire::topology::ChangeKind;
use redisbench_wire::{AbortThen, FailureReason};

use crate::client::{Shard, eventually};
use crate::load::{assert_balanced, assert_sent, endless};
use crate::plans::{clustered, open_loop, operation, steady};
use crate::refusals::assert_refused;

fn reading(cluster: &RedisCluster, from: ReadFrom) -> TrialPlan {
    let mut plan = clustered(&cluster.nodes[0].endpoint());
    plan.target.read_from = from;
    plan.connections = 12;
    plan
}

/// Two primaries. Each of `primaries` gets a replica, which does not take over by chance on a busy machine.
fn cluster(primaries: &[usize]) -> RedisCluster {
    with_replicas(RedisCluster::steady(2), primaries)
}

fn with_replicas(mut cluster: RedisCluster, primaries: &[usize]) -> RedisCluster {
    for primary in primaries {
        cluster.add_replica(*primary);
        // A replica counts as loading until it has received a write.
        let own = |key: &String| cluster.slots(*primary).contains(&usize::from(slot_of(key.as_bytes())));
        let key = (0..100_000).map(|number| number.to_string()).find(own).unwrap();
        cluster.nodes[*primary].ask::<()>(&["SET", &key, "x"]);
    }
    let told = |command| format!("{:?}", cluster.nodes[0].ask::<redis::Value>(&["CLUSTER", command]));
    let replicas = &cluster.nodes[2..];
    let known = || replicas.iter().all(|node| told("SLOTS").contains(&node.address().port().to_string()));
    wait_until("the replicas serve", || known() && !told("SHARDS").contains("loading"));
    cluster
}

fn node<'s>(snapshot: &'s Snapshot, server: &RedisServer) -> &'s NodeTally {
    snapshot.nodes.iter().find(|node| node.address == server.endpoint()).unwrap()
}

#[tokio::test]
async fn replicas_answer_the_reads_and_primaries_the_rest() {
    let cluster = cluster(&[0, 1]);
    let shard = Shard::armed(&reading(&cluster, ReadFrom::Replica)).await;
    cluster.reset_statistics();
    let snapshot = shard.run(1).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.total.errors, snapshot.total.redirected), (0, 0), "{:?}", snapshot.errors);
    let calls = |nodes: [usize; 2], command| nodes.map(|node| cluster.nodes[node].calls(command)).iter().sum::<u64>();
    assert_eq!(calls([0, 1], "get"), 0, "{:?}", snapshot.topology);
    assert!(calls([2, 3], "get") > 0 && calls([0, 1], "set") > 0);
    for server in &cluster.nodes[..2] {
        let node = node(&snapshot, server);
        assert!(!node.replica && node.requests > 0 && node.slots == 8192, "{node:?}");
    }
    for server in &cluster.nodes[2..] {
        let node = node(&snapshot, server);
        assert!(node.replica && node.requests > 0 && node.slots == 8192, "{node:?}");
    }
    assert_eq!((snapshot.topology.primaries, snapshot.topology.replicas), (2, 2));
}

#[tokio::test]
async fn a_slot_without_a_replica_is_refused_or_read_from_its_primary() {
    let cluster = cluster(&[1]);
    let parts = ["8192 of 16384 slots have no replica", &cluster.nodes[0].endpoint(), "cluster.readFrom"];
    assert_refused(&reading(&cluster, ReadFrom::Replica), FailureReason::WrongTopology, &parts).await;

    let snapshot = Shard::start(None).await.run_plan(&reading(&cluster, ReadFrom::PreferReplica)).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.total.errors, snapshot.total.redirected), (0, 0), "{:?}", snapshot.errors);
    assert!(cluster.nodes[0].calls("get") > 0 && cluster.nodes[2].calls("get") > 0);
    assert_eq!(cluster.nodes[1].calls("get"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_dies_is_replaced_by_its_primary() {
    let mut cluster = with_replicas(RedisCluster::start(2), &[0]);
    let shard = Shard::armed(&steady(reading(&cluster, ReadFrom::PreferReplica), 2000, 5)).await;
    shard.begin(1).await;
    eventually("the replica is read from", async || (cluster.nodes[2].calls("get") > 100).then_some(())).await;
    let endpoint = cluster.nodes[2].endpoint();
    cluster.nodes[2].kill();
    tokio::task::block_in_place(|| wait_until("its primary is", || cluster.nodes[0].calls("get") > 0));
    let snapshot = shard.finished().await;
    assert_balanced(&snapshot);
    assert!(snapshot.total.errors < 100, "{:?}", snapshot.errors);
    let [outage] = snapshot.topology.outages.as_slice() else { panic!("{:?}", snapshot.topology) };
    assert!(outage.reads && outage.node == endpoint && !outage.lasting, "{outage:?}");
    assert_eq!((outage.slots.first, outage.slots.last), (0, 8191));
    let gone = |what, node: &str| (what, node) == (ChangeKind::Gone, endpoint.as_str());
    assert!(snapshot.topology.changes.iter().any(|change| gone(change.what, &change.node)), "{:?}", snapshot.topology);
}

/// Like with an older server: the answer omits nodes that do not serve.
#[tokio::test]
async fn a_user_that_may_not_ask_for_shards_asks_for_slots() {
    let cluster = cluster(&[0, 1]);
    for node in &cluster.nodes {
        let rules = ["~*", "&*", "+@all", "-cluster|shards", "-command"];
        node.ask::<()>(&[["ACL", "SETUSER", "u", "on", ">secret"].as_slice(), &rules].concat());
    }
    let mut plan = reading(&cluster, ReadFrom::Replica);
    plan.target.authenticate = true;
    let snapshot = Shard::start(Some(("u", "secret"))).await.run_plan(&plan).await;
    assert_balanced(&snapshot);
    assert_eq!((snapshot.total.errors, snapshot.total.redirected), (0, 0), "{:?}", snapshot.errors);
    assert_eq!((snapshot.topology.primaries, snapshot.topology.replicas), (2, 2));
    assert_eq!(cluster.nodes[0].calls("get") + cluster.nodes[1].calls("get"), 0, "by the table of reads");
    assert!(cluster.nodes[0].command_statistic("cluster|shards", "rejected_calls") > 0);
}

/// A redirect names a node that no map contained, so its address is still unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_a_name_that_is_not_known_waits_for_the_map() {
    let mut cluster = RedisCluster::named(2);
    let mut plan = clustered(&cluster.nodes[0].endpoint());
    plan.load = open_loop(1000);
    plan.preload = Preload::None;
    plan.workload_mut().operations = vec![operation("read", 1, "GET __key__")];
    let shard = Shard::armed(&endless(plan)).await;
    shard.begin(1).await;
    eventually("the load runs", async || (cluster.nodes[0].calls("get") > 100).then_some(())).await;
    tokio::task::block_in_place(|| {
        cluster.add_primary();
        let heir = &cluster.ids()[2];
        for slot in 0..500 {
            for node in cluster.nodes.iter().rev() {
                let _: () = node.ask(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", heir]);
            }
        }
    });
    eventually("the new node is read from", async || (cluster.nodes[2].calls("get") > 10).then_some(())).await;
    shard.abort(AbortThen::Stop).await.unwrap();
    let snapshot = shard.finished().await;
    assert_balanced(&snapshot);
    assert_eq!(snapshot.total.errors, 0, "{:?}", snapshot.errors);
    assert_sent(&snapshot.total);
    assert!(snapshot.total.redirected > 0);
    let added = format!("localhost:{}", cluster.nodes[2].address().port());
    assert!(snapshot.nodes.iter().any(|node| node.address == added && node.requests > 0), "{:?}", snapshot.nodes);
}

#[test]
fn what_is_said_to_only_read_the_server_flags_so() {
    let server = RedisServer::start(&[]);
    let reads: Vec<&str> = READS.split_whitespace().collect();
    let words = [&["COMMAND", "INFO"], &reads[..]].concat();
    let flagged = |command: &redis::Value| format!("{command:?}").contains("readonly");
    let told: Vec<redis::Value> = server.ask(&words);
    let wrong: Vec<_> =
        reads.iter().zip(&told).filter(|(_, command)| !flagged(command)).map(|(name, _)| name).collect();
    assert!(wrong.is_empty() && told.len() == reads.len(), "{wrong:?}");
}
