use std::time::Duration;

use redisbench_loadgen::engine::{Access, ConnectFailure, EngineEvent, Handshake};
use redisbench_loadgen::resp::append_command;
use redisbench_testkit::servers::{RedisCluster, RedisServer, wait_until};
use redisbench_wire::plan::{
    Arrival, Bound, KeyPattern, Keys, Load, Operation, Part, Preload, PreloadPace, PreloadStep, RateStage, Topology,
    Values,
};
use redisbench_wire::snapshot::{Snapshot, Stage, Tally};

use crate::harness::{
    Bench, MILLISECOND, SECOND, assert_complete, open_loop, operation, plan, run, standalone, topology,
};
use crate::open_loop::OpenLoop;

/// The server's count equals the snapshot's.
fn assert_reconciled(server: &RedisServer, snapshot: &Snapshot) {
    let calls = server.calls("get") + server.calls("set");
    assert_eq!(calls, snapshot.total.succeeded + snapshot.warmup.succeeded + snapshot.preload_commands);
}

#[tokio::test]
async fn closed_loop_counts_what_the_server_counts() {
    for (pipeline, workers) in [(1, 1), (16, 2)] {
        let server = RedisServer::start(&[]);
        let mut plan = plan();
        plan.pipeline = pipeline;
        plan.connections = 4;
        plan.workload_mut().keys.count = 1_000_000;
        // Long enough for the warm-up of a worker that begins late.
        plan.warmup_nanoseconds = SECOND;
        plan.bound = Bound::Requests { count: 5_000, max_nanoseconds: 60 * SECOND };
        let snapshot = run(plan, standalone(&server), workers).await;
        assert_reconciled(&server, &snapshot);
        assert!(snapshot.total.succeeded > 100 && snapshot.warmup.succeeded > 10, "{:?}", snapshot.total);
        assert_eq!((snapshot.total.errors, snapshot.total.unsent), (0, 0));
        assert!(snapshot.operations[0].nil_replies > 0);
        assert!(snapshot.latency.service.is_none() && snapshot.latency.lateness.is_none());
        assert_eq!(snapshot.generator.workers, workers as u32);
        assert!(snapshot.generator.cpu_nanoseconds > 0);
        assert!(snapshot.total.sent_bytes > 0 && snapshot.total.received_bytes > 0);
        assert_all_bytes_are_of_operations(&snapshot);
        // `*2 $3 GET $10 key:000000`, and three arguments with 100 bytes of data.
        for (operation, length) in snapshot.operations.iter().zip([4 + 9 + 17, 4 + 9 + 17 + 108]) {
            assert_eq!(operation.tally.sent_bytes, operation.tally.scheduled * length, "{}", operation.name);
        }
        let set = &snapshot.operations[1];
        // `+OK`. Replies to the warm-up's last requests arrive while measuring, and replies after the end do not count.
        assert!(
            set.tally.received_bytes.abs_diff(5 * set.tally.succeeded) <= 5 * 4 * u64::from(pipeline),
            "{:?}",
            set.tally
        );
    }
}

/// Without PING and redirects, no byte is of anything else.
fn assert_all_bytes_are_of_operations(snapshot: &Snapshot) {
    let sum = |of: fn(&Tally) -> u64| snapshot.operations.iter().map(|operation| of(&operation.tally)).sum::<u64>();
    assert_eq!(sum(|tally| tally.sent_bytes), snapshot.total.sent_bytes);
    assert_eq!(sum(|tally| tally.received_bytes), snapshot.total.received_bytes);
    let seconds = || snapshot.timeline.spans.iter();
    let sent: u64 = seconds().map(|span| span.counts().sent_bytes).sum();
    let received: u64 = seconds().map(|span| span.counts().received_bytes).sum();
    assert_eq!((sent, received), (snapshot.total.sent_bytes, snapshot.total.received_bytes));
}

fn step(keys: Keys, command: &str, rounds: u32, writes: bool) -> PreloadStep {
    PreloadStep { keys, arguments: Operation::of("preload", 1, command).arguments, rounds, writes }
}

/// The steps of each key are in order: nothing is added to the list of an earlier preload, and the list exists when it gets its expiry.
#[tokio::test]
async fn steps_of_a_preload_follow_one_another() {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    (plan.shards, plan.connections) = (2, 6);
    plan.workload_mut().keys.count = 103;
    let (strings, lists) = (plan.workload.keys.clone(), Keys { prefix: "list:".into(), ..plan.workload.keys.clone() });
    plan.preload = Preload::Always;
    plan.preload_steps = vec![
        step(lists.clone(), "UNLINK __key__", 1, false),
        step(lists.clone(), "RPUSH __key__ a __data__", 1, true),
        step(lists.clone(), "RPUSH __key__ b", 3, false),
        step(lists, "EXPIRE __key__", 1, false),
    ];
    plan.preload_steps[3].arguments.push(vec![Part::Integer { least: 100, most: 200, width: 0 }]);
    for _ in 0..2 {
        for shard in 0..2 {
            let mut bench = Bench::connected(plan.clone().of_shard(shard), standalone(&server), 2).await;
            assert_eq!(bench.preload().await, [51 + 51, 52 + 52][shard as usize]);
        }
    }
    assert_eq!(server.ask::<u64>(&["DBSIZE"]), 2 * strings.count);
    for key in 0..103 {
        let list = format!("list:{key:03}");
        assert_eq!(server.ask::<u64>(&["LLEN", &list]), 5, "{list}");
        assert!((90..=200).contains(&server.ask::<i64>(&["TTL", &list])), "{list}");
    }
}

/// Replies larger than the read buffer arrive in pieces.
#[tokio::test]
async fn every_piece_of_a_large_reply_is_of_its_operation() {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    plan.workload_mut().keys.count = 10;
    plan.workload_mut().values = Values::fixed(300_000);
    plan.preload = Preload::Always;
    let snapshot = run(plan, standalone(&server), 1).await;
    assert_all_bytes_are_of_operations(&snapshot);
    let get = &snapshot.operations[0].tally;
    assert!(get.received_bytes >= 300_000 * get.succeeded.saturating_sub(2), "{get:?}");
}

#[tokio::test]
async fn preload_writes_each_key_once() {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    plan.workload_mut().keys.count = 1001;
    (plan.shards, plan.connections) = (2, 4);
    for mode in [Preload::Always, Preload::FillMissing] {
        for shard in 0..2 {
            plan.preload.clone_from(&mode);
            let mut bench = Bench::connected(plan.clone().of_shard(shard), standalone(&server), 2).await;
            assert_eq!(bench.preload().await, [500, 501][shard as usize]);
        }
    }
    assert_eq!(server.calls("set"), 2002);
    let size: u64 = redis::cmd("DBSIZE").query(&mut server.connection()).unwrap();
    assert_eq!(size, 1001);
    let value: Vec<u8> = redis::cmd("GET").arg("key:0042").query(&mut server.connection()).unwrap();
    assert_eq!(value.len(), 100);
}

#[tokio::test]
async fn a_refused_preload_says_why() {
    let server = RedisServer::start(&["--maxmemory", "1"]);
    let mut plan = plan();
    plan.preload = Preload::Always;
    let mut bench = Bench::connected(plan, standalone(&server), 1).await;
    bench.engine.preload().unwrap();
    let failed = bench.until(|event| matches!(event, EngineEvent::PreloadFailed { .. })).await;
    assert!(format!("{failed:?}").contains("OOM command not allowed"), "{failed:?}");
}

/// Runs this load after a warm-up of 100 ms.
async fn measured(load: Load, milliseconds: u64) -> Snapshot {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    plan.load = load;
    plan.connections = 8;
    plan.pipeline = 4;
    plan.warmup_nanoseconds = 100 * MILLISECOND;
    plan.bound = Bound::Duration { nanoseconds: milliseconds * MILLISECOND };
    let snapshot = run(plan, standalone(&server), 2).await;
    assert_reconciled(&server, &snapshot);
    snapshot
}

#[tokio::test]
async fn open_loop_schedules_exactly_its_rate() {
    let snapshot = measured(open_loop(7001), 300).await;
    // Requests k with k/7001 s in [0, 100 ms) and [100 ms, 400 ms).
    assert_eq!(snapshot.warmup.scheduled, 701);
    assert_eq!(snapshot.total.scheduled, 2801 - 701);
    assert!(snapshot.latency.service.is_some() && snapshot.latency.lateness.is_some());
}

#[tokio::test]
async fn stages_schedule_what_lies_below_their_line() {
    let stage = |nanoseconds, from_per_second, to_per_second| RateStage { nanoseconds, from_per_second, to_per_second };
    let stages = vec![stage(300 * MILLISECOND, 1000, 9000), stage(100 * MILLISECOND, 2000, 2000)];
    let snapshot = measured(OpenLoop { stages, ..OpenLoop::at(1000) }.load(), 400).await;
    assert_eq!(snapshot.warmup.scheduled, 100);
    assert_eq!(snapshot.total.scheduled, 5000 * 3 / 10 + 200);
}

#[tokio::test]
async fn open_loop_on_a_grid_schedules_every_request() {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    plan.load =
        OpenLoop { pacing_grid_nanoseconds: MILLISECOND, unsent_after_nanoseconds: SECOND, ..OpenLoop::at(10_000) }
            .load();
    plan.bound = Bound::Requests { count: 1001, max_nanoseconds: 20 * SECOND };
    let snapshot = run(plan, standalone(&server), 2).await;
    assert_eq!(snapshot.total.scheduled, 1001);
    assert_reconciled(&server, &snapshot);
}

#[tokio::test]
async fn poisson_arrivals_are_those_of_the_seed() {
    let server = RedisServer::start(&[]);
    let mut scheduled = Vec::new();
    for seed in [7, 7, 8] {
        let mut plan = plan();
        plan.workload_mut().seed = seed;
        plan.load = OpenLoop { arrival: Arrival::Poisson, ..OpenLoop::at(10_000) }.load();
        plan.connections = 4;
        plan.pipeline = 8;
        plan.warmup_nanoseconds = 50 * MILLISECOND;
        let snapshot = run(plan, standalone(&server), 2).await;
        let window = snapshot.window;
        assert!(window.first_due_nanoseconds > window.start_nanoseconds);
        scheduled.push((snapshot.warmup.scheduled, snapshot.total.scheduled));
        // Within 6 standard deviations of 2,000, the mean at this rate.
        assert!((1732..2268).contains(&snapshot.total.scheduled), "{:?}", snapshot.total);
    }
    assert_eq!(scheduled[0], scheduled[1]);
    assert_ne!(scheduled[0], scheduled[2]);
}

#[tokio::test]
async fn a_number_of_requests_is_exact() {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    plan.connections = 3;
    plan.pipeline = 16;
    // Long enough for each of three workers to get a processor.
    plan.warmup_nanoseconds = 300 * MILLISECOND;
    plan.bound = Bound::Requests { count: 5003, max_nanoseconds: 20 * SECOND };
    let snapshot = run(plan, standalone(&server), 3).await;
    assert_eq!(snapshot.total.succeeded, 5003);
    assert!(snapshot.warmup.succeeded > 0);
    assert_reconciled(&server, &snapshot);
    let window = snapshot.window;
    assert!(window.measure_to_nanoseconds > window.measure_from_nanoseconds);
    assert!(window.measure_to_nanoseconds <= window.drained_nanoseconds);
}

#[tokio::test]
async fn partitioned_keys_are_each_written_once() {
    let server = RedisServer::start(&[]);
    for shard in 0..3 {
        let mut plan = plan();
        plan.shards = 3;
        plan.workload_mut().operations = vec![operation("incr", 1, "INCR __key__")];
        plan.workload_mut().keys.count = 300;
        plan.workload_mut().keys.pattern = KeyPattern::Partitioned;
        plan.bound = Bound::Requests { count: 300, max_nanoseconds: 20 * SECOND };
        plan.connections = 6;
        plan.pipeline = 3;
        assert_eq!(run(plan.of_shard(shard), standalone(&server), 2).await.total.succeeded, 100);
    }
    let mut connection = server.connection();
    for key in 0..300 {
        let value: u64 = redis::cmd("GET").arg(format!("key:{key:03}")).query(&mut connection).unwrap();
        assert_eq!(value, 1, "key {key}");
    }
}

#[tokio::test]
async fn errors_of_the_server_are_counted_by_kind() {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    plan.workload_mut().operations =
        vec![operation("set", 1, "SET __key__ a"), operation("push", 1, "LPUSH __key__ a")];
    plan.workload_mut().keys.count = 1;
    plan.bound = Bound::Requests { count: 400, max_nanoseconds: 20 * SECOND };
    redis::cmd("SET").arg("key:0").arg("x").exec(&mut server.connection()).unwrap();
    let snapshot = run(plan, standalone(&server), 1).await;
    assert_eq!(snapshot.errors.len(), 1);
    assert_eq!(snapshot.errors[0].kind, "WRONGTYPE");
    assert!(snapshot.errors[0].first_message.contains("wrong kind of value"));
    assert_eq!(snapshot.operations[1].tally.errors, snapshot.errors[0].count);
    assert_eq!(snapshot.operations[1].tally.succeeded, 0);
    assert!(snapshot.latency.error_replies.is_some());
    assert_eq!(snapshot.total.unanswered, 0);
}

#[tokio::test]
async fn a_killed_server_gives_errors_and_every_request_an_outcome() {
    for load in [Load::ClosedLoop, open_loop(1000)] {
        let mut server = RedisServer::start(&[]);
        let mut plan = plan();
        plan.load = load.clone();
        plan.pipeline = 4;
        plan.bound = Bound::Duration { nanoseconds: 3 * SECOND };
        let mut bench = Bench::started(plan, standalone(&server), 2).await;
        wait_until("some requests", || server.calls("get") > 50);
        // Stop the server first, so that requests are in flight when it is killed.
        server.pause();
        bench.snapshot().await;
        server.kill();
        bench.until(|event| matches!(event, EngineEvent::ConnectionLost { .. })).await;
        let snapshot = bench.completed(1).await;
        assert!(snapshot.total.errors > 0 && snapshot.total.succeeded > 0, "{:?}", snapshot.total);
        assert_eq!(snapshot.total.errors, snapshot.total.unanswered);
        assert_eq!(snapshot.total.unsent > 0, load != Load::ClosedLoop, "{:?}", snapshot.total);
    }
}

#[tokio::test]
async fn a_silent_server_gives_timeouts() {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    plan.pipeline = 4;
    plan.timeouts.request_nanoseconds = 100 * MILLISECOND;
    plan.bound = Bound::Duration { nanoseconds: 3 * SECOND };
    let mut bench = Bench::started(plan, standalone(&server), 1).await;
    wait_until("some requests", || server.calls("get") > 20);
    server.pause();
    let snapshot = bench.finished(1).await;
    server.resume();
    assert_complete(&snapshot);
    assert!(snapshot.errors.iter().any(|error| error.kind == "Timeout"), "{:?}", snapshot.errors);
    assert_eq!(snapshot.total.errors, snapshot.total.unanswered);
}

#[tokio::test]
async fn the_handshake_comes_first_and_its_refusal_is_told() {
    let server = RedisServer::start(&[]);
    redis::cmd("CONFIG").arg("SET").arg("requirepass").arg("right").exec(&mut server.connection()).unwrap();
    let handshake = |password: &[u8]| {
        let mut bytes = Vec::new();
        append_command(&mut bytes, &[b"AUTH", password]);
        append_command(&mut bytes, &[b"SELECT", b"3"]);
        Handshake::new(bytes, 2)
    };
    let bench = |server: &RedisServer, password: &[u8]| {
        let access = Access { handshake: handshake(password), ..Access::default() };
        Bench::with(plan(), standalone(server), 1, access)
    };
    let (reason, message) = bench(&server, b"wrong").refused().await;
    assert_eq!(reason, ConnectFailure::HandshakeRefused);
    assert!(message.contains("WRONGPASS") && !message.contains("wrong\r"), "{message}");
    assert!(!format!("{:?}", handshake(b"secret")).contains("115"));
    let renamed = RedisServer::start(&["--rename-command", "AUTH", "LOGIN"]);
    let (_, message) = bench(&renamed, b"secret").refused().await;
    assert!(message.contains("unknown command 'AUTH'") && !message.contains("secret"), "{message}");
    let snapshot = bench(&server, b"right").run().await;
    assert_eq!(snapshot.total.errors, 0);
}

#[tokio::test]
async fn snapshots_balance_while_the_load_runs() {
    for load in [Load::ClosedLoop, open_loop(20_000)] {
        let server = RedisServer::start(&[]);
        let mut plan = plan();
        plan.load = load.clone();
        plan.warmup_nanoseconds = 50 * MILLISECOND;
        let bench = Bench::started(plan, standalone(&server), 2).await;
        let mut before = bench.snapshot().await;
        while before.stage != Stage::Done {
            let snapshot = bench.live().await;
            assert!(snapshot.total.balances() && snapshot.warmup.balances(), "{snapshot:?}");
            assert!(snapshot.sequence > before.sequence && snapshot.stage >= before.stage);
            assert!(snapshot.total.scheduled >= before.total.scheduled);
            assert!(snapshot.total.succeeded >= before.total.succeeded);
            assert!(
                snapshot.operations.is_empty() && snapshot.nodes.is_empty() && snapshot.series.completed.is_empty()
            );
            before = snapshot;
        }
        assert_complete(&bench.snapshot().await);
    }
}

#[tokio::test]
async fn connections_at_rest_are_pinged_and_the_trial_does_not_count_it() {
    let server = RedisServer::start(&[]);
    let mut bench = Bench::connected(plan(), standalone(&server), 1).await;
    wait_until("a ping on each connection", || server.calls("ping") >= 2);
    bench.start(1);
    let snapshot = bench.completed(1).await;
    assert_reconciled(&server, &snapshot);
}

#[tokio::test]
async fn connections_are_begun_no_faster_than_they_may() {
    let server = RedisServer::start(&[]);
    let mut plan = plan();
    (plan.connections, plan.connect_rate) = (12, Some(40));
    let mut bench = Bench::new(plan, standalone(&server), 2);
    let began = std::time::Instant::now();
    bench.connect().await;
    // At 40 per second the twelfth cannot come earlier on any machine.
    assert!(began.elapsed() >= Duration::from_secs(1) * 11 / 40, "{:?}", began.elapsed());
}

#[tokio::test]
async fn keys_are_preloaded_no_faster_than_they_may() {
    let (server, cluster) = (RedisServer::start(&[]), RedisCluster::steady(3));
    for (kind, servers) in [(Topology::Standalone, standalone(&server)), (Topology::Cluster, topology(&cluster))] {
        let mut plan = plan();
        plan.target.topology = kind;
        plan.workload_mut().keys.count = 300;
        plan.preload = Preload::Always;
        plan.preload_pace = PreloadPace { rate_per_second: Some(400), pipeline: Some(2) };
        let mut bench = Bench::connected(plan, servers, 2).await;
        let began = std::time::Instant::now();
        assert_eq!(bench.preload().await, 300);
        // At 400 per second the three-hundredth cannot come earlier on any machine.
        assert!(began.elapsed() >= Duration::from_secs(1) * 299 / 400, "{:?}", began.elapsed());
    }
    assert_eq!(server.calls("set") + cluster.calls("set"), 600);
}
