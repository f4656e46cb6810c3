//! Rules of hash tags. What an operation's keys take from those of the workload is checked in `api/validate/keys.rs`.

use super::super::super::keys;
use super::super::rule::Rule;

const KEYS: &str = "spec.workload.keys";

pub(super) fn all() -> Vec<Rule> {
    vec![
        Rule::new(KEYS, "count", "!has(self.tags) || self.count % self.tags.count == 0", keys::uneven_tags("%s", "%s"))
            .showing(["self.count", "self.tags.count"]),
        Rule::new(KEYS, "prefix", "!has(self.tags) || !self.prefix.contains('{')", keys::NO_BRACE),
        Rule::new(
            KEYS,
            "pattern",
            "!has(self.tags) || (self.pattern.type != 'Partitioned' && !self.pattern.perConnection)",
            keys::NO_PARTS,
        ),
        Rule::new(
            KEYS,
            "tags.hot",
            "!has(self.tags) || !has(self.tags.hot) || self.pattern.type != 'Sequential'",
            keys::IN_TURNS,
        ),
        Rule::new(
            KEYS,
            "tags.hot.count",
            "!has(self.tags) || !has(self.tags.hot) || self.tags.hot.count < self.tags.count",
            "is %s, and must be less than keys.tags.count, which is %s: the other tags take the other requests",
        )
        .showing(["self.tags.hot.count", "self.tags.count"]),
    ]
}
