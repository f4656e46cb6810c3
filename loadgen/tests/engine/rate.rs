//! An open loop must schedule the requested rate. The schedule follows from the plan and not from the speed of the machine: every slot
//! before the end of the window counts, sent or not.

use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::null_server::{NullServer, NullServerConfig};
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::plan::{Bound, TrialPlan};
use redisbench_wire::snapshot::Snapshot;
use tokio::task::JoinHandle;

use crate::harness::{MILLISECOND, SECOND, plan, run, standalone};
use crate::open_loop::OpenLoop;

const LENGTH: u64 = 10;

/// All shards of a benchmark at `rate`.
fn start(rate: u64, grid: u64, pipeline: u32, shards: u32, topology: &Topology) -> Vec<JoinHandle<Snapshot>> {
    let plan = TrialPlan {
        shards,
        load: OpenLoop { pacing_grid_nanoseconds: grid, ..OpenLoop::at(rate) }.load(),
        connections: 48,
        pipeline,
        warmup_nanoseconds: 100 * MILLISECOND,
        bound: Bound::Duration { nanoseconds: LENGTH * SECOND },
        ..plan()
    };
    (0..shards).map(|shard| tokio::spawn(run(plan.clone().of_shard(shard), topology.clone(), 1))).collect()
}

/// The total number of scheduled requests.
async fn scheduled(shards: Vec<JoinHandle<Snapshot>>) -> u64 {
    let mut sum = 0;
    for shard in shards {
        sum += shard.await.unwrap().total.scheduled;
    }
    sum
}

fn assert_is_rate(scheduled: u64, rate: u64) {
    let target = rate * LENGTH;
    assert!(scheduled.abs_diff(target) * 1000 <= target, "{scheduled} scheduled, not {target}");
}

#[tokio::test]
async fn at_1k_and_20k_over_1_and_4_shards() {
    let server = RedisServer::start(&[]);
    let topology = standalone(&server);
    let loads = [(1_000, 1), (1_000, 4), (20_000, 1), (20_000, 4)];
    // All loads in parallel take a fifth of a processor.
    let started = loads.map(|(rate, shards)| (rate, start(rate, 0, 1, shards, &topology)));
    for (rate, shards) in started {
        let scheduled = scheduled(shards).await;
        assert_is_rate(scheduled, rate);
        // Without a grid the count is exact.
        assert_eq!(scheduled, rate * LENGTH);
    }
}

#[tokio::test]
async fn at_200k_on_a_grid_over_1_and_4_shards() {
    let config =
        NullServerConfig { listen: "127.0.0.1:0".parse().unwrap(), cluster_nodes: 0, value_bytes: 100, threads: 1 };
    let server = NullServer::start(&config).unwrap();
    let topology = Topology::of(server.addresses());
    for shards in [1, 4] {
        let scheduled = scheduled(start(200_000, 250_000, 16, shards, &topology)).await;
        assert_is_rate(scheduled, 200_000);
    }
}
