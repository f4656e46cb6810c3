use redisbench_wire::snapshot::{Interface, OperationTally, ServerCpu, ServerNode, ServerStats, Snapshot};
use serde_json::json;

use super::*;
use crate::measurement::Outcome;
use crate::measurement::merge::merge;
use crate::sample::{checked, lose, outcome, snapshot, spec, with_timeouts};

const P99: Objective = Objective::Quantile { quantile: 0.99, max_nanoseconds: 2_000_000 };

/// A step at 1000 requests per second, over one shard or more, without a previous good step.
fn judged(objective: Objective, outcome: &Outcome) -> SearchStep {
    judged_after(None, objective, outcome)
}

fn judged_after(good: Option<GoodStep>, objective: Objective, outcome: &Outcome) -> SearchStep {
    judged_of(&json!(null), good, objective, outcome)
}

/// The same for `client`, unless it is null.
fn judged_of(
    client: &serde_json::Value,
    good: Option<GoodStep>,
    objective: Objective,
    outcome: &Outcome,
) -> SearchStep {
    let count = u32::try_from(outcome.shards.len()).unwrap();
    let mut load = json!({"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "10s", "warmup": "2s"});
    if client.is_object() {
        load["clients"] = json!([client]);
    }
    let spec = spec(count, &load);
    let merged = merge(&spec.plan, outcome).unwrap().unwrap();
    let judged = verdict::verdict(&spec, outcome, &merged);
    step(&SearchTrial { rate: 1_000, confirmation: Some(2), objective, good }, &spec, outcome, &merged, &judged)
}

/// Ten seconds of one request per millisecond, `slow` of them slow.
fn values(slow: usize) -> Vec<u64> {
    (0..10_000).map(|request| if request < slow { 5_000_000 } else { 1_000_000 }).collect()
}

#[test]
fn a_step_is_judged_by_the_quantile_of_all_shards() {
    let passed = judged(P99, &outcome(vec![snapshot(0, &values(99))]));
    assert_eq!((passed.outcome, passed.rate_per_second, passed.confirmation), (StepOutcome::Passed, 1_000, Some(2)));
    assert_eq!((passed.why, passed.limited_by), (None, None));
    let failed = judged(P99, &outcome(vec![snapshot(0, &values(101))]));
    assert_eq!(failed.outcome, StepOutcome::Failed);
    assert_eq!(failed.why.unwrap(), "p99 was 5.00 ms, the maximum is 2.00 ms");
    assert!(failed.limited_by.is_some());
}

/// A step at `rate`, beside an operation with the rate `own`, unless it is null.
fn judged_beside(
    own: &serde_json::Value,
    rate: u64,
    good: Option<GoodStep>,
    objective: Objective,
    snapshot: Snapshot,
) -> SearchStep {
    let operations =
        json!([{"name": "get", "command": "GET __key__"}, {"name": "scan", "command": "SCAN 0", "rate": own}]);
    let load = json!({"type": "OpenLoop", "openLoop": {"rate": rate}, "warmup": "2s"});
    let spec = checked(&json!({"workload": {"operations": operations}, "load": load}));
    let outcome = outcome(vec![snapshot]);
    let merged = merge(&spec.plan, &outcome).unwrap().unwrap();
    let judged = verdict::verdict(&spec, &outcome, &merged);
    step(&SearchTrial { rate, confirmation: None, objective, good }, &spec, &outcome, &merged, &judged)
}

/// The searched operation with the response times `get`, and `failed` requests without an answer, beside another.
fn beside(get: &[u64], failed: u64, scan: &[u64]) -> Snapshot {
    let with = |snapshot| if failed > 0 { with_timeouts(snapshot, failed) } else { snapshot };
    let of = |name: &str, alone: Snapshot| OperationTally {
        name: name.into(),
        tally: alone.total,
        ..alone.operations[0].clone()
    };
    let mut both = with(snapshot(0, &[get, scan].concat()));
    both.operations = vec![of("get", with(snapshot(0, get))), of("scan", snapshot(0, scan))];
    both
}

/// A background beneath the searched rate may be slow.
#[test]
fn the_objective_is_that_of_the_operations_without_a_rate() {
    let both = || beside(&values(0), 0, &[5_000_000; 500]);
    let passed = judged_beside(&json!(50), 1_000, None, P99, both());
    assert_eq!((passed.outcome, passed.why), (StepOutcome::Passed, None));
    assert_eq!(judged_beside(&json!(null), 1_050, None, P99, both()).outcome, StepOutcome::Failed);
}

/// The background is 20 times as fast, so that more than 99 % of all requests succeed.
#[test]
fn a_background_does_not_make_up_for_what_failed() {
    let both = beside(&values(0)[..9_000], 1_000, &vec![1_000_000; 200_000]);
    let failed = judged_beside(&json!(20_000), 1_000, None, Objective::Achieved { min: 0.99 }, both);
    assert_eq!(failed.outcome, StepOutcome::Failed);
    assert_eq!(failed.why.unwrap(), "90.00 % of the rate was achieved, the minimum is 99.00 %");
}

/// Requests without an answer count as slow.
#[test]
fn timeouts_are_beyond_the_quantile() {
    let failed = judged(P99, &outcome(vec![with_timeouts(snapshot(0, &values(0)), 200)]));
    assert_eq!(failed.outcome, StepOutcome::Failed);
    assert!(failed.why.as_ref().unwrap().contains("longer than any reply took"), "{failed:?}");
    let few = judged(Objective::ErrorRate { max: 0.01 }, &outcome(vec![with_timeouts(snapshot(0, &values(0)), 200)]));
    assert_eq!(few.outcome, StepOutcome::Failed);
    assert!(few.why.as_ref().unwrap().contains("1.96 %"), "{few:?}");
}

#[test]
fn what_is_not_achieved_does_not_hold() {
    let behind = judged(Objective::Achieved { min: 0.99 }, &outcome(vec![snapshot(0, &values(0)[..9_800])]));
    assert_eq!(behind.outcome, StepOutcome::Failed);
    assert!(behind.why.as_ref().unwrap().contains("98.00 % of the rate was achieved"), "{behind:?}");
    let backlog = judged(Objective::Achieved { min: 0.99 }, &outcome(vec![snapshot(0, &values(0)[..9_920])]));
    assert_eq!(backlog.outcome, StepOutcome::Failed);
    assert!(backlog.why.as_ref().unwrap().contains("the backlog grew by 8 requests per second"), "{backlog:?}");
}

/// It measured a different load than the others.
#[test]
fn a_step_that_lost_a_shard_says_nothing() {
    let mut lost = outcome(vec![snapshot(0, &values(0)[..5_000]), snapshot(1, &values(0)[..5_000])]);
    lose(&mut lost, 1);
    let step = judged(P99, &lost);
    assert_eq!(step.outcome, StepOutcome::Unusable);
    assert!(step.why.unwrap().contains("lost"));
}

/// A server whose main thread ran for `busy` hundredths of a per cent of ten seconds.
fn servers(busy: u32) -> ServerStats {
    let cpu =
        ServerCpu { mean_basis_points: busy, nanoseconds: 10_000_000_000, main_thread: true, ..ServerCpu::default() };
    let node = ServerNode { id: "a".into(), address: "redis:6379".into(), cpu: Some(cpu), ..ServerNode::default() };
    ServerStats { nodes: vec![node], not_compared: Vec::new() }
}

/// A met rate is not the limit of a failed objective; the saturated part is.
#[test]
fn what_fails_while_the_rate_is_met_is_limited_by_a_full_server() {
    let full = |busy: u32| {
        let mut slow = snapshot(0, &values(101));
        slow.servers = Some(servers(busy));
        judged(P99, &outcome(vec![slow]))
    };
    let at_its_end = full(9_900);
    assert_eq!((at_its_end.outcome, at_its_end.limited_by), (StepOutcome::Failed, Some(LimitedBy::Target)));
    assert_eq!(at_its_end.component.as_deref(), Some("a/MainThread"));
    let idle = full(2_000);
    assert_eq!((idle.outcome, idle.limited_by, idle.component), (StepOutcome::Failed, Some(LimitedBy::Unknown), None));
}

/// A server's slowest replies are late long before it is saturated. The previous step shows that its queue was the cause: response times
/// grew by more than the rate explains.
#[test]
fn a_server_near_its_end_is_told_by_the_last_good_step() {
    let good_at = |rate, mean_nanoseconds, share| Some(GoodStep { rate, mean_nanoseconds, server_basis_points: share });
    let good = |rate, mean_nanoseconds| good_at(rate, mean_nanoseconds, None);
    let nearly = |busy: u32, interface: &str| {
        let mut slow = snapshot(0, &values(101));
        slow.servers = Some(servers(busy));
        slow.generator.interface = Some(Interface { network: 1, name: interface.into(), ..Interface::default() });
        slow
    };
    let told = |good, slow: Snapshot| {
        let step = judged_after(good, P99, &outcome(vec![slow]));
        assert_eq!(step.outcome, StepOutcome::Failed);
        (step.limited_by.unwrap(), step.component)
    };
    let (server, unknown) = ((LimitedBy::Target, Some("a/MainThread".to_owned())), (LimitedBy::Unknown, None));
    // The mean is 1.04 ms: at 800 of 1,000 requests per second the rate explains 0.83 ms, and a tenth less is more than chance.
    assert_eq!(told(good(800, 700_000), nearly(8_000, Interface::LOOPBACK)), server);
    assert_eq!(told(good(800, 800_000), nearly(8_000, Interface::LOOPBACK)), unknown, "times grew as the rate did");
    assert_eq!(told(good(800, 1_040_000), nearly(8_000, Interface::LOOPBACK)), unknown, "times did not grow");
    assert_eq!(told(None, nearly(8_000, Interface::LOOPBACK)), unknown, "nothing to compare with");
    // The rate grew by a quarter, so the server's work must have grown by an eighth.
    let after = |share| told(good_at(800, 700_000, Some(share)), nearly(8_100, Interface::LOOPBACK));
    assert_eq!(after(7_200), server);
    assert_eq!(after(7_201), unknown, "the server was as busy at the lower rate");
    assert_eq!(after(8_500), unknown, "it was busier at the lower rate");
    assert_eq!(told(good(800, 700_000), nearly(7_400, Interface::LOOPBACK)), unknown, "the server had time");
    assert_eq!(told(good(800, 700_000), nearly(8_000, "eth0")), unknown, "the link may have been full");
    let mut forked = nearly(8_000, Interface::LOOPBACK);
    forked.servers.as_mut().unwrap().nodes[0].forks = 1;
    assert_eq!(told(good(800, 700_000), forked), unknown, "the server stood still while it forked");
    let mut busy = nearly(8_000, Interface::LOOPBACK);
    busy.generator.busiest_worker_millionths = 800_000;
    assert_eq!(told(good(800, 700_000), busy).0, LimitedBy::GeneratorCPU, "the worker was as near its own end");
    // With 1,000 of another operation, the rate grew from 1,800 to 2,000, and the mean is 1.02 ms.
    let mut both = beside(&values(101), 0, &values(0));
    both.servers = Some(servers(8_000));
    both.generator.interface = nearly(8_000, Interface::LOOPBACK).generator.interface;
    let step = judged_beside(&json!(1_000), 1_000, good(800, 800_000), P99, both);
    assert_eq!((step.limited_by.unwrap(), step.component), server);
}

/// Requests queue before a worker that ran for 70 % of the load, even if nothing else shows it.
#[test]
fn a_busy_worker_explains_a_slow_quantile() {
    let with = |busy: u32| {
        let mut slow = snapshot(0, &values(101));
        slow.generator.busiest_worker_millionths = busy;
        judged(P99, &outcome(vec![slow])).limited_by.unwrap()
    };
    assert_eq!(with(690_000), LimitedBy::Unknown);
    assert_eq!(with(700_000), LimitedBy::GeneratorCPU);
    assert!(ReasonKind::GeneratorDelay.is_of_the_generator());
}

fn why(limited_by: LimitedBy) -> Why {
    Why { message: "p99 was 5.00 ms, the maximum is 2.00 ms".into(), limited_by: Some(limited_by), component: None }
}

#[test]
fn what_was_found_is_said_in_a_sentence() {
    let bad = Bad { rate: 10_100, times: 2, why: why(LimitedBy::Target) };
    let told = |ending, good: Option<u64>| {
        let answer = Answer { ending, last_good: good, first_bad: Some(bad.clone()), contradicted: 1 };
        let standing = SearchState { objective: P99, answer: Some(answer), good: None, bad: None };
        result(&standing, 20)
    };
    let found = told(Ending::Found, Some(10_000));
    assert_eq!(
        found.message,
        "p99 of at most 2.00 ms holds up to 10,000/s; not at 10,100/s: p99 was 5.00 ms, the maximum is 2.00 ms, limited \
         by Target"
    );
    assert_eq!((found.ending, found.last_good_per_second), (Some(SearchEnding::Found), Some(10_000)));
    assert_eq!((found.first_bad_per_second, found.contradicted), (Some(10_100), 1));
    assert_eq!(found.limited_by, Some(LimitedBy::Target));
    for (ending, said, part) in [
        (Ending::MinFailed, SearchEnding::MinFailed, "lower search.rate.min"),
        (Ending::NotConfirmed, SearchEnding::Inconclusive, "toleranceBasisPoints"),
        (Ending::TooLong, SearchEnding::Inconclusive, "20 steps"),
        (Ending::Unusable(why(LimitedBy::Unknown)), SearchEnding::Inconclusive, "were unusable"),
    ] {
        let told = told(ending, None);
        assert_eq!(told.ending, Some(said));
        assert!(told.message.contains(part), "{}", told.message);
    }
}

/// A load that the generator could not produce does not count against the target.
#[test]
fn a_load_generator_at_its_end_is_not_the_target_that_varies() {
    let told = |limited_by| {
        let bad = Some(Bad { rate: 10_100, times: 1, why: why(limited_by) });
        let answer = Answer { ending: Ending::NotConfirmed, last_good: None, first_bad: bad, contradicted: 0 };
        result(&SearchState { objective: P99, answer: Some(answer), good: None, bad: None }, 20).message
    };
    assert!(told(LimitedBy::GeneratorCPU).contains("add shards"), "{}", told(LimitedBy::GeneratorCPU));
    assert!(
        told(LimitedBy::Target).contains("the target holds the same rate only sometimes"),
        "{}",
        told(LimitedBy::Target)
    );
    assert!(told(LimitedBy::Unknown).contains("the same rate holds only sometimes"), "{}", told(LimitedBy::Unknown));
}

const AT_OUR_END: [(LimitedBy, &str); 3] = [
    (LimitedBy::GeneratorCPU, "spec.shards.count"),
    (LimitedBy::GeneratorNetwork, "more machines"),
    (LimitedBy::Connections, "spec.load.connections"),
];

fn over(ending: Ending<Why>, good: Option<u64>, limited_by: LimitedBy) -> SearchResult {
    let bad = Some(Bad { rate: 10_100, times: 2, why: why(limited_by) });
    let answer = Answer { ending, last_good: good, first_bad: bad, contradicted: 0 };
    result(&SearchState { objective: P99, answer: Some(answer), good: None, bad: None }, 20)
}

/// The combined verdict of the steps that passed.
fn valid() -> Verdict {
    Verdict { value: VerdictValue::Valid, reasons: Vec::new(), limited_by: LimitedBy::Unknown, component: None }
}

#[test]
fn the_end_of_the_load_generator_is_no_capacity_of_the_target() {
    for (limited_by, way_out) in AT_OUR_END {
        let found = over(Ending::Found, Some(10_000), limited_by);
        assert_eq!((found.ending, found.last_good_per_second), (Some(SearchEnding::GeneratorLimited), Some(10_000)));
        assert!(!found.message.contains("up to") && found.message.contains("may hold more"), "{}", found.message);
        assert!(found.message.contains(way_out), "{}", found.message);
        assert_eq!(column(&found).as_deref(), Some(">= 10.0k/s"));
        let mut verdict = valid();
        conclude(&found, &mut verdict);
        assert_eq!((verdict.value, verdict.limited_by), (VerdictValue::Degraded, limited_by));
        let [reason] = verdict.reasons.as_slice() else { panic!("{verdict:?}") };
        assert_eq!((reason.reason, reason.severity), (ReasonKind::GeneratorLimited, VerdictValue::Degraded));
        assert!(reason.message.contains("may hold more than 10,000/s"), "{}", reason.message);
        // Failing at the lowest rate would wrongly mean that the target does not hold it.
        let found = over(Ending::MinFailed, None, limited_by);
        assert_eq!(found.ending, Some(SearchEnding::Inconclusive));
        assert!(found.message.starts_with("no result for the target: the load generator was the"), "{}", found.message);
        assert_eq!(column(&found), None);
    }
}

#[test]
fn the_verdict_and_the_column_say_what_was_found() {
    let told = |ending, good| {
        let found = over(ending, good, LimitedBy::Target);
        let mut verdict = valid();
        conclude(&found, &mut verdict);
        assert_eq!((verdict.value, verdict.reasons.len()), (VerdictValue::Valid, 0));
        (column(&found), verdict.limited_by)
    };
    assert_eq!(told(Ending::Found, Some(10_000)), (Some("10.0k/s".into()), LimitedBy::Target));
    assert_eq!(told(Ending::MaxPassed, Some(10_000)), (Some(">= 10.0k/s".into()), LimitedBy::Rate));
    assert_eq!(told(Ending::MinFailed, None), (Some("< 10.1k/s".into()), LimitedBy::Unknown));
    // The rate passed once, and failed when it was to be confirmed.
    assert_eq!(told(Ending::NotConfirmed, Some(10_000)), (None, LimitedBy::Unknown));
}

/// A rate that was tried twice: a failure of the target decides; a failure of only the load generator leaves it open.
#[test]
fn of_two_failures_the_more_telling_one_counts() {
    let found = |first: &str, second: &str| {
        let step = |index: u32, rate: u64, limited_by: Option<&str>| {
            let mut step = json!({"ratePerSecond": rate, "outcome": "Passed"});
            if let Some(limit) = limited_by {
                step = json!({"ratePerSecond": rate, "outcome": "Failed", "why": limit, "limitedBy": limit});
            }
            json!({"index": index, "state": "Completed", "attempt": 1, "verdict": "Valid", "search": step})
        };
        let lines = json!([
            step(0, 1_000, None),
            step(1, 1_100, Some(first)),
            step(2, 1_000, None),
            step(3, 1_000, None),
            step(4, 1_000, None),
            step(5, 1_100, Some(second)),
        ]);
        let spec = serde_json::from_value(json!({
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [{"name": "get", "command": "GET __key__"}], "keys": {"count": 10}},
            "load": {"type": "OpenLoop", "connections": 1},
            "search": {"objective": {"quantile": "0.9", "max": "2ms"},
                       "rate": {"min": 1000, "max": 1100, "toleranceBasisPoints": 2000}},
            "shards": {"count": 1},
        }));
        let mut status =
            RedisBenchmarkStatus { trials: serde_json::from_value(lines).unwrap(), ..RedisBenchmarkStatus::default() };
        set_searches(&mut status, &spec.unwrap());
        let found = status.search.unwrap();
        assert_eq!(found.why.as_deref(), Some(format!("{:?}", found.limited_by.unwrap()).as_str()));
        (found.ending.unwrap(), found.limited_by.unwrap())
    };
    let (target, ours) = (SearchEnding::Found, SearchEnding::GeneratorLimited);
    assert_eq!(found("Target", "GeneratorCPU"), (target, LimitedBy::Target));
    assert_eq!(found("GeneratorCPU", "Target"), (target, LimitedBy::Target));
    assert_eq!(found("GeneratorCPU", "Unknown"), (ours, LimitedBy::GeneratorCPU));
    assert_eq!(found("Unknown", "GeneratorNetwork"), (ours, LimitedBy::GeneratorNetwork));
    assert_eq!(found("Unknown", "Unknown"), (target, LimitedBy::Unknown));
}

/// One shard of three is too few to limit the throughput, and more than enough to cause the slowest hundredth.
#[test]
fn a_shard_without_a_processor_explains_a_slow_quantile() {
    let of = |client: serde_json::Value, waiting: u32, busy: u32| {
        let mut shards: Vec<_> = (0..3).map(|shard| snapshot(shard, &values(101))).collect();
        shards[1].generator.longest_waiting_worker_millionths = waiting;
        shards[0].servers = Some(servers(busy));
        let failed = judged_of(&client, None, P99, &outcome(shards));
        (failed.outcome, failed.limited_by.unwrap())
    };
    let with = |waiting, busy| of(json!(null), waiting, busy);
    // A client under test that is busy has its highest rate.
    assert_eq!(of(json!({"name": "f", "type": "Fred"}), 500_000, 2_000), (StepOutcome::Failed, LimitedBy::Client));
    let engine = json!({"name": "e", "type": "Engine"});
    assert_eq!(of(engine, 500_000, 2_000), (StepOutcome::Failed, LimitedBy::GeneratorCPU));
    assert_eq!(with(500_000, 2_000), (StepOutcome::Failed, LimitedBy::GeneratorCPU));
    assert_eq!(with(0, 2_000), (StepOutcome::Failed, LimitedBy::Unknown));
    assert_eq!(with(500_000, 9_900), (StepOutcome::Failed, LimitedBy::Target));
}

#[test]
fn a_search_that_goes_on_says_how_far_it_is() {
    let so_far = |good, bad: Option<u64>| {
        let bad = bad.map(|rate| Bad { rate, times: 1, why: why(LimitedBy::Unknown) });
        let told = result(&SearchState { objective: P99, answer: None, good, bad }, 4);
        assert_eq!(told.ending, None);
        told.message
    };
    assert_eq!(so_far(None, None), "no result yet for p99 of at most 2.00 ms");
    assert_eq!(so_far(Some(4_000), None), "so far p99 of at most 2.00 ms holds at 4,000/s");
    assert_eq!(so_far(Some(4_000), Some(8_000)), "so far p99 of at most 2.00 ms holds at 4,000/s and not at 8,000/s");
}

#[test]
fn a_step_is_said_in_a_line() {
    let step = |outcome, confirmation| {
        let Why { message, limited_by, .. } = why(LimitedBy::Target);
        let failed = outcome != StepOutcome::Passed;
        describe(&SearchStep {
            rate_per_second: 12_345,
            confirmation,
            outcome,
            why: failed.then_some(message),
            limited_by: limited_by.filter(|_| failed),
            component: None,
            busiest_server_basis_points: None,
        })
    };
    assert_eq!(step(StepOutcome::Passed, Some(2)), " at 12,345/s: passed, 2 of 3 times");
    assert_eq!(
        step(StepOutcome::Failed, None),
        " at 12,345/s: failed: p99 was 5.00 ms, the maximum is 2.00 ms, limited by Target"
    );
}

/// Searches of a spec with `change`, whose steps pass up to the capacity of their trial. At the limit of the generator, if it is limited.
fn searched(change: serde_json::Value, capacity: impl Fn(&plan::Trial) -> (u64, LimitedBy)) -> RedisBenchmarkStatus {
    let mut object = crate::sample::object();
    object["spec"]["load"] = json!({"type": "OpenLoop", "connections": 8, "warmup": "2s"});
    object["spec"]["search"] =
        json!({"objective": {"quantile": "0.99", "max": "2ms"}, "rate": {"min": 1000, "max": 64000}});
    redisbench_testkit::api_server::merge(&mut object["spec"], change);
    let spec = crate::api::read(&object).unwrap().spec;
    let plan = plan::compile(&spec, "sample").unwrap();
    let mut status = RedisBenchmarkStatus::default();
    while let Some(trial) = plan.trial(u32::try_from(status.trials.len()).unwrap(), &status.trials) {
        let (rate, (capacity, limit)) = (trial.search.unwrap().rate, capacity(&trial));
        let step = if rate <= capacity {
            json!({"ratePerSecond": rate, "outcome": "Passed"})
        } else {
            json!({"ratePerSecond": rate, "outcome": "Failed", "why": "slow", "limitedBy": limit})
        };
        let line = json!({
            "index": trial.index, "state": "Completed", "attempt": 1, "search": step, "cell": trial.kind.cell,
            "repeat": trial.kind.repeat, "target": trial.kind.setting.target, "achievedPerSecond": rate, "p99Nanoseconds": 1_000,
            "parameters": trial.kind.setting.parameters,
            "requests": {"scheduled": 10, "succeeded": 10, "errors": 0, "unsent": 0},
        });
        status.trials.push(serde_json::from_value(line).unwrap());
        set_searches(&mut status, &spec);
    }
    super::super::repeats::set_repeats(&mut status, &spec);
    super::super::comparison::set_comparison(&mut status, &spec);
    status
}

#[test]
fn each_of_several_searches_has_its_own_result_in_the_status() {
    let change = json!({"sweep": [{"field": "load.pipeline", "values": [1, 4]}], "sweepOrder": "Listed"});
    let status = searched(change, |trial| match trial.spec.plan.pipeline {
        1 => (5_000, LimitedBy::Target),
        _ => (20_000, LimitedBy::GeneratorCPU),
    });
    assert_eq!(status.search, None);
    let [one, four] = &status.searches[..] else { panic!("{:?}", status.searches) };
    assert_eq!((one.name().as_str(), one.cell, one.repeat), ("load.pipeline=1", 0, None));
    assert_eq!((one.result.ending, one.result.limited_by), (Some(SearchEnding::Found), Some(LimitedBy::Target)));
    assert!((4_900..=5_000).contains(&one.result.last_good_per_second.unwrap()), "{one:?}");
    assert_eq!((four.name().as_str(), four.result.ending), ("load.pipeline=4", Some(SearchEnding::GeneratorLimited)));
    assert_eq!(one.steps + four.steps, u32::try_from(status.trials.len()).unwrap());
    let said = sentence(&status.searches);
    assert_eq!(said, "load.pipeline=1: 5.00k/s; load.pipeline=4: >= 20.0k/s");
    let mut verdict =
        Verdict { value: VerdictValue::Valid, reasons: Vec::new(), limited_by: LimitedBy::Unknown, component: None };
    conclude_all(&status.searches, &mut verdict);
    assert_eq!(
        (verdict.value, verdict.limited_by, verdict.reasons.len()),
        (VerdictValue::Degraded, LimitedBy::Unknown, 1)
    );
    assert!(
        verdict.reasons[0].message.starts_with("load.pipeline=4: the load generator ended the search"),
        "{verdict:?}"
    );
}

#[test]
fn targets_are_compared_by_the_rates_that_their_searches_found() {
    let target = |name: &str| json!({"name": name, "type": "Standalone", "endpoints": [format!("{name}:6379")]});
    let change = json!({
        "targets": [target("direct"), target("proxy")], "comparison": {"baseline": "direct"}, "repeats": {"count": 5},
    });
    let status = searched(change, |trial| {
        let noise = u64::from(trial.kind.repeat.unwrap()) * 40;
        let capacity = if trial.kind.setting.target.as_deref() == Some("proxy") { 8_000 } else { 10_000 };
        (capacity + noise, LimitedBy::Target)
    });
    assert_eq!(status.searches.len(), 10);
    let [found] = &status.comparison[..] else { panic!("{:?}", status.comparison) };
    assert_eq!((found.target.as_str(), found.pairs, found.left_out), ("proxy", 5, 0));
    assert_eq!(format!("{:?}", found.outcome), "Slower");
    let [rate] = &found.metrics[..] else { panic!("{:?}", found.metrics) };
    assert!((780_000..820_000).contains(&rate.ratio_millionths.unwrap()), "{rate:?}");
    // The repeats have the rates found, not those of the steps.
    let means: Vec<_> = status.repeats.iter().map(|cell| cell.throughput.unwrap().mean_per_second).collect();
    assert!((9_800..=10_200).contains(&means[0]) && (7_800..=8_200).contains(&means[1]), "{means:?}");
}
