//! The status of a run that is over.

use super::Subject;
use super::conditions::{Conditions, Truth, condition, reason};
use crate::api::RedisBenchmarkStatus;
use crate::api::status::{Phase, Verdict, VerdictValue};

impl Subject<'_> {
    /// Sets all conditions of a terminal phase, which `status` already has together with its verdict. `why` is the
    /// reason in `CamelCase`, `message` is for people.
    pub fn ended(&self, status: &mut RedisBenchmarkStatus, why: &str, message: &str) {
        let finished = match status.phase {
            Phase::Failed => reason::FAILED,
            Phase::Aborted => reason::ABORTED,
            _ => reason::SUCCEEDED,
        };
        let failed = status.phase == Phase::Failed;
        let complete = status.phase == Phase::Succeeded;
        let (valid, valid_reason, valid_message) = validity(status.verdict.as_ref());
        let obstacle = if failed { why } else { reason::NO_OBSTACLE };
        Conditions::new(status, self.generation, self.now)
            .set(condition::FINISHED, true, finished, message)
            .set(
                condition::COMPLETE,
                complete,
                if complete { reason::MEASURED } else { reason::NOT_MEASURED },
                if complete { "measured to the end" } else { message },
            )
            .set(condition::VALID, valid, valid_reason, &valid_message)
            .set(condition::FAILED, failed, obstacle, if failed { message } else { "nothing has failed" })
            .set(condition::RECONCILING, false, finished, "the benchmark is over")
            .set(condition::STALLED, failed, obstacle, if failed { message } else { "nothing hinders it" });
    }
}

/// The condition Valid, from the verdict.
fn validity(verdict: Option<&Verdict>) -> (Truth, &'static str, String) {
    let Some(verdict) = verdict else {
        return (Truth::Unknown, reason::NOT_JUDGED, "nothing was measured that could be judged".into());
    };
    let (truth, name, plain) = match verdict.value {
        VerdictValue::Valid => (Truth::True, "Valid", "no reason for doubt was found"),
        VerdictValue::Degraded => (Truth::True, "Degraded", "to be used with care"),
        VerdictValue::Invalid => (Truth::False, "Invalid", "not to be used"),
    };
    let reasons: Vec<&str> = verdict.reasons.iter().map(|reason| reason.message.as_str()).collect();
    let message = if reasons.is_empty() { plain.to_owned() } else { format!("{plain}: {}", reasons.join("; ")) };
    (truth, name, message)
}
