//! The aggregate of the repeats: each full result is read once, even if several reconciliations are needed.

use redisbench_benchmark::api::status::{Requests, TrialResult};
use redisbench_benchmark::plan::compile;
use redisbench_benchmark::report::measurement::{HistogramSet, Histograms};
use redisbench_wire::histogram::{EncodedHistogram, Kind};

use super::*;
use crate::build;
use crate::controller::aggregate::READS;
use crate::testing::{Fault, How};

fn config_map(trial: u32) -> String {
    format!("/api/v1/namespaces/perf/configmaps/cart-result-{trial}")
}

/// The full result of a trial of one request.
fn document(trial: u32, of: u32) -> String {
    let mut response = Kind::Request.empty();
    response.record(1_000_000 * u64::from(trial + 1)).unwrap();
    let response = EncodedHistogram::encode(&response).unwrap();
    let mut measurement = finished(trial, of, VerdictValue::Valid).measurement.unwrap();
    measurement.histograms = Some(Histograms {
        total: HistogramSet { response, service: None, error_replies: None },
        operations: Vec::new(),
        operations_left_out: false,
        nodes: Vec::new(),
        nodes_left_out: false,
    });
    let requests = Requests { scheduled: 1, succeeded: 1, ..Requests::default() };
    measurement.result = TrialResult { requests, ..TrialResult::default() };
    serde_json::to_string(&measurement).unwrap()
}

/// The last trial of two cells with `repeats` has finished. The full results of all others are stored.
fn last_trial(repeats: u32) -> World {
    let (of, last) = (2 * repeats, 2 * repeats - 1);
    let line = |index: u32| {
        json!({
            "index": index, "cell": index / repeats, "repeat": index % repeats, "state": "Completed", "attempt": 1,
            "requests": {"scheduled": 1, "succeeded": 1, "errors": 0, "unsent": 0}, "verdict": "Valid",
        })
    };
    let name = |index: u32| format!("trial-{index}.result.json");
    let artifact = |index: u32| json!({"name": name(index), "configMap": format!("cart-result-{index}")});
    let sweep = json!([{"field": "load.openLoop.rate", "values": [1000, 2000]}]);
    let change = json!({"spec": {"repeats": {"count": repeats}, "sweep": sweep, "sweepOrder": "Listed"}});
    let benchmark = benchmark(change);
    let status = json!({
        "phase": "Collecting",
        "planHash": compile(&benchmark.spec, "cart").unwrap().hash(),
        "trial": {"index": last, "of": of, "attempt": 1, "startAt": "2026-01-01T01:00:00.123456Z"},
        "trials": (0..last).map(line).collect::<Vec<_>>(),
        "artifacts": (0..last).map(artifact).collect::<Vec<_>>(),
    });
    let world = World::new();
    world.put(benchmark, Some(status));
    for index in 0..last {
        let text = document(index, of);
        let piece = build::artifact(&run(), 1, &format!("cart-result-{index}"), &name(index), &text);
        world.server.put(&config_map(index), piece);
    }
    let finished = Finished {
        line: Some(serde_json::from_value(line(last)).unwrap()),
        pieces: vec![(name(last), document(last, of))],
        ..finished(last, of, VerdictValue::Valid)
    };
    world.context.shared.tasks.put_ended(run(), 1, finished);
    world
}

impl World {
    async fn reconcile_twice(&self) {
        for _ in 0..2 {
            self.reconcile().await.unwrap();
        }
    }

    /// The number of reads of the full result of each of the first trials.
    fn reads(&self, trials: u32) -> Vec<usize> {
        (0..trials).map(|trial| self.server.reads(&config_map(trial))).collect()
    }

    /// The document of all cells.
    fn experiment(&self) -> Value {
        let stored = self.server.get("/api/v1/namespaces/perf/configmaps/cart-result-experiment").unwrap();
        serde_json::from_str(stored["data"]["experiment.json"].as_str().unwrap()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_merged_is_not_read_again_after_a_failure() {
    let undisturbed = last_trial(3);
    undisturbed.reconcile_twice().await;
    assert_eq!(undisturbed.status()["phase"], "Succeeded");
    assert_eq!(undisturbed.reads(5), [1; 5]);
    // The first trial of a cell, and one within it.
    for (path, reads) in [("/cart-result-3", [1, 1, 1, 4, 1]), ("/cart-result-4", [1, 1, 1, 1, 4])] {
        let world = last_trial(3);
        let fault = |how| Fault { method: "GET", path, body: |_| true, how };
        for how in [How::Refusal(500, "etcdserver: leader changed"), How::Refusal(429, "slow down"), How::Silence] {
            world.server.fail(fault(how), 1);
            world.reconcile().await.unwrap_err();
        }
        world.reconcile_twice().await;
        assert_eq!(world.reads(5), reads);
        assert_eq!(world.status()["phase"], "Succeeded");
        assert_eq!(world.status()["repeats"], undisturbed.status()["repeats"]);
        assert_eq!(world.experiment(), undisturbed.experiment());
        assert_eq!(world.conduct().unwrap().gathered.try_lock().unwrap().cells, 0, "memory of a finished benchmark");
    }
}

#[tokio::test]
async fn a_reconciliation_reads_a_bounded_number_of_results() {
    let world = last_trial(50);
    let read = || world.reads(99).iter().sum::<usize>();
    world.reconcile().await.unwrap();
    assert_eq!(read(), READS);
    assert_eq!(world.status()["phase"], "Collecting");
    world.reconcile_twice().await;
    assert_eq!(world.reads(99), [1; 99]);
    assert_eq!(world.status()["phase"], "Succeeded");
    let cells = world.experiment()["cells"].as_array().unwrap().clone();
    assert_eq!(cells.len(), 2);
    assert!(cells.iter().all(|cell| cell["histogram"].is_string()), "{cells:?}");
}
