//! Rules of `workload.values`.

use super::super::forms::union;
use super::super::rule::Rule;

pub(super) fn all() -> Vec<Rule> {
    const SIZE: &str = "spec.workload.values.size";
    let members: [(&str, &[&str], &str); 2] =
        [("fixed", &["Fixed"], "fixed: {bytes: 100}"), ("range", &["Range"], "range: {minBytes: 10, maxBytes: 1000}")];
    let mut rules = union(SIZE, "type", &members);
    let file = ("file", &["File"][..], "file: {configMapRef: {name: products, key: values.txt}}");
    rules.extend(union("spec.workload.values.content", "type", &[file]));
    rules.push(Rule::new(
        "spec.workload.values",
        "size",
        "self.content.type != 'File' || (self.size.type == 'Fixed' && has(self.size.fixed) && self.size.fixed.bytes == 100)",
        "must not be set with content.type File, whose lines have lengths of their own: remove it",
    ));
    rules.extend([
        Rule::new(
            SIZE,
            "weighted",
            concat!("self.type == 'Weighted' || !", filled!("self.weighted")),
            "is only valid for type Weighted: remove it, or set type to Weighted",
        ),
        Rule::new(
            SIZE,
            "weighted",
            concat!("self.type != 'Weighted' || ", filled!("self.weighted")),
            "must be set for type Weighted, such as weighted: [{bytes: 100, weight: 9}, {bytes: 10000, weight: 1}]",
        ),
        Rule::new(
            SIZE,
            "range.maxBytes",
            "!has(self.range) || self.range.minBytes <= self.range.maxBytes",
            "is %s, and must be at least minBytes, which is %s",
        )
        .showing(["self.range.maxBytes", "self.range.minBytes"]),
    ]);
    rules
}
