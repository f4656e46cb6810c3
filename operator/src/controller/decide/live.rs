//! What is told of a run that is going on.

use redisbench_benchmark::api::RedisBenchmarkStatus;
use redisbench_benchmark::api::status::Phase;
use redisbench_benchmark::conductor::ShardPresence;

use super::{Decision, Notice, Observed, Subject};

/// The start, and shards that were lost since the status was written.
pub(super) fn notices(subject: &Subject<'_>, observed: &Observed, decision: &mut Decision) {
    let (old, new) = (subject.status, &decision.status);
    // Who took over while results were collected may find itself running again: that is no start.
    if new.phase == Phase::Running && old.phase == Phase::Preparing {
        let attempt = new.trial.as_ref().map_or(1, |trial| trial.attempt);
        decision.notices.push(Notice::normal("Started", format!("attempt {attempt}: all shards start together")));
    }
    let lost = |status: &RedisBenchmarkStatus| status.shards.map_or(0, |shards| shards.lost);
    if lost(new) > lost(old) {
        let gone: Vec<String> = observed
            .presence
            .iter()
            .enumerate()
            .filter_map(|(shard, presence)| match presence {
                ShardPresence::Gone { why, .. } => Some(format!("shard {shard}: {why}")),
                // After the start, a pod that is not there is one that was deleted.
                ShardPresence::Absent { .. } => Some(format!("shard {shard}: its pod was deleted")),
                _ => None,
            })
            .take(8)
            .collect();
        let message = format!("{} of {} shards are lost; {}", lost(new), subject.spec.shards.count, gone.join("; "));
        decision.notices.push(Notice::warning("ShardLost", message.trim_end_matches("; ")));
    }
}
