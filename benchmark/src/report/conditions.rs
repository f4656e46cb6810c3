//! Conditions: their types and reasons, and how to set one.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::RedisBenchmarkStatus;
use crate::human;

/// The condition types.
pub mod condition {
    /// The spec was judged. If False, the message says what to change.
    pub const ACCEPTED: &str = "Accepted";
    /// In a terminal phase.
    pub const FINISHED: &str = "Finished";
    /// Measured to the end, whatever the verdict.
    pub const COMPLETE: &str = "Complete";
    /// The verdict is not Invalid.
    pub const VALID: &str = "Valid";
    /// All checked replies are correct. Only if replies are to be checked.
    pub const VERIFIED: &str = "Verified";
    /// All thresholds hold. Only with `thresholds`.
    pub const THRESHOLDS_MET: &str = "ThresholdsMet";
    /// Could not be measured.
    pub const FAILED: &str = "Failed";
    /// kstatus: the operator is working on it.
    pub const RECONCILING: &str = "Reconciling";
    /// kstatus: it cannot continue without a change.
    pub const STALLED: &str = "Stalled";
}

/// Reasons of conditions and events. Failures of the conductor have their own.
pub mod reason {
    pub const ACCEPTED: &str = "Accepted";
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// A child's name belongs to another object.
    pub const NAME_TAKEN: &str = "NameTaken";
    /// Measured to the end.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Ended without a measurement.
    pub const FAILED: &str = "Failed";
    /// Ended by the user.
    pub const ABORTED: &str = "Aborted";
    /// Not determined yet.
    pub const IN_PROGRESS: &str = "InProgress";
    /// Nothing blocks it.
    pub const NO_OBSTACLE: &str = "NoObstacle";
    /// Measured to the end.
    pub const MEASURED: &str = "Measured";
    /// Not measured to the end.
    pub const NOT_MEASURED: &str = "NotMeasured";
    /// No verdict.
    pub const NOT_JUDGED: &str = "NotJudged";
    /// All checked replies are correct.
    pub const VERIFIED: &str = "Verified";
    /// The target has lost acknowledged writes or keys.
    pub const DATA_LOST: &str = "DataLost";
    pub const WRONG_REPLIES: &str = "WrongReplies";
    /// Some keys could not be read after the load.
    pub const KEYS_UNREAD: &str = "KeysUnread";
    pub const THRESHOLDS_MET: &str = "ThresholdsMet";
    /// A threshold does not hold.
    pub const THRESHOLD_FAILED: &str = "ThresholdFailed";
    /// It is unknown whether all thresholds hold.
    pub const THRESHOLDS_NOT_JUDGED: &str = "ThresholdsNotJudged";
    /// Suspended by the user.
    pub const SUSPENDED: &str = "Suspended";
    /// The plans of running benchmarks leave no room for that of this one.
    pub const WAITING_FOR_MEMORY: &str = "WaitingForMemory";
    /// One trial of several has finished, and the next begins.
    pub const TRIAL_OVER: &str = "TrialOver";
    /// This operator compiles another plan of trials than the running one.
    pub const PLAN_CHANGED: &str = "PlanChanged";
    /// Conducting the run failed because of a bug in the operator, and another conductor continues from what the shards hold.
    pub const CONDUCTOR_FAILED: &str = "ConductorFailed";
    /// Keys that were to be deleted may be left.
    pub const KEYS_LEFT: &str = "KeysLeft";
    /// The full result could not be stored.
    pub const ARTIFACTS_NOT_WRITTEN: &str = "ArtifactsNotWritten";
    /// The API server refused the whole status, and accepted one without the details.
    pub const STATUS_SHORTENED: &str = "StatusShortened";
    /// Objects of the run could not be written for a while: the API server fails, or does not answer.
    pub const API_SERVER_FAILING: &str = "ApiServerFailing";
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known.
    Unknown,
}

impl Truth {
    /// The status string of a condition.
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

/// Maximum length of a condition's message, in bytes of JSON.
const MESSAGE_BYTES: usize = 4096;

/// Writes conditions into a status, each with its observed generation.
#[derive(Debug)]
pub struct Conditions<'a> {
    status: &'a mut RedisBenchmarkStatus,
    generation: Option<i64>,
    now: Timestamp,
}

impl<'a> Conditions<'a> {
    pub fn new(status: &'a mut RedisBenchmarkStatus, generation: Option<i64>, now: Timestamp) -> Self {
        Self { status, generation, now }
    }

    /// Sets one condition. Its transition time changes only with its status.
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

/// Shortens `message` to the limit of a condition.
pub fn cut(message: &str) -> String {
    human::shorten(message, MESSAGE_BYTES).into_owned()
}

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
