//! The document, docs/evidence/seeds.md.

use crate::page::{Page, Part};

const TARGET: &str = "bench-seeds";

pub const RATES: Part = Part { heading: "redis-client", target: TARGET };
pub const FRED: Part = Part { heading: "fred", target: TARGET };
pub const PROXY: Part = Part { heading: "RedisHappy", target: TARGET };

pub const PAGE: Page = Page {
    beginning: "\
# Tables of other benchmarks

The files of `examples/seeds` repeat benchmarks from the documents of five tools. Three of those documents have tables of results. Here
are their figures beside those of one machine. Their machines had 4 to 32 processors, so compare ratios, not rates. Runs are shortened so
that all take half an hour together; each part lists how.
",
    parts: &[&RATES, &FRED, &PROXY],
};
