//! Rules of `sweep`, and of the number of trials.

use super::super::super::sweep::{MOST_SWEPT, MOST_TRIALS};
use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    let presets = concat!("(", filled!("self.workload.preset"), " ? self.workload.preset.size() : 1)");
    let of_sweep =
        |index: u8| format!("(has(self.sweep) && self.sweep.size() > {index} ? self.sweep[{index}].values.size() : 1)");
    let cells = [of_sweep(0), of_sweep(1), of_sweep(2)].join(" * ");
    let subjects =
        "(has(self.load.clients) && self.load.clients.size() > 1 ? self.load.clients.size() : self.targets.size())";
    let trials = format!("self.repeats.count * {subjects} * {presets} * {cells}");
    let fields = "self.sweep.map(entry, 1 + (has(entry.with) ? entry.with.size() : 0)).sum()";
    let same_length = "other.values.size() == self.values.size()";
    vec![
        Rule::new(
            "spec.sweep.[]",
            "with",
            format!("!has(self.with) || self.with.all(other, {same_length})"),
            "must each have %s values, one for each of the first field, because they change together; one has %s: add or \
             remove values",
        )
        .showing([
            "self.values.size()",
            &format!("self.with.filter(other, !({same_length}))[0].values.size()"),
        ]),
        Rule::new(
            SPEC,
            "sweep",
            format!("!has(self.sweep) || {fields} <= {MOST_SWEPT}"),
            format!("sweeps %s fields, those of with included, the maximum is {MOST_SWEPT}: remove some"),
        )
        .showing([fields]),
        Rule::new(
            SPEC,
            "",
            format!("{trials} <= {MOST_TRIALS}"),
            format!(
                "sweep x targets or clients x workload.preset x repeats.count make %s trials, the maximum is {MOST_TRIALS}: remove \
                 values, or lower repeats.count"
            ),
        )
        .showing([&trials]),
    ]
}
