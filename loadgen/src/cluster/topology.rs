use std::net::SocketAddr;

use super::SLOTS;

/// The mark of a slot that no node covers, in [`Topology::slots`].
pub const UNCOVERED: u16 = u16::MAX;

/// Begins the label of a server that listens on a UNIX socket.
pub const UNIX: &str = "unix:";

/// The servers of a target and what each is responsible for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The primaries; of a standalone target the one server. At least one.
    pub nodes: Vec<NodeAddress>,
    /// Per slot the index into `nodes`, or [`UNCOVERED`]. None if standalone.
    pub slots: Option<Box<[u16; SLOTS]>>,
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
