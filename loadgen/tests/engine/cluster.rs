use redisbench_loadgen::cluster::{NodeAddress, Topology as Servers, UNCOVERED, slot_of};
use redisbench_loadgen::engine::{Engine, EngineConfig, EngineEvent};
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::plan::{Bound, Load, Preload, Topology, TrialPlan, ValueSize};
use redisbench_wire::snapshot::Snapshot;
use tokio::sync::mpsc;

use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, operation, plan, run, topology};
use crate::peer::Peer;

fn cluster_plan() -> TrialPlan {
    let mut plan = plan();
    plan.target.topology = Topology::Cluster;
    plan.connections = 6;
    plan.pipeline = 4;
    plan
}

/// The servers' counts equal the snapshot's, in total and per node.
fn assert_reconciled(cluster: &RedisCluster, snapshot: &Snapshot) {
    let calls = cluster.calls("get") + cluster.calls("set");
    assert_eq!(calls, snapshot.total.succeeded + snapshot.warmup.succeeded + snapshot.preload_commands);
    if snapshot.warmup.succeeded + snapshot.preload_commands == 0 {
        for (id, server) in cluster.ids().iter().zip(&cluster.nodes) {
            let node = snapshot.nodes.iter().find(|node| node.id == *id).unwrap();
            assert_eq!(node.requests, server.calls("get") + server.calls("set"));
            let rejected =
                server.command_statistic("get", "rejected_calls") + server.command_statistic("set", "rejected_calls");
            assert_eq!(node.redirects, rejected);
        }
    }
}

#[tokio::test]
async fn requests_go_to_the_owners_of_their_slots() {
    let cluster = RedisCluster::steady(3);
    for load in [Load::ClosedLoop, open_loop(5000)] {
        for workers in [1, 2] {
            cluster.reset_statistics();
            let mut plan = cluster_plan();
            plan.load = load.clone();
            plan.bound = Bound::Requests { count: 1_000, max_nanoseconds: 60 * SECOND };
            let snapshot = run(plan, topology(&cluster), workers).await;
            assert_reconciled(&cluster, &snapshot);
            assert_eq!(snapshot.total.succeeded, 1_000, "{:?}", snapshot.total);
            assert_eq!((snapshot.total.errors, snapshot.total.redirect_hops), (0, 0));
            let slots: Vec<u32> = snapshot.nodes.iter().map(|node| node.slots).collect();
            assert_eq!(slots, [5461, 5461, 5462]);
            assert!(snapshot.nodes.iter().all(|node| node.requests > 0));
        }
    }
}

/// Runs all shards at once, and compares each node's account of all shards with its own.
async fn load_by_groups(cluster: &RedisCluster, shards: u32, nodes: u32, load: Load) {
    cluster.reset_statistics();
    let plan = TrialPlan {
        shards,
        nodes_per_shard: Some(nodes),
        connections: shards * nodes,
        preload: Preload::Always,
        load,
        bound: Bound::Requests { count: u64::from(shards) * 200, max_nanoseconds: 60 * SECOND },
        ..cluster_plan()
    };
    let (mut benches, mut keys) = (Vec::new(), 0);
    for shard in 0..shards {
        let mut bench = Bench::connected(plan.clone().of_shard(shard), topology(cluster), 2).await;
        keys += bench.preload().await;
        benches.push(bench);
    }
    let executed = cluster.calls("get") + cluster.calls("set");
    assert_eq!((keys, executed), (1000, 1000), "each key is written once");
    // From now on, the servers count the load alone.
    cluster.reset_statistics();
    for bench in &benches {
        bench.start(1);
    }
    let (ids, primaries) = (cluster.ids(), cluster.nodes.len());
    let (mut requests, mut shards_of, mut preloaded) = (vec![0; primaries], vec![0; primaries], 0);
    for (shard, bench) in benches.iter_mut().enumerate() {
        let snapshot = bench.completed(1).await;
        let total = snapshot.total;
        assert_eq!((total.succeeded, total.errors, total.redirect_hops), (200, 0, 0), "{:?}", snapshot.errors);
        preloaded += snapshot.preload_commands;
        let used = snapshot.nodes.iter().filter(|node| node.requests > 0).count();
        assert_eq!(used, nodes as usize, "shard {shard} of {shards}");
        for (index, id) in ids.iter().enumerate() {
            let node = snapshot.nodes.iter().find(|node| node.id == *id).unwrap();
            requests[index] += node.requests;
            shards_of[index] += node.connections;
            assert_eq!(node.connections, u32::from(node.requests > 0), "shard {shard} of {shards}");
        }
    }
    assert_eq!(preloaded, 1000);
    let executed: Vec<u64> = cluster.nodes.iter().map(|server| server.calls("get") + server.calls("set")).collect();
    assert_eq!(requests, executed, "by node");
    assert!(shards_of.iter().all(|of| u64::from(*of) * primaries as u64 == u64::from(shards * nodes)), "{shards_of:?}");
}

#[tokio::test]
async fn each_shard_loads_its_nodes() {
    let cluster = RedisCluster::steady(3);
    load_by_groups(&cluster, 3, 1, Load::ClosedLoop).await;
    load_by_groups(&cluster, 3, 2, open_loop(5000)).await;
}

#[tokio::test]
#[ignore = "starts 100 servers: make test-nodes"]
async fn a_hundred_primaries_are_divided_among_twenty_shards() {
    let cluster = RedisCluster::steady(100);
    load_by_groups(&cluster, 20, 5, open_loop(5000)).await;
}

#[tokio::test]
async fn nodes_that_cannot_be_divided_evenly_are_refused() {
    let cluster = RedisCluster::steady(3);
    let plan = TrialPlan { shards: 2, nodes_per_shard: Some(2), ..cluster_plan() };
    let config = EngineConfig::new(plan, 1, topology(&cluster));
    let refused = Engine::spawn(config, mpsc::channel(64).0).unwrap_err().to_string();
    assert!(refused.contains("set nodesPerShard to 3, or count to 3"), "{refused}");
}

#[tokio::test]
async fn nothing_waits_at_a_node_that_is_gone() {
    let cluster = RedisCluster::steady(3);
    let gone = RedisServer::start(&[]);
    let mut before = topology(&cluster);
    let label = gone.address().to_string();
    before.nodes.push(NodeAddress { id: "gone".into(), address: gone.address(), label });
    let mut plan = cluster_plan();
    plan.connections = 8;
    plan.load = open_loop(5000);
    // Bound by requests: a busy machine could miss the end of a time limit with the last of them.
    plan.bound = Bound::Requests { count: 1000, max_nanoseconds: 20 * SECOND };
    let mut bench = Bench::connected(plan, before, 1).await;
    let mut after = topology(&cluster);
    after.slots.as_mut().unwrap().fill(UNCOVERED);
    bench.engine.update_topology(&after.into()).unwrap();
    bench.until(|event| *event == EngineEvent::Connected { ready: 6, wanted: 6 }).await;
    bench.start(1);
    let snapshot = bench.completed(1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.unsent), (1000, 0));
}

#[tokio::test]
async fn a_moved_slot_is_followed_and_asked_about_once() {
    let cluster = RedisCluster::steady(3);
    // The map assigns every slot to the second server.
    let mut wrong = topology(&cluster);
    wrong.slots.as_mut().unwrap().fill(1);
    for load in [Load::ClosedLoop, open_loop(5000)] {
        cluster.reset_statistics();
        let mut plan = cluster_plan();
        plan.load = load.clone();
        let mut bench = Bench::new(plan, wrong.clone(), 1);
        let snapshot = bench.run().await;
        assert_reconciled(&cluster, &snapshot);
        assert!(bench.saw(|event| *event == EngineEvent::TopologyStale));
        assert_eq!(snapshot.total.errors, 0, "{:?}", snapshot.errors);
        assert!(snapshot.total.redirected > 0);
        assert_eq!(snapshot.total.redirect_hops, snapshot.total.redirected);
        assert_eq!(snapshot.nodes[1].redirects, snapshot.total.redirect_hops);
        bench.engine.update_topology(&topology(&cluster).into()).unwrap();
        cluster.reset_statistics();
        bench.start(2);
        let snapshot = bench.completed(2).await;
        assert_eq!(snapshot.total.redirect_hops, 0);
    }
}

#[tokio::test]
async fn a_server_that_only_a_redirect_names_is_connected() {
    let cluster = RedisCluster::steady(3);
    let mut partial = topology(&cluster);
    partial.nodes.truncate(1);
    partial.slots.as_mut().unwrap().fill(0);
    let mut bench = Bench::new(cluster_plan(), partial, 1);
    let snapshot = bench.run().await;
    assert_eq!(snapshot.total.errors, 0, "{:?}", snapshot.errors);
    assert_eq!(snapshot.nodes.len(), 3);
    assert!(snapshot.nodes.iter().all(|node| node.requests > 0));
    bench.engine.update_topology(&topology(&cluster).into()).unwrap();
    let snapshot = bench.snapshot().await;
    let mut ids: Vec<String> = snapshot.nodes.iter().map(|node| node.id.clone()).collect();
    ids.sort();
    let mut expected = cluster.ids().clone();
    expected.sort();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn a_slot_on_its_way_is_followed_with_asking() {
    let cluster = RedisCluster::steady(3);
    let slot = slot_of(b"moving");
    let source = cluster.owner(slot);
    let target = (source + 1) % 3;
    cluster.set_slot(target, slot, "IMPORTING", source);
    cluster.set_slot(source, slot, "MIGRATING", target);
    // The second sends values of this size without a copy, after ASKING, which is copied.
    for (name, command) in [("incr", "INCR __key__"), ("append", "APPEND __key__ __data__")] {
        cluster.reset_statistics();
        let mut plan = cluster_plan();
        plan.workload_mut().operations = vec![operation(name, 1, command)];
        plan.workload_mut().values.size = ValueSize::Fixed { bytes: 100_000 };
        plan.workload_mut().keys.prefix = "{moving}:".into();
        plan.workload_mut().keys.count = 10;
        plan.bound = Bound::Requests { count: 200, max_nanoseconds: 20 * SECOND };
        let snapshot = run(plan, topology(&cluster), 1).await;
        assert_eq!((snapshot.total.succeeded, snapshot.total.redirected), (200, 200), "{:?}", snapshot.errors);
        assert_eq!(cluster.nodes[target].calls(name), 200);
        assert_eq!(cluster.nodes[target].calls("asking"), 200);
        assert_eq!(snapshot.nodes[source].redirects, 200);
        assert_eq!(snapshot.nodes[target].requests, 200);
    }
}

#[tokio::test]
async fn a_redirect_without_end_is_an_error() {
    let cluster = RedisCluster::steady(3);
    // The slot's next owner has not imported it and redirects back.
    let mut plan = cluster_plan();
    plan.workload_mut().keys.prefix = "{moving}:".into();
    plan.bound = Bound::Requests { count: 50, max_nanoseconds: 20 * SECOND };
    let slot = slot_of(b"moving");
    let source = cluster.owner(slot);
    cluster.set_slot(source, slot, "MIGRATING", (source + 1) % 3);
    let snapshot = run(plan, topology(&cluster), 1).await;
    assert_eq!(snapshot.total.errors, 50);
    assert_eq!(snapshot.errors[0].kind, "RedirectLimit");
    assert_eq!((snapshot.total.redirected, snapshot.total.redirect_hops), (50, 300));
    assert_eq!(snapshot.total.unanswered, 0);
}

/// Requests for the dead node must not fill the closed loop.
#[tokio::test]
async fn a_dead_node_does_not_stop_a_closed_loop() {
    for concurrency in [None, Some(8)] {
        let mut cluster = RedisCluster::steady(3);
        let mut plan = cluster_plan();
        plan.concurrency = concurrency;
        plan.timeouts.request_nanoseconds = 100 * MILLISECOND;
        plan.bound = Bound::Duration { nanoseconds: 3 * SECOND };
        let mut bench = Bench::started(plan, topology(&cluster), 1).await;
        wait_until("some requests", || cluster.calls("get") > 50);
        let dead = cluster.nodes.remove(0);
        drop(dead);
        let before = cluster.calls("get");
        wait_until("the others are loaded", || cluster.calls("get") > before + 100);
        let snapshot = bench.completed(1).await;
        assert!(snapshot.total.unsent_not_connected > 20, "{:?}", snapshot.total);
        assert!(bench.saw(|event| *event == EngineEvent::Unanswered));
        // On a busy machine the others may be silent for the short timeout, too.
        let of_the_dead: Vec<_> = snapshot.topology.outages.iter().filter(|outage| outage.slots.first == 0).collect();
        let [outage] = of_the_dead[..] else { panic!("{:?}", snapshot.topology) };
        assert_eq!((outage.slots.last, outage.lasting), (5460, true));
    }
}

#[tokio::test]
async fn a_killed_node_costs_its_own_requests_only() {
    let mut cluster = RedisCluster::steady(3);
    let mut plan = cluster_plan();
    plan.bound = Bound::Duration { nanoseconds: 3 * SECOND };
    let mut bench = Bench::started(plan, topology(&cluster), 2).await;
    wait_until("some requests", || cluster.calls("get") > 50);
    cluster.nodes[2].pause();
    bench.snapshot().await;
    cluster.nodes[2].kill();
    let snapshot = bench.completed(1).await;
    assert!(snapshot.total.errors > 0);
    assert_eq!((snapshot.nodes[0].errors, snapshot.nodes[1].errors), (0, 0));
}

/// Nodes that join get load like the others: a closed loop fills their windows.
#[tokio::test]
async fn a_closed_loop_fills_the_windows_of_nodes_that_join() {
    let [first, joined] = [Peer::start(), Peer::start()];
    let servers = |nodes, owner| Servers { nodes, slots: Some(Box::new([owner; 16384])), ..Servers::default() };
    let mut plan = cluster_plan();
    (plan.connections, plan.pipeline) = (2, 4);
    plan.bound = Bound::Duration { nanoseconds: 100 * SECOND };
    plan.timeouts.request_nanoseconds = 100 * SECOND;
    let mut bench = Bench::connected(plan, servers(vec![first.node()], 0), 1).await;
    first.hold();
    joined.hold();
    bench.start(1);
    wait_until("the first node is full", || first.unanswered() == 8);
    // The first node keeps its requests and gets no more; the rest go to the other.
    bench.engine.update_topology(&servers(vec![first.node(), joined.node()], 1).into()).unwrap();
    wait_until("the other is full too", || joined.unanswered() == 8);
    bench.engine.abort().unwrap();
    bench.finished(1).await;
}
