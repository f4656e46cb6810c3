//! Changes of the target's topology during a load, and outages of its slots.

use serde::{Deserialize, Serialize};

use crate::{bounded, limits};

/// Topology changes and outages that a shard observed since its load began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyReport {
    /// Primaries that own slots. For a target without slots, servers that accept writes.
    pub primaries: u32,
    /// Replicas that can serve.
    pub replicas: u32,
    /// Changes of the topology, in the order in which they were observed.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::CHANGES}>")]
    pub changes: Vec<Change>,
    /// The number of changes beyond the limit.
    pub changes_left_out: u64,
    /// Outages, agreed between the shard's workers by [`crate::outage::agreed`].
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::OUTAGES}>")]
    pub outages: Vec<Outage>,
    /// The number of outages beyond the limit.
    pub outages_left_out: u64,
}

/// A change of the target's topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The time at which the shard observed it, on its monotonic clock.
    pub at_nanoseconds: u64,
    /// The kind of change.
    pub what: ChangeKind,
    /// The node, as `host:port`. For moved slots, the new owner.
    #[serde(deserialize_with = "bounded::name")]
    pub node: String,
    /// For moved slots, the previous owner.
    #[serde(default, deserialize_with = "bounded::optional_name")]
    pub from: Option<String>,
    /// The slots that moved, or that the node owns.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::RANGES}>")]
    pub slots: Vec<SlotRange>,
}

/// The kind of a topology change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ChangeKind {
    /// A node is new, or has recovered.
    Appeared,
    /// A node is no longer listed, or is listed as failed.
    Gone,
    /// A replica became a primary.
    BecamePrimary,
    /// A primary became a replica.
    BecameReplica,
    /// Slots have another owner.
    SlotsMoved,
}

/// A range of consecutive slots, the last included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlotRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl SlotRange {
    /// All slots. Also stands for a target without slots.
    pub const ALL: Self = Self { first: 0, last: SLOTS - 1 };

    /// The number of slots.
    pub fn count(self) -> u64 {
        u64::from(self.last.saturating_sub(self.first)) + 1
    }
}

/// The number of slots of a Redis Cluster.
pub const SLOTS: u16 = 16_384;

/// Combines ascending slots into ranges.
pub fn ranges(slots: impl IntoIterator<Item = u16>) -> Vec<SlotRange> {
    let mut ranges: Vec<SlotRange> = Vec::new();
    for slot in slots {
        match ranges.last_mut() {
            Some(range) if range.last.checked_add(1) == Some(slot) => range.last = slot,
            _ => ranges.push(SlotRange { first: slot, last: slot }),
        }
    }
    ranges
}

/// A time in which requests to a range of slots were made and none succeeded. At least [`Self::SHORTEST_NANOSECONDS`] long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    /// The slots. [`SlotRange::ALL`] for a target without slots.
    pub slots: SlotRange,
    /// True for reads that are sent to replicas.
    pub reads: bool,
    /// The node that did not answer, as `host:port`.
    #[serde(deserialize_with = "bounded::name")]
    pub node: String,
    /// Its beginning, on the shard's monotonic clock.
    pub from_nanoseconds: u64,
    /// Its end, on the shard's monotonic clock.
    pub until_nanoseconds: u64,
    /// True if it was still going on when the snapshot was taken, or when the load ended.
    pub lasting: bool,
}

impl Outage {
    /// Shorter outages are not reported; they show in the latencies.
    pub const SHORTEST_NANOSECONDS: u64 = 10_000_000;

    /// Its length.
    pub fn nanoseconds(&self) -> u64 {
        self.until_nanoseconds.saturating_sub(self.from_nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_side_by_side_are_a_range() {
        assert_eq!(ranges([]), []);
        let expected = [(3, 5), (7, 7), (16_383, 16_383)].map(|(first, last)| SlotRange { first, last });
        assert_eq!(ranges([3, 4, 5, 7, 16_383]), expected);
        assert_eq!(expected.map(SlotRange::count), [3, 1, 1]);
    }
}
