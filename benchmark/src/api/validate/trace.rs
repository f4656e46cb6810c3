//! Validation of `spec.workload.trace`.

use redisbench_wire::plan;

use crate::api::keys::millionths;
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;

/// The recording to replay.
pub(super) fn check(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) -> Option<plan::Trace> {
    spec.workload.trace.as_ref()?;
    let load = &spec.load;
    let repeats = load.duration.is_some() || !load.stages.is_empty();
    if !repeats && load.warmup.parse().is_ok_and(|warmup| !warmup.is_zero()) {
        let message = "must be 0s for a trace that is sent once, because its first commands would not be measured: set it to 0s, \
                       or set load.duration, during which the trace repeats";
        problems.push(Problem::new("spec.load.warmup", &load.warmup, message));
    }
    Some(plan::Trace { repeats, recorded: None })
}

/// The speed of recorded due times in millionths; none if they are not used.
pub(super) fn pace(spec: &RedisBenchmarkSpec) -> Option<u32> {
    let pace = spec.workload.trace.as_ref()?.pace.as_deref()?;
    // The schema has checked it.
    Some(millionths(pace).unwrap_or(1_000_000))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sample::{checked, object, problems};

    fn change(load: &Value, pace: Option<&str>) -> Value {
        let trace = json!({"configMapRef": {"name": "monday", "key": "monitor.txt"}, "pace": pace});
        json!({"workload": {"operations": null, "trace": trace}, "load": load})
    }

    #[test]
    fn a_recording_is_sent_once_or_until_the_load_ends() {
        let once = json!({"type": "OpenLoop", "duration": null, "warmup": "0s"});
        let plan = checked(&change(&once, Some("2.5"))).plan;
        assert_eq!(plan.trace, Some(plan::Trace { repeats: false, recorded: None }));
        let pace_millionths = 2_500_000;
        let unsent_after_nanoseconds = 10_000_000_000;
        let paced = plan::Load::Recorded { pace_millionths, pacing_grid_nanoseconds: 0, unsent_after_nanoseconds };
        assert_eq!((&plan.load, plan.operation_names()), (&paced, vec!["trace"]));
        let lasting = json!({"type": "OpenLoop", "openLoop": {"rate": 500}, "duration": "10s", "warmup": "2s"});
        let plan = checked(&change(&lasting, None)).plan;
        assert_eq!(plan.trace, Some(plan::Trace { repeats: true, recorded: None }));
        assert!(matches!(plan.load, plan::Load::OpenLoop { rate_per_second: 500, .. }), "{:?}", plan.load);
        assert_eq!((plan.workload.has_mix(), plan.streams()), (true, 1), "the rate is that of its commands");
    }

    #[test]
    fn a_warm_up_would_take_commands_that_are_sent_once() {
        let warm = json!({"type": "ClosedLoop", "duration": null, "warmup": "2s"});
        let found = problems(object(), &change(&warm, None));
        assert!(found.len() == 1 && found[0].starts_with("spec.load.warmup: 2s: must be 0s for a trace"), "{found:?}");
    }
}
