//! The rules themselves.

/// CEL for a list that is set and not empty.
macro_rules! filled {
    ($list:literal) => {
        concat!("(has(", $list, ") && ", $list, ".size() > 0)")
    };
}

/// CEL: every operation has a rate of its own.
macro_rules! all_rated {
    () => {
        concat!(
            "(",
            filled!("self.workload.operations"),
            " && self.workload.operations.all(operation, has(operation.rate)))"
        )
    };
}

mod caching;
mod clients;
mod comparison;
mod key_file;
mod load;
mod nodes;
mod per_connection;
mod preload;
mod search;
mod streams;
mod sweep;
mod tags;
mod targets;
mod thresholds;
mod trace;
mod values;
mod verify;
mod workload;

use super::rule::Rule;

/// Maximum length of a benchmark's name: the names of its Job, Secret and pods begin with it.
pub const NAME_LENGTH: usize = 46;

/// Rules for every evaluator.
pub(super) fn all() -> Vec<Rule> {
    let patterns = ["spec.workload.keys.pattern", "spec.workload.operations.[].keys.pattern"];
    let parts =
        [benchmark(), targets::all(), load::all(), workload::all(), caching::all(), values::all(), verify::all()];
    let parts = parts
        .into_iter()
        .chain([per_connection::all(), preload::all(), tags::all(), nodes::all(), key_file::all(), streams::all()])
        .chain([trace::all()])
        .chain(patterns.map(workload::pattern))
        .chain([sweep::all(), clients::all(), comparison::all(), search::all(), thresholds::all()]);
    parts.flatten().collect()
}

fn benchmark() -> Vec<Rule> {
    vec![
        Rule::new(
            "",
            "metadata.name",
            format!("self.metadata.name.size() <= {NAME_LENGTH}"),
            format!("has %s characters, and may have at most {NAME_LENGTH}: the names of pods begin with it"),
        )
        .showing(["self.metadata.name.size()"]),
        Rule::new(
            "",
            "metadata.name",
            "!self.metadata.name.contains('.')",
            "may have no dots: the host names of pods begin with it",
        ),
        Rule::new(
            "",
            "spec.abort",
            "!has(oldSelf.spec.abort) || !oldSelf.spec.abort || (has(self.spec.abort) && self.spec.abort)",
            "cannot be unset: create another benchmark",
        ),
        // Not with ==, which in kube-cel tells 99 from 99.0.
        Rule::new(
            "spec.measurement",
            "percentiles",
            "self.percentiles.all(percentile, self.percentiles.exists_one(other, other <= percentile && other >= percentile))",
            "one is listed twice: remove one",
        ),
    ]
}
