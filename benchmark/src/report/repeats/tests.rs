use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::{OperationTally, Snapshot, Tally};
use serde_json::json;

use super::*;
use crate::api::status::{OperationRepeats, OperationRun, Percentile, Setting, VerdictValue};
use crate::plan::{self, Kind as Of};
use crate::report::Finished;
use crate::sample::{outcome, snapshot, spec, with_timeouts};

/// Trial `index` of four: two cells, twice each. `count` requests took `nanoseconds`, and `timeouts` more had no answer.
fn finished(index: u32, nanoseconds: u64, count: usize, timeouts: u64) -> Finished {
    finished_with(index, with_timeouts(snapshot(0, &vec![nanoseconds; count]), timeouts))
}

/// Like [`finished`], but half of the requests are of `get` and took half as long; the others are of `set`.
fn finished_of_two(index: u32, nanoseconds: u64, count: usize) -> Finished {
    let operation = |name: &str, nanoseconds: u64| {
        let own = snapshot(0, &vec![nanoseconds; count / 2]).operations.remove(0);
        OperationTally { name: name.to_owned(), ..own }
    };
    let mut shard = snapshot(0, &vec![nanoseconds; count]);
    shard.operations = vec![operation("get", nanoseconds / 2), operation("set", nanoseconds)];
    finished_with(index, shard)
}

fn finished_with(index: u32, shard: Snapshot) -> Finished {
    let spec = spec(1, &json!({"type": "OpenLoop", "openLoop": {"rate": 1000}, "duration": "10s"}));
    let mut outcome = outcome(vec![shard]);
    outcome.of = 4;
    let kind = Of {
        setting: Setting {
            parameters: [("load.pipeline".to_owned(), ["1", "8"][index as usize % 2].to_owned())].into(),
            ..Setting::default()
        },
        cold: false,
        cell: index % 2,
        repeat: Some(index / 2),
    };
    let trial = plan::Trial { index, of: 4, kind, ..crate::sample::trial(spec) };
    Finished::of("sample", "run", &trial, outcome).unwrap()
}

fn cells(trials: &[TrialLine]) -> Vec<CellResult> {
    super::cells(&crate::api::read(&crate::sample::object()).unwrap().spec, trials)
}

/// Four trials: the response times of cell 0 are 1 ms and then 3 ms, those of cell 1 are 2 ms, the second time with twice as many requests.
fn four() -> Vec<Finished> {
    let trial = |index, nanoseconds: u64, count: usize| finished(index, nanoseconds, count, 0);
    vec![
        trial(0, 1_000_000, 10_000),
        trial(1, 2_000_000, 10_000),
        trial(2, 3_000_000, 10_000),
        trial(3, 2_000_000, 20_000),
    ]
}

fn lines(of: &[Finished]) -> Vec<TrialLine> {
    of.iter().filter_map(|finished| finished.line.clone()).collect()
}

fn whole(finished: &Finished) -> Measurement {
    Measurement::read(finished.pieces.iter().map(|(_, piece)| piece.as_str())).unwrap()
}

/// Within the precision of a histogram of three digits.
fn is_near(found: Option<u64>, expected: u64) -> bool {
    found.is_some_and(|found| found.abs_diff(expected) <= expected / 500)
}

#[test]
fn repeats_of_a_cell_are_told_by_metric() {
    let cells = cells(&lines(&four()));
    assert_eq!(
        cells.iter().map(|cell| (cell.cell, cell.trials.clone())).collect::<Vec<_>>(),
        [(0, vec![0, 2]), (1, vec![1, 3])]
    );
    assert_eq!(cells[0].setting.parameters, BTreeMap::from([("load.pipeline".to_owned(), "1".to_owned())]));
    assert_eq!(cells[0].verdict, Some(VerdictValue::Valid));
    let p99 = cells[0].p99.unwrap();
    assert!(is_near(Some(p99.mean_nanoseconds), 2_000_000) && is_near(Some(p99.median_nanoseconds), 2_000_000));
    // The standard deviation of 1 and 3 is the square root of 2, and t at 95 % with one degree of freedom is 12.706: the lower end is far
    // below 0.
    assert!(is_near(Some(p99.standard_deviation_nanoseconds), 1_414_214), "{p99:?}");
    assert_eq!(p99.low_nanoseconds, 0);
    assert!(is_near(Some(p99.high_nanoseconds), 2_000_000 + 12_706_205), "{p99:?}");
    assert_eq!((p99.best_trial, p99.worst_trial), (0, 2));
    let throughput = cells[1].throughput.unwrap();
    assert_eq!((throughput.mean_per_second, throughput.best_trial, throughput.worst_trial), (1_500, 3, 1));
    assert_eq!(cells[1].error_rate.unwrap().mean_millionths, 0);
}

/// If each trial met the requested rate, the highest throughput is a matter of chance.
#[test]
fn trials_that_met_their_rate_are_ranked_by_p99() {
    let limited = |limits: [LimitedBy; 2]| {
        let mut lines: Vec<_> = lines(&four()).into_iter().filter(|line| line.cell == 0).collect();
        for (line, (limit, rate)) in lines.iter_mut().zip(limits.into_iter().zip([1_000, 1_001])) {
            (line.limited_by, line.achieved_per_second) = (Some(limit), Some(rate));
        }
        cells(&lines).remove(0)
    };
    let cell = limited([LimitedBy::Rate; 2]);
    assert_eq!((cell.by_p99, cell.ends(), cell.throughput.unwrap().best_trial), (true, Some((0, 2)), 2));
    let cell = limited([LimitedBy::Rate, LimitedBy::Target]);
    assert_eq!((cell.by_p99, cell.ends()), (false, Some((2, 0))));
}

#[test]
fn one_repeat_says_nothing_and_a_trial_that_failed_does_not_count() {
    let all = four();
    assert_eq!(cells(&lines(&all[..2])), []);
    let mut failed = lines(&all);
    failed[2].state = TrialOutcome::Failed;
    assert_eq!(cells(&failed).iter().map(|cell| cell.cell).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_quantile_that_one_trial_does_not_know_is_not_told() {
    // 2 % of the second trial had no answer: only a bound of its p99 is known.
    let trials = [finished(0, 1_000_000, 9_800, 0), finished(2, 1_000_000, 9_800, 200)];
    let cell = &cells(&lines(&trials))[0];
    assert_eq!((cell.p99, cell.p999, cell.mean_response_time), (None, None, None));
    assert!(cell.p50.is_some());
    let errors = cell.error_rate.unwrap();
    assert_eq!((errors.mean_millionths, errors.best_trial, errors.worst_trial), (10_000, 0, 2));
}

#[test]
fn the_aggregate_is_that_of_all_requests_together() {
    let mut together = Together::default();
    // Ten thousand at 1 ms and half as many at 3 ms: the mean of both medians would be neither.
    for finished in [finished(0, 1_000_000, 10_000, 0), finished(2, 3_000_000, 5_000, 100)] {
        together.add(&whole(&finished)).unwrap();
    }
    let latencies = together.response_time();
    assert!(is_near(latencies.p50_nanoseconds, 1_000_000) && is_near(latencies.p90_nanoseconds, 3_000_000));
    // The contribution of the 100 without an answer is unknown.
    assert_eq!(latencies.mean_nanoseconds, None);
    // 100 of 15100 had no answer: 0.66 %.
    assert!(is_near(latencies.p99_nanoseconds, 3_000_000));
    let unknown = |of: fn(&Percentile) -> Option<u64>| -> Vec<&str> {
        latencies.percentiles.iter().filter(|one| of(one).is_some()).map(|one| one.percentile.as_str()).collect()
    };
    assert_eq!(unknown(|one| one.more_than_nanoseconds), ["99.9"]);
    assert_eq!(unknown(|one| one.needed_requests), ["99.99"]);
    assert_eq!(together.histogram().unwrap().count(Kind::Request).unwrap(), 15_000);
}

#[test]
fn what_is_no_full_result_is_said() {
    let mut together = Together::default();
    assert!(Measurement::read(["{}"]).is_err());
    let mut broken = whole(&four()[0]);
    broken.histograms.as_mut().unwrap().total.response = serde_json::from_value("x".into()).unwrap();
    together.add(&broken).unwrap_err();
    // A measurement as in a status has no histograms.
    together.add(four()[0].measurement.as_ref().unwrap()).unwrap_err();
    assert_eq!(together.measured.tally, Tally::default());
}

#[test]
fn the_document_of_an_experiment_has_every_cell_with_its_distribution() {
    let all = four();
    let lines = lines(&all);
    let mut experiment = Experiment::default();
    for cell in cells(&lines) {
        let mut together = Together::default();
        for trial in &cell.trials {
            together.add(&whole(&all[*trial as usize])).unwrap();
        }
        experiment.add(cell, Some(&together)).unwrap();
    }
    let pieces = experiment.pieces("sample", "run", &lines, &[]).unwrap();
    assert_eq!(pieces.len(), 1);
    let document: serde_json::Value = serde_json::from_str(&pieces[0].1).unwrap();
    assert_eq!((&document["format"], &document["runId"]), (&json!(FORMAT), &json!("run")));
    assert_eq!((document["trials"].as_array().unwrap().len(), document["cells"].as_array().unwrap().len()), (4, 2));
    assert!(document["cells"][1]["histogram"].as_str().unwrap().starts_with("HIST"));
    let mut status = RedisBenchmarkStatus { trials: lines, ..RedisBenchmarkStatus::default() };
    experiment.tell(&mut status);
    assert_eq!((status.repeats.len(), status.repeats_left_out), (2, 0));
    assert!(is_near(status.repeats[0].aggregate.as_ref().unwrap().p99_nanoseconds, 3_000_000));
    assert_eq!(crate::api::status_problems(&status), []);
}

#[test]
fn each_operation_has_its_best_and_its_worst_trial_and_all_together() {
    let both = [finished_of_two(0, 1_000_000, 10_000), finished_of_two(2, 3_000_000, 20_000)];
    let limited = |trials: &[Measurement], limit: LimitedBy| {
        let mut together = Together::default();
        for trial in trials {
            together.add(trial).unwrap();
        }
        let mut experiment = Experiment::default();
        let lines = lines(&both).into_iter().map(|line| TrialLine { limited_by: Some(limit), ..line });
        experiment.add(cells(&lines.collect::<Vec<_>>()).remove(0), Some(&together)).unwrap();
        experiment.cells.remove(0).result.operations
    };
    let operations = |trials: &[Measurement]| limited(trials, LimitedBy::Target);
    let mut trials = both.each_ref().map(whole);
    let found = operations(&trials);
    assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["get", "set"]);
    let OperationRepeats { best, worst, average, .. } = &found[0];
    // The second trial had twice the throughput, and three times the latency.
    assert_eq!([best, worst, average].map(|run| run.per_second), [1_000, 500, 750]);
    assert!(is_near(best.p99_nanoseconds, 1_500_000) && is_near(worst.p99_nanoseconds, 500_000), "{found:?}");
    let by_p99 = &limited(&trials, LimitedBy::Rate)[0];
    assert_eq!((by_p99.best, by_p99.worst), (*worst, *best));
    // 5,000 requests of 0.5 ms and 10,000 of 1.5 ms.
    assert!(is_near(average.p50_nanoseconds, 1_500_000) && is_near(average.mean_nanoseconds, 1_166_667), "{found:?}");
    assert!(is_near(found[1].average.p50_nanoseconds, 3_000_000), "{found:?}");
    // Quantiles are never averaged.
    trials[1].histograms.as_mut().unwrap().operations.remove(0);
    assert_eq!(operations(&trials)[0].average, OperationRun { per_second: 750, ..OperationRun::default() });
    assert!(is_near(operations(&trials)[1].average.p50_nanoseconds, 3_000_000));
    // A single operation is the total.
    for trial in &mut trials {
        trial.result.operations.truncate(1);
    }
    assert_eq!(operations(&trials), []);
}

#[test]
fn hits_of_caches_are_a_rate_with_its_best_and_its_worst_trial() {
    let both = [finished(0, 1_000_000, 10_000, 0), finished(2, 1_000_000, 10_000, 0)];
    let cache = |trials: &[Measurement]| {
        let mut together = Together::default();
        for trial in trials {
            together.add(trial).unwrap();
        }
        let mut experiment = Experiment::default();
        experiment.add(cells(&lines(&both)).remove(0), Some(&together)).unwrap();
        experiment.cells.remove(0).result.cache
    };
    let mut trials = both.each_ref().map(whole);
    assert_eq!(cache(&trials), None);
    for (trial, hits_per_second) in trials.iter_mut().zip([20_000, 24_000]) {
        let invalidations_per_second = 2 * hits_per_second;
        trial.result.cache = Some(CacheResult { hits_per_second, invalidations_per_second, ..CacheResult::default() });
    }
    let found = cache(&trials).unwrap();
    assert_eq!((found.hits.mean_per_second, found.mean_invalidations_per_second), (22_000, 44_000));
    assert_eq!((found.hits.best_trial, found.hits.worst_trial), (2, 0));
    trials[0].result.cache = None;
    assert_eq!(cache(&trials), None);
}

#[test]
fn operations_are_listed_in_the_room_that_the_cells_leave() {
    let run = OperationRun {
        per_second: 1_000_000_000,
        mean_nanoseconds: Some(600_000_000_000),
        p50_nanoseconds: Some(600_000_000_000),
        p99_nanoseconds: Some(600_000_000_000),
        p999_nanoseconds: Some(600_000_000_000),
    };
    let operation = |index: u32| OperationRepeats { name: format!("{index:032}"), best: run, worst: run, average: run };
    let operations: Vec<_> = (0..16).map(operation).collect();
    let cell = |cell| CellResult { cell, operations: operations.clone(), ..CellResult::default() };
    let mut status = RedisBenchmarkStatus::default();
    list(&mut status, (0..32).map(cell).collect());
    assert_eq!((status.repeats.len(), status.repeats_left_out), (32, 0));
    let with = status.repeats.iter().take_while(|cell| cell.operations.len() == 16).count();
    assert!((1..32).contains(&with), "{with}");
    assert!(status.repeats[with..].iter().all(|cell| cell.operations.is_empty()));
    assert!(serde_json::to_vec(&status).unwrap().len() < 230 << 10);
    assert_eq!(crate::api::status_problems(&status), []);
}

#[test]
fn of_many_cells_the_first_are_listed_and_the_others_counted() {
    let mut status = RedisBenchmarkStatus::default();
    list(&mut status, (0..125).map(|cell| CellResult { cell, ..CellResult::default() }).collect());
    assert_eq!((status.repeats.len(), status.repeats_left_out), (32, 93));
    list(&mut status, Vec::new());
    assert_eq!((status.repeats.len(), status.repeats_left_out), (0, 0));
}

#[test]
fn the_cost_of_a_client_is_that_of_all_its_requests() {
    let cost = |per_request, peak_bytes| ClientResult {
        name: "fred".into(),
        cpu_per_request_nanoseconds: per_request,
        peak_bytes,
        server_cpu_per_request_nanoseconds: Some(per_request / 4),
        ..ClientResult::default()
    };
    let mut trials = [whole(&finished(0, 1_000_000, 10_000, 0)), whole(&finished(2, 1_000_000, 30_000, 0))];
    let mut without = Together::default();
    without.add(&trials[0]).unwrap();
    assert_eq!(without.cost(), None);
    trials[0].result.clients = vec![cost(40_000, 7)];
    // The batches of one trial are unknown.
    trials[1].result.clients = vec![ClientResult { commands_per_thousand_reads: Some(1_000), ..cost(20_000, 5) }];
    let mut together = Together::default();
    for trial in &trials {
        together.add(trial).unwrap();
    }
    // A quarter of the requests cost 40 us, the others 20 us.
    assert_eq!(together.cost(), Some(cost(25_000, 7)));
}
