//! Checks the target's data losses and outages against the faults.

use std::time::Duration;

use redisbench_testkit::status::{list, number};
use serde_json::Value;

use super::ending::nanoseconds;
use super::{Judgement, Outcome};
use crate::fault::Fault;

/// The time after a fault in which a cluster must agree on its owners and connections must be reopened, on a busy machine.
const RECOVERY: Duration = Duration::from_secs(5);

impl Judgement<'_> {
    /// No server may return made-up values in any run. It may lose writes only by faults that cause it.
    pub(super) fn verification(&mut self, outcome: &Outcome<'_>) {
        let verification = &outcome.result["verification"];
        let verified = self.scenario.verify != "None";
        self.check(verification.is_object() == verified, || {
            format!("verify is {}, but the result has {verification}", self.scenario.verify)
        });
        let made_up = ["corrupt", "mismatched"].map(|field| number(&verification[field]));
        self.check(made_up == [0, 0], || format!("corrupt or mismatched values: {verification}"));
        let lost = ["lostWrites", "lostKeys"].map(|field| number(&verification[field]));
        let may_lose = self.hit(Fault::loses_data);
        self.check(lost == [0, 0] || may_lose, || format!("data is lost, which no fault explains: {verification}"));
    }

    /// A target that has recovered before the end of the load must have no outage then.
    pub(super) fn outages(&mut self, outcome: &Outcome<'_>) {
        let Some(end) = self.load_end(outcome) else { return };
        if outcome.phase != "Succeeded" || !outcome.lost.is_empty() {
            return;
        }
        let explained = self.evidence.hits().any(|injection| {
            let well = match injection.undone {
                None if injection.fault.stays() => u64::MAX,
                undone => undone.unwrap_or(injection.at).saturating_add(nanoseconds(RECOVERY)),
            };
            well > end
        });
        let outages = list(&outcome.status["topology"]["unavailability"]).iter();
        let lasting: Vec<&Value> = outages.filter(|outage| outage["lasting"] == true).collect();
        self.check(lasting.is_empty() || explained || self.scenario.small_disk.is_some(), || {
            format!("the target had recovered before the load ended, but these outages remain: {lasting:?}")
        });
    }
}
