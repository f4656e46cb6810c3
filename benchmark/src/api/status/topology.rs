//! How the target's servers were laid out, and what became of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The target's servers over the load, as they name one another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyStatus {
    /// Primaries that own slots; of a target that is no Cluster, servers that take writes.
    pub primaries: u32,
    /// Replicas that can serve.
    pub replicas: u32,
    /// What changed in the target's own map since the load began, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub changes: Vec<TopologyChange>,
    /// Times of 10 ms or more in which requests of some slots got no successful answer, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub unavailability: Vec<Unavailability>,
    /// How many entries the lists leave out: the latest changes, and the shortest times. All that is known of them is in
    /// the artifacts.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub left_out: u64,
}

/// A change of the target's map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyChange {
    /// When a shard first saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<MicroTime>,
    /// The same in milliseconds since the start of the measurement; negative during the warm-up.
    pub milliseconds: i64,
    /// What it is.
    pub what: ChangeKind,
    /// The node, as `host:port`. Of slots that moved, the one that has them now.
    #[schemars(length(max = 262))]
    pub node: String,
    /// Of slots that moved, the node that had them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262))]
    pub from: Option<String>,
    /// How many slots moved, or the node owns; of one that is gone, owned before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Which slots, such as `0-5460`; the first ones of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 16)))]
    pub ranges: Vec<String>,
}

/// What changed in a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ChangeKind {
    /// A node is new, or serves again.
    Appeared,
    /// A node is no longer named, or is said to have failed.
    Gone,
    /// A replica is a primary now.
    BecamePrimary,
    /// A primary is a replica now.
    BecameReplica,
    /// Slots have another owner.
    SlotsMoved,
}

/// A time in which requests of some slots got no successful answer, although some were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unavailability {
    /// When it began: when the first request that failed was sent, or the first that could not be sent was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<MicroTime>,
    /// The same in milliseconds since the start of the measurement; negative during the warm-up.
    pub start_milliseconds: i64,
    /// How long it was until the next successful answer.
    pub length_milliseconds: u64,
    /// How many slots; not set where the target is no Cluster, and all of it got no answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Which slots, such as `0-5460`; the first ones of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 16)))]
    pub ranges: Vec<String>,
    /// The node that gave no answers, as `host:port`.
    #[schemars(length(max = 262))]
    pub node: String,
    /// Whether it is about reads alone, which `readFrom` leads to replicas.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    /// Whether it lasted still when the load ended, or does now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
}
