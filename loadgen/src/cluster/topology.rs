use std::net::SocketAddr;

use super::SLOTS;

/// Marks a slot that no node covers, in [`Topology::slots`].
pub const UNCOVERED: u16 = u16::MAX;

/// Prefix of the label of a server that listens on a UNIX socket.
pub const UNIX: &str = "unix:";

/// The servers of a target and the slots that each serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The servers that get requests: primaries, and replicas if they serve reads; the single server of a standalone target. At least
    /// one.
    pub nodes: Vec<NodeAddress>,
    /// Per slot, the index into `nodes` of its primary, or [`UNCOVERED`]. `None` if standalone.
    pub slots: Option<Box<[u16; SLOTS]>>,
    /// Per slot, the index into `nodes` of the server that gets reads, or [`UNCOVERED`] if there is none now. `None` if primaries serve
    /// reads.
    pub readers: Option<Box<[u16; SLOTS]>>,
    /// Requests are distributed evenly over the slots, whatever their keys.
    pub even: bool,
    /// All servers that the target names, whether or not they get requests. Empty if it names none.
    pub members: Vec<Member>,
}

/// One Redis server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// The node's id in a cluster, otherwise its address.
    pub id: String,
    pub address: SocketAddr,
    /// `host:port` for people. After [`UNIX`], the path of the socket to connect to.
    pub label: String,
}

/// A server known only by its address.
impl From<SocketAddr> for NodeAddress {
    fn from(address: SocketAddr) -> Self {
        let label = address.to_string();
        Self { id: label.clone(), address, label }
    }
}

/// A server as reported by the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// As [`NodeAddress::id`].
    pub id: String,
    /// As [`NodeAddress::label`].
    pub label: String,
    /// True if it accepts writes.
    pub primary: bool,
    /// True if it serves requests according to the target: it has not failed, and is not loading its keys.
    pub healthy: bool,
}

impl Topology {
    /// Servers known only by their addresses. Several share the slots evenly.
    pub fn of(addresses: &[SocketAddr]) -> Self {
        let nodes: Vec<NodeAddress> = addresses.iter().map(|address| (*address).into()).collect();
        if nodes.len() > 1 { Self::sharing(nodes) } else { Self { nodes, ..Self::default() } }
    }

    /// Servers that share the slots evenly, in ranges that follow their order.
    pub fn sharing(nodes: Vec<NodeAddress>) -> Self {
        let owner = |slot: usize| u16::try_from(slot * nodes.len() / SLOTS).unwrap_or(UNCOVERED);
        let slots: Box<[u16]> = (0..SLOTS).map(owner).collect();
        Self { nodes, slots: slots.try_into().ok(), ..Self::default() }
    }

    /// Returns whether a node serves reads only.
    pub fn is_replica(&self, node: usize) -> bool {
        let has = |slots: &Option<Box<[u16; SLOTS]>>| {
            slots.as_ref().is_some_and(|slots| slots.iter().any(|slot| usize::from(*slot) == node))
        };
        has(&self.readers) && !has(&self.slots)
    }

    /// The maps of primaries and of readers, where there are any.
    pub fn maps(&self) -> impl Iterator<Item = &[u16; SLOTS]> {
        self.slots.iter().chain(&self.readers).map(|map| &**map)
    }

    /// The id of the node that owns a slot.
    pub(super) fn owner_of(&self, slot: usize) -> Option<&str> {
        let index = *self.slots.as_ref()?.get(slot)?;
        self.nodes.get(usize::from(index)).map(|node| node.id.as_str())
    }

    /// The number of primaries that own slots, and of replicas that can serve. Without slots, the number of servers that accept writes.
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
