//! Client-side caches against a real server's tracking: its pushes, its counts and its limits.

use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::engine::{Access, Handshake};
use redisbench_loadgen::resp::append_command;
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Bound, CacheScope, Caching, CachingMode, KeyPattern, Load, Preload, TrialPlan, Verify};
use redisbench_wire::snapshot::{Cache, CacheCounts, Snapshot};

use crate::harness::{Bench, SECOND, count, open_loop, operation, plan, standalone};
use crate::peer::{bulk, scripted, written};

/// Keys of the plans here, each of 100 bytes.
const KEYS: u64 = 50;

fn caching() -> Caching {
    Caching {
        mode: CachingMode::Default,
        scope: CacheScope::Connection,
        entries: 1_000_000,
        ttl_nanoseconds: 3_600 * SECOND,
        prefixes: Vec::new(),
        no_loop: true,
        operations: vec![0],
        writes: vec![1],
    }
}

/// Reads at a rate on two connections until it is aborted; `caching` may be changed.
fn reading(change: impl FnOnce(&mut Caching)) -> TrialPlan {
    let mut plan = plan();
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    plan.workload_mut().keys.count = KEYS;
    (plan.load, plan.bound) = (open_loop(5_000), Bound::Duration { nanoseconds: 600 * SECOND });
    let mut caching = Caching { writes: Vec::new(), ..caching() };
    change(&mut caching);
    plan.workload_mut().options.caching = Some(caching);
    plan
}

/// A mix of reads and writes; `caching` may be changed.
fn mixed(change: impl FnOnce(&mut Caching)) -> TrialPlan {
    let mut plan = plan();
    (plan.connections, plan.workload_mut().keys.count, plan.preload) = (4, KEYS, Preload::Always);
    plan.workload_mut().operations =
        vec![operation("get", 9, "GET __key__"), operation("set", 1, "SET __key__ __data__")];
    let mut caching = caching();
    change(&mut caching);
    plan.workload_mut().options.caching = Some(caching);
    plan
}

fn bench(plan: TrialPlan, server: &RedisServer, workers: usize) -> Bench {
    bench_of(plan, standalone(server), workers)
}

fn bench_of(plan: TrialPlan, topology: Topology, workers: usize) -> Bench {
    let mut bytes = Vec::new();
    append_command(&mut bytes, &[b"HELLO", b"3"]);
    let words = plan.workload.options.caching.as_ref().unwrap().command();
    append_command(&mut bytes, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    let access = Access { handshake: Handshake::new(bytes, 2), ..Access::default() };
    Bench::with(plan, topology, workers, access)
}

fn cache(snapshot: &Snapshot) -> Cache {
    snapshot.cache.clone().unwrap()
}

/// Waits until the counts of the caches are as wanted.
async fn until(bench: &Bench, what: &str, wanted: impl Fn(&CacheCounts) -> bool) -> CacheCounts {
    let started = std::time::Instant::now();
    loop {
        let counts = cache(&bench.live().await).counts;
        if wanted(&counts) {
            return counts;
        }
        assert!(started.elapsed() < redisbench_testkit::servers::PATIENCE, "{what}: {counts:?}");
    }
}

fn info(connection: &mut redis::Connection, field: &str) -> u64 {
    let info: String = redis::cmd("INFO").arg("stats").query(connection).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap();
    line.parse().unwrap()
}

/// Waits until both connections have cached every key, as the server sees it.
async fn warm(bench: &Bench, watch: &mut redis::Connection) -> CacheCounts {
    let counts = until(bench, "each connection reads each key once", |counts| counts.misses == 2 * KEYS).await;
    assert_eq!((info(watch, "tracking_total_keys"), info(watch, "tracking_total_items")), (KEYS, 2 * KEYS));
    assert_eq!((counts.invalidations, counts.flushes), (0, 0));
    counts
}

/// Ends a load that runs, and checks that every request has its outcome.
async fn ended(bench: &mut Bench) -> Snapshot {
    bench.engine.abort().unwrap();
    let snapshot = bench.finished(1).await;
    assert!(snapshot.total.balances(), "{:?}", snapshot.total);
    snapshot
}

#[tokio::test]
async fn known_writes_are_pushed_exactly_once_to_each_connection() {
    let server = RedisServer::start(&[]);
    let mut watch = server.connection();
    let mut bench = bench(reading(|_| {}), &server, 1);
    bench.connect().await;
    bench.start(1);
    warm(&bench, &mut watch).await;
    for key in 0..KEYS {
        redis::cmd("SET").arg(format!("key:{key:02}")).arg("new").exec(&mut watch).unwrap();
    }
    // A key that no connection has read.
    redis::cmd("SET").arg("key:99").arg("new").exec(&mut watch).unwrap();
    let counts = until(&bench, "all keys are read again", |counts| counts.misses == 4 * KEYS).await;
    assert_eq!((counts.invalidations, counts.not_cached, counts.flushes), (2 * KEYS, 0, 0));
    assert!(counts.hits > 0 && counts.invalidated_unused <= 2 * KEYS);
    redis::cmd("FLUSHALL").exec(&mut watch).unwrap();
    let counts = until(&bench, "all keys are read again", |counts| counts.misses == 6 * KEYS).await;
    assert_eq!((counts.invalidations, counts.flushes), (2 * KEYS, 2));
    // A request without a reply would not count as succeeded.
    while bench.live().await.total.succeeded < counts.misses {}
    let snapshot = ended(&mut bench).await;
    assert_eq!(snapshot.total.scheduled, cache(&snapshot).counts.misses, "hits are not requests");
    assert_eq!(server.calls("get"), snapshot.total.succeeded);
    assert_eq!(count(&cache(&snapshot).invalidation, Kind::Request), 0, "another client wrote");
}

#[tokio::test]
async fn a_full_tracking_table_invalidates_without_writes() {
    let server = RedisServer::start(&["--tracking-table-max-keys", "100"]);
    let mut watch = server.connection();
    // With NOLOOP the server would not tell the connection whose command made it forget a key.
    let mut plan = reading(|caching| caching.no_loop = false);
    (plan.connections, plan.workload_mut().keys.count) = (1, 1_000);
    plan.workload_mut().keys.pattern = KeyPattern::Sequential;
    (plan.load, plan.bound) = (open_loop(5_000), Bound::Requests { count: 1_000, max_nanoseconds: 60 * SECOND });
    let mut bench = bench(plan, &server, 1);
    bench.connect().await;
    bench.start(1);
    bench.finished(1).await;
    let counts = until(&bench, "the server forgets all but 100 keys", |counts| counts.invalidations >= 900).await;
    // Of each key that it read, the cache has an entry or was told of it.
    let left = info(&mut watch, "tracking_total_items");
    assert_eq!((counts.hits, counts.misses, counts.not_cached), (0, 1_000, 0));
    assert_eq!(counts.misses - counts.invalidations, left);
    assert!(left <= 100 && counts.invalidated_unused == counts.invalidations);
}

#[tokio::test]
async fn a_lost_connection_flushes_its_cache_before_its_next_hit() {
    for scope in [CacheScope::Connection, CacheScope::Shard] {
        let server = RedisServer::start(&[]);
        let mut watch = server.connection();
        let mut bench = bench(reading(|caching| caching.scope = scope), &server, 1);
        bench.connect().await;
        bench.start(1);
        let (caches, killed) = if scope == CacheScope::Connection { (2, 1) } else { (1, 2) };
        let warm = until(&bench, "every key is cached", |counts| counts.misses >= caches * KEYS).await;
        assert_eq!((warm.flushes, warm.invalidations), (0, 0));
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut watch).unwrap();
        let tracking = list.lines().filter(|line| line.contains(" resp=3"));
        let ids: Vec<&str> = tracking.filter_map(|line| line.split(' ').next()?.strip_prefix("id=")).collect();
        assert_eq!(ids.len(), 2, "{list}");
        for id in ids.iter().take(killed) {
            let found: u64 = redis::cmd("CLIENT").arg("KILL").arg("ID").arg(id).query(&mut watch).unwrap();
            assert_eq!(found, 1);
        }
        // All keys of the killed connections are read again.
        let counts = until(&bench, "it reads again", |counts| counts.misses >= warm.misses + KEYS).await;
        assert!(counts.flushes > 0 && counts.flushes <= killed as u64, "{counts:?}");
        assert_eq!(counts.invalidations, 0);
        while bench.live().await.generator.reconnects < killed as u64 {}
        let snapshot = ended(&mut bench).await;
        assert_eq!(snapshot.generator.reconnects, killed as u64);
    }
}

#[tokio::test]
async fn a_restarted_server_flushes_every_cache() {
    let mut server = RedisServer::start(&[]);
    let mut plan = reading(|_| {});
    plan.load =
        crate::open_loop::OpenLoop { unsent_after_nanoseconds: 60 * SECOND, ..crate::open_loop::OpenLoop::at(5_000) }
            .load();
    let mut bench = bench(plan, &server, 1);
    bench.connect().await;
    bench.start(1);
    warm(&bench, &mut server.connection()).await;
    server.restart();
    let counts = until(&bench, "every key is read again", |counts| counts.misses >= 4 * KEYS).await;
    assert_eq!((counts.flushes, counts.invalidations), (2, 0));
    let mut watch = server.connection();
    assert_eq!(info(&mut watch, "tracking_total_items"), 2 * KEYS);
    redis::cmd("SET").arg("key:07").arg("new").exec(&mut watch).unwrap();
    until(&bench, "the new connections are tracked", |counts| counts.invalidations == 2).await;
    ended(&mut bench).await;
}

#[tokio::test]
async fn values_stay_right_in_every_mode() {
    let modes = [CachingMode::Default, CachingMode::OptIn, CachingMode::Broadcast];
    let scopes = [CacheScope::Connection, CacheScope::Shard];
    for (mode, scope) in modes.into_iter().flat_map(|mode| scopes.map(|scope| (mode, scope))) {
        for (load, pipeline) in [(Load::ClosedLoop, 1), (open_loop(20_000), 16)] {
            let server = RedisServer::start(&[]);
            let mut plan = mixed(|caching| (caching.mode, caching.scope) = (mode, scope));
            (plan.load, plan.pipeline, plan.verify) = (load, pipeline, Verify::Values);
            plan.bound = Bound::Requests { count: 5_000, max_nanoseconds: 60 * SECOND };
            let snapshot = bench(plan, &server, 2).run().await;
            let Cache { counts, invalidation } = cache(&snapshot);
            let what = format!("{mode:?} {scope:?} {pipeline}: {counts:?} {:?}", snapshot.total);
            assert_eq!((snapshot.total.errors, snapshot.total.unsent), (0, 0), "{what} {:?}", snapshot.errors);
            assert_eq!(counts.hits + snapshot.total.succeeded, 5_000, "{what}");
            assert_eq!(counts.misses, snapshot.operations[0].tally.succeeded, "{what}");
            assert!(counts.hits > 0 && counts.invalidations > 0, "{what}");
            assert_eq!(counts.flushes, 0, "{what}");
            let timed = count(&invalidation, Kind::Request);
            assert!(timed > 0 && timed <= counts.invalidations, "{what}: {timed}");
            let verified = snapshot.verification.as_ref().unwrap().counts;
            assert_eq!((verified.mismatched, verified.corrupt, verified.lost_writes), (0, 0, 0), "{verified:?}");
            let opted_in = if mode == CachingMode::OptIn { counts.misses } else { 0 };
            assert_eq!(counts.caching_calls, opted_in, "{what}");
            assert_eq!(server.calls("client|caching"), opted_in, "{what}");
            let last_read = verified.read_keys;
            assert_eq!(server.calls("get"), counts.misses + last_read, "{what}");
        }
    }
}

#[tokio::test]
async fn every_push_of_the_own_writes_is_counted() {
    // With NOLOOP every write is pushed to the three other connections, without it to all four.
    for (no_loop, receivers) in [(true, 3), (false, 4)] {
        let server = RedisServer::start(&[]);
        let mut plan = mixed(|caching| (caching.mode, caching.no_loop) = (CachingMode::Broadcast, no_loop));
        plan.preload = Preload::None;
        // One request at a time: the server sends a key once if it changes several times before it sends.
        (plan.concurrency, plan.workload_mut().keys.count) = (Some(1), 1_000_000);
        plan.bound = Bound::Requests { count: 2_000, max_nanoseconds: 60 * SECOND };
        let mut bench = bench(plan, &server, 1);
        let snapshot = bench.run().await;
        let writes = snapshot.operations[1].tally.succeeded;
        let counts = until(&bench, "all pushes arrive", |counts| counts.invalidations >= writes * receivers).await;
        assert_eq!(counts.invalidations, writes * receivers, "{counts:?}");
    }
}

#[tokio::test]
async fn a_loop_of_nothing_but_hits_ends() {
    let server = RedisServer::start(&[]);
    let mut plan = reading(|_| {});
    (plan.load, plan.bound) = (Load::ClosedLoop, Bound::Requests { count: 100_000, max_nanoseconds: 60 * SECOND });
    let snapshot = bench(plan, &server, 1).run().await;
    let counts = cache(&snapshot).counts;
    assert_eq!((counts.misses, counts.hits), (snapshot.total.succeeded, 100_000 - counts.misses));
    assert!(counts.misses <= 2 * KEYS, "{counts:?}");
}

/// A server of one key for each connection. Of every `told`-th write it pushes an invalidation, before it acknowledges the write.
fn secretive(told: u64) -> Topology {
    scripted(move || {
        let (mut value, mut writes) = (Vec::new(), 0_u64);
        move |arguments: &[String], raw: &[u8], output: &mut Vec<u8>| match arguments[0].as_str() {
            "SET" => {
                writes += 1;
                if writes.is_multiple_of(told) {
                    let key = &arguments[1];
                    let push = format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n", key.len());
                    output.extend_from_slice(push.as_bytes());
                }
                value = written(raw);
                output.extend_from_slice(b"+OK\r\n");
            }
            "GET" => output.extend_from_slice(&bulk(&value)),
            _ => output.extend_from_slice(b"+OK\r\n"),
        }
    })
}

#[tokio::test]
async fn hits_after_a_write_that_no_push_told_of_are_stale() {
    const ROUNDS: u64 = 100;
    // Each round is a write of the only key, and ten reads of it. A push costs the next read. Without one, all ten are hits on the value
    // that the write replaced, except in the first round.
    for (told, misses, stale, invalidations, not_cached) in [
        // The first write has nothing to invalidate.
        (1, ROUNDS, 0, ROUNDS, 1),
        (2, 1 + ROUNDS / 2, 10 * (ROUNDS / 2 - 1), ROUNDS / 2, 0),
        (1_000, 1, 10 * (ROUNDS - 1), 0, 0),
    ] {
        for scope in [CacheScope::Connection, CacheScope::Shard] {
            // With NOLOOP a connection drops what it writes itself.
            let mut plan = mixed(|caching| {
                (caching.scope, caching.no_loop) = (scope, false);
                (caching.operations, caching.writes) = (vec![1], vec![0]);
            });
            plan.workload_mut().operations =
                vec![operation("set", 1, "SET __key__ __data__"), operation("get", 10, "GET __key__")];
            plan.workload_mut().options.in_turns = true;
            (plan.connections, plan.workload_mut().keys.count) = (1, 1);
            (plan.preload, plan.verify) = (Preload::None, Verify::Values);
            plan.bound = Bound::Requests { count: 11 * ROUNDS, max_nanoseconds: 60 * SECOND };
            let snapshot = bench_of(plan, secretive(told), 1).run().await;
            let counts = cache(&snapshot).counts;
            let what = format!("{told} {scope:?}: {counts:?}");
            assert_eq!((counts.misses, counts.hits), (misses, 10 * ROUNDS - misses), "{what}");
            assert_eq!(counts.stale_hits, stale, "{what}");
            assert_eq!(
                (counts.invalidations, counts.not_cached, counts.flushes),
                (invalidations, not_cached, 0),
                "{what}"
            );
            assert_eq!(snapshot.total.succeeded, ROUNDS + misses, "{what}");
            let verified = snapshot.verification.as_ref().unwrap().counts;
            assert_eq!((verified.mismatched, verified.corrupt, verified.lost_writes), (0, 0, 0), "{verified:?}");
        }
    }
}
