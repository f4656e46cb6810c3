//! Status of a finished run.

use super::comparison::{self, set_comparison};
use super::conditions::{Conditions, Truth, condition, find, reason};
use super::repeats::set_repeats;
use super::trials::{add_line, turning_point, worst};
use super::{Finished, Subject, search, thresholds, verification};
use crate::api::RedisBenchmarkStatus;
use crate::api::status::{Phase, Summary, Verdict, VerdictValue};
use crate::human;
use crate::measurement::Ending;

/// Maximum bytes of a message in a status with a result.
const BESIDE_RESULT_BYTES: usize = 1024;

impl Subject<'_> {
    /// The trial has finished: sets phase, result and conditions. Returns the reason in `CamelCase` and the message of the conditions.
    /// Returns none and changes nothing if another conductor has taken over.
    pub fn over(&self, status: &mut RedisBenchmarkStatus, finished: &Finished) -> Option<(String, String)> {
        self.over_as(status, finished, &finished.ending)
    }

    /// Like `over`, if the run ends differently from its last trial: by an abort that came after the trial had finished.
    pub fn over_as(
        &self,
        status: &mut RedisBenchmarkStatus,
        finished: &Finished,
        ending: &Ending,
    ) -> Option<(String, String)> {
        if *ending == Ending::Superseded {
            return None;
        }
        let several = finished.is_of_several();
        let mut summary = finished.summary.clone();
        if several {
            add_line(status, finished);
            self.verified_trial(status, finished);
            // Repeats and comparisons take the room that is left.
            search::set_searches(status, self.spec);
            set_repeats(status, self.spec);
            set_comparison(status, self.spec);
            (status.result, status.verdict) = (None, worst(&status.trials, finished.of));
            if let Some(verdict) = &mut status.verdict {
                status.search.iter().for_each(|found| search::conclude(found, verdict));
                search::conclude_all(&status.searches, verdict);
            }
            let verdict = status.verdict.as_ref().map(|verdict| format!("{:?}", verdict.value));
            summary = Summary { shards: summary.shards, verdict, ..Summary::default() };
            summary.rate = status.search.as_ref().and_then(search::column);
        } else {
            status.result = finished.result().cloned();
            status.verdict = finished.verdict().cloned();
        }
        let (phase, why, message) = match ending {
            Ending::Completed if several => (Phase::Succeeded, reason::SUCCEEDED, all_measured(status)),
            Ending::Completed => (Phase::Succeeded, reason::SUCCEEDED, measured(finished)),
            Ending::Aborted => (Phase::Aborted, reason::ABORTED, "aborted; the results up to then are kept".into()),
            Ending::Failed(failure) if several => {
                let index = finished.trial.as_ref().or(status.trial.as_ref()).map_or(0, |trial| trial.index);
                let message = format!("{}: {}", self.place(index, finished.of), failure.message);
                (Phase::Failed, failure.reason.as_str(), message)
            }
            Ending::Failed(failure) => (Phase::Failed, failure.reason.as_str(), failure.message.clone()),
            Ending::Superseded => return None,
        };
        // A status with a result has room only for a shortened message.
        let message = match &finished.cleanup {
            Some(cleanup) => format!("{}; {}", human::shorten(&message, BESIDE_RESULT_BYTES / 2), cleanup.summary()),
            None => message,
        };
        status.phase = phase;
        status.progress = None;
        status.trial = finished.trial.clone().or(status.trial.take());
        if let Some(measurement) = &finished.measurement {
            status.synchronization = Some(measurement.synchronization);
            status.topology = Some(measurement.topology.clone());
        }
        status.shards = Some(finished.shards);
        status.thresholds = thresholds::worse(&status.thresholds, finished.thresholds());
        status.summary = Some(summary);
        self.ended(status, why, &message);
        Some((why.to_owned(), message))
    }

    /// Updates the condition Verified after one more trial of several: it describes the worst trial, and the last of equally bad ones.
    pub(super) fn verified_trial(&self, status: &mut RedisBenchmarkStatus, finished: &Finished) {
        let found = finished.result().and_then(|result| result.verification.as_ref());
        let (Some(found), Some(trial)) = (found, &finished.trial) else { return };
        let (truth, why, message) = verification::condition(&found.counts);
        let badness = |status: &str| ["True", "Unknown", "False"].iter().position(|known| *known == status);
        let known = find(status, condition::VERIFIED).and_then(|known| badness(&known.status));
        if trial.index > 0 && known > badness(truth.as_str()) {
            return;
        }
        let message = format!("{}: {message}", self.place(trial.index, finished.of));
        Conditions::new(status, self.generation, self.now).set(condition::VERIFIED, truth, why, &message);
    }

    /// Sets all conditions of a terminal phase. `status` already has phase and verdict. `why` is the reason in `CamelCase`, `message` is
    /// for people.
    pub fn ended(&self, status: &mut RedisBenchmarkStatus, why: &str, message: &str) {
        // Several conditions repeat it, and a result needs the room.
        let message = if status.result.is_some() { &human::shorten(message, BESIDE_RESULT_BYTES) } else { message };
        let finished = match status.phase {
            Phase::Failed => reason::FAILED,
            Phase::Aborted => reason::ABORTED,
            _ => reason::SUCCEEDED,
        };
        let failed = status.phase == Phase::Failed;
        let complete = status.phase == Phase::Succeeded;
        let (valid, valid_reason, valid_message) = validity(status.verdict.as_ref());
        let verified = status.result.as_ref().and_then(|result| result.verification.as_ref());
        if let Some((truth, why, message)) = verified.map(|found| verification::condition(&found.counts)) {
            Conditions::new(status, self.generation, self.now).set(condition::VERIFIED, truth, why, &message);
        }
        if let Some((truth, why, message)) = thresholds::condition(&status.thresholds) {
            let message = human::shorten(&message, BESIDE_RESULT_BYTES);
            Conditions::new(status, self.generation, self.now).set(condition::THRESHOLDS_MET, truth, why, &message);
        }
        let obstacle = if failed { why } else { reason::NO_OBSTACLE };
        Conditions::new(status, self.generation, self.now)
            .set(condition::FINISHED, true, finished, message)
            .set(
                condition::COMPLETE,
                complete,
                if complete { reason::MEASURED } else { reason::NOT_MEASURED },
                if complete { "the measurement completed" } else { message },
            )
            .set(condition::VALID, valid, valid_reason, &valid_message)
            .set(condition::FAILED, failed, obstacle, if failed { message } else { "no failure" })
            .set(condition::RECONCILING, false, finished, "the benchmark has finished")
            .set(condition::STALLED, failed, obstacle, if failed { message } else { "not stalled" });
    }
}

/// The result in one sentence.
fn measured(finished: &Finished) -> String {
    let summary = &finished.summary;
    let mut parts = vec!["completed".to_owned()];
    parts.extend(summary.rate.iter().cloned());
    parts.extend(summary.p99.iter().map(|p99| format!("p99 {p99}")));
    parts.extend(summary.errors.iter().map(|errors| format!("errors {errors}")));
    parts.extend(summary.verdict.iter().map(|verdict| format!("verdict {verdict}")));
    parts.join(", ")
}

/// All trials in one sentence.
fn all_measured(status: &RedisBenchmarkStatus) -> String {
    let verdict = status.verdict.as_ref().map(|verdict| format!(", worst verdict {:?}", verdict.value));
    let counted = |noun| human::counted(status.trials.len() as u64, noun);
    if let Some(search) = &status.search {
        return format!("{}; {}{}", search.message, counted("step"), verdict.unwrap_or_default());
    }
    if !status.searches.is_empty() {
        let compared = comparison::sentence(&status.comparison).map(|found| format!("; {found}")).unwrap_or_default();
        let (found, steps) = (search::sentence(&status.searches), counted("step"));
        let searches = human::counted(status.searches.len() as u64, "search");
        return format!("{searches}: {found}{compared}; {steps}{}", verdict.unwrap_or_default());
    }
    let found = turning_point(&status.trials).or_else(|| comparison::sentence(&status.comparison));
    let found = found.map(|found| format!("; {found}"));
    format!("{} completed{}{}", counted("trial"), found.unwrap_or_default(), verdict.unwrap_or_default())
}

/// The condition Valid for a verdict.
fn validity(verdict: Option<&Verdict>) -> (Truth, &'static str, String) {
    let Some(verdict) = verdict else {
        return (Truth::Unknown, reason::NOT_JUDGED, "no measurement to judge".into());
    };
    let (truth, name, plain) = match verdict.value {
        VerdictValue::Valid => (Truth::True, "Valid", "no problems found"),
        VerdictValue::Degraded => (Truth::True, "Degraded", "use with care"),
        VerdictValue::Invalid => (Truth::False, "Invalid", "do not use"),
    };
    let reasons: Vec<&str> = verdict.reasons.iter().map(|reason| reason.message.as_str()).collect();
    let message = match (verdict.value, reasons.join("; ")) {
        (_, reasons) if reasons.is_empty() => plain.to_owned(),
        (VerdictValue::Valid, notes) => format!("{plain}; note: {notes}"),
        (_, reasons) => format!("{plain}: {reasons}"),
    };
    (truth, name, message)
}
