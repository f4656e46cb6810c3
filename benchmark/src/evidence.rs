//! Input of a verdict, as stored in a file. Files recorded from real runs test the verdict against the expected one.

use redisbench_wire::histogram::HistogramError;
use serde::{Deserialize, Serialize};

use crate::api::RedisBenchmarkSpec;
use crate::api::status::Verdict;
use crate::measurement::Outcome;
use crate::measurement::merge::merge;
use crate::plan::compile;
use crate::verdict::verdict;

/// The only trial of a benchmark, reduced to the verdict's input. It contains no machine names.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    spec: RedisBenchmarkSpec,
    #[serde(flatten)]
    outcome: Outcome,
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
        Ok(Self { spec: spec.clone(), outcome: outcome.clone() })
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
        let merged = merge(&trial.spec.plan, &self.outcome)?.ok_or(EvidenceError::Empty)?;
        Ok(verdict(&trial.spec, &self.outcome, &merged))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
