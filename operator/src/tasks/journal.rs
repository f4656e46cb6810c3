//! Records the start of a trial in the status. The conducting task does this itself, because a reconciliation may come too late. It reads
//! the status first, so that a conductor with a lower epoch orders nothing.

use std::time::Duration;

use kube::api::Patch;
use kube::{Api, Client, ResourceExt as _};
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::Phase;
use redisbench_benchmark::conductor::{Journal, JournalError, StartRecord};
use redisbench_benchmark::report::trial;
use serde_json::json;

use crate::build::Run;
use crate::client::{self, CallError};
use crate::telemetry::chain;

/// Attempts in case of conflicting writes, such as a user's change of a label.
const TRIES: usize = 5;
/// Timeout of one call to the API server. The conductor waits for it as long as the start allows.
const CALL: Duration = Duration::from_secs(15);

#[derive(Clone, Debug)]
pub struct StatusJournal {
    /// Of the benchmark's namespace.
    api: Api<RedisBenchmark>,
    name: String,
    /// Its UID. Another object of the same name is another benchmark.
    uid: String,
    epoch: u64,
    /// The index of the conducted trial, from 0.
    trial: u32,
    /// The number of trials in the run.
    of: u32,
}

impl StatusJournal {
    /// For trial `trial` of the `of` trials of `run`.
    pub fn new(client: Client, run: &Run, epoch: u64, trial: u32, of: u32) -> Self {
        let api = Api::namespaced(client, &run.namespace);
        Self { api, name: run.benchmark.clone(), uid: run.uid.clone(), epoch, trial, of }
    }
}

impl Journal for StatusJournal {
    async fn record_start(&self, record: StartRecord) -> Result<(), JournalError> {
        for _ in 0..TRIES {
            let benchmark = timed(self.api.get(&self.name)).await.map_err(|error| failed(&error))?;
            let status = benchmark.status.clone().unwrap_or_default();
            let ours = benchmark.uid().as_deref() == Some(self.uid.as_str());
            if !ours || status.conductor_epoch != Some(self.epoch) {
                return Err(JournalError::Superseded);
            }
            if status.trial.as_ref().is_some_and(|present| present.index > self.trial) {
                return Err(JournalError::Superseded);
            }
            if status.phase == Phase::Suspended || status.phase.is_terminal() {
                return Err(JournalError::Failed("the benchmark was suspended or has ended".into()));
            }
            // The resourceVersion makes this fail if another decision was written since the read.
            let patch = json!({
                "metadata": {"resourceVersion": benchmark.resource_version()},
                "status": {"trial": trial(self.trial, self.of, record.attempt, Some(record.start_at_unix_nanoseconds))},
            });
            match timed(self.api.patch_status(&self.name, &client::patch(), &Patch::Merge(patch))).await {
                Ok(_) => return Ok(()),
                Err(error) if error.code() == Some(409) => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Err(JournalError::Failed("too many conflicts with other writers of the status".into()))
    }
}

fn failed(error: &CallError) -> JournalError {
    match error.code() {
        // The benchmark was deleted.
        Some(404) => JournalError::Superseded,
        _ => JournalError::Failed(chain(error)),
    }
}

async fn timed<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
    client::call("call the API server", CALL, call).await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{CART, FakeServer, Trouble, benchmark, run, status};

    const RECORD: StartRecord = StartRecord { attempt: 2, start_at_unix_nanoseconds: 1_767_229_200_123_456_789 };

    fn world(status_change: Value) -> (FakeServer, StatusJournal) {
        let server = FakeServer::default();
        let mut benchmark = benchmark(json!({}));
        benchmark.status = Some(status(status_change));
        server.put(CART, benchmark);
        let journal = StatusJournal::new(server.client(), &run(), 1, 0, 1);
        (server, journal)
    }

    #[tokio::test]
    async fn a_start_is_durable_before_it_is_ordered() {
        let (server, journal) = world(json!({}));
        journal.record_start(RECORD).await.unwrap();
        assert_eq!(
            server.get(CART).unwrap()["status"]["trial"],
            json!({"index": 0, "of": 1, "attempt": 2, "startAt": "2026-01-01T01:00:00.123456Z"})
        );
        assert_eq!(server.take_writes().len(), 1);
    }

    #[tokio::test]
    async fn a_conductor_of_before_or_of_another_benchmark_orders_nothing() {
        let (server, journal) = world(json!({"conductorEpoch": 2}));
        assert_eq!(journal.record_start(RECORD).await, Err(JournalError::Superseded));
        let (_, other) = world(json!({}));
        let other = StatusJournal { uid: "u-2".into(), ..other };
        assert_eq!(other.record_start(RECORD).await, Err(JournalError::Superseded));
        let deleted = StatusJournal { name: "gone".into(), ..journal };
        assert_eq!(deleted.record_start(RECORD).await, Err(JournalError::Superseded));
        assert!(server.take_writes().is_empty());
    }

    #[tokio::test]
    async fn nothing_starts_that_was_suspended_or_is_over() {
        for phase in ["Suspended", "Aborted"] {
            let (server, journal) = world(json!({"phase": phase}));
            assert!(matches!(journal.record_start(RECORD).await, Err(JournalError::Failed(_))));
            assert!(server.take_writes().is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_in_trouble_costs_the_attempt() {
        for trouble in Trouble::ALL {
            let (server, journal) = world(json!({}));
            server.set_trouble(Some(trouble));
            assert!(matches!(journal.record_start(RECORD).await, Err(JournalError::Failed(_))), "{trouble:?}");
            assert_eq!(server.get(CART).unwrap()["status"]["trial"], Value::Null, "{trouble:?}");
        }
    }
}
