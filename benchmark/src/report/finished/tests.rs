use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::{
    ClientUsage, ErrorTally, NodeTally, OperationTally, ServerCommands, ServerNode, ServerSample, ServerStats, Snapshot,
};
use redisbench_wire::timeline::{Buckets, Coarse, Outcomes, SpanPart};
use serde_json::json;

use super::super::Subject;
use super::*;
use crate::api::load::RampSpec;
use crate::api::status::{StageResult, TrialRequests};
use crate::sample::{lose, open_loop, outcome, plan, snapshot, spec, subject, trial, with_timeouts};

fn finished(outcome: &Outcome) -> Finished {
    let spec = open_loop(u32::try_from(outcome.shards.len()).unwrap());
    Finished::of("sample", "run", &trial(spec), outcome.clone()).unwrap()
}

fn balanced(requests: &Requests) -> bool {
    requests.scheduled == requests.succeeded + requests.errors + requests.unsent + requests.in_flight + requests.unknown
}

#[test]
fn the_columns_are_for_people() {
    let finished = finished(&outcome(vec![snapshot(0, &[1_450_000; 5_000]), snapshot(1, &[1_450_000; 5_000])]));
    let summary = finished.summary;
    assert_eq!(summary.rate.as_deref(), Some("1.00k/s"));
    assert_eq!(summary.p99.as_deref(), Some("1.45 ms"));
    assert_eq!(summary.errors.as_deref(), Some("0 (0 %)"));
    assert_eq!(summary.shards.as_deref(), Some("2/2"));
    assert_eq!(summary.verdict.as_deref(), Some("Valid"));
    let result = finished.measurement.unwrap().result;
    assert_eq!(result.response_time_of_succeeded, None);
    assert_eq!(result.throughput.target_per_second, Some(1000));
    assert_eq!(result.bandwidth.sent_bytes_per_second, 10_000);
}

#[test]
fn bandwidth_is_over_the_time_in_which_its_bytes_were_counted() {
    let quick = snapshot(0, &[1_450_000; 2_000]);
    let mut slow = snapshot(1, &[1_450_000; 2_000]);
    // The quick shard's quota ran out after ten seconds, this one's after twenty.
    slow.window.measure_to_nanoseconds += 10_000_000_000;
    slow.taken_nanoseconds += 10_000_000_000;
    let result = finished(&outcome(vec![quick, slow])).measurement.unwrap().result;
    assert_eq!(result.bandwidth.sent_bytes_per_second, 2_000 + 1_000);
}

/// With a number of requests, the common window ends when the first worker has none left. Other workers continue and count bytes.
#[test]
fn bytes_beyond_the_common_window_are_no_bandwidth_of_it() {
    let mut outcome = outcome(vec![snapshot(0, &[1_450_000; 2_000])]);
    let second = |second, sent_bytes| Span { second, seconds: 1, sent_bytes, ..Span::default() };
    outcome.timeline = (0..10).map(|at| second(at, 1_000)).chain([second(10, 900), second(11, 100)]).collect();
    let bandwidth = finished(&outcome).measurement.unwrap().result.bandwidth;
    assert_eq!((bandwidth.sent_bytes_per_second, bandwidth.received_bytes_per_second), (1_000, 0));
    let counts = Outcomes { sent_bytes: 800, received_bytes: 300, ..Outcomes::default() };
    let mut of_operation = outcome.clone();
    of_operation.timeline.iter_mut().for_each(|span| span.parts = vec![SpanPart { counts, ..SpanPart::default() }]);
    let own = finished(&of_operation).measurement.unwrap().result.operations[0].bandwidth.unwrap();
    assert_eq!((own.sent_bytes_per_second, own.received_bytes_per_second), (800, 300));
    // A minute that begins in the warm-up includes bytes of the warm-up.
    let snapshot = outcome.shards[0].snapshot.as_mut().unwrap();
    snapshot.window.measure_from_nanoseconds += 30_000_000_000;
    snapshot.window.measure_to_nanoseconds += 60_000_000_000;
    snapshot.taken_nanoseconds += 60_000_000_000;
    outcome.timeline =
        vec![Span { seconds: 60, ..second(0, 60_000) }, second(60, 2_000), second(69, 2_000), second(70, 7)];
    assert_eq!(finished(&outcome).measurement.unwrap().result.bandwidth.sent_bytes_per_second, 400);
}

#[test]
fn the_full_result_has_the_spec_and_the_versions_behind_it() {
    let server = |version: Option<&str>| ServerNode { version: version.map(str::to_owned), ..ServerNode::default() };
    let nodes = vec![server(Some("Valkey 9.1.2")), server(None), server(Some("Valkey 9.1.2"))];
    let mut first = snapshot(0, &[1_450_000; 2_000]);
    first.servers = Some(ServerStats { nodes, not_compared: Vec::new() });
    let finished = finished(&outcome(vec![first]));
    let whole = Measurement::read(finished.pieces.iter().map(|(_, piece)| piece.as_str())).unwrap();
    let spec = whole.spec.as_ref().unwrap();
    assert_eq!((spec.load.connections, spec.load.open_loop.as_ref().unwrap().rate), (4_000, Some(1_000)));
    assert_eq!(whole.versions.servers, ["Valkey 9.1.2"]);
    assert_eq!(whole.versions.redisbench.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    // Results of earlier versions have neither.
    let mut earlier = serde_json::to_value(&whole).unwrap();
    let fields = earlier.as_object_mut().unwrap();
    assert!(fields.remove("spec").is_some() && fields.remove("versions").is_some());
    let earlier: Measurement = serde_json::from_value(earlier).unwrap();
    assert_eq!((earlier.spec, earlier.versions), (None, Versions::default()));
    assert_eq!(earlier.result, whole.result);
}

#[test]
fn a_client_has_what_its_requests_cost_the_servers() {
    let sample = |cpu: u64, commands: u64, reads: Option<u64>| {
        Some(ServerSample { cpu_nanoseconds: Some(cpu), commands: Some(commands), reads, ..ServerSample::default() })
    };
    let server = ServerNode {
        before: sample(5, 7, Some(3)),
        after: sample(20_000_005, 10_010, Some(5_003)),
        commands: Some(ServerCommands::default()),
        ..ServerNode::default()
    };
    let cost = |kind: &str, nodes: &[&ServerNode], is_lost: bool| {
        let mut shards = vec![snapshot(0, &[1_450_000; 5_000]), snapshot(1, &[1_450_000; 5_000])];
        for shard in &mut shards {
            shard.client = Some(ClientUsage::default());
        }
        let nodes = nodes.iter().copied().cloned().collect();
        shards[0].servers = Some(ServerStats { nodes, not_compared: Vec::new() });
        let mut outcome = outcome(shards);
        if is_lost {
            lose(&mut outcome, 1);
        }
        let clients = json!([{"name": "one", "type": kind}]);
        let load = json!({"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "10s", "clients": clients});
        let finished = Finished::of("sample", "run", &trial(spec(2, &load)), outcome).unwrap();
        let client = finished.measurement.unwrap().result.clients.remove(0);
        (client.server_cpu_per_request_nanoseconds, client.commands_per_thousand_reads)
    };
    assert_eq!(cost("Fred", &[&server], false), (Some(2_000), Some(2_000)));
    assert_eq!(cost("Fred", &[&server, &server], false), (Some(4_000), Some(2_000)));
    let old = ServerNode { after: sample(10_000_005, 10_010, None), ..server.clone() };
    assert_eq!(cost("Fred", &[&old], false), (Some(1_000), None));
    let restarted = ServerNode { commands: None, ..server.clone() };
    let unasked: &[&ServerNode] = &[];
    for (kind, nodes, is_lost) in [
        ("Fred", &[&server, &restarted][..], false),
        ("Fred", unasked, false),
        ("Fred", &[&server][..], true),
        ("Null", &[&server][..], false),
    ] {
        assert_eq!(cost(kind, nodes, is_lost), (None, None), "{kind} {is_lost}");
    }
}

/// Two operations over two shards with different shares, second by second.
#[test]
fn the_seconds_of_the_full_result_add_up_to_its_total() {
    let requests = 5_000;
    let mut outcome = outcome(vec![snapshot(0, &vec![1_450_000; requests]), snapshot(1, &vec![1_450_000; requests])]);
    for shard in &mut outcome.shards {
        let snapshot = shard.snapshot.as_mut().unwrap();
        let set = OperationTally { name: "set".into(), ..snapshot.operations[0].clone() };
        snapshot.operations.push(set);
    }
    let part = |second: u64, operation: u64| {
        let mut response = Coarse::default();
        let slow = second * 50;
        response.record(1_450_000, 1_000 - slow);
        response.record(90_000_000 * (operation + 1), slow);
        let counts = Outcomes { scheduled: 1_000, succeeded: 1_000, ..Outcomes::default() };
        SpanPart {
            counts,
            response: response.buckets(),
            service: response.buckets(),
            error_replies: Buckets::default(),
        }
    };
    let spans = (0..10).map(|second| Span {
        second: second.try_into().unwrap(),
        seconds: 1,
        parts: vec![part(second, 0), part(second, 1)],
        sent_bytes: 10_000,
        ..Span::default()
    });
    outcome.timeline = spans.collect();
    let mut spec = open_loop(2);
    let operations = &mut plan(&mut spec).workload_mut().operations;
    operations.push(redisbench_wire::plan::Operation { name: "set".into(), ..operations[0].clone() });
    let pieces = Finished::of("sample", "run", &trial(spec), outcome).unwrap().pieces;
    let document: String = pieces.iter().map(|(_, piece)| piece.as_str()).collect();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let seconds = document["seconds"].as_array().unwrap();
    assert_eq!(seconds.len(), 10);
    let buckets = |part: &serde_json::Value| -> Buckets { serde_json::from_value(part["response"].clone()).unwrap() };
    let sum = |of: &dyn Fn(&serde_json::Value) -> serde_json::Value| {
        let (mut succeeded, mut response) = (0, Coarse::default());
        for second in seconds {
            succeeded += of(second)["counts"]["succeeded"].as_u64().unwrap();
            response.add(&buckets(&of(second)));
        }
        (succeeded, response.buckets())
    };
    let (get, set) = (sum(&|second| second["operations"][0].clone()), sum(&|second| second["operations"][1].clone()));
    let (total, response) = sum(&|second| second["total"].clone());
    let names = seconds[3]["operations"].as_array().unwrap().iter().map(|operation| operation["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["get", "set"]);
    for (sum, operation) in [&get, &set].into_iter().zip(document["result"]["operations"].as_array().unwrap()) {
        assert_eq!(sum.0, operation["requests"]["succeeded"]);
        assert_eq!(sum.1.count(), sum.0);
    }
    assert_eq!((get.0 + set.0, response.count()), (total, total));
    let mut both = Coarse::default();
    both.add(&get.1);
    both.add(&set.1);
    assert_eq!(both.buckets(), response);
    assert_ne!(get.1, set.1);
}

#[test]
fn too_many_failures_show_as_a_bound() {
    let finished = finished(&outcome(vec![with_timeouts(snapshot(0, &[1_450_000; 1_800]), 200)]));
    assert_eq!(finished.summary.p99.as_deref(), Some("> 1.45 ms"));
    let result = finished.measurement.unwrap().result;
    assert_eq!(result.response_time.p99_nanoseconds, None);
    assert!(result.response_time_of_succeeded.unwrap().p99_nanoseconds.is_some());
}

#[test]
fn the_rest_of_a_lost_shard_is_unknown_and_censored() {
    let mut outcome = outcome(vec![snapshot(0, &[1023; 5_000]), snapshot(1, &[1023; 2_500])]);
    lose(&mut outcome, 1);
    let finished = finished(&outcome);
    let result = finished.measurement.unwrap().result;
    assert_eq!((result.requests.scheduled, result.requests.unknown), (10_000, 2_500));
    assert!(balanced(&result.requests));
    assert_eq!(result.response_time.p50_nanoseconds, Some(1023));
    assert_eq!(result.response_time.p90_nanoseconds, None);
    assert_eq!(result.shards[1].state, ShardOutcome::Lost);
    assert_eq!((finished.shards.finished, finished.shards.lost), (1, 1));
}

/// A shard with a snapshot of maximum size and the longest texts.
fn huge(shard: u32) -> Snapshot {
    let values: Vec<u64> =
        (0..3_000).map(|n| (64 << (n % 33)) | (n * 7_919)).filter(|n| *n < 600_000_000_000).collect();
    let mut snapshot = with_timeouts(snapshot(shard, &values), u64::from(shard));
    let operation = snapshot.operations[0].clone();
    snapshot.operations = (0..34).map(|n| OperationTally { name: format!("{n:0>32}"), ..operation.clone() }).collect();
    let node = snapshot.nodes[0].clone();
    snapshot.nodes = (0..100)
        .map(|n| NodeTally { id: format!("{n:0>300}"), address: format!("{n:0>300}"), ..node.clone() })
        .collect();
    snapshot.errors = (0..64)
        .map(|n| ErrorTally { kind: format!("{n:0>90}"), count: 9_000 + n, first_message: "\"é".repeat(200) })
        .collect();
    snapshot
}

#[test]
fn the_largest_result_fits_into_a_status_that_the_schema_accepts() {
    let others = (1..34).map(|shard| with_timeouts(snapshot(shard, &[1023; 10]), shard.into()));
    let mut outcome = outcome([huge(0)].into_iter().chain(others).collect());
    for shard in &mut outcome.shards {
        shard.host = "h".repeat(400);
    }
    lose(&mut outcome, 7);
    let finished = finished(&outcome);
    let benchmark = crate::api::read(&crate::sample::object()).unwrap();
    let mut status = crate::api::RedisBenchmarkStatus::default();
    subject(&benchmark).over(&mut status, &finished);
    let result = finished.measurement.unwrap().result;
    let truncated = result.truncated.unwrap();
    assert_eq!(result.shards.len() as u64 + truncated.shards, 34);
    // And the one of the other shards.
    assert_eq!(result.operations.len() as u64 + truncated.operations, 35);
    assert_eq!(result.nodes.len() as u64 + truncated.nodes, 101);
    assert_eq!(result.errors.len() as u64 + truncated.errors, 65);
    // The worst entries come first.
    assert_eq!((result.shards[0].index, result.errors[0].count), (7, 9_063));
    assert_eq!(crate::api::status_problems(&status), []);
    assert!(serde_json::to_vec(&status).unwrap().len() <= STATUS_BYTES);
}

#[test]
fn the_most_stages_fit_into_a_status() {
    let percentile = Percentile {
        percentile: "99.9999".to_owned(),
        nanoseconds: Some(u64::MAX),
        low_nanoseconds: Some(u64::MAX),
        high_nanoseconds: Some(u64::MAX),
        ..Percentile::default()
    };
    let latencies =
        Latencies { max_nanoseconds: Some(u64::MAX), percentiles: vec![percentile; 10], ..Latencies::default() };
    let stage = |index| StageResult {
        index,
        name: Some("n".repeat(32)),
        from_milliseconds: u64::from(index) * 1_000,
        to_milliseconds: u64::from(index) * 1_000 + 1_000,
        rate: RampSpec { from: 1, to: 1_000_000_000 },
        seconds: 1,
        target_per_second: 1_000_000_000,
        achieved_per_second: 1_000_000_000,
        requests: TrialRequests::default(),
        response_time: latencies.clone(),
        service_time: Some(latencies.clone()),
    };
    let whole = TrialResult { stages: (0..64).map(stage).collect(), ..TrialResult::default() };
    let room = STATUS_BYTES / 2;
    let fitting = shortened(whole.clone(), room).unwrap();
    assert!(serde_json::to_vec(&fitting).unwrap().len() <= room);
    assert_eq!((fitting.stages.len(), fitting.truncated.unwrap().percentiles), (64, true));
    let fitting = shortened(whole, room / 4).unwrap();
    assert!(serde_json::to_vec(&fitting).unwrap().len() <= room / 4);
    let kept: Vec<u32> = fitting.stages.iter().map(|stage| stage.index).collect();
    assert_eq!(kept, (0..16).collect::<Vec<_>>());
    assert_eq!(fitting.truncated.unwrap().stages, 48);
}

#[test]
fn the_full_result_leaves_nothing_out() {
    let outcome = outcome((0..40).map(|shard| snapshot(shard, &[1000; 250])).collect());
    let finished = finished(&outcome);
    let whole: String = finished.pieces.iter().map(|(_, piece)| piece.as_str()).collect();
    let read = Measurement::read([whole.as_str()]).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), whole, "what is read is what was written");
    let whole: serde_json::Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["result"]["shards"].as_array().unwrap().len(), 40);
    assert_eq!(whole["shards"][39]["snapshot"]["series"]["completed"].as_array().unwrap().len(), 100);
    assert!(whole["histograms"]["total"]["response"].is_string());
    assert!(whole["result"]["truncated"].is_null());
}

/// A final snapshot at the contract's limits, with texts that JSON escaping makes longer still.
fn largest(shard: u32, (operations, nodes, errors, points): (usize, usize, usize, usize), text: &str) -> Snapshot {
    let mut snapshot = snapshot(shard, &[1_000, 2_000_000, 3_000_000_000]);
    let (operation, node) = (snapshot.operations[0].clone(), snapshot.nodes[0].clone());
    let name = |n: usize| text.chars().cycle().take(200).chain(n.to_string().chars()).collect::<String>();
    // Only the first has requests, so that the sums match.
    snapshot.operations.extend((1..operations).map(|n| OperationTally {
        name: format!("operation-{n}"),
        tally: Tally::default(),
        latency: redisbench_wire::snapshot::Latency {
            response: EncodedHistogram::encode(&Kind::Request.empty()).unwrap(),
            ..operation.latency.clone()
        },
        nil_replies: 0,
    }));
    snapshot.nodes.extend((1..nodes).map(|n| NodeTally { id: name(n), address: name(n), ..node.clone() }));
    snapshot.errors = (0..errors)
        .map(|n| ErrorTally { kind: name(n), count: u64::MAX >> 12, first_message: text.repeat(30) })
        .collect();
    snapshot.series.completed = vec![1_000_000; points];
    snapshot.generator.host = name(0);
    snapshot
}

/// Sizes of the status, and of the largest ConfigMap as sent and as stored.
fn sizes(outcome: &Outcome) -> (usize, usize, usize) {
    let spec = open_loop(u32::try_from(outcome.shards.len()).unwrap());
    let finished = Finished::of(&"n".repeat(46), "run", &trial(spec), outcome.clone()).unwrap();
    let benchmark = crate::api::read(&crate::sample::object()).unwrap();
    let subject = Subject { generation: Some(i64::MAX), ..subject(&benchmark) };
    let mut status = crate::api::RedisBenchmarkStatus { run_id: Some("r".repeat(64)), ..Default::default() };
    status.artifacts = (finished.pieces.iter().enumerate())
        .map(|(index, (name, _))| crate::api::status::Artifact {
            name: name.clone(),
            config_map: format!("{}-result-{index}", "n".repeat(46)),
        })
        .collect();
    subject.in_progress(&mut status, "m");
    subject.over(&mut status, &finished);
    assert_eq!(crate::api::status_problems(&status), []);
    let sent = |(_, piece): &(String, String)| serde_json::to_string(piece).unwrap().len();
    (
        serde_json::to_vec(&status).unwrap().len(),
        finished.pieces.iter().map(sent).max().unwrap_or_default(),
        finished.pieces.iter().map(|(_, piece)| piece.len()).max().unwrap_or_default(),
    )
}

fn assert_fits(outcome: &Outcome) {
    let (status, sent, kept) = sizes(outcome);
    assert!(status <= STATUS_BYTES, "{status} bytes of status");
    // A ConfigMap holds 1 MiB, a request to the API server 3 MiB; the rest of both is for names and labels.
    assert!(kept <= (1 << 20) - (64 << 10) && sent <= (3 << 20) - (64 << 10), "{sent} bytes sent, {kept} kept");
}

#[test]
fn the_largest_benchmark_fits() {
    use redisbench_wire::limits::{ERROR_KINDS, NODES, OPERATIONS, SERIES_POINTS};
    let most = (OPERATIONS, NODES, ERROR_KINDS, SERIES_POINTS);
    let small = snapshot(0, &[1_023; 3]);
    let others = (1..2_000).map(|shard| {
        let mut other = Snapshot { shard, ..small.clone() };
        other.operations.clear();
        other.nodes.clear();
        other
    });
    let mut outcome = outcome([largest(0, most, "\"\\\u{1}é")].into_iter().chain(others).collect());
    for index in 1..100 {
        lose(&mut outcome, index);
        outcome.shards[index].lost = Some("\u{1}".repeat(1_024));
    }
    outcome.ending =
        Ending::Failed(crate::measurement::Failure { reason: "ShardLost".into(), message: "\u{2}".repeat(9_000) });
    assert_fits(&outcome);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]
    #[test]
    fn every_benchmark_fits(
        shards in 1_u32..40,
        operations in 1_usize..65,
        nodes in 1_usize..80,
        errors in 0_usize..65,
        points in 0_usize..3_000,
        text in "[a\"\\\\\u{1}é€𝄞]{1,20}",
        lost in 0_usize..40,
    ) {
        let of = |shard| largest(shard, (operations, nodes, errors, points), &text);
        let mut outcome = outcome((0..shards).map(of).collect());
        for index in 0..lost.min(outcome.shards.len()) {
            lose(&mut outcome, index);
            outcome.shards[index].lost = Some(text.repeat(100));
        }
        let message = text.repeat(500);
        outcome.ending = Ending::Failed(crate::measurement::Failure { reason: "ShardLost".into(), message });
        assert_fits(&outcome);
    }
}
