//! The invariants of a finished run, whatever its faults. Pure functions.

mod counts;
mod ending;
mod service;

use jiff::Timestamp;
use redisbench_testkit::status::{self, list, number};
use serde_json::Value;

use crate::evidence::{Ended, Evidence};
use crate::fault::{Fault, Kind};
use crate::scenario::Scenario;

/// The memory limit of the program, in KiB. Usual are some tens of MiB.
const MEMORY_KIB: u64 = 256 * 1024;
/// The time after the program's start until which it may not handle signals yet, in milliseconds.
const DEAF_MS: u128 = 2_000;

pub fn judge(scenario: &Scenario, evidence: &Evidence) -> Vec<String> {
    let mut judgement = Judgement { scenario, evidence, violations: Vec::new() };
    judgement.surroundings();
    judgement.ended();
    judgement.violations
}

struct Judgement<'a> {
    scenario: &'a Scenario,
    evidence: &'a Evidence,
    violations: Vec<String>,
}

impl Judgement<'_> {
    fn check(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(otherwise());
        }
    }

    /// Returns whether the run had no faults at all.
    fn untouched(&self) -> bool {
        self.evidence.hits().next().is_none() && self.scenario.small_disk.is_none()
    }

    fn hit(&self, which: impl Fn(&Fault) -> bool) -> bool {
        self.evidence.hits().any(|injection| which(&injection.fault))
    }

    /// Invariants for every way in which the program can end.
    fn surroundings(&mut self) {
        let evidence = self.evidence;
        for text in evidence.logs.iter().chain([&evidence.stderr]) {
            // On a small disk, a shard may fail to write its address file, which it logs.
            let may_fail = self.scenario.small_disk.is_some();
            let bad = |line: &&str| line.contains("panicked at") || (line.contains("ERROR") && !may_fail);
            let bad = text.lines().find(bad);
            self.check(bad.is_none(), || format!("error in a log: {}", bad.unwrap_or_default()));
        }
        self.check(evidence.peak_kib <= MEMORY_KIB, || format!("the program took {} KiB", evidence.peak_kib));
        self.check(evidence.left_processes.is_empty(), || format!("left running: {:?}", evidence.left_processes));
        self.check(evidence.left_ports.is_empty(), || format!("left listening: {:?}", evidence.left_ports));
        // A killed program cannot clean up.
        let killed = matches!(evidence.ended, Ended::Signal(_) | Ended::Hung);
        self.check(killed || evidence.left_files.is_empty(), || format!("left behind: {:?}", evidence.left_files));
    }

    fn ended(&mut self) {
        let evidence = self.evidence;
        match evidence.ended {
            Ended::Hung => {
                let limit = self.scenario.patience();
                self.check(false, || format!("it did not finish within {limit:?}"));
            }
            Ended::Signal(libc::SIGKILL) if self.hit(|fault| fault.kind == Kind::KillConductor) => {}
            Ended::Signal(signal) => {
                let before_listening = evidence.hits().any(|injection| {
                    injection.fault.aborts() && injection.after.as_millis() < DEAF_MS && evidence.stderr.is_empty()
                });
                self.check(before_listening && matches!(signal, libc::SIGINT | libc::SIGTERM), || {
                    format!("it was killed by signal {signal}")
                });
            }
            Ended::Code(code) => match &evidence.object {
                Some(object) => self.object(object, code),
                None => self.no_object(code),
            },
        }
    }

    /// A run without a result must report a reason.
    fn no_object(&mut self, code: i32) {
        let evidence = self.evidence;
        self.check(evidence.stdout.is_empty(), || "standard output is not empty without a result".to_owned());
        self.check(code == 1, || format!("no result, but exit code {code}"));
        let said = |words: &str| evidence.stderr.lines().any(|line| line.contains(words));
        let twice = self.evidence.hits().filter(|injection| injection.fault.aborts()).count() > 1
            || self.hit(|fault| fault.kind == Kind::InterruptConductorTwice);
        let explained = (twice && said("interrupted twice"))
            || (self.hit(Fault::aborts) && said("interrupted before the benchmark started"))
            || ((self.scenario.full_disk || self.scenario.small_disk.is_some()) && said("error: "))
            // A fault during the start of a throwaway server.
            || (!self.scenario.redis.is_own() && self.hit(Fault::harms_target) && said("error: "));
        self.check(explained, || format!("there is no result and no explanation: {}", evidence.stderr));
    }

    fn object(&mut self, object: &Value, code: i32) {
        self.check(!self.scenario.full_disk, || "the result was written to a full disk".to_owned());
        let outcome = Outcome::read(object);
        let good = outcome.phase == "Succeeded" && matches!(outcome.verdict, "Valid" | "Degraded");
        self.check(code == i32::from(!good), || {
            format!("{} with verdict {:?}, but exit code {code}", outcome.phase, outcome.verdict)
        });
        self.ending(&outcome);
        if outcome.result.is_object() {
            self.losses(&outcome);
            self.verdict(&outcome);
            self.identity(&outcome);
            self.server_counts(&outcome);
            self.verification(&outcome);
            self.outages(&outcome);
        } else {
            self.check(outcome.phase != "Succeeded", || "Succeeded without a result".to_owned());
        }
    }
}

/// A parsed terminal status.
struct Outcome<'a> {
    status: &'a Value,
    result: &'a Value,
    phase: &'a str,
    /// Empty if there is none.
    verdict: &'a str,
    /// The reason of condition Failed, if it is true.
    failed: &'a str,
    /// The start instant in nanoseconds since the Unix epoch, if there was one.
    start: Option<u64>,
    /// Indices of the lost shards.
    lost: Vec<u32>,
}

impl<'a> Outcome<'a> {
    fn read(object: &'a Value) -> Self {
        let status = &object["status"];
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let lost = list(&status["result"]["shards"]).iter().filter(|shard| shard["state"] == "Lost");
        Self {
            status,
            result: &status["result"],
            phase: text(&status["phase"]),
            verdict: text(&status["verdict"]["value"]),
            failed: status::failed(status),
            start: status["trial"]["startAt"].as_str().and_then(unix_nanoseconds),
            lost: lost.filter_map(|shard| u32::try_from(number(&shard["index"])).ok()).collect(),
        }
    }
}

fn unix_nanoseconds(text: &str) -> Option<u64> {
    let time: Timestamp = text.parse().ok()?;
    u64::try_from(time.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests;
