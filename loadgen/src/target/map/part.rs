//! The parts of a cluster's answers: nodes, their addresses, and ranges of slots.

use redis::Value;

use crate::cluster::SLOTS;
use crate::target::client::text;
use crate::target::endpoint::Endpoint;

/// A node as the cluster describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapNode {
    pub id: String,
    /// The address for clients.
    pub endpoint: Endpoint,
    /// True if the node serves: neither failed nor loading its data.
    pub healthy: bool,
}

/// The slots of one primary.
pub(super) struct MapShard {
    /// First and last slot of each range.
    pub(super) ranges: Vec<(usize, usize)>,
    pub(super) primary: MapNode,
    pub(super) replicas: Vec<MapNode>,
}

pub(super) fn range(first: &Value, last: &Value) -> Option<(usize, usize)> {
    let (Value::Int(first), Value::Int(last)) = (first, last) else { return None };
    let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
    (first <= last && last < SLOTS).then_some((first, last))
}

/// A node's address. Nil or empty means the address of the node that answered; "?" means an announced host name that is not set.
pub(super) fn endpoint(host: &Value, port: i64, asked: &Endpoint) -> Option<Endpoint> {
    let host = text(host).filter(|host| !host.is_empty() && *host != "?").unwrap_or_else(|| asked.host());
    Some(Endpoint::new(host, u16::try_from(port).ok()?))
}
