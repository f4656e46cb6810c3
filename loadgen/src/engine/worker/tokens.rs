//! Closed loops whose requests are led to connections: those of a cluster, and those of callers.
//!
//! A token is a request that may be drawn. A reply gives one back.

use super::Worker;
use super::dispatch::owner;
use crate::engine::connection::{Link, Waiting};
use crate::engine::pipeline::Request;
use crate::engine::run::{Filling, Run};

impl Worker {
    /// Grants a closed loop as many tokens as its connections are worth, which changes with the nodes of a cluster. Those that
    /// are too many are taken back as they come free.
    pub(super) fn grant_tokens(&mut self) {
        let usable = self.connections.iter().filter(|connection| connection.link != Link::Retired).count();
        let Some(run) = &mut self.run else { return };
        let worth = match run.filling {
            Filling::Callers(callers) => callers,
            // Half as many more than the windows hold wait for their nodes, so that a node has some to fill a window with.
            Filling::Windows | Filling::Batches => (usable * run.window * 3 / 2) as u64,
        };
        let spare = run.granted.saturating_sub(worth).min(run.tokens);
        let lacking = worth.saturating_sub(run.granted);
        run.tokens = run.tokens + lacking - spare;
        run.granted = run.granted + lacking - spare;
    }

    /// Draws a request for every one that a closed loop of a cluster or of callers has free.
    pub(super) fn dispatch_tokens(&mut self) {
        let Some(run) = &self.run else { return };
        if !run.is_active() || run.class_at(self.now).is_none() {
            return;
        }
        // Callers take the connections in turn, instead of filling one after the other.
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

    /// Fills a connection's window right after its replies, if enough waits for its node: that costs less than a send
    /// after all replies have been read. What there is less of then goes out on as few connections as possible.
    pub(super) fn fill_for_node(&mut self, index: usize) {
        let node = self.connections[index].node as usize;
        // A resend goes first.
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
