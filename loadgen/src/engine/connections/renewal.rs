//! Connections with a lifetime: closed at its end, and made again.

use super::Connections;
use super::connection::Link;
use crate::record::ChurnCounts;

impl Connections {
    /// Gives the connections their lives for a load that began at `since`.
    pub(in crate::engine) fn begin_lives(&mut self, since: u64) {
        let Some(lives) = &mut self.lives else { return };
        lives.begin(since);
        let count = self.all.len();
        for (index, connection) in self.all.iter_mut().enumerate() {
            connection.life = lives.of(index, count, true, since);
        }
    }

    /// Keeps the connections from now on: the load sends no further new requests.
    pub(in crate::engine) fn end_lives(&mut self) {
        if self.lives.as_mut().is_some_and(|lives| lives.end()) {
            self.all.iter_mut().for_each(|connection| connection.life = None);
        }
    }

    /// Ends the lives whose time is up. Returns when the next one ends; `None` if no life ends by time.
    pub(in crate::engine) fn age(&mut self, now: u64) -> Option<u64> {
        if !self.lives.as_ref().is_some_and(|lives| lives.are_timed()) {
            return None;
        }
        let lives = self.all.iter_mut().filter_map(|connection| connection.life.as_mut());
        Some(lives.filter_map(|life| life.come_to(now)).min().unwrap_or(u64::MAX))
    }

    /// Closes a connection at the end of its life, to be made again at once. `measuring` counts it.
    #[cold]
    pub(in crate::engine) fn renew(&mut self, index: usize, measuring: bool, now: u64) {
        let connection = &mut self.all[index];
        connection.close(Link::Down { retry: now });
        // Not a reconnect, because nothing broke.
        connection.known = false;
        if let Some(lives) = self.lives.as_mut().filter(|_| measuring) {
            lives.counts.closed();
        }
        self.count_lost(1, now);
        self.soon = true;
    }

    /// Connections made and closed, if they have a lifetime.
    pub(in crate::engine) fn churn(&self) -> Option<ChurnCounts> {
        self.lives.as_ref().map(|lives| lives.counts.clone())
    }
}
