//! Events of a running benchmark.

use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::status::Phase;
use redisbench_benchmark::conductor::{QUEUED, ShardPresence};
use redisbench_benchmark::human;
use redisbench_benchmark::measurement::reason;
use redisbench_benchmark::plan::Trial;

use super::subject::Subject;
use crate::controller::decision::{Decision, Notice};
use crate::controller::observed::Observed;

/// The reason of a loss, also if it ends the run.
pub(super) const SHARD_LOST: &str = reason::SHARD_LOST;

/// Events for the start, for an abandoned attempt, and for shards lost since the last status.
pub(super) fn notices(subject: &Subject<'_>, observed: &Observed, decision: &mut Decision) {
    let (old, new) = (subject.status, &decision.status);
    // A takeover during collection may return to Running. That is no start.
    if new.phase == Phase::Running && old.phase == Phase::Preparing {
        let attempt = new.trial.as_ref().map_or(1, |trial| trial.attempt);
        decision.notices.push(Notice::normal(
            "Started",
            format!("{}attempt {attempt}: all shards start together", of_trial(subject, new)),
        ));
    }
    // A restart resets the losses, so this event reports them.
    if new.phase == Phase::Preparing && old.phase == Phase::Running {
        let attempt = old.trial.as_ref().map_or(1, |trial| trial.attempt);
        let message = format!(
            "{}attempt {attempt} was aborted, the next one starts once all shards are armed; {}",
            of_trial(subject, old),
            gone(subject, observed)
        );
        decision.notices.push(Notice::warning("Restarting", message.trim_end_matches("; ")));
    } else {
        let lost = new.shards.map_or(0, |shards| shards.lost);
        losses(subject, observed, lost, decision);
    }
}

/// The trial that a status is about, if there are several.
fn of_trial(subject: &Subject<'_>, status: &RedisBenchmarkStatus) -> String {
    let Some(trial) = status.trial.as_ref().filter(|trial| trial.of > 1) else { return String::new() };
    let planned = subject.plan.and_then(|plan| plan.trial(trial.index, &status.trials));
    let title = planned.as_ref().map_or_else(|| human::place(trial.index, Some(trial.of)), Trial::title);
    format!("{title}, ")
}

/// An event for shards lost since the last status; `now` is the total.
pub(super) fn losses(subject: &Subject<'_>, observed: &Observed, now: u32, decision: &mut Decision) {
    let before = subject.status.shards.map_or(0, |shards| shards.lost);
    if now > before {
        let all = u64::from(subject.shards());
        let (shards, are) = (human::counted(all, "shard"), human::are(all));
        let message = format!("{now} of {shards} {are} lost; {}", gone(subject, observed));
        decision.notices.push(Notice::warning(SHARD_LOST, message.trim_end_matches("; ")));
    }
}

/// The missing shards that the trial needs, and the reason for the first.
fn gone(subject: &Subject<'_>, observed: &Observed) -> String {
    let needed = observed.presence.iter().take(subject.shards() as usize).enumerate();
    let gone = needed.filter_map(|(shard, presence)| match presence {
        ShardPresence::Gone { why, .. } | ShardPresence::Leaving { why, .. } => Some(format!("shard {shard}: {why}")),
        // After the start, an absent pod was deleted.
        ShardPresence::Absent { .. } => Some(format!("shard {shard}: its pod was deleted")),
        ShardPresence::Queued => Some(format!("shard {shard}: {QUEUED}")),
        _ => None,
    });
    gone.take(8).collect::<Vec<_>>().join("; ")
}
