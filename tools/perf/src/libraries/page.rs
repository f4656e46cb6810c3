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
