//! A request is a function of (seed, k): a recording server sees the same requests, however shards and workers share them.

use redisbench_loadgen::workload::Workload;
use redisbench_wire::plan::{Bound, HotKeys, KeyPattern, Load, TrialPlan, ValueSize};

use crate::harness::{MILLISECOND, SECOND, open_loop, plan, run};
use crate::peer::{Peer, Received, command};

/// The division of a benchmark.
#[derive(Clone, Copy, Debug)]
struct Spread {
    shards: u32,
    workers: usize,
    connections: u32,
    pipeline: u32,
}

const SPREADS: [Spread; 6] = [
    Spread { shards: 1, workers: 1, connections: 1, pipeline: 1 },
    Spread { shards: 1, workers: 2, connections: 5, pipeline: 1 },
    Spread { shards: 1, workers: 3, connections: 3, pipeline: 16 },
    Spread { shards: 2, workers: 1, connections: 3, pipeline: 4 },
    Spread { shards: 3, workers: 2, connections: 4, pipeline: 2 },
    Spread { shards: 4, workers: 3, connections: 3, pipeline: 1 },
];

/// Not divisible by the numbers of shards and workers above.
const REQUESTS: u64 = 211;

const ALL: Bound = Bound::Requests { count: REQUESTS, max_nanoseconds: 20 * SECOND };

/// The requests with these numbers by definition, sorted.
fn defined(plan: &TrialPlan, numbers: impl Iterator<Item = u64>) -> Vec<Vec<String>> {
    let workload = Workload::of_trial(plan).unwrap();
    let mut room = vec![0; workload.longest() + Workload::SLACK];
    let mut request = |k| {
        let length = workload.encode([k], workload.operation(k), &mut room);
        command(&room[..length]).unwrap().0
    };
    let mut all: Vec<_> = numbers.map(&mut request).collect();
    all.sort();
    all
}

/// The requests of all shards, run one after the other.
async fn recorded(plan: &TrialPlan, spread: Spread, bound: Bound) -> Vec<Received> {
    let peer = Peer::start();
    let Spread { shards, connections, pipeline, .. } = spread;
    let plan = TrialPlan { shards, connections: shards * connections, pipeline, bound, ..plan.clone() };
    for shard in 0..shards {
        let before = peer.received().len() as u64;
        let snapshot = run(plan.clone().of_shard(shard), peer.topology(), spread.workers).await;
        let sent =
            snapshot.total.scheduled + snapshot.warmup.scheduled - snapshot.total.unsent - snapshot.warmup.unsent;
        assert_eq!(sent, peer.received().len() as u64 - before);
    }
    peer.received()
}

fn sorted(received: Vec<Received>) -> Vec<Vec<String>> {
    let mut all: Vec<_> = received.into_iter().map(|received| received.arguments).collect();
    all.sort();
    all
}

#[tokio::test]
async fn an_open_loop_sends_the_same_requests_however_it_is_spread() {
    let patterns = [
        KeyPattern::Uniform,
        KeyPattern::Sequential,
        KeyPattern::Gaussian { mean: 10, standard_deviation: 100 },
        KeyPattern::Zipf { exponent_millionths: 1_000_000, hot_keys: HotKeys::Scattered },
        KeyPattern::HotSet { keys: 10, percent_millionths: 90_000_000, hot_keys: HotKeys::First },
    ];
    for pattern in patterns {
        let mut plan = plan();
        plan.workload_mut().keys.pattern = pattern;
        plan.load = open_loop(20_000);
        // 210 requests of warm-up, so that the measurement begins in the middle of every worker's turn.
        plan.warmup_nanoseconds = 10_500_000;
        let wanted = defined(&plan, 0..210 + REQUESTS);
        for spread in SPREADS {
            assert_eq!(sorted(recorded(&plan, spread, ALL).await), wanted, "{spread:?}");
        }
    }
}

/// Their bytes are not copied, and the socket takes them in pieces.
#[tokio::test]
async fn large_values_make_the_same_requests() {
    let mut plan = plan();
    plan.workload_mut().values.size = ValueSize::Range { least_bytes: 1, most_bytes: 150_000 };
    let wanted = defined(&plan, 0..REQUESTS);
    for spread in [SPREADS[1], SPREADS[2]] {
        assert!(sorted(recorded(&plan, spread, ALL).await) == wanted, "{spread:?}");
    }
}

#[tokio::test]
async fn another_seed_makes_other_requests() {
    let mut other = plan();
    other.workload_mut().seed += 1;
    assert_ne!(defined(&plan(), 0..20), defined(&other, 0..20));
}

#[tokio::test]
async fn a_closed_loop_with_a_number_of_requests_sends_the_same() {
    let plan = plan();
    let wanted = defined(&plan, 0..REQUESTS);
    for spread in SPREADS {
        assert_eq!(sorted(recorded(&plan, spread, ALL).await), wanted, "{spread:?}");
    }
}

/// The number of requests per worker is open, but they must be the worker's first ones.
#[tokio::test]
async fn every_worker_of_a_closed_loop_sends_the_first_of_its_requests() {
    let mut plan = plan();
    assert_eq!(plan.load, Load::ClosedLoop);
    plan.warmup_nanoseconds = 10 * MILLISECOND;
    // Key k belongs to request k.
    plan.workload_mut().keys.pattern = KeyPattern::Sequential;
    plan.workload_mut().keys.count = 1 << 40;
    for spread in SPREADS {
        let received = recorded(&plan, spread, Bound::Duration { nanoseconds: 20 * MILLISECOND }).await;
        let number = |received: &Received| received.arguments[1].strip_prefix("key:").unwrap().parse::<u64>().unwrap();
        let mut numbers: Vec<u64> = received.iter().map(number).collect();
        assert_eq!(sorted(received), defined(&plan, numbers.iter().copied()), "{spread:?}");
        numbers.sort_unstable();
        let step = u64::from(spread.shards) * spread.workers as u64;
        for first in 0..step {
            let own: Vec<u64> = numbers.iter().copied().filter(|k| k % step == first).collect();
            let prefix: Vec<u64> = (0..own.len() as u64).map(|n| first + n * step).collect();
            assert_eq!(own, prefix, "{spread:?}");
        }
    }
}
