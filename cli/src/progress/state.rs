//! Where a benchmark is, in words.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use redisbench_benchmark::api::load::WarmupEnds;
use redisbench_benchmark::api::status::Phase;
use redisbench_benchmark::api::{RedisBenchmarkSpec, RedisBenchmarkStatus};
use redisbench_benchmark::human;
use redisbench_benchmark::report::conditions::{condition, find};

/// The longest description of a trial, to leave room for the rest of the line.
const SETTING_BYTES: usize = 48;

/// Phase, trial, and time or what is being waited for.
pub fn state(spec: &RedisBenchmarkSpec, status: &RedisBenchmarkStatus, now: Timestamp) -> Vec<String> {
    let mut parts = vec![format!("{:?}", status.phase)];
    let several = status.trial.as_ref().filter(|trial| trial.of > 1 && !status.phase.is_terminal());
    parts.extend(several.map(|trial| {
        let place = human::place(trial.index, spec.search.is_none().then_some(trial.of));
        let setting = trial.setting.iter().map(|setting| human::shorten(setting, SETTING_BYTES));
        std::iter::once(Cow::from(place)).chain(setting).collect::<Vec<_>>().join(": ")
    }));
    let percent = status.progress.as_ref().map_or(0, |progress| progress.percent);
    match status.phase {
        Phase::Running => parts.push(time(spec, status, now).unwrap_or_else(|| format!("{percent} %"))),
        Phase::Pending | Phase::Preparing => {
            let doing = find(status, condition::RECONCILING).filter(|doing| doing.status == "True");
            let counts = status.shards.map(|shards| {
                let (all, are) = (human::counted(shards.desired.into(), "shard"), human::are(shards.desired.into()));
                format!("{} of {all} {are} armed", shards.armed)
            });
            parts.extend(doing.map(|doing| doing.message.clone()).or(counts));
            if percent > 0 {
                parts.push(format!("preload {percent} %"));
            }
        }
        Phase::Suspended | Phase::Collecting | Phase::Succeeded | Phase::Failed | Phase::Aborted => {}
    }
    parts
}

/// Shards that are lost or unreachable.
pub fn troubles(status: &RedisBenchmarkStatus) -> impl Iterator<Item = String> + use<> {
    let shards = status.shards.unwrap_or_default();
    let troubles = [(shards.lost, "lost"), (shards.unreachable, "unreachable")];
    let troubles = troubles.into_iter().filter(|(number, _)| *number > 0);
    troubles.map(move |(number, word)| format!("{number} of {} {word}", human::counted(shards.desired.into(), "shard")))
}

/// The elapsed and the planned time. Only the elapsed one if a number of requests or the last stage ends the run.
fn time(spec: &RedisBenchmarkSpec, status: &RedisBenchmarkStatus, now: Timestamp) -> Option<String> {
    let start = status.trial.as_ref()?.start_at.as_ref()?.0;
    let elapsed = Duration::try_from(now.duration_since(start)).unwrap_or_default();
    let warmup = spec.load.warmup.parse().unwrap_or_default();
    let load = &spec.load;
    let planned = load.duration.as_ref().and_then(|duration| duration.parse().ok()).map(|length| length + warmup);
    let elapsed_text = human::seconds(elapsed);
    // The end is unknown.
    if load.warmup_ends == WarmupEnds::WhenSettled {
        let measuring = status.progress.as_ref().is_some_and(|progress| progress.measuring);
        return Some(if measuring { elapsed_text } else { format!("{elapsed_text}, warming up") });
    }
    if elapsed < warmup {
        return Some(format!("{elapsed_text}, warming up"));
    }
    match planned {
        // The length of a step depends on its rate.
        _ if spec.search.is_some() => None,
        Some(planned) => Some(format!("{elapsed_text} of {}", human::seconds(planned))),
        None if has_unknown_end(spec) => {
            let end = if spec.workload.trace.is_some() { "the recording ends" } else { "aborted" };
            Some(format!("{elapsed_text}, until {end}"))
        }
        None => None,
    }
}

/// Returns whether the load lasts until it is aborted, or until a recording ends whose length only the shards know: it has no percentage.
pub fn has_unknown_end(spec: &RedisBenchmarkSpec) -> bool {
    let load = &spec.load;
    let is_bounded = load.duration.is_some() || load.requests_in_all().is_some() || !load.stages.is_empty();
    !is_bounded && spec.search.is_none()
}
