//! Input of a verdict, as stored in a file. Files recorded from real runs test the verdict against the expected one.

use std::time::Duration;

use redisbench_wire::Probe;
use redisbench_wire::histogram::HistogramError;
use redisbench_wire::timeline::Span;
use serde::{Deserialize, Serialize};

use crate::api::RedisBenchmarkSpec;
use crate::api::status::Verdict;
use crate::measurement::merge::merge;
use crate::measurement::{Outcome, ShardEvidence};
use crate::plan::compile;
use crate::verdict::verdict;

/// The only trial of a benchmark, reduced to the verdict's input. It contains no machine names.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    spec: RedisBenchmarkSpec,
    shards: Vec<ShardEvidence>,
    #[serde(default)]
    timeline: Vec<Span>,
    #[serde(default)]
    start_at_unix_nanoseconds: Option<u64>,
    #[serde(default)]
    start_skew: Option<Duration>,
    #[serde(default)]
    clock_uncertainty: Option<Duration>,
    #[serde(default)]
    probes: Vec<Probe>,
}

/// Why a file gives no verdict.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The spec is invalid.
    #[error("failed to compile the recorded spec: {0}")]
    Spec(String),
    /// The shards' snapshots do not fit together.
    #[error("failed to merge the recorded snapshots")]
    Merge(#[from] HistogramError),
    /// No shard has a snapshot.
    #[error("failed to judge the recording: no shard has a snapshot")]
    Empty,
    /// The histograms are not in the shards' snapshots any more.
    #[error(
        "failed to record the trial: its snapshots take more than the memory for them, so shard {0} was merged when it finished. Record \
         fewer shards or a shorter load"
    )]
    Merged(u32),
}

impl Evidence {
    /// Keeps the parts of a trial that the verdict reads.
    ///
    /// # Errors
    /// If snapshots were merged as they arrived: without their histograms, a recording would give another verdict.
    pub fn of(spec: &RedisBenchmarkSpec, outcome: &Outcome) -> Result<Self, EvidenceError> {
        if let Some(shard) = outcome.shards.iter().find(|shard| shard.own_latency.is_some()) {
            return Err(EvidenceError::Merged(shard.shard));
        }
        Ok(Self {
            spec: spec.clone(),
            shards: outcome.shards.clone(),
            timeline: outcome.timeline.clone(),
            start_at_unix_nanoseconds: outcome.start_at_unix_nanoseconds,
            start_skew: outcome.start_skew,
            clock_uncertainty: outcome.clock_uncertainty,
            probes: outcome.probes.clone(),
        })
    }

    /// Judges the recording.
    ///
    /// # Errors
    /// If the recorded spec is invalid, or nothing was measured.
    pub fn verdict(&self) -> Result<Verdict, EvidenceError> {
        let plan = compile(&self.spec, "evidence").map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            EvidenceError::Spec(problems.join("; "))
        })?;
        let trial = plan.trial(0, &[]).ok_or(EvidenceError::Empty)?;
        let outcome = self.outcome();
        let merged = merge(&trial.spec.plan, &outcome)?.ok_or(EvidenceError::Empty)?;
        Ok(verdict(&trial.spec, &outcome, &merged))
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            start_at_unix_nanoseconds: self.start_at_unix_nanoseconds,
            shards: self.shards.clone(),
            timeline: self.timeline.clone(),
            start_skew: self.start_skew,
            clock_uncertainty: self.clock_uncertainty,
            probes: self.probes.clone(),
            ..Outcome::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{read, validate};
    use crate::measurement::parts::OwnLatency;
    use crate::sample::{object, outcome, snapshot};

    #[test]
    fn a_recording_gives_the_verdict_of_the_run() {
        let spec = read(&object()).unwrap().spec;
        let mut outcome = outcome(vec![snapshot(0, &[1000; 500])]);
        outcome.start_skew = Some(Duration::from_secs(1));
        outcome.clock_uncertainty = Some(Duration::from_secs(1));
        let validated = validate(&spec, "sample").unwrap();
        let merged = merge(&validated.plan, &outcome).unwrap().unwrap();
        let given = verdict(&validated, &outcome, &merged);
        assert_eq!(given.reasons.len(), 2, "{given:?}");
        let file = serde_json::to_string(&Evidence::of(&spec, &outcome).unwrap()).unwrap();
        let read: Evidence = serde_json::from_str(&file).unwrap();
        assert_eq!(read.verdict().unwrap(), given);
        outcome.shards[0].own_latency = Some(OwnLatency::default());
        assert!(matches!(Evidence::of(&spec, &outcome), Err(EvidenceError::Merged(0))));
    }
}
