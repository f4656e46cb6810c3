//! The summary of all runs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::evidence::{Ended, Evidence};
use crate::oracle::number;
use crate::scenario::Scenario;

const OUTCOMES: [&str; 6] = ["scheduled", "succeeded", "errors", "unsent", "inFlight", "unknown"];

/// Sums over runs.
#[derive(Debug, Default)]
pub struct Table {
    runs: u64,
    took: Duration,
    /// By kind: the number of faults, and of those that came too late for their target.
    faults: BTreeMap<String, (u64, u64)>,
    endings: BTreeMap<String, u64>,
    requests: [u64; OUTCOMES.len()],
    /// Runs whose counts were compared with the servers', exactly or with bounds.
    counted: u64,
    executed: u64,
    lost_shards: u64,
    peak_kib: u64,
    violations: u64,
}

impl Table {
    /// Adds a run, and returns a line about it.
    pub fn add(&mut self, scenario: &Scenario, evidence: &Evidence, violations: &[String]) -> String {
        self.runs += 1;
        self.took += evidence.took;
        for injection in &evidence.injections {
            let (hit, missed) = self.faults.entry(injection.fault.kind()).or_default();
            *(if injection.hit { hit } else { missed }) += 1;
        }
        let ending = ending(evidence);
        *self.endings.entry(ending.clone()).or_default() += 1;
        let result = evidence.object.as_ref().map(|object| &object["status"]["result"]);
        let requests = OUTCOMES.map(|field| result.map_or(0, |result| number(&result["requests"][field])));
        self.requests.iter_mut().zip(requests).for_each(|(sum, part)| *sum += part);
        let shards = result.and_then(|result| result["shards"].as_array()).into_iter().flatten();
        self.lost_shards += shards.filter(|shard| shard["state"] == "Lost").count() as u64;
        if let (Some(calls), Some(_)) = (evidence.calls, result.filter(|result| result.is_object())) {
            self.counted += 1;
            self.executed += calls.at_least;
        }
        self.peak_kib = self.peak_kib.max(evidence.peak_kib);
        self.violations += violations.len() as u64;
        let injections: Vec<_> = evidence
            .injections
            .iter()
            .map(|injection| {
                let late = if injection.hit { "" } else { " (no target)" };
                format!("{:.1} s {}{late}", injection.after.as_secs_f64(), injection.fault)
            })
            .collect();
        let injections = if injections.is_empty() { "no fault".to_owned() } else { injections.join("; ") };
        let [scheduled, succeeded, errors, unsent, in_flight, unknown] = requests;
        format!(
            "{}: {}: {injections} -> {ending}, {scheduled} = {succeeded} + {errors} + {unsent} + {in_flight} + {unknown}, {:.1} s",
            scenario.run,
            scenario.describe(),
            evidence.took.as_secs_f64()
        )
    }
}

fn ending(evidence: &Evidence) -> String {
    let Some(object) = &evidence.object else {
        return match evidence.ended {
            Ended::Code(code) => format!("no result, exit code {code}"),
            Ended::Signal(signal) => format!("no result, signal {signal}"),
            Ended::Hung => "hung".to_owned(),
        };
    };
    let status = &object["status"];
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let failed = status["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == "Failed");
    let failed = failed.filter(|condition| condition["status"] == "True").map(|condition| text(&condition["reason"]));
    [text(&status["phase"]), failed.unwrap_or_default(), text(&status["verdict"]["value"])]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{:>8} runs in {:.1} min", self.runs, self.took.as_secs_f64() / 60.0)?;
        writeln!(formatter, "{:>8} violations", self.violations)?;
        writeln!(formatter, "faults (in parentheses: those that found no target)")?;
        for (kind, (hit, missed)) in &self.faults {
            writeln!(formatter, "{hit:>8} {kind} ({missed})")?;
        }
        writeln!(formatter, "endings")?;
        for (ending, count) in &self.endings {
            writeln!(formatter, "{count:>8} {ending}")?;
        }
        writeln!(formatter, "requests")?;
        for (name, count) in OUTCOMES.iter().zip(self.requests) {
            writeln!(formatter, "{count:>8} {name}")?;
        }
        writeln!(formatter, "{:>8} shards lost", self.lost_shards)?;
        writeln!(
            formatter,
            "{:>8} runs compared with the servers' own counts: {} commands",
            self.counted, self.executed
        )?;
        write!(formatter, "{:>8} MiB peak memory of the program", self.peak_kib / 1024)
    }
}
