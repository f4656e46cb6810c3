//! What is done around, beside and before the requests of a workload. Nothing of it by default.

use serde::{Deserialize, Serialize};

/// What is done around, beside and before the requests of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadOptions {
    /// Whether commands may be sent that destroy what others keep on the server, or get in their way.
    pub allow_destructive: bool,
}
