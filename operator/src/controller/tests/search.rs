//! A search: each step follows from the finished ones, whichever operator ran them.

use redisbench_benchmark::api::status::TrialLine;
use redisbench_benchmark::conductor::{ConductProgress, ConductStage};
use redisbench_benchmark::measurement::Ending;
use redisbench_benchmark::plan::{Plan, compile};
use redisbench_benchmark::report::{self, Finished};

use super::*;
use crate::metrics::OperatorMetrics;
use crate::metrics::format::Format;
use crate::scrape::Metrics;

/// The capacity of the target, in requests per second.
const CAPACITY: u64 = 10_000;

fn search() -> RedisBenchmark {
    benchmark(json!({"spec": {
        "load": {"openLoop": null, "duration": null, "warmup": "2s"},
        "search": {"objective": {"quantile": "0.99", "max": "2ms"}, "rate": {"min": 1000, "max": 64000}},
    }}))
}

fn plan() -> Plan {
    compile(&search().spec, "cart").unwrap()
}

/// The lines of all steps.
fn all_lines(plan: &Plan) -> Vec<TrialLine> {
    let mut lines: Vec<TrialLine> = Vec::new();
    while let Some(trial) = plan.trial(u32::try_from(lines.len()).unwrap(), &lines) {
        let rate = trial.search.unwrap().rate;
        let step = if rate <= CAPACITY {
            json!({"ratePerSecond": rate, "outcome": "Passed"})
        } else {
            json!({"ratePerSecond": rate, "outcome": "Failed", "why": "slow", "limitedBy": "Target"})
        };
        let line =
            json!({"index": trial.index, "state": "Completed", "attempt": 1, "verdict": "Valid", "search": step});
        lines.push(serde_json::from_value(line).unwrap());
    }
    lines
}

/// A run in the step after `lines`.
fn in_step(lines: &[TrialLine]) -> Value {
    let trial = json!({"index": lines.len(), "of": 100, "attempt": 1, "startAt": jiff::Timestamp::now().to_string()});
    json!({"phase": "Running", "planHash": plan().hash(), "trial": trial, "trials": lines})
}

fn over(line: &TrialLine) -> Arc<Finished> {
    Arc::new(Finished {
        line: Some(line.clone()),
        trial: Some(report::trial(line.index, 100, 1, Some(1_767_229_200_000_000_000))),
        ..Finished::unmeasured(100, 0, Ending::Completed)
    })
}

#[tokio::test(start_paused = true)]
async fn a_new_operator_goes_on_with_the_step_that_runs() {
    let lines = all_lines(&plan());
    assert!(lines.len() > 10, "{}", lines.len());
    for step in 0..lines.len() {
        let world = World::new();
        world.put(search(), Some(in_step(&lines[..step])));
        world.reconcile().await.unwrap();
        let conduct = world.conduct().unwrap();
        assert_eq!((conduct.trial as usize, conduct.epoch), (step, 2));
        let status = world.status();
        assert_eq!(status["trials"].as_array().map_or(0, Vec::len), step, "{status:#}");
        assert_eq!((&status["phase"], &status["trial"]["attempt"]), (&json!("Running"), &json!(1)), "{status:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_step_is_made_of_those_before_it_until_the_answer() {
    let lines = all_lines(&plan());
    for (step, line) in lines.iter().enumerate() {
        let world = World::new();
        world.put(search(), Some(in_step(&lines[..step])));
        let progress = ConductProgress {
            stage: ConductStage::Collecting,
            trial: line.index,
            of: 100,
            ..ConductProgress::default()
        };
        let _publish = world.context.shared.tasks.put_running(run(), 1, progress);
        world.conduct().unwrap().end(over(line));
        world.reconcile().await.unwrap();
        let status = world.status();
        assert_eq!(status["trials"], serde_json::to_value(&lines[..=step]).unwrap());
        if step + 1 < lines.len() {
            let conduct = world.conduct().unwrap();
            assert_eq!((conduct.trial as usize, conduct.epoch), (step + 1, 2));
            assert_eq!((&status["phase"], &status["search"]["ending"]), (&json!("Preparing"), &Value::Null));
            assert!(status["search"]["message"].as_str().unwrap().starts_with("so far"), "{status:#}");
        } else {
            assert_eq!((&status["phase"], &status["search"]["ending"]), (&json!("Succeeded"), &json!("Found")));
            let good = status["search"]["lastGoodPerSecond"].as_u64().unwrap();
            assert!((9_800..=CAPACITY).contains(&good), "{status:#}");
            assert_eq!(status["search"]["limitedBy"], "Target");
        }
    }
}

/// The target rate in the Prometheus metrics.
fn target_rate(world: &World) -> Option<u64> {
    let (reader, mut writer) = store();
    writer.apply_watcher_event(&Event::Apply(serde_json::from_value(world.server.get(CART).unwrap()).unwrap()));
    let metrics = Metrics::new(OperatorMetrics::default(), vec![reader], world.context.shared.tasks.clone(), 0);
    let text = String::from_utf8(metrics.scrape(Format::Text)).unwrap();
    let line = text.lines().find(|line| line.starts_with("redisbench_target_requests_per_second{"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn the_target_rate_is_that_of_the_trial_that_runs() {
    let rate = |from, to| json!({"duration": "10s", "rate": {"from": from, "to": to}});
    let ramp = json!([rate(1000, 3000), rate(3000, 3000)]);
    let sweep = json!([{"field": "load.openLoop.rate", "values": [2500, 4000]}]);
    let cases = vec![
        (benchmark(json!({})), Some(1000)),
        (benchmark(json!({"spec": {"load": {"openLoop": null, "duration": null, "stages": ramp}}})), Some(2500)),
        (benchmark(json!({"spec": {"sweep": sweep, "sweepOrder": "Listed"}})), Some(2500)),
        (search(), plan().trial(0, &[]).unwrap().search.map(|trial| trial.rate)),
        (benchmark(json!({"spec": {"load": {"type": "ClosedLoop", "openLoop": null}}})), None),
    ];
    for (benchmark, running) in cases {
        let world = World::new();
        world.put(benchmark, None);
        // No trial has begun.
        assert_eq!(target_rate(&world), None);
        world.reconcile().await.unwrap();
        assert!(world.conduct().is_some(), "{}", world.condition("Accepted"));
        assert_eq!(target_rate(&world), running);
    }
}
