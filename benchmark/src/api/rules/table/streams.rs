//! Rules of operations with a rate of their own, and of the mixes of stages.

use super::super::forms::unsupported;
use super::super::rule::{Rule, SPEC};

/// Some operation has a rate of its own.
macro_rules! some_rated {
    () => {
        "(has(self.workload.operations) && self.workload.operations.exists(operation, has(operation.rate)))"
    };
}

pub(super) fn all() -> Vec<Rule> {
    let by_number = [
        ("load.requests", "has(self.load.requests)"),
        ("load.requestsPerConnection", "has(self.load.requestsPerConnection)"),
    ];
    let of_a_mix = [
        ("load.openLoop.rate", "has(self.load.openLoop) && has(self.load.openLoop.rate)"),
        ("load.stages", filled!("self.load.stages")),
        ("search", "has(self.search)"),
    ];
    let lists = [
        unsupported(
            "workload.operations",
            some_rated!(),
            "have an entry with rate, whose number of requests follows from the length of the load, and do not support",
            &by_number,
            "set load.duration instead",
        ),
        unsupported(
            "workload.operations",
            all_rated!(),
            "each have a rate of their own, and leave no operation for",
            &of_a_mix,
            "remove these, or a rate",
        ),
    ];
    let others = [
        Rule::new(
            SPEC,
            "workload.operations",
            concat!("self.load.type == 'OpenLoop' || !", some_rated!()),
            "has an entry with rate, which is only valid for load.type OpenLoop: remove rate, or set type to OpenLoop",
        ),
        Rule::new(
            "spec.workload.operations.[]",
            "weight",
            "!has(self.rate) || self.weight == 1",
            "is %s, and must not be set with rate, which takes the operation out of the mix: remove one of them",
        )
        .showing(["self.weight"]),
        Rule::new(
            SPEC,
            "measurement.breakdown",
            concat!("!has(self.search) || 'Operation' in self.measurement.breakdown || !", some_rated!()),
            "must have Operation with search and operations that have a rate: the objective is that of the others",
        ),
        Rule::new(
            SPEC,
            "workload.mix",
            "self.workload.mix == 'Random' || !has(self.load.stages) || !self.load.stages.exists(stage, has(stage.mix))",
            "must be Random with load.stages[].mix, because a sequence has one mix: set it to Random, or remove mix from the stages",
        ),
        Rule::new(
            SPEC,
            "load.stages",
            concat!(
                "!has(self.load.stages) || !self.load.stages.exists(stage, has(stage.mix)) || !has(self.workload.trace) && !",
                filled!("self.workload.preset")
            ),
            "has a mix, which weighs workload.operations, with workload.preset or trace: remove mix from the stages, or set operations \
             instead",
        ),
    ];
    lists.into_iter().chain(others).collect()
}
