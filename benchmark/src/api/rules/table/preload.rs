//! Rules of `preload.data`.

use super::super::rule::Rule;

pub(super) fn all() -> Vec<Rule> {
    vec![
        Rule::new(
            "spec.preload.data.[]",
            "elements",
            "self.type != 'String' || self.elements == 1",
            "is %s, and must be 1 for type String: remove it, or set type to List",
        )
        .showing(["self.elements"]),
    ]
}
