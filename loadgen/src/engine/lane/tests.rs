use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Bound, Load as Loop, Operation, OperationRate, RateStage, Tracing, TrialPlan};
use redisbench_wire::snapshot::Snapshot;

use super::*;
use crate::open_loop::{OpenLoop, open_loop};
use crate::record::{Machine, Meta, merge};

const MILLISECOND: u64 = 1_000_000;
const START: u64 = 1_000 * MILLISECOND;

/// A lane of one shard with `callers`, and how long each of its calls takes.
struct Bench {
    lane: Lane,
    callers: usize,
    /// Calls in progress and when each returns, oldest first.
    calls: VecDeque<(Call, u64, u64)>,
    takes: u64,
}

impl Bench {
    fn new(load: Loop, bound: Bound, callers: u32, takes: u64) -> Self {
        Self::of(TrialPlan { load, bound, ..TrialPlan::basic("redis:6379") }, callers, takes)
    }

    fn of(plan: TrialPlan, callers: u32, takes: u64) -> Self {
        let plan = TrialPlan { concurrency: Some(callers), ..plan }.of_shard(0);
        let seat = Seat { shard: 0, shards: 1, worker: 0, workers: 1 };
        let workload = Arc::new(Workload::of_trial(&plan).unwrap());
        let mut lane = Lane::new(&plan, seat, workload, RunQueue::default());
        lane.start(START, 0);
        Self { lane, callers: callers as usize, calls: VecDeque::new(), takes }
    }

    /// Lets callers call until `until`. Returns when the lane has nothing more to do.
    fn run(&mut self, until: u64) -> u64 {
        let mut now = START;
        while now < until && !self.lane.is_done() {
            while self.calls.front().is_some_and(|(_, _, returns)| *returns <= now) {
                let (call, called, completed) = self.calls.pop_front().unwrap();
                let outcome = Outcome { called, completed, sent_bytes: 10, received_bytes: 5, reply: Ok(false) };
                self.lane.completed(&call, &outcome);
            }
            if self.lane.is_done() {
                break;
            }
            let mut next = u64::MAX;
            while self.calls.len() < self.callers {
                match self.lane.next(now) {
                    Next::Call(call) => self.calls.push_back((call, now, now + self.takes)),
                    Next::At(at) => {
                        next = at;
                        break;
                    }
                    Next::Over => break,
                }
            }
            now = next.min(self.calls.front().map_or(u64::MAX, |(_, _, returns)| *returns)).clamp(now + 1, until);
        }
        now
    }

    fn snapshot(&mut self, now: u64) -> Snapshot {
        let report = self.lane.report(Detail::Full, 0, now);
        let meta = Meta { sequence: 1, shard: 0, attempt: 1, detail: Detail::Full, from: 0 };
        let names: Vec<String> = self.lane.plan.workload.operations.iter().map(|one| one.name.clone()).collect();
        merge(vec![report], meta, Machine::default(), &names).unwrap()
    }
}

fn requests(count: u64) -> Bound {
    Bound::Requests { count, max_nanoseconds: 60_000 * MILLISECOND }
}

#[test]
fn a_closed_loop_keeps_its_callers_busy_and_ends_with_its_requests() {
    let mut bench = Bench::new(Loop::ClosedLoop, requests(10), 4, MILLISECOND);
    let ended = bench.run(u64::MAX);
    // Four at a time: 4 + 4 + 2.
    assert_eq!(ended, START + 3 * MILLISECOND);
    let snapshot = bench.snapshot(ended);
    assert!(snapshot.total.balances() && snapshot.nodes.is_empty(), "{snapshot:?}");
    assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (10, 10));
    assert_eq!((snapshot.total.sent_bytes, snapshot.stage), (snapshot.total.sent_bytes, Stage::Done));
    let response = snapshot.latency.response.decode(Kind::Request).unwrap();
    assert!(response.len() == 10 && response.max() - response.min() < MILLISECOND / 100);
}

#[test]
fn an_open_loop_counts_from_the_due_time_however_late_a_caller_is_free() {
    // One caller that takes 2 ms, and a request due each millisecond: request j returns at 2 (j + 1), of which it was called at 2 j.
    let mut bench = Bench::new(open_loop(1_000), requests(100), 1, 2 * MILLISECOND);
    let ended = bench.run(u64::MAX);
    assert_eq!(ended, START + 200 * MILLISECOND);
    let snapshot = bench.snapshot(ended);
    assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded, snapshot.total.late), (100, 100, 98));
    let [response, service, lateness] = [
        &snapshot.latency.response,
        snapshot.latency.service.as_ref().unwrap(),
        snapshot.latency.lateness.as_ref().unwrap(),
    ]
    .map(|histogram| histogram.decode(Kind::Request).unwrap());
    let near = |value: u64, milliseconds: u64| value.abs_diff(milliseconds * MILLISECOND) < MILLISECOND / 10;
    assert!(near(response.max(), 101) && near(response.value_at_quantile(0.5), 51), "{}", response.max());
    assert!(near(service.max(), 2) && near(service.min(), 2));
    assert!(near(lateness.max(), 99));
}

#[test]
fn operations_with_rates_and_stages_with_mixes_are_called_as_scheduled() {
    let stage = RateStage { nanoseconds: 50 * MILLISECOND, from_per_second: 1_000, to_per_second: 1_000 };
    let load = OpenLoop { stages: vec![stage; 2], ..OpenLoop::at(1_000) }.load();
    let bound = Bound::Duration { nanoseconds: 100 * MILLISECOND };
    let mut plan = TrialPlan { load, bound, ..TrialPlan::basic("redis:6379") };
    plan.workload_mut().operations =
        ["first", "second", "own"].map(|name| Operation::of(name, 1, "GET __key__")).into();
    plan.workload_mut().options.mixes = vec![vec![1, 0, 0], vec![0, 1, 0]];
    plan.workload_mut().options.rates = vec![OperationRate { operation: 2, per_second: 100 }];
    let mut bench = Bench::of(plan, 4, MILLISECOND);
    let ended = bench.run(u64::MAX);
    let operations = bench.snapshot(ended).operations;
    let succeeded: Vec<u64> = operations.iter().map(|operation| operation.tally.succeeded).collect();
    assert_eq!(succeeded, [50, 50, 10]);
}

#[test]
fn requests_that_wait_too_long_for_a_caller_stay_unsent() {
    let patient = OpenLoop { unsent_after_nanoseconds: 10 * MILLISECOND, ..OpenLoop::at(1_000) }.load();
    let bound = Bound::Duration { nanoseconds: 100 * MILLISECOND };
    let mut bench = Bench::new(patient, bound, 1, 4 * MILLISECOND);
    let ended = bench.run(u64::MAX);
    let total = bench.snapshot(ended).total;
    assert!(total.balances(), "{total:?}");
    assert_eq!((total.scheduled, total.in_flight), (100, 0));
    // A quarter of them finds the caller free.
    assert!((25..=28).contains(&total.succeeded), "{total:?}");
    assert_eq!(total.unsent, 100 - total.succeeded);
}

#[test]
fn outcomes_after_an_abort_count_for_no_load() {
    let mut bench = Bench::new(Loop::ClosedLoop, requests(100), 2, 5 * MILLISECOND);
    let now = bench.run(START + 7 * MILLISECOND);
    bench.lane.abort(now);
    assert!(bench.lane.is_done() && matches!(bench.lane.next(now), Next::Over));
    let outcome = Outcome { called: now, completed: now + 1, sent_bytes: 1, received_bytes: 1, reply: Ok(false) };
    for (call, _, _) in std::mem::take(&mut bench.calls) {
        bench.lane.completed(&call, &outcome);
    }
    let snapshot = bench.snapshot(now + 1);
    assert!(snapshot.aborted && snapshot.total.balances());
    assert_eq!((snapshot.total.succeeded, snapshot.total.in_flight), (2, 2));
    // Nor for the next one.
    bench.lane.start(now + MILLISECOND, now + 1);
    assert_eq!(bench.snapshot(now + 1).total.scheduled, 0);
}

#[test]
fn errors_have_their_kind_and_message() {
    let mut bench = Bench::new(Loop::ClosedLoop, requests(1), 1, MILLISECOND);
    let Next::Call(call) = bench.lane.next(START) else { panic!("no call") };
    let failed = Failed { kind: "WRONGTYPE", message: "WRONGTYPE not a list", answered: true };
    let completed = START + MILLISECOND;
    let outcome = Outcome { called: START, completed, sent_bytes: 1, received_bytes: 1, reply: Err(failed) };
    bench.lane.completed(&call, &outcome);
    let snapshot = bench.snapshot(completed);
    assert_eq!((snapshot.total.errors, snapshot.errors[0].kind.as_str()), (1, "WRONGTYPE"));
    assert_eq!(snapshot.errors[0].first_message, "WRONGTYPE not a list");
    assert!(snapshot.latency.error_replies.is_some() && snapshot.stage == Stage::Done);
}

#[test]
fn traced_requests_have_the_times_of_the_histogram() {
    let plan = TrialPlan {
        tracing: Some(Tracing { endpoint: "http://collector:4318".into(), one_in: 1 }),
        ..TrialPlan::basic("redis:6379")
    };
    // One caller that takes 2 ms, and a request due each millisecond.
    let mut bench = Bench::of(TrialPlan { load: open_loop(1_000), bound: requests(10), ..plan }, 1, 2 * MILLISECOND);
    bench.run(u64::MAX);
    let traced = bench.lane.take_traced().unwrap();
    assert_eq!((traced.spans.len(), traced.lost), (10, 0));
    for (place, span) in (0..).zip(&traced.spans) {
        let (due, sent) = (START + place * MILLISECOND, START + 2 * place * MILLISECOND);
        assert_eq!((span.due, span.sent, span.ended, span.node), (due, Some(sent), sent + 2 * MILLISECOND, None));
    }
    assert_eq!(bench.lane.take_traced(), None);
}
