//! Followed values and counters: writes that a real server keeps, loses or executes late, and replies of a faulty one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::engine::EngineEvent;
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::plan::{Bound, KeyPattern, Preload, TrialPlan, Verify};
use redisbench_wire::snapshot::{FindingKind, Snapshot, Verification, VerificationCounts};

use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, operation, plan, run, standalone, topology};
use crate::peer::{bulk, scripted, written};

const KEYS: u64 = 500;

/// Reads and writes over a few keys, all followed.
fn values() -> TrialPlan {
    let mut plan = plan();
    plan.verify = Verify::Values;
    plan.preload = Preload::Always;
    plan.workload_mut().keys.count = KEYS;
    plan.connections = 8;
    plan.pipeline = 4;
    plan
}

fn verification(snapshot: &Snapshot) -> &Verification {
    snapshot.verification.as_ref().unwrap()
}

/// Everything was verified without findings.
fn assert_clean(snapshot: &Snapshot) {
    let found = verification(snapshot).counts;
    let answered = snapshot.total.succeeded + snapshot.warmup.succeeded + found.read_keys;
    let counts = VerificationCounts {
        checked: answered,
        read_keys: found.read_keys,
        ambiguous_writes: found.ambiguous_writes,
        ..VerificationCounts::default()
    };
    assert_eq!(*verification(snapshot), Verification { counts, findings: Vec::new() });
}

#[tokio::test]
async fn a_server_that_keeps_its_data_has_nothing_against_it() {
    let redis = RedisServer::start(&[]);
    let with = |change: fn(&mut TrialPlan)| {
        let mut plan = values();
        change(&mut plan);
        plan
    };
    for plan in [
        with(|plan| plan.warmup_nanoseconds = 50 * MILLISECOND),
        with(|plan| {
            plan.load = open_loop(5_000);
            plan.bound = Bound::Requests { count: 1_000, max_nanoseconds: 20 * SECOND };
        }),
        with(|plan| plan.concurrency = Some(5)),
        with(|plan| (plan.workload_mut().keys.count, plan.pipeline) = (3, 16)),
        with(|plan| plan.bound = Bound::Requests { count: 3_000, max_nanoseconds: 20 * SECOND }),
        // Values of many lengths that arrive in pieces.
        with(|plan| {
            plan.workload_mut().values.size =
                redisbench_wire::plan::ValueSize::Range { least_bytes: 24, most_bytes: 200_000 };
        }),
        with(|plan| plan.workload_mut().operations[1] = operation("set", 1, "SET __key__ __data__ GET")),
    ] {
        let keys = plan.workload.keys.count;
        let snapshot = run(plan, standalone(&redis), 2).await;
        assert_clean(&snapshot);
        assert_eq!((verification(&snapshot).counts.read_keys, snapshot.generator.workers), (keys, 1));
        assert_eq!((snapshot.total.errors, snapshot.total.unsent), (0, 0), "{:?}", snapshot.errors);
        assert_eq!(redis.ask::<u64>(&["DBSIZE"]), keys, "nothing but the keys of the plan");
        redis.ask::<()>(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn shards_have_keys_of_their_own() {
    let redis = RedisServer::start(&[]);
    for pattern in [KeyPattern::Uniform, KeyPattern::Sequential] {
        for shard in 0..3 {
            let mut plan = values();
            (plan.shards, plan.connections, plan.workload_mut().keys.pattern) = (3, 24, pattern);
            let snapshot = run(plan.of_shard(shard), standalone(&redis), 1).await;
            assert_clean(&snapshot);
            assert_eq!(
                verification(&snapshot).counts.read_keys,
                (KEYS * u64::from(shard + 1) / 3) - KEYS * u64::from(shard) / 3
            );
        }
        assert_eq!(redis.ask::<u64>(&["DBSIZE"]), KEYS);
    }
}

#[tokio::test]
async fn a_cluster_that_keeps_its_data_has_nothing_against_it() {
    let cluster = RedisCluster::start(3);
    let mut wrong = topology(&cluster);
    wrong.slots.as_mut().unwrap().rotate_left(5000);
    // With the right map, and with one that causes redirects.
    for (map, load) in [(topology(&cluster), plan().load), (wrong, open_loop(2_000))] {
        let snapshot = run(TrialPlan { load, ..values() }, map, 2).await;
        assert_clean(&snapshot);
        assert_eq!(verification(&snapshot).counts.read_keys, KEYS);
    }
}

#[tokio::test]
async fn keys_that_another_client_takes_away_are_lost() {
    let redis = RedisServer::start(&[]);
    let mut plan = values();
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    let mut bench = Bench::connected(plan, standalone(&redis), 1).await;
    assert_eq!(bench.preload().await, KEYS);
    redis.ask::<()>(&["FLUSHALL"]);
    bench.start(1);
    let snapshot = bench.finished(1).await;
    let Verification { counts: found, findings } = verification(&snapshot);
    assert_eq!((found.lost_keys, found.lost_writes, found.corrupt, found.mismatched), (KEYS, 0, 0, 0));
    assert!(findings.iter().all(|finding| finding.kind == FindingKind::LostKey && finding.seen == "nothing"));
    let start = snapshot.window.start_nanoseconds;
    assert!(findings.iter().all(|finding| finding.at_nanoseconds > start && finding.node == redis.endpoint()));
}

#[tokio::test]
async fn values_that_another_client_puts_back_are_lost_writes_to_the_number() {
    let redis = RedisServer::start(&[]);
    let mut plan = values();
    plan.workload_mut().operations = vec![operation("set", 1, "SET __key__ __data__ GET")];
    plan.workload_mut().keys.pattern = KeyPattern::Sequential;
    // Each key is written five times after the preload.
    plan.bound = Bound::Requests { count: 5 * KEYS, max_nanoseconds: 20 * SECOND };
    let mut bench = Bench::connected(plan, standalone(&redis), 1).await;
    bench.preload().await;
    let names: Vec<String> = (0..10).map(|number| format!("key:{number:03}")).collect();
    let before: Vec<Vec<u8>> = names.iter().map(|name| redis.ask(&["GET", name])).collect();
    bench.start(1);
    assert_clean(&bench.finished(1).await);
    let mut connection = redis.connection();
    for (name, value) in names.iter().zip(&before) {
        redis::cmd("SET").arg(name).arg(value).exec(&mut connection).unwrap();
    }
    bench.engine.rearm().unwrap();
    bench.start(2);
    let snapshot = bench.finished(2).await;
    let Verification { counts: found, findings } = verification(&snapshot);
    assert_eq!((found.lost_writes, found.lost_keys, found.corrupt), (5 * 10, 0, 0));
    let mut lost: Vec<_> = findings.iter().map(|finding| finding.key.clone()).collect();
    lost.sort();
    assert_eq!(lost, names);
    assert!(findings.iter().all(|finding| (finding.expected.as_str(), finding.seen.as_str()) == ("6", "1")));
}

#[tokio::test]
async fn counts_are_exact_and_one_put_back_is_lost() {
    let redis = RedisServer::start(&[]);
    let mut plan = values();
    (plan.verify, plan.preload) = (Verify::Replies, Preload::None);
    plan.workload_mut().operations = vec![operation("incr", 3, "INCR __key__"), operation("get", 1, "GET __key__")];
    plan.workload_mut().keys.count = 10;
    plan.bound = Bound::Duration { nanoseconds: 500 * MILLISECOND };
    let snapshot = run(plan.clone(), standalone(&redis), 2).await;
    assert_clean(&snapshot);
    let incr = snapshot.operations[0].tally.succeeded;
    let sum: u64 = (0..10).map(|key| redis.ask::<u64>(&["GET", &format!("key:{key}")])).sum();
    assert_eq!(sum, incr, "each was executed once");

    let mut bench = Bench::connected(plan, standalone(&redis), 1).await;
    redis.reset_statistics();
    bench.start(1);
    wait_until("it counts", || redis.calls("incr") > 500);
    redis.ask::<()>(&["DECRBY", "key:3", "7"]);
    let snapshot = bench.finished(1).await;
    let Verification { counts: found, findings } = verification(&snapshot);
    assert_eq!((found.lost_writes, found.lost_keys, found.mismatched), (7, 0, 0), "{found:?}");
    let finding = &findings[0];
    assert_eq!((finding.kind, finding.key.as_str(), findings.len()), (FindingKind::LostWrite, "key:3", 1));
}

/// A resumed server executes the commands in its socket buffers, long after the client gave up and wrote again.
#[tokio::test]
async fn writes_that_are_executed_late_are_not_taken_for_losses() {
    let redis = RedisServer::start(&[]);
    for verify in [Verify::Values, Verify::Replies] {
        let mut plan = values();
        plan.verify = verify;
        if verify == Verify::Replies {
            plan.preload = Preload::None;
            plan.workload_mut().operations = vec![operation("incr", 1, "INCR __key__")];
            plan.workload_mut().keys.prefix = "counter:".into();
        }
        plan.workload_mut().keys.count = 20;
        plan.load = open_loop(2_000);
        plan.bound = Bound::Duration { nanoseconds: 4 * SECOND };
        plan.timeouts.request_nanoseconds = 100 * MILLISECOND;
        let name = if verify == Verify::Replies { "incr" } else { "set" };
        let mut bench = Bench::connected(plan.clone(), standalone(&redis), 1).await;
        bench.preload().await;
        redis.reset_statistics();
        bench.start(1);
        wait_until("the load runs", || redis.calls(name) > 200);
        redis.pause();
        // All of them: what one connection has in flight can be reads only.
        for _ in 0..plan.connections {
            bench.until(|event| matches!(event, EngineEvent::ConnectionLost { .. })).await;
        }
        redis.resume();
        let snapshot = bench.completed(1).await;
        let found = verification(&snapshot).counts;
        assert!(found.ambiguous_writes > 0, "{found:?}");
        assert_clean(&snapshot);
        // Nothing is retried after a timeout: each write is executed at most once.
        let writes: u64 = snapshot
            .operations
            .iter()
            .filter(|operation| operation.name == name)
            .map(|operation| operation.tally.succeeded + operation.tally.unanswered)
            .sum();
        assert!(redis.calls(name) <= writes, "{} of {writes} executed", redis.calls(name));
    }
}

/// Acknowledges every write. `read` chooses the reply to a read from the values written to the key.
fn liar(read: fn(&[Vec<u8>]) -> Vec<u8>) -> Topology {
    let stored = Arc::new(Mutex::new(HashMap::<String, Vec<Vec<u8>>>::new()));
    scripted(move || {
        let stored = Arc::clone(&stored);
        move |arguments: &[String], raw: &[u8], output: &mut Vec<u8>| {
            let mut stored = stored.lock().unwrap();
            match arguments[0].as_str() {
                "SET" => {
                    stored.entry(arguments[1].clone()).or_default().push(written(raw));
                    output.extend_from_slice(b"+OK\r\n");
                }
                "GET" => {
                    let values = stored.get(&arguments[1]);
                    output.extend_from_slice(&values.map_or_else(|| b"$-1\r\n".to_vec(), |values| bulk(&read(values))));
                }
                _ => output.extend_from_slice(b"+PONG\r\n"),
            }
        }
    })
}

#[tokio::test]
async fn garbage_is_corrupt() {
    let reads = |snapshot: &Snapshot| snapshot.operations[0].tally.succeeded + KEYS;
    for lie in [
        (|_| b"garbage".to_vec()) as fn(&[Vec<u8>]) -> Vec<u8>,
        |_| vec![7; 100],
        |_| vec![7; 100_000],
        |_| Vec::new(),
        // One flipped bit.
        |values| {
            let mut value = values.last().unwrap().clone();
            value[99] ^= 1;
            value
        },
        |values| values.last().unwrap()[..99].to_vec(),
    ] {
        let snapshot = run(values(), liar(lie), 1).await;
        let Verification { counts: found, findings } = verification(&snapshot);
        assert_eq!((found.corrupt, found.lost_writes, found.lost_keys), (reads(&snapshot), 0, 0));
        assert!(findings.iter().all(|finding| finding.kind == FindingKind::Corrupt));
    }
    assert_clean(&run(values(), liar(|values| values.last().unwrap().clone()), 1).await);
}

#[tokio::test]
async fn a_server_that_forgets_writes_has_lost_them() {
    let mut plan = values();
    plan.workload_mut().operations = vec![operation("set", 1, "SET __key__ __data__")];
    plan.workload_mut().keys.pattern = KeyPattern::Sequential;
    // Each key is written four times after the preload.
    plan.bound = Bound::Requests { count: 4 * KEYS, max_nanoseconds: 20 * SECOND };
    let snapshot = run(plan, liar(|values| values[1].clone()), 1).await;
    let Verification { counts: found, findings } = verification(&snapshot);
    // The last read returns the second of five writes.
    assert_eq!((found.lost_writes, found.lost_keys, found.corrupt), (3 * KEYS, 0, 0));
    assert_eq!((findings[0].expected.as_str(), findings[0].seen.as_str()), ("5", "2"));
}

#[tokio::test]
async fn types_are_checked_by_every_worker() {
    let redis = RedisServer::start(&[]);
    let mut plan = plan();
    plan.verify = Verify::Replies;
    plan.workload_mut().operations.push(operation("push", 1, "LPUSH list __data__"));
    let snapshot = run(plan.clone(), standalone(&redis), 2).await;
    assert_clean(&snapshot);
    assert_eq!((verification(&snapshot).counts.read_keys, snapshot.generator.workers), (0, 2));
    // A server that replies to everything with a string.
    let peer = crate::peer::Peer::start();
    let snapshot = run(plan, peer.topology(), 2).await;
    let found = verification(&snapshot).counts;
    let not_reads: u64 = snapshot.operations[1..].iter().map(|operation| operation.tally.succeeded).sum();
    assert_eq!((found.mismatched, found.checked), (not_reads, snapshot.total.succeeded));
}

#[tokio::test]
async fn without_it_nothing_is_told() {
    let redis = RedisServer::start(&[]);
    assert_eq!(run(plan(), standalone(&redis), 1).await.verification, None);
}

#[tokio::test]
async fn an_aborted_load_is_not_read_again() {
    let redis = RedisServer::start(&[]);
    let mut plan = values();
    plan.bound = Bound::Duration { nanoseconds: 50 * SECOND };
    let mut bench = Bench::connected(plan, standalone(&redis), 1).await;
    bench.preload().await;
    bench.start(1);
    wait_until("the load runs", || redis.calls("get") > 200);
    assert!(verification(&bench.live().await).counts.checked > 0);
    bench.engine.abort().unwrap();
    let snapshot = bench.finished(1).await;
    assert!(snapshot.aborted);
    assert_eq!((verification(&snapshot).counts.read_keys, verification(&snapshot).counts.lost_writes), (0, 0));
    // Writes in flight may or may not have been executed.
    bench.engine.rearm().unwrap();
    bench.start(2);
    wait_until("the load runs again", || redis.calls("get") > 400);
    bench.engine.abort().unwrap();
    let found = bench.finished(2).await;
    let found = verification(&found).counts;
    assert_eq!((found.lost_writes, found.lost_keys, found.corrupt), (0, 0, 0));
}
