//! Events for the cold side. The channel is bounded: what must not be lost is kept until there is room.

use std::collections::VecDeque;

use tokio::sync::mpsc::Sender;

use super::api::EngineEvent;

#[derive(Debug)]
pub(super) struct Outbox {
    events: Sender<EngineEvent>,
    /// Events that must not be lost.
    kept: VecDeque<EngineEvent>,
    told_ready: (u32, u32),
    topology_stale: bool,
    told_stale: bool,
}

impl Outbox {
    pub(super) fn new(events: Sender<EngineEvent>) -> Self {
        Self { events, kept: VecDeque::new(), told_ready: (0, 0), topology_stale: false, told_stale: false }
    }

    /// Adds an event that must not be lost.
    pub(super) fn keep(&mut self, event: EngineEvent) {
        self.kept.push_back(event);
    }

    /// Sends an event unless the channel is full.
    pub(super) fn offer(&self, event: EngineEvent) {
        let _ = self.events.try_send(event);
    }

    /// Sends the event that `make` returns, which is only called if there is room.
    pub(super) fn offer_made(&self, make: impl FnOnce() -> Option<EngineEvent>) {
        if let Ok(room) = self.events.try_reserve()
            && let Some(event) = make()
        {
            room.send(event);
        }
    }

    /// The topology should be discovered again.
    pub(super) fn topology_is_stale(&mut self) {
        self.topology_stale = true;
    }

    pub(super) fn topology_is_new(&mut self) {
        (self.topology_stale, self.told_stale) = (false, false);
    }

    /// Sends what is new. `ready`: ready and wanted connections. Events that find the channel full are offered again.
    pub(super) fn tell(&mut self, ready: (u32, u32)) {
        while let Some(event) = self.kept.pop_front() {
            if let Err(error) = self.events.try_send(event) {
                self.kept.push_front(error.into_inner());
                break;
            }
        }
        let connected = EngineEvent::Connected { ready: ready.0, wanted: ready.1 };
        if ready != self.told_ready && self.events.try_send(connected).is_ok() {
            self.told_ready = ready;
        }
        if self.topology_stale && !self.told_stale && self.events.try_send(EngineEvent::TopologyStale).is_ok() {
            self.told_stale = true;
        }
    }
}
