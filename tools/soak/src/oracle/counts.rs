//! Counts of requests: all sums, and the comparison with the servers' counts.

use redisbench_testkit::status::{imbalances, list, number};
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use serde_json::Value;

use super::{Judgement, Outcome};
use crate::scenario::{Bound, Load};

impl Judgement<'_> {
    /// Every request has one outcome, in total and in every breakdown.
    pub(super) fn identity(&mut self, outcome: &Outcome<'_>) {
        self.violations.extend(imbalances(outcome.result, &["shards", "operations"]));
        let shards = list(&outcome.result["shards"]);
        self.check(shards.len() == self.scenario.shards as usize, || format!("{} shards in the result", shards.len()));
        for shard in shards {
            let lost = shard["state"] == "Lost";
            let [unknown, in_flight] = ["unknown", "inFlight"].map(|field| number(&shard["requests"][field]));
            self.check(unknown == 0 || lost, || format!("a shard that is not lost has unknown requests: {shard}"));
            self.check(in_flight == 0 || lost || outcome.phase != "Succeeded", || {
                format!("a shard that finished has requests in flight: {shard}")
            });
        }
        self.merged(outcome);
        self.planned(outcome);
    }

    /// Histogram, errors and nodes must match the counters.
    fn merged(&mut self, outcome: &Outcome<'_>) {
        let result = outcome.result;
        let total = &result["requests"];
        let succeeded = number(&total["succeeded"]) - number(&total["overflow"]);
        match result["histogram"]["data"].as_str() {
            Some(data) => {
                let decoded = serde_json::from_value::<EncodedHistogram>(Value::from(data)).ok();
                let merged = decoded.and_then(|data| data.count(Kind::Request).ok());
                self.check(merged == Some(succeeded), || {
                    format!("{succeeded} succeeded, but the histogram has {merged:?}")
                });
            }
            None => self.check(succeeded == 0, || format!("{succeeded} succeeded, but there is no histogram")),
        }
        let sum = |name: &str, field: &str| list(&result[name]).iter().map(|entry| number(&entry[field])).sum::<u64>();
        let (kinds, errors) = (sum("errors", "count"), number(&total["errors"]));
        self.check(kinds == errors, || format!("{errors} errors, but {kinds} by kind"));
        if outcome.lost.is_empty() && outcome.phase == "Succeeded" {
            let sent = number(&total["scheduled"]) - number(&total["unsent"]);
            let nodes = sum("nodes", "requests");
            self.check(nodes == sent, || format!("{sent} were sent, but the nodes have {nodes}"));
        }
    }

    /// The number of due requests follows from the manifest.
    fn planned(&mut self, outcome: &Outcome<'_>) {
        let Some(planned) = self.scenario.requests() else { return };
        let scheduled = number(&outcome.result["requests"]["scheduled"]);
        self.check(scheduled <= planned, || format!("{scheduled} were scheduled of {planned}"));
        // If a number of requests ends the load, those not sent in time are not scheduled.
        let in_time = match self.scenario.bound {
            Bound::Seconds(_) => true,
            Bound::Requests { at_most, .. } => self.evidence.took < at_most,
        };
        self.check(outcome.phase != "Succeeded" || scheduled == planned || !in_time, || {
            format!("{scheduled} were scheduled, not {planned}")
        });
    }

    /// The servers' counts lie between the answered and the sent requests.
    pub(super) fn server_counts(&mut self, outcome: &Outcome<'_>) {
        let Some(calls) = self.evidence.calls else { return };
        let result = outcome.result;
        let count = |part: &str, field: &str| number(&result[part][field]);
        let preload = count("preload", "commands");
        // With verified values, all keys are read once more after the load.
        let read_back = count("verification", "readKeys");
        let answered = count("requests", "succeeded") + count("warmup", "succeeded") + preload + read_back;
        if let Some(at_most) = calls.at_most {
            self.check(answered <= at_most, || {
                format!("{answered} commands were answered, but the servers executed {at_most}")
            });
        }
        // Only the full result has the number of requests of a probe.
        if self.scenario.may_be_probed() {
            return;
        }
        // The result does not include abandoned attempts and the retries of a disturbed preload.
        let start = outcome.start.unwrap_or_default();
        let disturbed = self.evidence.hits().any(|injection| injection.at < start && injection.fault.harms_target());
        if number(&outcome.status["trial"]["attempt"]) != 1 || (disturbed && self.scenario.preload != "None") {
            return;
        }
        let of_warmup = count("warmup", "scheduled") - count("warmup", "unsent");
        let may_read_back = if self.scenario.verify == "Values" { self.scenario.keys } else { 0 };
        let sent = count("requests", "scheduled") - count("requests", "unsent") + of_warmup + preload + may_read_back;
        let sent = match self.scenario.load {
            _ if outcome.lost.is_empty() => sent,
            // An upper bound for a lost shard: its schedule, and its share of warm-up and preload.
            Load::Open(rate) => {
                sent + rate * u64::try_from(self.scenario.warmup.as_millis()).unwrap_or(0) / 1_000 + self.scenario.keys
            }
            Load::Closed => return,
        };
        self.check(calls.at_least <= sent, || {
            format!("at most {sent} commands were sent, but the servers executed {}", calls.at_least)
        });
        let without_errors = count("requests", "errors") == 0;
        if self.untouched() && without_errors && outcome.phase == "Succeeded" && count("warmup", "errors") == 0 {
            self.check(calls.at_most == Some(answered), || {
                format!("{answered} commands were answered, but the servers executed {calls:?}")
            });
        }
    }
}
