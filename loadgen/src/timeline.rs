//! Changes of the target's topology since the load began, for the engine's snapshots. Only the cold side sees them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redisbench_wire::limits;
use redisbench_wire::topology::{Change, TopologyReport};

use crate::cluster::{Topology, changes};

/// The current topology and its changes.
#[derive(Debug)]
pub(crate) struct Timeline(Mutex<State>);

#[derive(Debug)]
struct State {
    map: Arc<Topology>,
    changes: Vec<Change>,
    /// Total slot ranges in all changes.
    ranges: usize,
    left_out: u64,
}

impl Timeline {
    pub(crate) fn new(map: Arc<Topology>) -> Self {
        Self(Mutex::new(State { map, changes: Vec::new(), ranges: 0, left_out: 0 }))
    }

    /// Drops the changes from before the load.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.changes.clear();
        (state.ranges, state.left_out) = (0, 0);
    }

    /// Replaces the topology and records the changes.
    pub(crate) fn update(&self, map: &Arc<Topology>, now: u64) {
        let mut state = self.state();
        for change in changes(&state.map, map, now) {
            let ranges = state.ranges + change.slots.len();
            if state.changes.len() < limits::CHANGES && ranges <= limits::RANGES {
                state.ranges = ranges;
                state.changes.push(change);
            } else {
                state.left_out += 1;
            }
        }
        state.map = Arc::clone(map);
    }

    /// Everything except the outages, which the workers record.
    pub(crate) fn report(&self) -> TopologyReport {
        let state = self.state();
        let (primaries, replicas) = state.map.counts();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        TopologyReport {
            primaries: number(primaries),
            replicas: number(replicas),
            changes: state.changes.clone(),
            changes_left_out: state.left_out,
            ..TopologyReport::default()
        }
    }

    /// A panic never leaves the state half-changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
