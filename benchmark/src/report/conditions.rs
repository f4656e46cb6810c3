//! Conditions: their names, their reasons, and how one is set.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::RedisBenchmarkStatus;
use crate::human;

/// The condition types.
pub mod condition {
    /// The spec was judged; False says what to change.
    pub const ACCEPTED: &str = "Accepted";
    /// In a terminal phase.
    pub const FINISHED: &str = "Finished";
    /// Measured to the end, whatever the verdict.
    pub const COMPLETE: &str = "Complete";
    /// The verdict is not Invalid.
    pub const VALID: &str = "Valid";
    /// What was checked of the target's answers is right. Only if something was to be checked.
    pub const VERIFIED: &str = "Verified";
    /// What the measurement must keep to, it does. Only with `thresholds`.
    pub const THRESHOLDS_MET: &str = "ThresholdsMet";
    /// Could not be measured.
    pub const FAILED: &str = "Failed";
    /// kstatus: the operator is working on it.
    pub const RECONCILING: &str = "Reconciling";
    /// kstatus: it will not go on without a change.
    pub const STALLED: &str = "Stalled";
}

/// Reasons of conditions and events. Failures of the conductor bring their own.
pub mod reason {
    /// The spec is valid.
    pub const ACCEPTED: &str = "Accepted";
    /// The spec is not valid.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// A child's name belongs to another object.
    pub const NAME_TAKEN: &str = "NameTaken";
    /// Ended as wanted.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Ended without a measurement.
    pub const FAILED: &str = "Failed";
    /// Ended by the user.
    pub const ABORTED: &str = "Aborted";
    /// Not there yet.
    pub const IN_PROGRESS: &str = "InProgress";
    /// Nothing hinders it.
    pub const NO_OBSTACLE: &str = "NoObstacle";
    /// Measured to the end.
    pub const MEASURED: &str = "Measured";
    /// Not measured to the end.
    pub const NOT_MEASURED: &str = "NotMeasured";
    /// No verdict.
    pub const NOT_JUDGED: &str = "NotJudged";
    /// Nothing that was checked is wrong.
    pub const VERIFIED: &str = "Verified";
    /// The target has lost acknowledged writes or keys.
    pub const DATA_LOST: &str = "DataLost";
    /// Replies were wrong.
    pub const WRONG_REPLIES: &str = "WrongReplies";
    /// Some keys could not be read when the load was over.
    pub const KEYS_UNREAD: &str = "KeysUnread";
    /// All thresholds hold.
    pub const THRESHOLDS_MET: &str = "ThresholdsMet";
    /// A threshold does not hold.
    pub const THRESHOLD_FAILED: &str = "ThresholdFailed";
    /// Nobody can tell whether all thresholds hold.
    pub const THRESHOLDS_NOT_JUDGED: &str = "ThresholdsNotJudged";
    /// Held back by the user.
    pub const SUSPENDED: &str = "Suspended";
    /// One trial of several is over, and the next begins.
    pub const TRIAL_OVER: &str = "TrialOver";
    /// This operator compiles another plan of trials than the one that runs.
    pub const PLAN_CHANGED: &str = "PlanChanged";
    /// Keys that were to be deleted may be left.
    pub const KEYS_LEFT: &str = "KeysLeft";
    /// The full result could not be kept.
    pub const ARTIFACTS_NOT_WRITTEN: &str = "ArtifactsNotWritten";
    /// The API server refused the whole status, and took one without the details.
    pub const STATUS_SHORTENED: &str = "StatusShortened";
    /// What the run needs could not be written for a while: the API server fails, or does not answer.
    pub const API_SERVER_FAILING: &str = "ApiServerFailing";
}

/// What a condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows yet.
    Unknown,
}

impl Truth {
    /// As a condition has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// The longest message of a condition, in bytes of JSON.
const MESSAGE_BYTES: usize = 4096;

/// Writes conditions into a status, each with the generation it was judged at.
#[derive(Debug)]
pub struct Conditions<'a> {
    status: &'a mut RedisBenchmarkStatus,
    generation: Option<i64>,
    now: Timestamp,
}

impl<'a> Conditions<'a> {
    /// Of `status`, at `now`.
    pub fn new(status: &'a mut RedisBenchmarkStatus, generation: Option<i64>, now: Timestamp) -> Self {
        Self { status, generation, now }
    }

    /// Sets one condition. Its transition time changes only with its truth.
    pub fn set(&mut self, kind: &str, truth: impl Into<Truth>, reason: &str, message: &str) -> &mut Self {
        let truth = truth.into().as_str();
        let conditions = &mut self.status.conditions;
        let former = conditions.iter().position(|condition| condition.type_ == kind);
        let last_transition_time = former
            .map(|index| &conditions[index])
            .filter(|condition| condition.status == truth)
            .map_or(Time(self.now), |condition| condition.last_transition_time.clone());
        let new = Condition {
            type_: kind.to_owned(),
            status: truth.to_owned(),
            reason: reason.to_owned(),
            message: cut(message),
            observed_generation: self.generation,
            last_transition_time,
        };
        match former {
            Some(index) => conditions[index] = new,
            None => conditions.push(new),
        }
        self
    }
}

/// `message` as a condition has it: no longer than the API takes.
pub fn cut(message: &str) -> String {
    human::shorten(message, MESSAGE_BYTES).into_owned()
}

/// The condition `kind` of `status`.
pub fn find<'a>(status: &'a RedisBenchmarkStatus, kind: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_time_changes_with_the_truth_only() {
        let (first, second) = (Timestamp::from_second(1).unwrap(), Timestamp::from_second(2).unwrap());
        let mut status = RedisBenchmarkStatus::default();
        Conditions::new(&mut status, Some(1), first).set(condition::FAILED, false, "A", "a");
        Conditions::new(&mut status, Some(2), second).set(condition::FAILED, false, "B", "b");
        let unchanged = find(&status, condition::FAILED).unwrap().clone();
        assert_eq!((unchanged.last_transition_time.0, unchanged.reason.as_str()), (first, "B"));
        Conditions::new(&mut status, Some(2), second).set(condition::FAILED, true, "B", "b");
        assert_eq!(find(&status, condition::FAILED).unwrap().last_transition_time.0, second);
        assert_eq!(status.conditions.len(), 1);
    }
}
