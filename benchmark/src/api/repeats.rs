//! `spec.repeats`: several runs of each trial. The doc comments are the text of `kubectl explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;
use super::fields::default_one;

/// Repeats of all trials: a single run proves little.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepeatsSpec {
    /// Number of runs of each trial, 1 to 50. `status.repeats` reports their spread. Default 1.
    #[serde(default = "default_one")]
    #[schemars(range(min = 1, max = 50))]
    pub count: u32,
    /// Time without connections to the target before each trial but the first, 0s to 1h. It also applies to the trials of a sweep and of
    /// `workload.preset`, and to the steps of a search. Default 0s: the next trial starts once all connections are closed.
    #[serde(default = "default_interval")]
    pub interval: GoDuration,
}

impl Default for RepeatsSpec {
    fn default() -> Self {
        Self { count: default_one(), interval: default_interval() }
    }
}

fn default_interval() -> GoDuration {
    GoDuration::new("0s")
}
