//! The probe: a short second load that tells what limited the first.

use redisbench_wire::plan;

use crate::api::reads::only_reads;
use crate::api::spec::RedisBenchmarkSpec;

/// Long enough for a rate, and short beside any trial.
const PROBE_NANOSECONDS: u64 = 2_000_000_000;

/// Length of the probe; 0 if none may run. It must stay within the load that `spec` asks for: it would exceed a number of requests, write
/// to values that `verify` follows, and have no single rate to keep in a ramp.
pub(super) fn nanoseconds(spec: &RedisBenchmarkSpec, workload: &plan::Workload, load: &plan::Load) -> u64 {
    let (open, one_rate) = match load {
        plan::Load::ClosedLoop => (false, true),
        plan::Load::OpenLoop { stages, .. } => (true, stages.is_empty()),
        plan::Load::Recorded { .. } => (true, false),
    };
    let reads = workload.operations.iter().all(|operation| only_reads(&operation.arguments));
    let harmless = !open && reads && workload.options.fills.is_empty() && !workload.options.allow_destructive;
    let least = u64::from(spec.shards.count) * 2;
    let halves = u64::from(spec.load.connections) >= least
        && spec.load.concurrency().is_none_or(|callers| u64::from(callers) >= least);
    let possible = spec.load.requests_in_all().is_none()
        && spec.workload.trace.is_none()
        && one_rate
        && halves
        && workload.followed(spec.verify.mode).is_none();
    if possible && spec.measurement.probe.unwrap_or(harmless) { PROBE_NANOSECONDS } else { 0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::sample::checked;

    /// Returns whether a probe may run with `measurement.probe` unset, true and false, if `change` is merged into a closed loop of 8
    /// connections.
    fn probed(change: &serde_json::Value) -> [bool; 3] {
        [json!({}), json!({"probe": true}), json!({"probe": false})].map(|measurement| {
            let mut change = change.clone();
            change["measurement"] = measurement;
            if change["load"]["connections"].is_null() {
                change["load"]["connections"] = 8.into();
            }
            checked(&change).plan.measurement.probe_nanoseconds > 0
        })
    }

    #[test]
    fn only_harmless_loads_are_probed_by_default() {
        assert_eq!(probed(&json!({})), [true, true, false]);
        let open = json!({"load": {"type": "OpenLoop", "openLoop": {"rate": 200}}});
        assert_eq!(probed(&open), [false, true, false]);
        for command in ["SET __key__ __data__", "EVAL return(1) 0", "GETEX __key__ EX 9"] {
            let operations = json!([{"name": "get", "command": "GET __key__"}, {"name": "other", "command": command}]);
            assert_eq!(probed(&json!({"workload": {"operations": operations}})), [false, true, false], "{command}");
        }
        assert_eq!(probed(&json!({"workload": {"onMiss": "Fill"}})), [false, true, false]);
        assert_eq!(probed(&json!({"safety": {"allowDestructive": true}})), [false, true, false]);
    }

    #[test]
    fn a_probe_that_would_exceed_the_load_is_never_run() {
        let stages = json!([{"duration": "10s", "rate": {"from": 100, "to": 200}}]);
        for change in [
            json!({"load": {"requests": 1800, "duration": null}}),
            json!({"load": {"type": "OpenLoop", "stages": stages, "duration": null}}),
            json!({"load": {"connections": 1}}),
            json!({"load": {"closedLoop": {"concurrency": 1}}}),
            // 8 connections for 5 shards.
            json!({"shards": {"count": 5}}),
        ] {
            assert_eq!(probed(&change), [false; 3], "{change}");
        }
    }
}
