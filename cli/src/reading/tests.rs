use redisbench_benchmark::api::status::Phase;
use serde_json::{Value, json};

use super::*;
use crate::export::sample::{self, object};
use crate::export::tests::export_all;

/// The error of these documents together.
fn problem(documents: &[String]) -> String {
    let mut reading = Reading::default();
    let added = documents.iter().try_for_each(|document| reading.add(document));
    added.and_then(|()| reading.checked()).unwrap_err().to_string()
}

/// Reads `bytes`, and exports in every format what can be read of them.
pub fn hostile(bytes: &[u8]) {
    let mut reading = Reading::default();
    let added = reading.add(&String::from_utf8_lossy(bytes));
    if let Ok(reading) = added.and_then(|()| reading.checked()) {
        export_all(&reading);
    }
}

fn result(index: u32, run: &str) -> String {
    let mut trial = sample::trial();
    (trial.trial.index, trial.trial.of, trial.run_id) = (index, 2, run.to_owned());
    serde_json::to_string(&trial).unwrap()
}

#[test]
fn trials_are_in_order() {
    let directory = tempfile::tempdir().unwrap();
    for index in [1, 0] {
        fs::write(directory.path().join(format!("sample-trial-{index}.json")), result(index, "run")).unwrap();
    }
    fs::write(directory.path().join(".sample-trial-2.json.partial"), "").unwrap();
    fs::write(directory.path().join("notes.json"), "{}").unwrap();
    let reading = of_files(&[directory.path().to_owned()]).unwrap();
    assert_eq!(reading.measurements.iter().map(|one| one.trial.index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(reading.name(), "sample");
}

#[test]
fn an_object_has_what_its_status_has() {
    let trial = sample::trial();
    let mut status = json!({"phase": "Succeeded", "runId": "run", "trial": trial.trial, "verdict": trial.verdict,
        "result": trial.result});
    let response = trial.histograms.unwrap().total.response;
    status["result"]["histogram"] = json!({"encoding": "HdrV2DeflateBase64", "data": response});
    for text in [object(&status).to_string(), serde_yaml::to_string(&object(&status)).unwrap()] {
        let mut reading = Reading::default();
        reading.add(&text).unwrap();
        let reading = reading.checked().unwrap();
        let [found] = reading.measurements.as_slice() else { panic!("{:?}", reading.measurements) };
        assert_eq!(found.histograms.as_ref().unwrap().total.response, response);
        assert_eq!(found.spec.as_ref().unwrap().load.connections, 8);
        assert!(found.seconds_left_out && found.shards_left_out);
    }
}

#[test]
fn foreign_documents_are_refused() {
    for (document, expected) in [
        (
            json!({"kind": "Deployment", "apiVersion": "apps/v1"}),
            "kind: is \"Deployment\", and must be RedisBenchmark; ",
        ),
        (
            json!({"kind": "RedisBenchmark", "apiVersion": "redisbench.dev/v2"}),
            "apiVersion: is \"redisbench.dev/v2\"; this program reads redisbench.dev/v1alpha1; use the version that wrote",
        ),
        (
            json!({"format": "redisbench.dev/result/v2"}),
            "format: is \"redisbench.dev/result/v2\", which this program does",
        ),
        (json!({"format": "k6"}), "format: is \"k6\", which is not a result of redisbench"),
        (json!({"format": "redisbench.dev/result/v1"}), "is not a result of a supported version: missing field"),
        (json!({"ALL STATS": {}}), "kind: is \"\", and must be RedisBenchmark; save one object with"),
    ] {
        let problem = problem(&[document.to_string()]);
        assert!(problem.starts_with(expected), "{problem}");
    }
    assert_eq!(problem(&[String::new()]), "is empty; copy or download it again");
    let half = result(0, "run");
    let problem = problem(&[half[..half.len() / 2].to_owned()]);
    assert!(problem.starts_with("is not a complete result: EOF"), "{problem}");
}

#[test]
fn only_a_finished_run_is_read() {
    for phase in [Phase::Pending, Phase::Preparing, Phase::Running, Phase::Suspended, Phase::Collecting] {
        let problem = problem(&[object(&json!({"phase": phase})).to_string()]);
        let expected = format!("status.phase: is {phase:?}, so there is no result yet; wait with kubectl wait");
        assert!(problem.starts_with(&expected), "{problem}");
    }
    let problem = problem(&[object(&Value::Null).to_string()]);
    assert!(problem.starts_with("status: is missing: this is a manifest"), "{problem}");
}

#[test]
fn results_are_of_one_run() {
    assert_eq!(problem(&[result(0, "a"), result(1, "b")]), "runId: is a and b; give the results of one run");
    assert_eq!(
        problem(&[result(0, "a"), result(0, "a")]),
        "trial.index: is 0 in two files; give each trial of one run once"
    );
    let other = object(&json!({"phase": "Succeeded", "runId": "b"})).to_string();
    assert_eq!(problem(&[result(0, "a"), other]), "runId: is a and b; give the results of one run");
}

#[test]
fn a_directory_without_results_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let error = of_files(&[directory.path().to_owned()]).unwrap_err().to_string();
    assert!(error.contains(": has no NAME-trial-0.json; "), "{error}");
    let error = of_files(&[directory.path().join("none.json")]).unwrap_err().to_string();
    assert!(error.contains("none.json: cannot be read: "), "{error}");
}
