//! The document, docs/evidence/clients.md.

use crate::page::{Page, Part};

pub const ITSELF: Part = Part { heading: "A client against itself", target: "bench-aa" };
pub const CLIENTS: Part = Part { heading: "Client libraries against each other", target: "bench-clients" };

pub const PAGE: Page = Page {
    beginning: "\
# Comparisons of client libraries

Can a [comparison](../experiments.md#comparison) of [client libraries](../load.md#client-libraries) be trusted, and what does it say? Each
part names the command that measured it.
",
    parts: &[&ITSELF, &CLIENTS],
};

#[cfg(test)]
mod tests {
    use redisbench_testkit::documents::read;

    use super::*;

    #[test]
    fn the_committed_page_has_these_parts() {
        let page = read("docs/evidence/clients.md");
        assert!(page.starts_with(PAGE.beginning), "{page}");
        let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, [ITSELF.heading, CLIENTS.heading]);
    }
}
