//! Validation of operations with a rate of their own, and of the mixes of stages.

use std::collections::BTreeMap;

use redisbench_wire::limits::{RATE_PER_SECOND, REDRAWN_BITS};
use redisbench_wire::plan::{OperationRate, TrialPlan};
use redisbench_wire::rate::CumulativeRate;

use crate::api::load::StageSpec;
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;
use crate::api::workload::{OperationSpec, WorkloadSpec};

impl WorkloadSpec {
    /// Requests per second of all operations with a rate of their own.
    pub fn own_rates(&self) -> u64 {
        self.operations.iter().filter_map(|operation| operation.rate).fold(0, u64::saturating_add)
    }

    /// The same in a trial with these values of swept fields, which may be such rates.
    pub fn own_rates_with(&self, parameters: &BTreeMap<String, String>) -> u64 {
        let own = |(index, operation): (usize, &OperationSpec)| {
            let swept = parameters.get(&format!("workload.operations[{index}].rate"));
            swept.and_then(|rate| rate.parse().ok()).or(operation.rate)
        };
        self.operations.iter().enumerate().filter_map(own).fold(0, u64::saturating_add)
    }

    /// Returns whether every operation has a rate of its own.
    pub fn has_no_mix(&self) -> bool {
        !self.operations.is_empty() && self.operations.iter().all(|operation| operation.rate.is_some())
    }
}

/// The operations with a rate of their own. Checks that all rates together are possible.
pub(super) fn rates(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) -> Vec<OperationRate> {
    let stages = spec.load.stages.iter().flat_map(|stage| [stage.rate.from, stage.rate.to]);
    let rate = spec.load.open_loop.as_ref().and_then(|open| open.rate);
    problems.extend(too_high(spec, stages.chain(rate).max().unwrap_or_default()));
    let operations = (0..).zip(&spec.workload.operations);
    let rated = operations.filter_map(|(operation, OperationSpec { rate, .. })| Some((operation, (*rate)?)));
    rated.map(|(operation, per_second)| OperationRate { operation, per_second }).collect()
}

/// A problem if the operations' own rates and `highest`, that of the others, are too much together.
pub(super) fn too_high(spec: &RedisBenchmarkSpec, highest: u64) -> Option<Problem> {
    let own = spec.workload.own_rates();
    let all = own.saturating_add(highest);
    (own > 0 && all > RATE_PER_SECOND).then(|| {
        let message =
            format!("requests per second of all operations together are more than {RATE_PER_SECOND}: lower a rate");
        Problem::new("spec.workload.operations", all, message)
    })
}

/// The weights of all operations in each stage; empty if no stage has a mix of its own.
pub(super) fn mixes(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) -> Vec<Vec<u32>> {
    let (stages, operations) = (&spec.load.stages, &spec.workload.operations);
    // A rule refuses a mix without operations.
    if operations.is_empty() || stages.iter().all(|stage| stage.mix.is_empty()) {
        return Vec::new();
    }
    for (index, stage) in stages.iter().enumerate() {
        for (name, weight) in &stage.mix {
            let message = match operations.iter().find(|operation| operation.name == *name) {
                Some(OperationSpec { rate: None, .. }) => continue,
                Some(_) => {
                    "has a rate of its own, so that it is in no mix: remove it here, or remove its rate".to_owned()
                }
                None => {
                    let known: Vec<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
                    format!("is not an operation of the workload; operations: {}", known.join(", "))
                }
            };
            problems.push(Problem::new(format!("spec.load.stages[{index}].mix[{name}]"), weight, message));
        }
    }
    let mixes: Vec<Vec<u32>> = stages.iter().map(|stage| weights(stage, operations)).collect();
    if problems.is_empty() {
        for (index, operation) in operations.iter().enumerate().filter(|(_, operation)| operation.rate.is_none()) {
            if mixes.iter().all(|mix| mix[index] == 0) {
                let message = "is in the mix of no stage: add it to one, or remove the operation";
                problems.push(Problem::new(
                    format!("spec.workload.operations[{index}].name"),
                    &operation.name,
                    message,
                ));
            }
        }
    }
    mixes
}

fn weights(stage: &StageSpec, operations: &[OperationSpec]) -> Vec<u32> {
    let weight = |operation: &OperationSpec| match (operation.rate, stage.mix.is_empty()) {
        (Some(_), _) => 0,
        (None, true) => operation.weight,
        (None, false) => stage.mix.get(&operation.name).copied().unwrap_or(0),
    };
    operations.iter().map(weight).collect()
}

/// The problem of a plan with too many requests to draw their keys again.
pub(super) fn check_numbers(plan: &TrialPlan) -> Option<Problem> {
    let (numbers, most) = (CumulativeRate::numbers(plan), 1_u64 << REDRAWN_BITS);
    let per_shard = plan.nodes_per_shard.filter(|_| plan.streams() > 1 && numbers >= most)?;
    let message = format!(
        "can number fewer than {most} requests, and with rates of operations or mixes of stages these are {numbers}: lower the \
         rate or the length of the load"
    );
    Some(Problem::new("spec.load.nodesPerShard", per_shard, message))
}

#[cfg(test)]
mod tests {
    use redisbench_wire::plan::OperationRate;
    use serde_json::json;

    use crate::sample::checked;

    #[test]
    fn rates_and_mixes_become_those_of_the_plan() {
        let operations = json!([
            {"name": "set", "command": "SET __key__ __data__"},
            {"name": "scan", "command": "SCAN 0", "rate": 50},
            {"name": "get", "weight": 9, "command": "GET __key__"},
        ]);
        let rate = json!({"from": 1000, "to": 1000});
        let stages = json!([
            {"name": "write", "duration": "5s", "rate": rate, "mix": {"set": 1}},
            {"name": "read", "duration": "5s", "rate": rate, "mix": {"get": 95, "set": 5}},
            {"name": "mixed", "duration": "5s", "rate": rate},
        ]);
        let load = json!({"type": "OpenLoop", "duration": null, "stages": stages});
        let plan = checked(&json!({"workload": {"operations": operations}, "load": load})).plan;
        let options = &plan.workload.options;
        assert_eq!(options.rates, [OperationRate { operation: 1, per_second: 50 }]);
        assert_eq!(options.mixes, [[1, 0, 0], [5, 0, 95], [1, 0, 9]]);
    }

    #[test]
    fn tenants_need_no_other_rate() {
        let operations =
            json!([{"name": "a", "command": "GET a", "rate": 9}, {"name": "b", "command": "GET b", "rate": 1}]);
        let plan = checked(&json!({"workload": {"operations": operations}, "load": {"type": "OpenLoop"}})).plan;
        assert_eq!((plan.workload.own_rates_per_second(), plan.mix_streams(), plan.streams()), (10, 0, 2));
        assert!(plan.workload.options.mixes.is_empty());
    }
}
