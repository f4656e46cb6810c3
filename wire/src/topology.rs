//! The target's map over a load: what changed in it, and which slots got no answers when.

use serde::{Deserialize, Serialize};

use crate::{bounded, limits};

/// What a shard saw of the target's servers since its load began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyReport {
    /// Primaries that own slots; of a target without slots, servers that take writes.
    pub primaries: u32,
    /// Replicas that can serve.
    pub replicas: u32,
    /// What changed in the map, in the order in which it was seen.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::CHANGES}>")]
    pub changes: Vec<Change>,
    /// How many more there were.
    pub changes_left_out: u64,
    /// When slots got no answers: over the shard's workers, as [`crate::outage::agreed`] has it.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::OUTAGES}>")]
    pub outages: Vec<Outage>,
    /// How many more there were.
    pub outages_left_out: u64,
}

/// Something that changed in the target's map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// When the shard saw it, by its monotonic clock.
    pub at_nanoseconds: u64,
    /// What it is.
    pub what: ChangeKind,
    /// The node, as `host:port`. Of slots that moved, the one that has them now.
    #[serde(deserialize_with = "bounded::name")]
    pub node: String,
    /// Of slots that moved, the node that had them.
    #[serde(default, deserialize_with = "bounded::optional_name")]
    pub from: Option<String>,
    /// The slots that moved, or those that the node owns.
    #[serde(deserialize_with = "bounded::list::<_, _, {limits::RANGES}>")]
    pub slots: Vec<SlotRange>,
}

/// What changed in a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChangeKind {
    /// A node is new, or is well again.
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

/// Slots side by side, the last included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlotRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl SlotRange {
    /// All slots that there are; what a target without slots stands for.
    pub const ALL: Self = Self { first: 0, last: SLOTS - 1 };

    /// How many they are.
    pub fn count(self) -> u64 {
        u64::from(self.last.saturating_sub(self.first)) + 1
    }
}

/// Slots of a Redis Cluster.
pub const SLOTS: u16 = 16_384;

/// The ranges of slots that rise.
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

/// A time in which requests of slots side by side got no successful answer, although some were made. Shorter than
/// [`Self::SHORTEST_NANOSECONDS`] it is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    /// The slots; [`SlotRange::ALL`] of a target without any.
    pub slots: SlotRange,
    /// Whether it is about requests that are led to replicas.
    pub reads: bool,
    /// The node that gave no answers, as `host:port`.
    #[serde(deserialize_with = "bounded::name")]
    pub node: String,
    /// From then on, by the shard's monotonic clock.
    pub from_nanoseconds: u64,
    /// Until then.
    pub until_nanoseconds: u64,
    /// Whether it lasted still when this was told, or when the load ended.
    pub lasting: bool,
}

impl Outage {
    /// What is shorter is told by the latencies.
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
