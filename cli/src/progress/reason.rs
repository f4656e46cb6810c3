//! Why the verdict will not be Valid, while the load runs.

use std::fmt;

use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::status::{ThresholdOutcome, VerdictValue};

/// Why the verdict will not be Valid, or a failed threshold.
#[derive(Clone, Debug)]
pub struct Reason {
    pub severity: VerdictValue,
    pub name: String,
    pub message: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}: {}", self.severity, self.name, self.message)
    }
}

/// As far as known while the load runs.
pub fn reasons(status: &RedisBenchmarkStatus) -> Vec<Reason> {
    let failed = status.thresholds.iter().filter(|threshold| threshold.outcome == ThresholdOutcome::Failed);
    let failed = failed.map(|threshold| Reason {
        severity: VerdictValue::Invalid,
        name: format!("threshold {}", threshold.name),
        message: threshold.message.clone(),
    });
    let given = status.progress.iter().flat_map(|progress| &progress.reasons).map(|given| Reason {
        severity: given.severity,
        name: format!("{:?}", given.reason),
        message: given.message.clone(),
    });
    failed.chain(given).collect()
}
