//! A benchmark of several trials: a line for each finished one, and their combined verdict.

use super::conditions::reason;
use super::repeats::set_repeats;
use super::why::{REASONS, has_room_for_cache, has_room_for_shares, has_room_for_why, why_bytes};
use super::{Finished, Subject, search, thresholds, trial};
use crate::api::status::{
    LimitedBy, Phase, ReasonKind, ShardCounts, Summary, ThresholdOutcome, TrialCache, TrialLine, TrialOutcome,
    TrialRequests, TrialResult, Verdict, VerdictReason, VerdictValue,
};
use crate::api::{RedisBenchmarkStatus, combinations};
use crate::human;
use crate::measurement::Ending;
use crate::plan::Kind;

/// The load generator's largest share of a percentile, in hundredths of a percent.
fn largest_share(result: &TrialResult) -> Option<u32> {
    let known = result.generator_share.iter().filter(|share| share.is_known());
    known.map(|share| share.basis_points).max()
}

impl Finished {
    /// The line of a trial of this kind. None for a single trial, whose whole result is in the status, and for one that never started.
    pub(super) fn line_of(&self, kind: &Kind) -> Option<TrialLine> {
        let present = self.trial.as_ref().filter(|present| present.of > 1)?;
        let (swept, is_of_clients) = (kind.setting.parameters.len(), kind.setting.client.is_some());
        let why_bytes = why_bytes(present.of, swept);
        let result = self.result();
        let reason = self.verdict().and_then(|verdict| {
            let worst = verdict.reasons.iter().max_by_key(|reason| reason.severity);
            worst.filter(|reason| reason.severity > VerdictValue::Valid)
        });
        let failure = match &self.ending {
            Ending::Failed(failure) => Some(failure.message.as_str()),
            _ => None,
        };
        Some(TrialLine {
            index: present.index,
            setting: kind.setting.clone(),
            cold: kind.cold,
            cell: kind.cell,
            repeat: kind.repeat,
            search: None,
            state: match self.ending {
                Ending::Completed => TrialOutcome::Completed,
                Ending::Aborted => TrialOutcome::Aborted,
                Ending::Failed(_) | Ending::Superseded => TrialOutcome::Failed,
            },
            attempt: present.attempt,
            start_at: present.start_at.clone(),
            requests: result.map(|result| TrialRequests::from(&result.requests)),
            misses: result.map(|result| result.operations.iter().map(|operation| operation.misses).sum()),
            cache: result
                .and_then(|result| result.cache.as_ref())
                .filter(|_| has_room_for_cache(present.of, kind.setting.parameters.len()))
                .map(TrialCache::from),
            achieved_per_second: result.map(|result| result.throughput.achieved_per_second),
            mean_nanoseconds: result.and_then(|result| result.response_time.mean_nanoseconds),
            p50_nanoseconds: result.and_then(|result| result.response_time.p50_nanoseconds),
            p99_nanoseconds: result.and_then(|result| result.response_time.p99_nanoseconds),
            failed_thresholds: self.thresholds().iter().filter(|one| one.outcome == ThresholdOutcome::Failed).count()
                as u64,
            p999_nanoseconds: result.and_then(|result| result.response_time.p999_nanoseconds),
            cpu_per_request_nanoseconds: result
                .and_then(|result| result.clients.first())
                .map(|client| client.cpu_per_request_nanoseconds),
            generator_share_basis_points: result
                .filter(|_| has_room_for_shares(present.of, swept, is_of_clients))
                .and_then(largest_share),
            verdict: self.verdict().map(|verdict| verdict.value),
            limited_by: self.verdict().map(|verdict| verdict.limited_by),
            why: failure
                .or(reason.map(|reason| reason.message.as_str()))
                .filter(|_| has_room_for_why(present.of, swept, is_of_clients))
                .map(|why| human::shorten(why, why_bytes).into_owned()),
        })
    }

    pub fn is_of_several(&self) -> bool {
        self.of > 1
    }
}

impl Subject<'_> {
    /// A trial has finished and another follows, whose number of shards this subject has. Adds the line and resets the status to preparing
    /// shards. Returns the reason in `CamelCase` and a message for people.
    pub fn next_trial(&self, status: &mut RedisBenchmarkStatus, finished: &Finished) -> (String, String) {
        add_line(status, finished);
        status.thresholds = thresholds::worse(&status.thresholds, finished.thresholds());
        self.verified_trial(status, finished);
        set_repeats(status, self.spec);
        search::set_searches(status, self.spec);
        let index = finished.trial.as_ref().map_or(0, |trial| trial.index);
        let desired = self.shards;
        status.phase = Phase::Preparing;
        status.trial = Some(trial(index.saturating_add(1), finished.of, 0, None));
        status.progress = None;
        status.synchronization = None;
        status.shards = Some(ShardCounts { desired, ..ShardCounts::default() });
        status.summary = Some(Summary { shards: Some(format!("0/{desired}")), ..Summary::default() });
        let over = self.so_many_are_over(status, index.saturating_add(1), finished.of);
        self.in_progress(status, &over);
        let line = status.trials.last().map(describe).unwrap_or_default();
        (reason::TRIAL_OVER.to_owned(), format!("{}{line}", self.place(index, finished.of)))
    }

    fn so_many_are_over(&self, status: &RedisBenchmarkStatus, count: u32, of: u32) -> String {
        match (&status.search, status.searches.last()) {
            (Some(found), _) => format!("step {count} of the search has finished; {}", found.message),
            (None, Some(last)) => {
                let (nth, all, setting) = (status.searches.len(), combinations(self.spec), last.name());
                let (steps, message) = (last.steps, &last.result.message);
                format!("search {nth} of {all}, {setting}: step {steps} has finished; {message}")
            }
            (None, None) => format!("{count} of {of} trials have finished"),
        }
    }

    /// The trial's place, for people.
    pub(super) fn place(&self, index: u32, of: u32) -> String {
        human::place(index, self.spec.search.is_none().then_some(of))
    }
}

/// Adds the line of `finished`, replacing lines from its index on.
pub(super) fn add_line(status: &mut RedisBenchmarkStatus, finished: &Finished) {
    if let Some(line) = &finished.line {
        status.trials.retain(|known| known.index < line.index);
        status.trials.push(line.clone());
    }
}

/// The line as text, to follow the trial's number.
fn describe(line: &TrialLine) -> String {
    let names = names(line);
    if let Some(step) = &line.search {
        let names: String = names.into_iter().map(|name| format!(", {name}")).collect();
        return format!("{names}{}", search::describe(step));
    }
    let mut parts = vec![String::new()];
    parts.extend(names);
    parts.extend(line.achieved_per_second.map(human::rate));
    parts.extend(line.p99_nanoseconds.map(|p99| format!("p99 {}", human::latency(p99))));
    parts.extend(line.verdict.map(|verdict| format!("verdict {verdict:?}")));
    parts.join(", ")
}

/// Setting of a line, in parts for people.
pub(super) fn names(line: &TrialLine) -> Vec<String> {
    line.setting.parts(line.repeat, |field| field)
}

/// The trials that decide the combined verdict.
fn deciding(trials: &[TrialLine]) -> impl Iterator<Item = &TrialLine> {
    // If no step of a search passed, all of its steps count.
    let counts = |line: &TrialLine| search::counts(line.search.as_ref());
    let of_its_search = |line: &TrialLine, other: &TrialLine| (other.cell, other.repeat) == (line.cell, line.repeat);
    let passed = move |line: &TrialLine| trials.iter().any(|other| of_its_search(line, other) && counts(other));
    trials.iter().filter(move |line| counts(line) || !passed(line))
}

/// The trials that decide the combined verdict and are not Valid, the worst first.
pub fn doubtful(trials: &[TrialLine]) -> Vec<&TrialLine> {
    let mut doubtful: Vec<_> = deciding(trials).filter(|line| line.verdict > Some(VerdictValue::Valid)).collect();
    doubtful.sort_by_key(|line| (std::cmp::Reverse(line.verdict), line.index));
    doubtful
}

/// Combined verdict on all trials of `status`: the worst, with a reason for each one that is not Valid. None if nothing was measured.
pub fn worst(trials: &[TrialLine], of: u32) -> Option<Verdict> {
    let value = deciding(trials).filter_map(|line| line.verdict).max()?;
    let reasons = doubtful(trials).into_iter().take(REASONS).map(|line| VerdictReason {
        reason: ReasonKind::Trial,
        severity: line.verdict.unwrap_or(value),
        message: format!(
            "{}{}: {}",
            human::place(line.index, line.search.is_none().then_some(of)),
            names(line).into_iter().map(|name| format!(", {name}")).collect::<String>(),
            line.why.as_deref().unwrap_or("unknown reason")
        ),
    });
    Some(Verdict { value, reasons: reasons.collect(), limited_by: LimitedBy::Unknown, component: None })
}

/// Result of a sweep over `shards.count`: up to how many shards the load generator was the limit, and from how many on the target. None if
/// the trials do not show that consistently.
pub(super) fn turning_point(trials: &[TrialLine]) -> Option<String> {
    let of = |line: &TrialLine| match line.setting.parameters.iter().next() {
        Some((field, count)) if line.setting.parameters.len() == 1 && field == "shards.count" => {
            count.parse::<u32>().ok()
        }
        _ => None,
    };
    let mut limits: Vec<(u32, LimitedBy)> =
        trials.iter().map(|line| of(line).zip(line.limited_by)).collect::<Option<_>>()?;
    limits.sort_by_key(|(shards, _)| *shards);
    let (targets, generators): (Vec<_>, Vec<_>) =
        limits.iter().partition::<Vec<(u32, LimitedBy)>, _>(|(_, limit)| *limit == LimitedBy::Target);
    let (&(first, _), &(last, of_last)) = (targets.first()?, generators.last()?);
    let plain = |limit| match limit {
        LimitedBy::GeneratorNetwork => Some("the load generator's network"),
        LimitedBy::GeneratorCPU => Some("the load generator's processors"),
        _ => None,
    };
    let agree = generators.iter().all(|(_, limit)| *limit == of_last);
    let what = plain(of_last).filter(|_| agree && last < first)?;
    let last = human::counted(last.into(), "shard");
    Some(format!("up to {last} {what} was the limit, from {first} on the target"))
}

/// Number of measured trials whose full result is missing from the artifacts.
pub fn without_artifacts(status: &RedisBenchmarkStatus) -> usize {
    let kept = |line: &TrialLine| {
        let name = crate::report::measurement::trial_prefix(line.index);
        status.artifacts.iter().any(|artifact| artifact.name.starts_with(&name))
    };
    status.trials.iter().filter(|line| line.requests.is_some() && !kept(line)).count()
}

#[cfg(test)]
mod tests;
