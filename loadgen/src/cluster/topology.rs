use std::net::SocketAddr;

use super::SLOTS;

/// The mark of a slot that no node covers, in [`Topology::slots`].
pub const UNCOVERED: u16 = u16::MAX;

/// Begins the label of a server that listens on a UNIX socket.
pub const UNIX: &str = "unix:";

/// The servers of a target and what each is responsible for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The servers that requests are led to: primaries, and replicas where they are read from; of a standalone target
    /// the one server. At least one.
    pub nodes: Vec<NodeAddress>,
    /// Per slot the index into `nodes` of its primary, or [`UNCOVERED`]. None if standalone.
    pub slots: Option<Box<[u16; SLOTS]>>,
    /// Per slot the index into `nodes` of the server that reads are led to, or [`UNCOVERED`] where there is none now. None
    /// if reads go to primaries.
    pub readers: Option<Box<[u16; SLOTS]>>,
    /// All servers that the target names, whether requests are led to them or not. Empty if it names none.
    pub members: Vec<Member>,
}

/// One Redis server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// The node's id in a cluster, else its address.
    pub id: String,
    /// Where to connect.
    pub address: SocketAddr,
    /// `host:port` for people. After [`UNIX`] the path of a socket, which then is where to connect.
    pub label: String,
}

/// A server as its target speaks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// As [`NodeAddress::id`].
    pub id: String,
    /// As [`NodeAddress::label`].
    pub label: String,
    /// Whether it takes writes.
    pub primary: bool,
    /// Whether it serves, by the target's own word: it has not failed, and is not loading its keys.
    pub healthy: bool,
}

impl Topology {
    /// Whether a node is there to be read from only.
    pub fn is_replica(&self, node: usize) -> bool {
        let has = |slots: &Option<Box<[u16; SLOTS]>>| {
            slots.as_ref().is_some_and(|slots| slots.iter().any(|slot| usize::from(*slot) == node))
        };
        has(&self.readers) && !has(&self.slots)
    }

    /// The id of the node that owns a slot.
    pub(super) fn owner_of(&self, slot: usize) -> Option<&str> {
        let index = *self.slots.as_ref()?.get(slot)?;
        self.nodes.get(usize::from(index)).map(|node| node.id.as_str())
    }

    /// How many primaries own slots, and how many replicas can serve. Without slots, how many take writes.
    pub fn counts(&self) -> (usize, usize) {
        let replicas = self.members.iter().filter(|member| !member.primary && member.healthy).count();
        let primaries = match &self.slots {
            None if self.members.is_empty() => self.nodes.len(),
            None => self.members.iter().filter(|member| member.primary).count(),
            Some(slots) => {
                (0..self.nodes.len()).filter(|index| slots.iter().any(|slot| usize::from(*slot) == *index)).count()
            }
        };
        (primaries, replicas)
    }
}
