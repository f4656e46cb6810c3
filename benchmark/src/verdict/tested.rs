//! The client under test.

use redisbench_wire::plan::{Client, Library};

use crate::api::Validated;

/// The client under test. The engine is judged as the load generator that it is.
pub(super) fn client(spec: &Validated) -> Option<&Client> {
    spec.plan.client.as_ref().filter(|client| client.library != Library::Engine)
}
