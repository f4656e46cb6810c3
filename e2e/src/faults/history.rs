//! All states of a benchmark that the API server reported, and checks of their order.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::benchmark::phase;
use crate::namespace::TestNamespace;
use crate::wait;

/// The recorded part of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    epoch: u64,
    phase: String,
    attempt: u64,
}

/// The states of one benchmark since the beginning of this history.
#[derive(Debug)]
pub struct History {
    uid: String,
    states: Arc<Mutex<Vec<State>>>,
    watch: JoinHandle<()>,
}

impl History {
    pub fn begin(namespace: &TestNamespace, name: &str, uid: &str) -> Self {
        let states: Arc<Mutex<Vec<State>>> = Arc::default();
        let (api, name, wanted, kept) = (namespace.benchmarks(), name.to_owned(), uid.to_owned(), states.clone());
        let watch = tokio::spawn(async move {
            let keep = |seen: Option<DynamicObject>| {
                if let Some(state) = seen.and_then(|object| state(&object, &wanted)) {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    if kept.last() != Some(&state) {
                        kept.push(state);
                    }
                }
                false
            };
            wait::watch(api, &name, keep).await;
        });
        Self { uid: uid.to_owned(), states, watch }
    }

    /// Checks that the epoch never decreased, that a terminal phase never changed, and that a phase went back only for another attempt or,
    /// if `again`, to prepare again.
    pub fn check(&self, again: bool) -> Result<()> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(!states.is_empty(), "nothing was seen of {}", self.uid);
        check(&states, again)
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

fn check(states: &[State], again: bool) -> Result<()> {
    for pair in states.windows(2) {
        let [before, after] = pair else { continue };
        ensure!(before.epoch <= after.epoch, "the epoch went back: {states:?}");
        let (was, is) = (rank(&before.phase), rank(&after.phase));
        ensure!(was < END || before.phase == after.phase, "a terminal phase was left: {states:?}");
        ensure!(was <= is || again, "{} came after {}: {states:?}", after.phase, before.phase);
        ensure!(before.attempt <= after.attempt || after.attempt == 0, "the attempt went back: {states:?}");
    }
    Ok(())
}

const END: u8 = 5;

fn rank(phase: &str) -> u8 {
    match phase {
        "Suspended" => 1,
        "Preparing" => 2,
        "Running" => 3,
        "Collecting" => 4,
        "Succeeded" | "Failed" | "Aborted" => END,
        _ => 0,
    }
}

fn state(object: &DynamicObject, uid: &str) -> Option<State> {
    if object.metadata.uid.as_deref() != Some(uid) {
        return None;
    }
    let number = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    Some(State {
        epoch: number("/status/conductorEpoch"),
        phase: phase(&object.data).to_owned(),
        attempt: number("/status/trial/attempt"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_back_is_found() {
        let state = |epoch, phase: &str| State { epoch, phase: phase.to_owned(), attempt: 1 };
        let run = ["Preparing", "Running", "Collecting", "Succeeded"];
        check(&run.map(|phase| state(1, phase)), false).unwrap();
        let flicker = ["Running", "Preparing", "Running"].map(|phase| state(1, phase));
        assert!(check(&flicker, false).is_err());
        check(&flicker, true).unwrap();
        assert!(check(&["Succeeded", "Failed"].map(|phase| state(1, phase)), true).is_err());
        assert!(check(&[state(2, "Running"), state(1, "Running")], true).is_err());
    }
}
