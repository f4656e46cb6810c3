//! Where requests go: the servers, the slots that each serves, and the requests that wait for each.

mod outages;
mod resends;
mod unanswered;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use redisbench_wire::limits;

use super::kind::Kind;
use super::load::Load;
use super::own::OwnNodes;
use super::pipeline::{Class, Hops, Request, Waiting};
use crate::cluster::{NodeAddress, SLOTS, Topology, UNCOVERED};
use crate::schedule::Seat;
use outages::Outages;
use resends::{Resends, jittered};

/// The first pause of a request, in nanoseconds, before jitter. Each further pause is twice as long.
const FIRST_PAUSE: u64 = 10_000_000;

/// A server and the requests that wait for it.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own about the server")]
#[derive(Debug)]
pub(super) struct Node {
    pub server: NodeAddress,
    /// Requests to be sent again after a redirect or a pause, ordered by due time. They are sent before all others.
    pub resends: VecDeque<Resend>,
    /// The time at which the next of them may be sent.
    turns: Resends,
    /// Requests that found no room.
    pub waiting: VecDeque<Waiting>,
    /// No longer part of the target.
    pub retired: bool,
    /// Serves reads only.
    pub replica: bool,
    /// Has slots that the shard loads, or was redirected to.
    pub used: bool,
    /// The time of its last reply without an error in this load; 0 if never.
    answered: u64,
    /// A request failed there and it has not replied since; see [`outages`].
    pub out: bool,
}

/// A request to be sent again, to the server that its slot has now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resend {
    pub request: Request,
    /// The beginning of its wait.
    pub since: u64,
    /// True if ASKING precedes it.
    pub asking: bool,
}

impl Node {
    fn of(server: &NodeAddress, turns: Resends) -> Self {
        let (resends, waiting) = (VecDeque::new(), VecDeque::new());
        let server = server.clone();
        Self { server, resends, turns, waiting, retired: false, replica: false, used: true, answered: 0, out: false }
    }
}

/// The routes of one worker. Servers are known by their index; those that left keep theirs.
#[derive(Debug)]
pub(super) struct Router {
    nodes: Vec<Node>,
    /// The turns at a server that joins.
    turns: Resends,
    /// The node that has all keys if there are no slots.
    sole: usize,
    /// Indices into `nodes`; `None` if standalone.
    slots: Option<Box<[u16; SLOTS]>>,
    /// The nodes to read from, if not the primaries; like `slots`.
    readers: Option<Box<[u16; SLOTS]>>,
    /// Requests are distributed evenly over the slots, whatever their keys.
    even: bool,
    /// Per operation, whether it only reads.
    reads: Vec<bool>,
    /// The nodes that the shard loads, if not all.
    own: Option<Arc<OwnNodes>>,
    outages: Outages,
    /// Requests that a server cannot serve now but may soon (TRYAGAIN, CLUSTERDOWN, LOADING), by the end of their pause and their number.
    /// Their callers wait, so a closed loop sends no other requests in their place.
    deferred: BTreeMap<(u64, u64), Request>,
}

impl Router {
    /// `reads`: per operation, whether a replica may serve it.
    pub(super) fn new(topology: &Topology, reads: Vec<bool>, own: Option<Arc<OwnNodes>>, seat: Seat) -> Self {
        let turns = Resends::of(seat);
        let mut router = Self {
            nodes: topology.nodes.iter().map(|server| Node::of(server, turns)).collect(),
            turns,
            sole: 0,
            slots: None,
            readers: None,
            even: topology.even,
            reads,
            own,
            outages: Outages::default(),
            deferred: BTreeMap::new(),
        };
        router.assign(topology, &(0..topology.nodes.len() as u16).collect::<Vec<_>>());
        router
    }

    /// The node that serves a request.
    #[inline]
    pub(super) fn owner(&self, load: &Load, k: u64, operation: u16) -> usize {
        let Some(slots) = &self.slots else { return self.sole };
        let slot = if self.even { load.workload.any_slot(k) } else { load.workload.slot(k, operation) };
        let slots = match &self.readers {
            // A preload has its own operations, and all of them write.
            Some(readers) if load.kind == Kind::Trial && self.reads(operation) => readers,
            _ => slots,
        };
        match slots[usize::from(slot)] {
            UNCOVERED => self.any_node(slot),
            node => usize::from(node),
        }
    }

    fn reads(&self, operation: u16) -> bool {
        self.reads.get(usize::from(operation)).is_some_and(|reads| *reads)
    }

    /// A node for an uncovered slot. Any node can reply with the reason.
    #[cold]
    fn any_node(&self, slot: u16) -> usize {
        let count = self.nodes.len();
        let mut nodes = (0..count).map(|index| (usize::from(slot) + index) % count);
        nodes.find(|node| !self.nodes[*node].retired && self.nodes[*node].used).unwrap_or(0)
    }

    pub(super) fn has_slots(&self) -> bool {
        self.slots.is_some()
    }

    pub(super) fn sole(&self) -> usize {
        self.sole
    }

    /// All nodes, including those that left.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Per node, how many slots it owns or serves reads for.
    pub(super) fn slot_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.nodes.len()];
        for (slots, replicas) in [(&self.slots, false), (&self.readers, true)] {
            let slots = slots.iter().flat_map(|slots| slots.iter());
            for node in slots.filter(|node| **node != UNCOVERED).map(|node| usize::from(*node)) {
                counts[node] += u32::from(self.nodes[node].replica == replicas);
            }
        }
        counts
    }

    /// A server of the target.
    pub(super) fn find(&self, is: impl Fn(&NodeAddress) -> bool) -> Option<u16> {
        self.nodes.iter().position(|node| !node.retired && is(&node.server)).map(|node| node as u16)
    }

    /// Applies a new topology. Servers that left keep their places. Returns whether slots have other owners now.
    pub(super) fn update(&mut self, topology: &Topology) -> bool {
        let before = (self.slots.clone(), self.readers.clone());
        let mut indices = Vec::with_capacity(topology.nodes.len());
        for node in &topology.nodes {
            let index = self.join(node);
            if let Some(known) = index.map(|index| &mut self.nodes[usize::from(index)].server)
                && known.id != node.id
            {
                known.clone_from(node);
            }
            // Beyond the limit, its slots count as not covered.
            indices.push(index.unwrap_or(UNCOVERED));
        }
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.retired = !indices.contains(&(index as u16));
        }
        self.assign(topology, &indices);
        before != (self.slots.clone(), self.readers.clone())
    }

    /// Makes a server part of the target. `None` at the limit: nodes that left keep their places, and a report with more nodes than the
    /// limit is invalid.
    pub(super) fn join(&mut self, server: &NodeAddress) -> Option<u16> {
        let same = |known: &Node| (&known.server.id, known.server.address) == (&server.id, server.address);
        let known = self.nodes.iter().position(same);
        // A node known only from a redirect has its address as id.
        let known = known.or_else(|| self.nodes.iter().position(|known| known.server.address == server.address));
        if let Some(known) = known {
            self.nodes[known].retired = false;
        } else if self.nodes.len() < limits::NODES {
            self.nodes.push(Node::of(server, self.turns));
        } else {
            return None;
        }
        Some(known.unwrap_or(self.nodes.len() - 1) as u16)
    }

    /// Replaces the map of slots, or the node that has all keys. `nodes` are the topology's. Slots without a reader keep the previous one.
    fn assign(&mut self, topology: &Topology, nodes: &[u16]) {
        if let Some(slots) = &topology.slots {
            let map = |mut slots: Box<[u16; SLOTS]>| {
                slots.iter_mut().for_each(|slot| *slot = *nodes.get(usize::from(*slot)).unwrap_or(&UNCOVERED));
                slots
            };
            self.slots = Some(map(slots.clone()));
            if let Some(mut readers) = topology.readers.clone().map(map) {
                for (now, before) in readers.iter_mut().zip(self.readers.iter().flat_map(|readers| readers.iter())) {
                    if *now == UNCOVERED {
                        *now = *before;
                    }
                }
                self.readers = Some(readers);
            }
        } else if let Some(sole) = nodes.first() {
            self.sole = usize::from(*sole);
        }
        for (place, index) in nodes.iter().enumerate() {
            if let Some(node) = self.nodes.get_mut(usize::from(*index)) {
                node.replica = topology.is_replica(place);
            }
        }
        if let Some(own) = &self.own {
            let maps = self.slots.iter().chain(&self.readers).map(|map| &**map);
            let used = own.used(self.nodes.len(), maps);
            self.nodes.iter_mut().zip(used).for_each(|(node, used)| node.used = used);
        }
    }

    /// Notes a redirect to a node. Returns whether it was not used before.
    pub(super) fn begin_to_use(&mut self, node: u16) -> bool {
        self.nodes.get_mut(usize::from(node)).is_some_and(|node| !std::mem::replace(&mut node.used, true))
    }

    /// Follows a MOVED redirect of `request`.
    pub(super) fn moved(&mut self, slot: u16, target: u16, request: &Request) {
        let Some(slots) = &mut self.slots else { return };
        slots[usize::from(slot)] = target;
        let reads = request.class != Class::Preload && self.reads(request.operation);
        // The next topology names the replicas of that node.
        if let Some(readers) = self.readers.as_mut().filter(|_| reads) {
            readers[usize::from(slot)] = target;
        }
    }

    /// Moves waiting requests to their nodes in a new map.
    pub(super) fn reroute(&mut self, load: &Load) {
        let mut waiting: Vec<Waiting> = self.nodes.iter_mut().flat_map(|node| node.waiting.drain(..)).collect();
        waiting.sort_by_key(|waiting| (waiting.due, waiting.k));
        let resends: Vec<Resend> = self.nodes.iter_mut().flat_map(|node| node.resends.drain(..)).collect();
        for waiting in waiting {
            let node = self.owner(load, waiting.k, load.workload.operation(waiting.k));
            self.wait(node, waiting);
        }
        for resend in resends {
            let node = self.owner(load, resend.request.k, resend.request.operation);
            self.resend(node, resend);
        }
    }

    pub(super) fn resend(&mut self, node: usize, resend: Resend) {
        let resends = &mut self.nodes[node].resends;
        let at = resends.partition_point(|other| other.request.due <= resend.request.due);
        resends.insert(at, resend);
    }

    /// Takes a turn to send a request to a node again. As many as `in_flight` may follow each other at once.
    ///
    /// # Errors
    /// Too early: when the next turn may be taken.
    pub(super) fn take_turn(&mut self, node: usize, in_flight: u64, now: u64) -> Result<(), u64> {
        self.nodes[node].turns.take(in_flight, now)
    }

    pub(super) fn take_resend(&mut self, node: usize) -> Option<Resend> {
        self.nodes[node].resends.pop_front()
    }

    pub(super) fn wait(&mut self, node: usize, waiting: Waiting) {
        self.nodes[node].waiting.push_back(waiting);
    }

    pub(super) fn wait_first(&mut self, node: usize, waiting: Waiting) {
        self.nodes[node].waiting.push_front(waiting);
    }

    pub(super) fn take_waiting(&mut self, node: usize) -> Option<Waiting> {
        self.nodes[node].waiting.pop_front()
    }

    /// Draws a request for each free token, to wait for its node.
    pub(super) fn queue_drawn(&mut self, load: &mut Load, now: u64) {
        while let Some(drawn) = load.draw_tokens() {
            let operations = load.workload.operations();
            for k in drawn {
                let k = load.number(k);
                let node = self.owner(load, k, operations.of(k));
                self.wait(node, Waiting { k, due: now });
            }
        }
    }

    /// Takes `count` waiting requests of a node, unless it has fewer.
    pub(super) fn take_many(&mut self, node: usize, count: usize) -> Option<impl Iterator<Item = Waiting>> {
        let waiting = &mut self.nodes[node].waiting;
        (count > 0 && waiting.len() >= count).then(|| waiting.drain(..count))
    }

    /// Drops all requests that wait or pause.
    pub(super) fn clear(&mut self) {
        for node in &mut self.nodes {
            node.waiting.clear();
            node.resends.clear();
        }
        self.deferred.clear();
    }

    /// Holds a request for a pause. Returns when it ends; `None` if its pauses would exceed `patience`: then it has failed.
    #[cold]
    pub(super) fn hold(&mut self, mut request: Request, patience: u64, now: u64) -> Option<u64> {
        let pause = FIRST_PAUSE << request.hops.deferrals();
        let pauses = 2 * pause - FIRST_PAUSE;
        if pauses > patience || request.hops.deferrals() == Hops::MOST {
            return None;
        }
        request.hops.defer();
        let ends = now + jittered(pause, request.k);
        self.deferred.insert((ends, request.k), request);
        Some(ends)
    }

    /// Passes requests whose pauses have ended to the nodes that own them now. Returns when the next pause ends.
    pub(super) fn resume(&mut self, load: &Load, now: u64) -> Option<u64> {
        while let Some(first) = self.deferred.first_entry() {
            if first.key().0 > now {
                return Some(first.key().0);
            }
            let request = first.remove();
            let node = self.owner(load, request.k, request.operation);
            self.resend(node, Resend { request, since: now, asking: false });
        }
        None
    }

    /// Ends the pauses of requests for a node that has recovered. Pauses for other nodes continue.
    #[cold]
    fn resume_of(&mut self, node: usize, load: &Load, now: u64) {
        for (place, request) in std::mem::take(&mut self.deferred) {
            if self.owner(load, request.k, request.operation) == node {
                self.resend(node, Resend { request, since: now, asking: false });
            } else {
                self.deferred.insert(place, request);
            }
        }
    }

    /// Returns whether no request of the only server pauses or is to be sent again.
    #[inline]
    pub(super) fn holds_none(&self) -> bool {
        self.deferred.is_empty() && self.nodes.get(self.sole).is_none_or(|node| node.resends.is_empty())
    }
}
