//! Checks phase, verdict and losses against the faults.

use std::time::Duration;

use redisbench_testkit::status::{list, number};

use super::{Judgement, Outcome};
use crate::evidence::Injection;
use crate::fault::{Fault, Kind};
use crate::scenario::{Bound, Load, REST};

/// Slack after a stopped process is continued: it runs at once, and the next poll comes a second later.
const SLACK_STOPPED: Duration = Duration::from_secs(3);
/// Slack after a cut: TCP retransmits at growing intervals, and a call may take 8 s before the next one.
const SLACK_CUT: Duration = Duration::from_secs(12);

/// A busy machine may stall this long, in milliseconds.
const STALL_MS: u64 = 100;

impl Judgement<'_> {
    /// Phase and reason must follow from the faults.
    pub(super) fn ending(&mut self, outcome: &Outcome<'_>) {
        let evidence = self.evidence;
        let aborted = self.hit(Fault::aborts);
        match outcome.phase {
            "Aborted" => self.check(aborted, || "Aborted without a request".to_owned()),
            "Failed" => {
                let allowed: Vec<_> = evidence.hits().flat_map(|injection| injection.fault.may_fail_with()).collect();
                let disk = self.scenario.small_disk.is_some() && outcome.failed == "ShardLost";
                self.check(disk || allowed.contains(&&outcome.failed), || {
                    format!("Failed because of {}, which no fault explains", outcome.failed)
                });
                self.loss_is_told(outcome);
            }
            "Succeeded" => {
                if self.untouched() {
                    let busy = self.only_the_last_are_unsent(outcome);
                    self.check(busy || outcome.verdict != "Invalid", || {
                        format!("Invalid without a fault: {}", outcome.status["verdict"])
                    });
                }
                self.late_abort(outcome);
                self.last_chance(outcome);
            }
            other => self.check(false, || format!("it finished in phase {other:?}")),
        }
        self.check(outcome.phase == "Failed" || outcome.failed.is_empty(), || {
            format!("{}, but condition Failed is {}", outcome.phase, outcome.failed)
        });
    }

    /// A run that fails because a shard was killed during the measurement keeps its result, and names the shard. If several were killed,
    /// the run may have stopped before the later ones.
    fn loss_is_told(&mut self, outcome: &Outcome<'_>) {
        let (Some(start), Some(end)) = (outcome.start, self.load_end(outcome)) else { return };
        let while_measuring = self.evidence.hits().filter(|injection| (start..end).contains(&injection.at));
        let killed: Vec<_> = while_measuring.filter_map(|injection| injection.fault.ends_shard()).collect();
        let told = killed.is_empty() || killed.iter().any(|shard| outcome.lost.contains(shard));
        self.check(outcome.failed != "ShardLost" || told, || {
            format!("Failed because of lost shards; killed {killed:?}, lost {:?}", outcome.lost)
        });
    }

    /// Returns whether all failures were requests due at the end of the load, unsent because the machine was busy. In a load of two
    /// seconds, 20 ms of them are one percent.
    fn only_the_last_are_unsent(&self, outcome: &Outcome<'_>) -> bool {
        let Load::Open(rate) = self.scenario.load else { return false };
        let requests = &outcome.result["requests"];
        number(&requests["errors"]) == 0 && number(&requests["unsent"]) * 1_000 <= rate * STALL_MS
    }

    /// A run that is aborted during the load must not be Succeeded.
    fn late_abort(&mut self, outcome: &Outcome<'_>) {
        let Some(end) = self.load_end(outcome) else { return };
        let early = self.evidence.hits().find(|injection| injection.fault.aborts() && injection.at < end);
        self.check(early.is_none(), || "it was aborted while it measured, but Succeeded".to_owned());
    }

    /// `onLost` determines the effect of a loss. No other process replaces a lost one here.
    fn last_chance(&mut self, outcome: &Outcome<'_>) {
        self.check(outcome.lost.is_empty() || self.scenario.on_lost == "Invalidate", || {
            format!("shards {:?} are lost, onLost is {}, but it Succeeded", outcome.lost, self.scenario.on_lost)
        });
    }

    /// The planned end of the load, in nanoseconds since the Unix epoch. None if a number of requests ends it.
    pub(super) fn load_end(&self, outcome: &Outcome<'_>) -> Option<u64> {
        let Bound::Seconds(_) = self.scenario.bound else { return None };
        Some(outcome.start? + nanoseconds(self.scenario.planned()))
    }

    /// A shard is lost if and only if a fault affected it, and the verdict must report it.
    pub(super) fn losses(&mut self, outcome: &Outcome<'_>) {
        let counted = number(&outcome.status["shards"]["lost"]);
        self.check(counted == outcome.lost.len() as u64, || {
            format!("shards {:?} are lost, but the status counts {counted}", outcome.lost)
        });
        for shard in &outcome.lost {
            let may = self.evidence.hits().any(|injection| self.may_lose(injection, *shard, outcome));
            self.check(may, || format!("shard {shard} is lost, which no fault explains"));
        }
        let end = self.load_end(outcome);
        let killed = self.evidence.hits().filter(|injection| end.is_some_and(|end| injection.at < end));
        for shard in killed.filter_map(|injection| injection.fault.ends_shard()).collect::<Vec<_>>() {
            self.check(outcome.phase != "Succeeded" || outcome.lost.contains(&shard), || {
                format!("shard {shard} was killed while it measured, but is not lost")
            });
        }
    }

    fn may_lose(&self, injection: &Injection, shard: u32, outcome: &Outcome<'_>) -> bool {
        if injection.fault.ends_shard() == Some(shard) {
            return true;
        }
        if !injection.fault.hides_shard(shard) {
            return false;
        }
        // An aborted run waits only some seconds for its shards.
        if outcome.phase == "Aborted" {
            return true;
        }
        let slack = match injection.fault.kind {
            // If the conductor itself was stopped, the shards are not at fault.
            Kind::StopConductor => return false,
            _ if outcome.phase == "Failed" => return true,
            Kind::CutShard(_) | Kind::LosePackets(_) => SLACK_CUT,
            _ => SLACK_STOPPED,
        };
        let waited = self.scenario.planned() + self.scenario.request_timeout + self.scenario.collect;
        let given_up = outcome.start.unwrap_or_default() + nanoseconds(waited.saturating_sub(slack));
        injection.undone.is_none_or(|undone| undone >= given_up)
    }

    /// The verdict must follow from the numbers, and every reason must be justified by one.
    pub(super) fn verdict(&mut self, outcome: &Outcome<'_>) {
        let verdict = &outcome.status["verdict"];
        let reasons: Vec<(&str, &str, &str)> = list(&verdict["reasons"])
            .iter()
            .map(|reason| {
                let text = |field: &str| reason[field].as_str().unwrap_or_default();
                (text("reason"), text("severity"), text("message"))
            })
            .collect();
        let rank = |value: &str| ["Valid", "Degraded", "Invalid"].iter().position(|known| *known == value);
        let worst = reasons.iter().filter_map(|(_, severity, _)| rank(severity)).max().unwrap_or(0);
        self.check(rank(outcome.verdict) == Some(worst), || format!("the verdict is not its worst reason: {verdict}"));
        for (reason, _, message) in &reasons {
            // It names the command whose counts cannot be compared.
            let named = *reason == "NotReconciled" && self.scenario.commands.contains(&REST);
            self.check(named || message.contains(|c: char| c.is_ascii_digit()), || {
                format!("{reason} without a number: {message}")
            });
        }
        let severity =
            |name: &str| reasons.iter().find(|(reason, ..)| *reason == name).map(|(_, severity, _)| *severity);
        let lost = (!outcome.lost.is_empty()).then_some("Invalid");
        self.check(severity("ShardLost") == lost, || format!("shards {:?} are lost, but {verdict}", outcome.lost));
        for (_, _, message) in reasons.iter().filter(|(reason, ..)| *reason == "ShardLost") {
            let named = message.split_once("their measurements: shard ").and_then(|(_, rest)| rest.split_once(';'));
            let named: Vec<u32> = named
                .map(|(names, _)| names.split(", ").filter_map(|name| name.parse().ok()).collect())
                .unwrap_or_default();
            self.check(named == outcome.lost, || {
                format!("shards {:?} are lost, but {named:?} are named", outcome.lost)
            });
        }
        let requests = &outcome.result["requests"];
        let (failed, scheduled) =
            (number(&requests["errors"]) + number(&requests["unsent"]), number(&requests["scheduled"]));
        // Shares are relative to the requests known to have been due.
        let known = scheduled - number(&requests["unknown"]).min(scheduled);
        let errors = if failed * 100 > known {
            Some("Invalid")
        } else if failed * 10_000 > known {
            Some("Degraded")
        } else {
            None
        };
        self.check(severity("Errors") == errors, || format!("{failed} of {known} failed, but {verdict}"));
        if let Load::Open(rate) = self.scenario.load {
            let achieved = number(&outcome.result["throughput"]["achievedPerSecond"]);
            // Between the two criteria, replies in flight at the borders of the window decide.
            let lacking = failed + number(&requests["unknown"]);
            let missed = lacking > 1 && lacking * 100 > scheduled;
            let met = !missed && achieved * 100 >= rate * 99;
            self.check(severity("RateMissed").map_or(!missed, |_| !met), || {
                format!("{achieved} of {rate} per second, {lacking} of {scheduled} lacking, but {verdict}")
            });
        }
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
