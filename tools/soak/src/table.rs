//! The summary of all runs.

use std::fmt;
use std::time::Duration;

use redisbench_testkit::counts::{Counts, variant};
use redisbench_testkit::status::{self, OUTCOMES, list, number};
use serde_json::Value;

use crate::evidence::{Ended, Evidence};
use crate::scenario::Scenario;

/// Sums over runs.
#[derive(Debug, Default)]
pub struct Table {
    runs: u64,
    took: Duration,
    faults: Counts,
    endings: Counts,
    requests: Counts,
    /// Runs whose counts were compared with the servers', exactly or with bounds.
    counted: u64,
    executed: u64,
    lost_shards: usize,
    peak_kib: u64,
    violations: usize,
}

impl Table {
    /// Adds a run, and returns a line about it.
    pub fn add(&mut self, scenario: &Scenario, evidence: &Evidence, violations: &[String]) -> String {
        self.runs += 1;
        self.took += evidence.took;
        self.peak_kib = self.peak_kib.max(evidence.peak_kib);
        self.violations += violations.len();
        let ending = ending(evidence);
        self.endings.add(&ending, 1);
        let result = evidence.object.as_ref().map_or(&Value::Null, |object| &object["status"]["result"]);
        let requests = &result["requests"];
        for name in OUTCOMES.into_iter().chain(["scheduled"]) {
            self.requests.add(name, number(&requests[name]));
        }
        self.lost_shards += list(&result["shards"]).iter().filter(|shard| shard["state"] == "Lost").count();
        if let (Some(calls), true) = (evidence.calls, result.is_object()) {
            self.counted += 1;
            self.executed += calls.at_least;
        }
        let mut injections = Vec::new();
        for injection in &evidence.injections {
            let late = if injection.hit { "" } else { " (no target)" };
            self.faults.add(variant(&injection.fault.kind) + late, 1);
            injections.push(format!("{:.1} s {}{late}", injection.after.as_secs_f64(), injection.fault));
        }
        let injections = if injections.is_empty() { "no fault".to_owned() } else { injections.join("; ") };
        format!(
            "{}: {}: {injections} -> {ending}, {} = {}, {:.1} s",
            scenario.run,
            scenario.describe(),
            number(&requests["scheduled"]),
            OUTCOMES.map(|outcome| number(&requests[outcome]).to_string()).join(" + "),
            evidence.took.as_secs_f64()
        )
    }
}

fn ending(evidence: &Evidence) -> String {
    match (&evidence.object, evidence.ended) {
        (Some(object), _) => status::ending(&object["status"]),
        (None, Ended::Code(code)) => format!("no result, exit code {code}"),
        (None, Ended::Signal(signal)) => format!("no result, signal {signal}"),
        (None, Ended::Hung) => "hung".to_owned(),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, faults, endings, requests, counted, executed, lost_shards, violations, .. } = self;
        writeln!(formatter, "{runs:>9} runs in {:.1} min\n{violations:>9} violations", self.took.as_secs_f64() / 60.0)?;
        write!(formatter, "faults:\n{faults}endings:\n{endings}requests:\n{requests}")?;
        writeln!(formatter, "{lost_shards:>9} shards lost")?;
        writeln!(formatter, "{counted:>9} runs compared with the servers' own counts: {executed} commands")?;
        write!(formatter, "{:>9} MiB peak memory of the program", self.peak_kib / 1024)
    }
}
