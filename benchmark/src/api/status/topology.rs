//! The layout of the target's servers, its changes, and outages.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use redisbench_wire::topology::ChangeKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The target's servers over the load, as they report one another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyStatus {
    /// Primaries that own slots; without a Cluster, servers that accept writes.
    pub primaries: u32,
    /// Replicas that can serve.
    pub replicas: u32,
    /// Changes of the target's own map since the load began, ordered by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub changes: Vec<TopologyChange>,
    /// Times of 10 ms or more in which requests to some slots got no successful reply, ordered by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub unavailability: Vec<Unavailability>,
    /// The number of entries omitted from the lists: the latest changes and the shortest times. The artifacts have all that is known.
    #[serde(default, skip_serializing_if = "crate::api::fields::is_zero")]
    pub left_out: u64,
}

/// A change of the target's map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyChange {
    /// The time when a shard first saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<MicroTime>,
    /// `at` in milliseconds after the start of the measurement; negative during the warm-up.
    pub milliseconds: i64,
    /// The kind of change.
    pub what: ChangeKind,
    /// The node, as `host:port`. For moved slots, their new owner.
    #[schemars(length(max = 262))]
    pub node: String,
    /// For moved slots, their previous owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262))]
    pub from: Option<String>,
    /// The number of slots that moved, or that the node owns, or owned before it was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// The slots, such as `0-5460`; the first ranges of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 16)))]
    pub ranges: Vec<String>,
}

/// A time in which requests to some slots got no successful reply, although some were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unavailability {
    /// The beginning: the send of the first failed request, or the due time of the first that could not be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<MicroTime>,
    /// `startAt` in milliseconds after the start of the measurement; negative during the warm-up.
    pub start_milliseconds: i64,
    /// The time until the next successful reply.
    pub length_milliseconds: u64,
    /// The number of slots. Not set without a Cluster: the whole target was unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// The slots, such as `0-5460`; the first ranges of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 16)))]
    pub ranges: Vec<String>,
    /// The node that did not reply, as `host:port`.
    #[schemars(length(max = 262))]
    pub node: String,
    /// True if it concerns only reads, which `readFrom` sends to replicas.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    /// True if it continued at the end of the load, or continues now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
}
