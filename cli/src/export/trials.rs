//! The trials of a result.

use redisbench_benchmark::report::Measurement;
use redisbench_benchmark::report::conditions::{condition, find};

use super::error::ExportError;
use crate::reading::Reading;

/// All, at least one.
pub fn trials(reading: &Reading) -> Result<&[Measurement], ExportError> {
    if reading.measurements.is_empty() {
        let status = reading.object.as_ref().and_then(|object| object.status.as_ref());
        let why = match status {
            Some(status) if !status.trials.is_empty() => Some(
                "; the object has no full results of its trials: give the directory of `local --output-dir` too".into(),
            ),
            Some(status) => {
                let failed = find(status, condition::FAILED).filter(|failed| failed.status == "True");
                let message = failed.map(|failed| format!(", {}", failed.message)).unwrap_or_default();
                Some(format!(
                    ": status.phase is {:?}{message}; fix the cause and run it again. The formats junit and github-summary, and \
                     the report, show such a run too",
                    status.phase
                ))
            }
            None => None,
        };
        return Err(ExportError::NotMeasured(why.unwrap_or_default()));
    }
    Ok(&reading.measurements)
}

/// That of a result with one trial.
pub fn only(reading: &Reading) -> Result<&Measurement, ExportError> {
    match trials(reading)? {
        [one] => Ok(one),
        several => Err(ExportError::SeveralTrials(several.len())),
    }
}

/// Setting of one of several trials, for people; its number if it has none. None for a single trial.
pub fn setting(trial: &Measurement) -> Option<String> {
    let number = || format!("trial {}", trial.trial.index);
    (trial.trial.of > 1).then(|| trial.trial.setting.clone().unwrap_or_else(number))
}
