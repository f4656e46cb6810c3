//! A node's view of its cluster: the owners of slots and their replicas. Pure.

mod part;
mod shards;
mod slots;

use redis::Value;

use self::part::MapShard;
use super::endpoint::Endpoint;
use crate::cluster::{SLOTS, UNCOVERED};

pub use self::part::MapNode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMap {
    /// Nodes with slots, in the order of their first slot.
    pub primaries: Vec<MapNode>,
    /// For each slot an index into `primaries`, or [`UNCOVERED`].
    pub slots: Box<[u16; SLOTS]>,
    /// Replicas, each with the index of its primary.
    pub replicas: Vec<(usize, MapNode)>,
    /// Nodes without slots: primaries (true) and their replicas.
    pub idle: Vec<(bool, MapNode)>,
}

impl ClusterMap {
    /// Reads the answer of `asked` to `CLUSTER SHARDS`. A node that does not know its own address omits it. `tls` selects the node's TLS
    /// port.
    pub fn of_shards(answer: &Value, asked: &Endpoint, tls: bool) -> Option<Self> {
        Self::of(shards::read(answer, asked, tls)?)
    }

    /// Reads the answer to `CLUSTER SLOTS`, which omits primaries without slots and nodes that do not serve.
    pub fn of_slots(answer: &Value, asked: &Endpoint) -> Option<Self> {
        Self::of(slots::read(answer, asked)?)
    }

    /// The number of slots without an owner.
    pub fn uncovered(&self) -> usize {
        self.slots.iter().filter(|slot| **slot == UNCOVERED).count()
    }

    fn of(mut parts: Vec<MapShard>) -> Option<Self> {
        let slots = vec![UNCOVERED; SLOTS].into_boxed_slice().try_into().ok()?;
        let mut map = Self { primaries: Vec::new(), slots, replicas: Vec::new(), idle: Vec::new() };
        parts.sort_by_key(|part| part.ranges.iter().map(|(first, _)| *first).min().unwrap_or(SLOTS));
        for MapShard { ranges, primary, replicas } in parts {
            if ranges.is_empty() {
                map.idle.push((true, primary));
                map.idle.extend(replicas.into_iter().map(|replica| (false, replica)));
                continue;
            }
            let known = map.primaries.iter().position(|present| present.id == primary.id);
            let index = known.unwrap_or_else(|| {
                map.primaries.push(primary);
                map.primaries.len() - 1
            });
            for (first, last) in ranges {
                // A cluster has at most as many primaries as slots.
                map.slots.get_mut(first..=last)?.fill(u16::try_from(index).ok()?);
            }
            for replica in replicas {
                if !map.replicas.iter().any(|(_, known)| known.id == replica.id) {
                    map.replicas.push((index, replica));
                }
            }
        }
        Some(map)
    }
}

#[cfg(test)]
mod testing {
    use super::*;

    pub fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    pub fn asked() -> Endpoint {
        Endpoint::new("seed", 7000)
    }
}
