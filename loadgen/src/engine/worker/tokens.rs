//! Closed loops that assign requests to connections: on a cluster, and with callers.
//!
//! A token permits drawing one request. Its reply returns the token.

use super::Worker;
use super::dispatch::owner;
use crate::engine::connection::{Link, Waiting};
use crate::engine::pipeline::Request;
use crate::engine::run::{Filling, Run};

impl Worker {
    /// Adjusts a closed loop's tokens to its connections, whose number changes with the nodes of a cluster. Excess tokens are removed as
    /// they become free.
    pub(super) fn grant_tokens(&mut self) {
        let usable = self.connections.iter().filter(|connection| connection.link != Link::Retired).count();
        let Some(run) = &mut self.run else { return };
        let worth = match run.filling {
            Filling::Callers(callers) => callers,
            // Half as many again as the windows hold wait for their nodes, so that a node has enough to fill a window.
            Filling::Windows | Filling::Batches => (usable * run.window * 3 / 2) as u64,
        };
        let spare = run.granted.saturating_sub(worth).min(run.tokens);
        let lacking = worth.saturating_sub(run.granted);
        run.tokens = run.tokens + lacking - spare;
        run.granted = run.granted + lacking - spare;
    }

    /// Draws a request for each free token.
    pub(super) fn dispatch_tokens(&mut self) {
        let Some(run) = &self.run else { return };
        if !run.is_active() || run.class_at(self.now).is_none() {
            return;
        }
        // Callers use the connections in turn instead of filling one after the other.
        let in_turn = run.has_callers();
        while let Some(drawn) = self.run.as_mut().and_then(Run::draw_tokens) {
            for k in drawn {
                if self.leaves_out(k) {
                    continue;
                }
                let node = self.route(Waiting { k, due: self.now });
                if in_turn && let Some(node) = node {
                    let open = &mut self.nodes[node].open;
                    open.rotate_left(1.min(open.len()));
                }
            }
        }
    }

    /// Fills a connection's window right after its replies, if enough requests wait for its node: that costs less than a send after all
    /// replies have been read. Fewer requests are sent later, on as few connections as possible.
    pub(super) fn fill_for_node(&mut self, index: usize) {
        let node = self.connections[index].node as usize;
        // Resends go first.
        if !self.nodes[node].resends.is_empty() {
            return;
        }
        let now = self.now;
        loop {
            let Self { run: Some(run), slots: Some(slots), readers, nodes, connections, .. } = self else { return };
            if !run.is_active() || run.class_at(self.now).is_none() {
                return;
            }
            let readers = readers.as_ref().filter(|_| !run.preload);
            let connection = &mut connections[index];
            let room = connection.room(run.window, run.batch);
            while let Some(drawn) = run.draw_tokens() {
                let workload = &*run.workload;
                for k in drawn {
                    let owner = owner(workload, slots, readers, nodes, k, workload.operation(k));
                    nodes[owner].waiting.push_back(Waiting { k, due: now });
                }
            }
            let waiting = &mut nodes[node].waiting;
            if room == 0 || waiting.len() < room {
                return;
            }
            let workload = &*run.workload;
            let requests = waiting.drain(..room).map(|Waiting { k, .. }| Request::undecided(k, workload.operation(k)));
            connection.pipeline.stage_undecided(requests);
            if !self.flush(index) {
                return;
            }
        }
    }
}
