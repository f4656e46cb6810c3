//! The exit codes, and that of a finished benchmark.

use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::status::{Phase, SearchEnding, ThresholdOutcome, VerdictValue};
use redisbench_benchmark::report::conditions::{condition, find, reason};

/// The benchmark completed, and its verdict is not Invalid.
pub const GOOD: u8 = 0;
/// Invalid, Failed or Aborted; or a search without a result about the target; or this program failed.
pub const BAD: u8 = 1;
/// An invalid manifest or wrong usage.
pub const USAGE: u8 = 2;
/// As 0, but verification found lost data or wrong replies.
pub const UNVERIFIED: u8 = 3;
/// As 0, but a threshold was not met or stopped the run, or the objective of a search does not hold at its lowest rate. Of `compare`:
/// slower than the baseline.
pub const NOT_MET: u8 = 4;
/// As 0, and no threshold failed, but one could not be judged, such as a quantile of too few requests. Of `compare`: the trials do not
/// decide.
pub const NOT_JUDGED: u8 = 5;

/// The exit code for a finished benchmark.
pub fn exit_code(status: Option<&RedisBenchmarkStatus>) -> u8 {
    let invalid = |status: &RedisBenchmarkStatus| {
        status.verdict.as_ref().is_none_or(|verdict| verdict.value == VerdictValue::Invalid)
    };
    let searches = |status: &RedisBenchmarkStatus, endings: &[SearchEnding]| {
        let results = status.search.iter().chain(status.searches.iter().map(|search| &search.result));
        results.filter_map(|result| result.ending).any(|ending| endings.contains(&ending))
    };
    match status {
        Some(status) if status.phase == Phase::Succeeded && searches(status, &[SearchEnding::MinFailed]) => NOT_MET,
        // A limit of the load generator is not a result about the target.
        Some(status)
            if status.phase == Phase::Succeeded
                && searches(status, &[SearchEnding::Inconclusive, SearchEnding::GeneratorLimited]) =>
        {
            BAD
        }
        Some(status) if status.phase == Phase::Succeeded && !invalid(status) => {
            let verification = status.result.as_ref().and_then(|result| result.verification.as_ref());
            let worst = status.thresholds.iter().map(|threshold| threshold.outcome).max();
            match (verification.is_some_and(|found| found.counts.is_wrong()), worst) {
                (true, _) => UNVERIFIED,
                (false, Some(ThresholdOutcome::Failed)) => NOT_MET,
                (false, Some(ThresholdOutcome::NotJudged | ThresholdOutcome::Pending)) => NOT_JUDGED,
                (false, Some(ThresholdOutcome::Passed) | None) => GOOD,
            }
        }
        Some(status) if status.phase == Phase::Failed && stopped_by_a_threshold(status) => NOT_MET,
        _ => BAD,
    }
}

fn stopped_by_a_threshold(status: &RedisBenchmarkStatus) -> bool {
    find(status, condition::FAILED).is_some_and(|failed| failed.reason == reason::THRESHOLD_FAILED)
}

#[cfg(test)]
mod tests {
    use redisbench_benchmark::api::status::{LimitedBy, TrialResult, Verdict, VerificationResult};
    use redisbench_benchmark::report::conditions::Conditions;
    use redisbench_wire::snapshot::VerificationCounts;
    use serde_json::json;

    use super::*;

    fn status(phase: Phase, value: Option<VerdictValue>) -> RedisBenchmarkStatus {
        let verdict = |value| Verdict { value, reasons: Vec::new(), limited_by: LimitedBy::Unknown, component: None };
        RedisBenchmarkStatus { phase, verdict: value.map(verdict), ..RedisBenchmarkStatus::default() }
    }

    #[test]
    fn a_target_that_lost_data_has_an_exit_code_of_its_own() {
        for (phase, value, lost_writes, code) in [
            (Phase::Succeeded, VerdictValue::Valid, 0, GOOD),
            (Phase::Succeeded, VerdictValue::Valid, 1, UNVERIFIED),
            (Phase::Succeeded, VerdictValue::Invalid, 1, BAD),
            (Phase::Aborted, VerdictValue::Valid, 1, BAD),
        ] {
            let counts = VerificationCounts { lost_writes, ..VerificationCounts::default() };
            let verification = Some(VerificationResult { counts, ..VerificationResult::default() });
            let result = Some(TrialResult { verification, ..TrialResult::default() });
            let status = RedisBenchmarkStatus { result, ..status(phase, Some(value)) };
            assert_eq!(exit_code(Some(&status)), code, "{phase:?} {value:?} {lost_writes}");
        }
    }

    #[test]
    fn a_threshold_that_does_not_hold_has_an_exit_code_of_its_own() {
        for (phase, value, outcome, code) in [
            (Phase::Succeeded, VerdictValue::Valid, ThresholdOutcome::Passed, GOOD),
            (Phase::Succeeded, VerdictValue::Degraded, ThresholdOutcome::Failed, NOT_MET),
            (Phase::Succeeded, VerdictValue::Valid, ThresholdOutcome::NotJudged, NOT_JUDGED),
            (Phase::Succeeded, VerdictValue::Invalid, ThresholdOutcome::NotJudged, BAD),
            (Phase::Succeeded, VerdictValue::Invalid, ThresholdOutcome::Failed, BAD),
            (Phase::Failed, VerdictValue::Invalid, ThresholdOutcome::Failed, NOT_MET),
            (Phase::Aborted, VerdictValue::Valid, ThresholdOutcome::Failed, BAD),
        ] {
            let threshold = json!({"name": "p99", "outcome": outcome, "message": ""});
            let mut status = status(phase, Some(value));
            status.thresholds = vec![serde_json::from_value(threshold).unwrap()];
            if phase == Phase::Failed {
                let now = jiff::Timestamp::UNIX_EPOCH;
                Conditions::new(&mut status, None, now).set(condition::FAILED, true, reason::THRESHOLD_FAILED, "");
            }
            assert_eq!(exit_code(Some(&status)), code, "{phase:?} {value:?} {outcome:?}");
        }
    }

    #[test]
    fn a_search_is_good_if_it_has_an_answer_about_the_target() {
        for (ending, code) in [
            (SearchEnding::Found, GOOD),
            (SearchEnding::MaxPassed, GOOD),
            (SearchEnding::MinFailed, NOT_MET),
            (SearchEnding::Inconclusive, BAD),
            (SearchEnding::GeneratorLimited, BAD),
        ] {
            let mut status = status(Phase::Succeeded, Some(VerdictValue::Valid));
            let found = json!({"ending": ending, "message": "", "lastGoodPerSecond": 1000});
            status.search = Some(serde_json::from_value(found).unwrap());
            assert_eq!(exit_code(Some(&status)), code, "{ending:?}");
        }
    }

    #[test]
    fn only_a_complete_result_that_is_not_invalid_is_good() {
        for (phase, value, code) in [
            (Phase::Succeeded, Some(VerdictValue::Valid), GOOD),
            (Phase::Succeeded, Some(VerdictValue::Degraded), GOOD),
            (Phase::Succeeded, Some(VerdictValue::Invalid), BAD),
            (Phase::Succeeded, None, BAD),
            (Phase::Failed, None, BAD),
            (Phase::Aborted, Some(VerdictValue::Valid), BAD),
        ] {
            assert_eq!(exit_code(Some(&status(phase, value))), code, "{phase:?} {value:?}");
        }
        assert_eq!(exit_code(None), BAD);
    }
}
