use std::ops::Range;

use redisbench_wire::Probe;
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Client, Library, Pool, Runtime};
use redisbench_wire::snapshot::{
    Generator, Interface, ServerCommands, ServerCpu, ServerNode, ServerSample, ServerStats, Snapshot, Tally,
};
use redisbench_wire::strain::{Shares, Strain};
use redisbench_wire::topology::{Outage, SlotRange};

use crate::api::Validated;
use crate::api::status::{LimitedBy, ReasonKind, Verdict, VerdictValue};
use crate::measurement::Outcome;
use crate::measurement::merge::merge;
use crate::sample::{SECOND, encoded, outcome, plan, snapshot, spec, verdict_on as judged};
use crate::verdict::needs_probe;

/// A closed loop of ten seconds, so that no rate decides.
fn closed() -> Validated {
    spec(1, &serde_json::json!({"type": "ClosedLoop", "duration": "10s"}))
}

/// A server that executed `calls` commands of the mix, of 20,000 that were sent.
fn server(calls: u64) -> ServerNode {
    ServerNode {
        id: "abc".into(),
        address: "redis:6379".into(),
        before: Some(ServerSample { taken_nanoseconds: SECOND, ..ServerSample::default() }),
        after: Some(ServerSample { taken_nanoseconds: 11 * SECOND, ..ServerSample::default() }),
        commands: Some(ServerCommands { calls, rejected: Some(0), ..ServerCommands::default() }),
        ..ServerNode::default()
    }
}

fn with(nodes: Vec<ServerNode>) -> Outcome {
    let mut snapshot = snapshot(0, &vec![SECOND / 1000; 20_000]);
    snapshot.servers = Some(ServerStats { nodes, not_compared: Vec::new() });
    outcome(vec![snapshot])
}

fn kinds(verdict: &Verdict) -> Vec<(ReasonKind, VerdictValue)> {
    verdict.reasons.iter().map(|reason| (reason.reason, reason.severity)).collect()
}

#[test]
fn one_command_in_a_thousand_may_be_unexplained() {
    for (calls, silent) in [(20_000, true), (20_020, true), (20_021, false), (19_980, true), (19_979, false)] {
        let verdict = judged(&closed(), &with(vec![server(calls)]));
        assert_eq!(verdict.reasons.is_empty(), silent, "{calls}: {verdict:?}");
    }
    let verdict = judged(&closed(), &with(vec![server(21_000)]));
    assert_eq!(kinds(&verdict), [(ReasonKind::Unreconciled, VerdictValue::Degraded)]);
    let message = &verdict.reasons[0].message;
    assert!(message.contains("21,000") && message.contains("20,000"), "{message}");
}

/// A server that executed what was sent, and `commands` others.
fn foreign(commands: u64) -> ServerNode {
    let mut node = server(20_000);
    node.commands.as_mut().unwrap().foreign = commands;
    node
}

#[test]
fn commands_of_nobody_are_unexplained_too() {
    let verdict = judged(&closed(), &with(vec![foreign(500)]));
    assert_eq!(kinds(&verdict), [(ReasonKind::Unreconciled, VerdictValue::Degraded)]);
    assert!(verdict.reasons[0].message.contains("500 other commands"), "{verdict:?}");
}

/// A library reports a call once, however often it sends it.
#[test]
fn a_client_that_repeats_calls_is_named_with_its_retries() {
    let judge = |library: Library, retries: u32, node: ServerNode| {
        let mut spec = closed();
        plan(&mut spec).client = Some(Client {
            name: "subject".into(),
            library,
            pool: Pool::Exclusive,
            threads: 1,
            runtime: Runtime::CurrentThread,
            retries,
        });
        let verdict = judged(&spec, &with(vec![node]));
        assert_eq!(kinds(&verdict), [(ReasonKind::Unreconciled, VerdictValue::Degraded)]);
        verdict.reasons[0].message.clone()
    };
    let allowed = judge(Library::Fred, 3, server(21_000));
    let named = "client subject repeats failed calls (load.clients[].retries is 3), or another client";
    assert!(allowed.contains(named), "{allowed}");
    assert!(allowed.ends_with("for the requests that are counted"), "it was cut: {allowed}");
    let forbidden = judge(Library::Driver { name: "go-redis".into() }, 0, server(21_000));
    let named = "client subject repeats calls although load.clients[].retries is 0, or another client";
    assert!(forbidden.contains(named), "{forbidden}");
    for (library, node) in [
        // The load generator's own client has no retries of this kind.
        (Library::Engine, server(21_000)),
        (Library::Fred, server(19_000)),
        // No library makes other commands out of the mix.
        (Library::Fred, foreign(500)),
    ] {
        let message = judge(library, 3, node);
        assert!(!message.contains("subject"), "{message}");
    }
}

#[test]
fn commands_of_a_load_beneath_are_a_note() {
    let mut spec = closed();
    std::sync::Arc::make_mut(&mut spec.spec).measurement.shared_target = true;
    let mut node = server(21_000);
    node.commands.as_mut().unwrap().foreign = 500;
    let verdict = judged(&spec, &with(vec![node]));
    assert_eq!(kinds(&verdict), [(ReasonKind::NotReconciled, VerdictValue::Valid)]);
    assert!(verdict.reasons[0].message.contains("sent 1,500 of the 21,500 commands"), "{verdict:?}");
    assert!(judged(&spec, &with(vec![server(20_000)])).reasons.is_empty());
    let fewer = judged(&spec, &with(vec![server(19_000)]));
    assert_eq!(kinds(&fewer), [(ReasonKind::Unreconciled, VerdictValue::Degraded)]);
}

#[test]
fn what_servers_refused_warm_up_and_errors_are_explained() {
    let mut outcome = with(vec![server(0)]);
    let snapshot = outcome.shards[0].snapshot.as_mut().unwrap();
    snapshot.warmup = Tally { scheduled: 1_000, succeeded: 1_000, ..Tally::default() };
    snapshot.total.redirect_hops = 300;
    snapshot.total.add(&Tally { scheduled: 50, errors: 50, unanswered: 50, ..Tally::default() });
    let mut judge = |calls: u64, rejected: u64| {
        let servers = outcome.shards[0].snapshot.as_mut().unwrap().servers.as_mut().unwrap();
        servers.nodes[0].commands =
            Some(ServerCommands { calls, rejected: Some(rejected), ..ServerCommands::default() });
        let found = judged(&closed(), &outcome);
        found.reasons.iter().all(|reason| reason.reason != ReasonKind::Unreconciled)
    };
    assert!(judge(21_000, 300), "those without an answer were not executed");
    assert!(judge(21_050, 300), "they were");
    assert!(!judge(21_000, 0), "redirects that no server gave");
    assert!(!judge(21_100, 300));
}

#[test]
fn what_cannot_be_compared_is_a_note() {
    let denied = ServerNode { commands: None, note: Some("redis:6379 does not allow INFO".into()), ..server(0) };
    let verdict = judged(&closed(), &with(vec![denied]));
    assert_eq!(kinds(&verdict), [(ReasonKind::NotReconciled, VerdictValue::Valid)]);
    assert!(verdict.reasons[0].message.contains("does not allow INFO"), "{verdict:?}");
    let mut outcome = with(vec![server(0)]);
    outcome.shards[0].snapshot.as_mut().unwrap().servers.as_mut().unwrap().not_compared = vec!["evalsha".into()];
    assert_eq!(kinds(&judged(&closed(), &outcome)), [(ReasonKind::NotReconciled, VerdictValue::Valid)]);
}

#[test]
fn a_server_that_evicts_is_told() {
    let mut node = server(20_000);
    node.after.as_mut().unwrap().evicted_keys = 7;
    let verdict = judged(&closed(), &with(vec![node]));
    assert_eq!(kinds(&verdict), [(ReasonKind::Evictions, VerdictValue::Degraded)]);
    assert!(verdict.reasons[0].message.contains("evicted 7 keys"), "{verdict:?}");
}

#[test]
fn keys_of_the_preload_that_are_gone_are_a_note() {
    let told = |keys: u64, evicted: u64| {
        let mut node = server(20_000);
        for sample in [node.before.as_mut(), node.after.as_mut()].into_iter().flatten() {
            (sample.keys, sample.evicted_keys) = (keys, evicted);
        }
        let mut outcome = with(vec![node]);
        outcome.shards[0].snapshot.as_mut().unwrap().preloaded_keys = 1_000;
        kinds(&judged(&closed(), &outcome))
    };
    assert_eq!(told(900, 100), [(ReasonKind::Evictions, VerdictValue::Valid)]);
    assert_eq!(told(900, 0), [], "they expired");
    assert_eq!(told(1_000, 100), [], "those of before");
}

#[test]
fn a_server_that_forks_is_a_note() {
    let told = |nodes: Vec<ServerNode>| judged(&closed(), &with(nodes));
    let forked = |forks, microseconds| ServerNode { forks, longest_fork_microseconds: microseconds, ..server(10_000) };
    let verdict = told(vec![forked(2, 34_567), forked(1, 20_000)]);
    assert_eq!(kinds(&verdict), [(ReasonKind::Forked, VerdictValue::Valid)]);
    let message = &verdict.reasons[0].message;
    assert!(message.contains("forked 2 times, which paused it for up to 34.6 ms (and 1 other"), "{message}");
    assert!(message.ends_with("the usual number of forks"), "it was cut: {message}");
    let child = told(vec![ServerNode { had_child: true, ..server(20_000) }]);
    assert_eq!(kinds(&child), [(ReasonKind::Forked, VerdictValue::Valid)]);
    assert!(child.reasons[0].message.contains("redis:6379 had a child process during"), "{child:?}");
    assert_eq!(kinds(&told(vec![server(20_000)])), []);
}

fn busy(share: u32) -> ServerNode {
    let cpu =
        ServerCpu { main_thread: true, mean_basis_points: share, nanoseconds: 9 * SECOND, ..ServerCpu::default() };
    ServerNode { cpu: Some(cpu), ..server(10_000) }
}

#[test]
fn the_busiest_server_is_the_limit_if_it_is_full() {
    let hot = ServerNode { id: "hot".into(), ..busy(9_700) };
    let judge = |nodes: Vec<ServerNode>| {
        let verdict = judged(&closed(), &with(nodes));
        (verdict.limited_by, verdict.component)
    };
    assert_eq!(judge(vec![busy(9_499), busy(100)]), (LimitedBy::Unknown, None));
    assert_eq!(judge(vec![busy(9_500), hot]), (LimitedBy::Target, Some("hot/MainThread".into())));
}

/// Ten seconds at 1,000 requests per second, of which the last two ask for 2,000. The server was full for this long.
fn ramp(full_milliseconds: u64) -> (Validated, Outcome) {
    let stage = |length: &str, rate: u64| serde_json::json!({"duration": length, "rate": {"from": rate, "to": rate}});
    let spec = spec(1, &serde_json::json!({"type": "OpenLoop", "stages": [stage("8s", 1_000), stage("2s", 2_000)]}));
    let mut node = busy(6_000);
    node.cpu.as_mut().unwrap().full_nanoseconds = full_milliseconds * SECOND / 1_000;
    let mut snapshot = snapshot(0, &vec![SECOND / 1000; 10_000]);
    snapshot.servers = Some(ServerStats { nodes: vec![node], not_compared: Vec::new() });
    (spec, outcome(vec![snapshot]))
}

#[test]
fn a_server_that_was_full_while_requests_fell_behind_is_the_limit() {
    let limit = |(spec, outcome): &(Validated, Outcome)| {
        let verdict = judged(spec, outcome);
        (verdict.limited_by, verdict.component)
    };
    assert_eq!(limit(&ramp(1_800)), (LimitedBy::Target, Some("abc/MainThread".into())));
    assert_eq!(limit(&ramp(1_799)), (LimitedBy::Unknown, None), "requests fell behind for longer");
    assert_eq!(limit(&(closed(), ramp(1_800).1)), (LimitedBy::Unknown, None), "nothing tells what limited the rest");
    let (_, outcome) = ramp(1_800);
    assert_eq!(limit(&(crate::sample::open_loop(1), outcome)), (LimitedBy::Rate, None));
    let (_, mut failing) = ramp(1_800);
    let total = &mut failing.shards[0].snapshot.as_mut().unwrap().total;
    total.add(&Tally { scheduled: 200, errors: 200, ..Tally::default() });
    assert_eq!(limit(&(crate::sample::open_loop(1), failing)), (LimitedBy::Unknown, None), "no second fell behind");
    let saturated = Shares { busiest_worker: 9_900, ..Shares::default() };
    let busy_in = |seconds: Range<u32>| limit(&strained(1_800, seconds, saturated));
    assert_eq!(busy_in(9..10), (LimitedBy::Unknown, None), "so was a worker, for half of that time");
    assert_eq!(busy_in(7..8), (LimitedBy::Target, Some("abc/MainThread".into())), "a worker was, before");
}

/// The ramp, with `bad` shares of the shard's processors in some of its seconds.
fn strained(full_milliseconds: u64, seconds: Range<u32>, bad: Shares) -> (Validated, Outcome) {
    let (spec, mut outcome) = ramp(full_milliseconds);
    let mut strain = Strain::default();
    for second in 0..10 {
        let usual = Shares { busiest_worker: 5_000, ..Shares::default() };
        strain.push(if seconds.contains(&second) { bad } else { usual }, SECOND);
    }
    outcome.shards[0].snapshot.as_mut().unwrap().generator.strain = Some(strain);
    (spec, outcome)
}

#[test]
fn a_load_generator_that_was_full_while_requests_fell_behind_is_the_limit() {
    let judge = |seconds: Range<u32>, busiest_worker: u32, longest_waiting_worker: u32| {
        let bad = Shares { busiest_worker, longest_waiting_worker, ..Shares::default() };
        let (spec, outcome) = strained(0, seconds, bad);
        let limit = judged(&spec, &outcome).limited_by;
        let merged = merge(&spec.plan, &outcome).unwrap().unwrap();
        assert_eq!(needs_probe(&spec, &outcome, &merged), limit == LimitedBy::Unknown);
        limit
    };
    assert_eq!(judge(8..10, 9_900, 0), LimitedBy::GeneratorCPU);
    assert_eq!(judge(8..10, 6_000, 3_500), LimitedBy::GeneratorCPU, "it ran or waited");
    assert_eq!(judge(8..10, 6_000, 2_500), LimitedBy::Unknown, "it slept, too");
    assert_eq!(judge(9..10, 9_900, 0), LimitedBy::Unknown, "for half of that time");
    assert_eq!(judge(5..7, 9_900, 0), LimitedBy::Unknown, "for as long, but before");
    let beside_a_full_link = |seconds: Range<u32>| {
        let (mut spec, mut outcome) = strained(0, seconds, Shares { busiest_worker: 9_900, ..Shares::default() });
        plan(&mut spec).measurement.link_bytes_per_second = Some(1_000);
        outcome.shards[0].snapshot.as_mut().unwrap().generator.interface =
            Some(Interface { sustained_received_bytes_per_second: 950, ..Interface::default() });
        judged(&spec, &outcome).limited_by
    };
    assert_eq!(beside_a_full_link(5..7), LimitedBy::GeneratorNetwork);
    assert_eq!(beside_a_full_link(8..10), LimitedBy::Unknown, "without one limit it would meet the other");
}

#[test]
fn a_full_server_and_a_full_load_generator_decide_nothing() {
    let mut outcome = with(vec![busy(9_900)]);
    let generator = &mut outcome.shards[0].snapshot.as_mut().unwrap().generator;
    (generator.load_nanoseconds, generator.busiest_worker_millionths) = (10 * SECOND, 990_000);
    assert_eq!(judged(&closed(), &outcome).limited_by, LimitedBy::Unknown);
    // Waiting for a processor is not the limit if the server is saturated.
    let generator = &mut outcome.shards[0].snapshot.as_mut().unwrap().generator;
    (generator.busiest_worker_millionths, generator.longest_waiting_worker_millionths) = (500_000, 300_000);
    assert_eq!(judged(&closed(), &outcome).limited_by, LimitedBy::Target);
}

#[test]
fn a_link_is_full_against_what_it_carries() {
    let mut outcome = with(vec![server(20_000)]);
    let mut judge = |capacity: Option<u64>, up: u64, down: u64| {
        let mut spec = closed();
        plan(&mut spec).measurement.link_bytes_per_second = capacity;
        outcome.shards[0].snapshot.as_mut().unwrap().generator.interface = Some(Interface {
            sustained_sent_bytes_per_second: up,
            sustained_received_bytes_per_second: down,
            ..Interface::default()
        });
        let verdict = judged(&spec, &outcome);
        (verdict.limited_by, verdict.component.unwrap_or_default())
    };
    let network = |direction: &str| (LimitedBy::GeneratorNetwork, direction.to_owned());
    assert_eq!(judge(Some(1_000), 900, 100), network("Uplink"));
    assert_eq!(judge(Some(1_000), 100, 950), network("Downlink"));
    assert_eq!(judge(Some(1_000), 899, 100), (LimitedBy::Unknown, String::new()));
    assert_eq!(judge(None, 900, 100), (LimitedBy::Unknown, String::new()));
}

#[test]
fn a_full_link_carries_no_more_whatever_processor_a_worker_waits_for() {
    let judge = |busy: u32, waiting: u32, throttled: u64| {
        let mut spec = closed();
        plan(&mut spec).measurement.link_bytes_per_second = Some(1_000);
        let mut outcome = with(vec![server(20_000)]);
        outcome.shards[0].snapshot.as_mut().unwrap().generator = Generator {
            load_nanoseconds: 10 * SECOND,
            busiest_worker_millionths: busy,
            longest_waiting_worker_millionths: waiting,
            throttled_nanoseconds: throttled,
            interface: Some(Interface { sustained_received_bytes_per_second: 950, ..Interface::default() }),
            ..Generator::default()
        };
        let verdict = judged(&spec, &outcome);
        assert_eq!(kinds(&verdict), [(ReasonKind::GeneratorCPU, VerdictValue::Degraded)]);
        verdict.limited_by
    };
    assert_eq!(judge(40_000, 250_000, 0), LimitedBy::GeneratorNetwork);
    assert_eq!(judge(40_000, 0, 3 * SECOND), LimitedBy::GeneratorNetwork);
    // The worker used all the time that it got: without one limit it would meet the other.
    assert_eq!(judge(950_000, 0, 0), LimitedBy::Unknown);
    assert_eq!(judge(250_000, 700_000, 0), LimitedBy::Unknown);
    assert_eq!(judge(50_000, 0, 9 * SECOND), LimitedBy::Unknown);
}

/// The limiting factor of `outcome`, which made 2,000 requests per second of 1 ms each, for this result of a probe.
fn probed(spec: &Validated, mut outcome: Outcome, per_second: u64, mean: u64) -> (LimitedBy, Option<String>) {
    let merged = merge(&spec.plan, &outcome).unwrap().unwrap();
    assert!(needs_probe(spec, &outcome, &merged));
    outcome.probes = vec![half(per_second, mean)];
    let verdict = judged(spec, &outcome);
    (verdict.limited_by, verdict.component)
}

/// The requests of half of the connections in two seconds.
fn half(per_second: u64, mean: u64) -> Probe {
    let succeeded = 2 * per_second;
    let tally = Tally { scheduled: succeeded, succeeded, ..Tally::default() };
    Probe { room: 2_000, of_room: 4_000, nanoseconds: 2 * SECOND, succeeded, mean_nanoseconds: mean, tally }
}

/// A closed loop whose links are known to carry more.
fn roomy() -> Validated {
    let mut spec = closed();
    plan(&mut spec).measurement.link_bytes_per_second = Some(1_000_000_000);
    spec
}

#[test]
fn half_of_the_connections_tell_what_the_trial_does_not() {
    let judge = |per_second, mean, node| probed(&roomy(), with(vec![node]), per_second, mean);
    let idle = || busy(2_000);
    assert_eq!(judge(1_000, SECOND / 1000, idle()), (LimitedBy::Connections, None));
    assert_eq!(judge(2_000, SECOND / 2000, idle()), (LimitedBy::Target, Some("Path".into())));
    assert_eq!(judge(2_000, SECOND / 2000, busy(8_000)), (LimitedBy::Target, None));
    // A server that reports that it was awake all the time, and computed for a fifth of it.
    let awake = |share: u32| {
        let mut node = idle();
        node.cpu.as_mut().unwrap().event_loop_basis_points = Some(share);
        node
    };
    assert_eq!(judge(2_000, SECOND / 2000, awake(9_500)), (LimitedBy::Target, Some("abc".into())));
    assert_eq!(judge(2_000, SECOND / 2000, awake(9_499)), (LimitedBy::Target, None));
    assert_eq!(judge(2_000, SECOND / 2000, awake(4_999)), (LimitedBy::Target, Some("Path".into())));
    // It writes for all of them at once, so more connections wait no longer.
    assert_eq!(judge(1_000, SECOND / 1000, awake(9_900)), (LimitedBy::Connections, None));
    // Between the two, or neither.
    assert_eq!(judge(1_600, SECOND / 1250, idle()), (LimitedBy::Unknown, None));
    assert_eq!(judge(2_000, SECOND / 1000, idle()), (LimitedBy::Unknown, None));
    assert_eq!(judge(40, SECOND / 1000, idle()), (LimitedBy::Unknown, None));
}

#[test]
fn a_queue_that_may_be_before_a_link_of_the_load_generator_is_no_limit_of_the_target() {
    let queue = |spec: &Validated, interface: &str| {
        let mut outcome = with(vec![busy(2_000)]);
        let generator = &mut outcome.shards[0].snapshot.as_mut().unwrap().generator;
        generator.interface = Some(Interface { name: interface.into(), ..Interface::default() });
        probed(spec, outcome, 2_000, SECOND / 2000)
    };
    assert_eq!(queue(&closed(), "eth0"), (LimitedBy::Unknown, Some("Path".into())));
    assert_eq!(queue(&closed(), "lo"), (LimitedBy::Target, Some("Path".into())));
    assert_eq!(queue(&roomy(), "eth0"), (LimitedBy::Target, Some("Path".into())));
}

/// The worker slept for a tenth of the time and a little more, so its processor is not known to be the limit either.
#[test]
fn a_wait_that_may_be_for_a_processor_of_the_load_generator_names_neither_target_nor_connections() {
    let probed = |waiting, rate, latency| {
        let mut outcome = with(vec![busy(2_000)]);
        let generator = &mut outcome.shards[0].snapshot.as_mut().unwrap().generator;
        generator.busiest_worker_millionths = 220_000;
        generator.longest_waiting_worker_millionths = waiting;
        probed(&roomy(), outcome, rate, latency)
    };
    assert_eq!(probed(670_000, 2_000, SECOND / 2000), (LimitedBy::Unknown, Some("Path".into())));
    assert_eq!(probed(199_999, 2_000, SECOND / 2000), (LimitedBy::Target, Some("Path".into())));
    assert_eq!(probed(670_000, 1_000, SECOND / 1000), (LimitedBy::Unknown, None));
    assert_eq!(probed(199_999, 1_000, SECOND / 1000), (LimitedBy::Connections, None));
}

#[test]
fn an_open_loop_that_misses_its_rate_is_probed_by_its_service_times() {
    let mut spec = spec(1, &serde_json::json!({"type": "OpenLoop", "openLoop": {"rate": 4000}, "duration": "10s"}));
    plan(&mut spec).measurement.link_bytes_per_second = Some(1_000_000_000);
    let outcome = || {
        let mut outcome = with(vec![busy(2_000)]);
        let latency = &mut outcome.shards[0].snapshot.as_mut().unwrap().latency;
        // Requests that waited seconds for their turn were served in 1 ms.
        latency.service =
            Some(std::mem::replace(&mut latency.response, encoded(Kind::Request, &vec![3 * SECOND; 20_000])));
        outcome
    };
    assert_eq!(probed(&spec, outcome(), 1_000, SECOND / 1000), (LimitedBy::Connections, None));
    assert_eq!(probed(&spec, outcome(), 2_000, SECOND / 2000), (LimitedBy::Target, Some("Path".into())));
    // Half of the connections kept the rate that all of them missed: they were never full.
    assert_eq!(probed(&spec, outcome(), 4_000, SECOND / 2000), (LimitedBy::Unknown, None));
    assert_eq!(probed(&spec, outcome(), 3_960, SECOND / 2000), (LimitedBy::Unknown, None));
    assert_eq!(probed(&spec, outcome(), 3_959, SECOND / 2000), (LimitedBy::Target, Some("Path".into())));
}

#[test]
fn what_the_probe_could_not_send_is_no_failure_where_connections_were_full() {
    let judge = |tally: Tally| {
        let mut outcome = with(vec![busy(2_000)]);
        let probe = Probe { tally, ..half(1_000, SECOND / 1000) };
        outcome.probes = vec![probe];
        judged(&roomy(), &outcome).limited_by
    };
    let full = Tally { scheduled: 8_000, succeeded: 2_000, unsent: 6_000, ..Tally::default() };
    assert_eq!(judge(full), LimitedBy::Connections);
    assert_eq!(judge(Tally { unsent_not_connected: 6_000, ..full }), LimitedBy::Unknown);
    assert_eq!(judge(Tally { unsent: 5_900, errors: 100, ..full }), LimitedBy::Unknown);
}

#[test]
fn a_target_in_trouble_is_not_probed() {
    let needs = |spec: &Validated, change: &dyn Fn(&mut Snapshot)| {
        let mut outcome = with(vec![busy(2_000)]);
        change(outcome.shards[0].snapshot.as_mut().unwrap());
        needs_probe(spec, &outcome, &merge(&spec.plan, &outcome).unwrap().unwrap())
    };
    let more = |tally: Tally| move |snapshot: &mut Snapshot| snapshot.total.add(&tally);
    let errors = |errors: u64| more(Tally { scheduled: errors, errors, ..Tally::default() });
    assert!(needs(&closed(), &errors(200)));
    assert!(!needs(&closed(), &errors(203)), "more than 1 % failed");
    let outage = |snapshot: &mut Snapshot| {
        let from_nanoseconds = snapshot.window.start_nanoseconds + SECOND;
        snapshot.topology.outages = vec![Outage {
            slots: SlotRange::ALL,
            reads: false,
            node: "redis:6379".into(),
            from_nanoseconds,
            until_nanoseconds: from_nanoseconds + SECOND,
            lasting: false,
        }];
    };
    assert!(!needs(&closed(), &outage), "an outage");
    // 20,000 of 20,202 in ten seconds: the rate is just missed.
    let open =
        |rate: u64| spec(1, &serde_json::json!({"type": "OpenLoop", "openLoop": {"rate": rate}, "duration": "10s"}));
    assert!(needs(&open(2_030), &errors(0)));
    assert!(!needs(&open(2_030), &errors(150)), "without the errors it would have been met");
    assert!(needs(&open(2_100), &errors(150)));
    let unsent = |not_connected| Tally {
        scheduled: 1_000,
        unsent: 1_000,
        unsent_not_connected: not_connected,
        ..Tally::default()
    };
    assert!(needs(&open(2_100), &more(unsent(0))), "every connection was full");
    assert!(!needs(&open(2_100), &more(unsent(1_000))), "there was no connection");
}

#[test]
fn what_the_trial_tells_needs_no_probe() {
    let needs =
        |spec: &Validated, outcome: &Outcome| needs_probe(spec, outcome, &merge(&spec.plan, outcome).unwrap().unwrap());
    assert!(needs(&closed(), &with(vec![busy(9_000)])));
    assert!(!needs(&closed(), &with(vec![busy(9_600)])), "a server at its end");
    let met = spec(1, &serde_json::json!({"type": "OpenLoop", "openLoop": {"rate": 2000}, "duration": "10s"}));
    assert!(!needs(&met, &with(vec![busy(2_000)])), "the rate was met");
    assert!(!needs(&closed(), &outcome(vec![snapshot(0, &[])])), "nothing came through");
    let mut rising = with(vec![busy(2_000)]);
    rising.shards[0].snapshot.as_mut().unwrap().series.completed = (0..100).map(|point| 100 + 2 * point).collect();
    assert!(!needs(&closed(), &rising), "there is no one throughput");
}
