//! Settings that set trials and cells apart from each other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The setting of a trial, or of a cell of trials that repeat one another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// The entry of `workload.preset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub preset: Option<String>,
    /// The target, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub target: Option<String>,
    /// The client, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub client: Option<String>,
    /// The fields of `spec.sweep` and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 4))]
    pub parameters: BTreeMap<String, String>,
}

impl Setting {
    /// The subject of a comparison: the client if there are several, otherwise the target.
    pub fn subject(&self) -> Option<&str> {
        self.client.as_deref().or(self.target.as_deref())
    }

    /// Its parts for people, with the repeat from 0. `name` turns the path of a swept field into its name.
    pub fn parts<'a>(&'a self, repeat: Option<u32>, name: impl Fn(&'a str) -> &'a str) -> Vec<String> {
        let parameters = self.parameters.iter().map(|(field, value)| format!("{}={value}", name(field)));
        let repeat = repeat.map(|repeat| format!("repeat {}", repeat + 1));
        self.target.iter().chain(&self.client).chain(&self.preset).cloned().chain(parameters).chain(repeat).collect()
    }
}
