//! Trials of `workload.preset`: each entry as an ordinary spec, with the keys that it needs.

use std::sync::Arc;

use redisbench_wire::plan::{Bound, Preload, TrialPlan};
use redisbench_wire::rate::CumulativeRate;

use crate::api::keys::KeyPatternSpec;
use crate::api::preset::{Fill, PRESETS, Preset};
use crate::api::workload::{OperationSpec, PreloadMode};
use crate::api::{self, Problem, RedisBenchmarkSpec, Validated, validate};

const FIELD: &str = "spec.workload.preset";

/// Maximum elements written before a trial: it may consume them all, and the target must hold them.
const MOST_ELEMENTS: u64 = 100_000_000;

/// The entry `name` of the preset as trial `trial` of the benchmark `benchmark`.
pub(super) fn trial(
    spec: &RedisBenchmarkSpec,
    benchmark: &str,
    trial: usize,
    name: &str,
) -> Result<Validated, Vec<Problem>> {
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
        let all: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
        let message = format!("is unknown; supported are {}", all.join(", "));
        return Err(vec![Problem::new(FIELD, name, message)]);
    };
    let mut own = spec.clone();
    own.workload.preset.clear();
    let keys = &mut own.workload.keys;
    // Separate keys: no trial finds keys of another.
    keys.prefix = format!("{}{trial}:", keys.prefix);
    let command = preset.command_on_keys(keys.count);
    if preset.has_one_key() {
        (keys.start, keys.count, keys.pattern, keys.tags) = (0, 1, KeyPatternSpec::default(), None);
    }
    own.workload.operations =
        vec![OperationSpec { name: name.replace('_', "-"), weight: 1, rate: None, command, keys: None }];
    own.preload.mode = if preset.fill == Fill::Keys { PreloadMode::FillMissing } else { PreloadMode::None };
    let mut validated = validate(&own, benchmark).map_err(|problems| of_preset(problems, name))?;
    match preset.fill {
        Fill::Nothing | Fill::Keys => {}
        Fill::Elements { count, .. } => Arc::make_mut(&mut validated.plan).preload = elements(preset, count.into()),
        Fill::ElementPerRequest { .. } => {
            let count = requests(&validated.plan).map_err(|message| vec![Problem::new(FIELD, name, message)])?;
            let slow = api::preload_rate(spec, count, &format!("elements of {name}"), "measure fewer requests");
            if let Some(problem) = slow {
                return Err(vec![problem]);
            }
            Arc::make_mut(&mut validated.plan).preload = elements(preset, count);
        }
    }
    Ok(validated)
}

/// Checks that a preset can be searched for its highest rate: each step runs the same trial at another rate.
pub(super) fn searchable(name: Option<&str>) -> Result<(), Vec<Problem>> {
    let preset = name.and_then(|name| PRESETS.iter().find(|preset| preset.name == name));
    match preset.filter(|preset| preset.takes()) {
        None => Ok(()),
        Some(preset) => {
            let message =
                "consumes an element per request, so its steps would need different data: remove it or search";
            Err(vec![Problem::new(FIELD, preset.name, message)])
        }
    }
}

/// The user has not written these operations, so their problems are reported as problems of the preset.
fn of_preset(mut problems: Vec<Problem>, name: &str) -> Vec<Problem> {
    for problem in &mut problems {
        if problem.field.starts_with("spec.workload.operations") {
            FIELD.clone_into(&mut problem.field);
            problem.message = format!("{}: {}", problem.value, problem.message);
            name.clone_into(&mut problem.value);
        }
    }
    problems
}

fn elements(preset: &Preset, count: u64) -> Preload {
    Preload::Elements { count, arguments: preset.fill_arguments() }
}

/// Maximum number of requests of the trial, warm-up included.
fn requests(plan: &TrialPlan) -> Result<u64, String> {
    let unknown = "consumes an element per request, so their number must be known: ";
    let count = match (plan.bound, CumulativeRate::of(plan)) {
        (Bound::Requests { .. }, None) if plan.warmup_nanoseconds > 0 => {
            return Err(format!("{unknown}set load.warmup to 0s, or load.type to OpenLoop"));
        }
        (Bound::Duration { .. }, None) => {
            return Err(format!("{unknown}set load.requests instead of load.duration, or load.type to OpenLoop"));
        }
        (Bound::Requests { count, .. }, _) => count.saturating_add(plan.warmup_requests()),
        (Bound::Duration { nanoseconds }, Some(rate)) => {
            rate.count_before(plan.warmup_nanoseconds.saturating_add(nanoseconds))
        }
    };
    // Random arrivals may exceed their mean.
    let count = count.saturating_add(count / 100).saturating_add(1_000);
    if count > MOST_ELEMENTS {
        return Err(format!("needs {count} elements, the maximum is {MOST_ELEMENTS}: measure fewer requests"));
    }
    Ok(count)
}
