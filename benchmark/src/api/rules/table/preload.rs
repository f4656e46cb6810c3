//! Rules of `preload.data`.

use super::super::rule::{Rule, SPEC};

pub(super) fn all() -> Vec<Rule> {
    vec![
        Rule::new(
            "spec.preload.data.[]",
            "elements",
            "self.type != 'String' || self.elements == 1",
            "is %s, and must be 1 for type String: remove it, or set type to List",
        )
        .showing(["self.elements"]),
        Rule::new(
            SPEC,
            "preload.data",
            concat!("!", filled!("self.preload.data"), " || self.verify.mode == 'None'"),
            "must be empty with verify, which compares replies with the load's own writes: remove it, or set verify.mode to None",
        ),
        Rule::new(
            SPEC,
            "preload.data",
            concat!("!", filled!("self.preload.data"), " || !", filled!("self.workload.preset")),
            "must be empty with workload.preset, which preloads what each of its trials needs",
        ),
    ]
}
