//! A worker's observations of itself while its load sends.

use redisbench_wire::snapshot::{ReceiveDelay, Sending};

use super::Worker;
use crate::engine::run::{Filling, Found, Run};
use crate::engine::stream::Stream;
use crate::engine::sys::{self, SendTimes};
use crate::record::Delays;

/// The maximum number of connections sampled, because each costs a system call.
const SAMPLED: usize = 64;

impl Worker {
    /// Chooses the connections to sample and reads their counters, because activity before the load does not count.
    pub(super) fn sample(&mut self) {
        let step = self.connections.len().div_ceil(SAMPLED).max(1);
        let indices = (0..self.connections.len()).step_by(step);
        let sampled = indices.filter_map(|index| Some((index as u32, self.send_times(index)?))).collect();
        if let Some(run) = &mut self.run {
            run.sampled = sampled;
        }
        self.connections.iter_mut().filter_map(|connection| connection.stream.as_mut()).for_each(Stream::forget_delays);
    }

    fn send_times(&self, index: usize) -> Option<SendTimes> {
        sys::send_times(self.connections.get(index)?.stream.as_ref()?.socket())
    }

    /// Activity of the sampled connections since the load began. A connection that was made again contributes only its later part.
    fn sending(&self, run: &Run) -> Sending {
        let mut sending = Sending::default();
        for (index, before) in &run.sampled {
            let Some(now) = self.send_times(*index as usize) else { continue };
            let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
            sending.connections += 1;
            sending.connection_nanoseconds += self.now.saturating_sub(run.start);
            sending.busy_nanoseconds += since(now.busy, before.busy);
            sending.peer_limited_nanoseconds += since(now.peer_limited, before.peer_limited);
            sending.buffer_limited_nanoseconds += since(now.buffer_limited, before.buffer_limited);
        }
        sending
    }

    /// Updates the integral of ready connections.
    pub(super) fn connections_change(&mut self, more: bool) {
        let now = self.now;
        if let Some(run) = self.run.as_mut().filter(|run| run.is_active()) {
            if more { run.connected.rise(1, now) } else { run.connected.fall(1, now) }
        }
    }

    /// How long replies waited in the kernel since the load began. Delays of closed connections are lost.
    pub(super) fn receive_delay(&self) -> ReceiveDelay {
        let mut sum = ReceiveDelay { connections: 0, counts: vec![0; Delays::STEPS] };
        let streams = self.connections.iter().filter_map(|connection| connection.stream.as_ref());
        for delays in streams.filter_map(Stream::delays) {
            sum.connections += 1;
            sum.counts.iter_mut().zip(delays.counts()).for_each(|(sum, count)| *sum += count);
        }
        sum
    }

    /// Freezes the observations when the load stops sending.
    pub(super) fn settle(&mut self) {
        let found = self.found();
        if let Some(run) = &mut self.run {
            run.found.get_or_insert(found);
        }
    }

    /// The observations so far.
    pub(super) fn found(&self) -> Found {
        if let Some(measured) = self.verified.as_ref().and_then(|verified| verified.measured()) {
            return measured.found.unwrap_or_default();
        }
        let Some(run) = self.run.as_ref() else { return Found::default() };
        run.found.unwrap_or_else(|| Found {
            in_flight: if run.is_open() { 0 } else { run.in_flight.until(self.now) },
            sending: self.sending(run),
            room: if run.is_open() { 0 } else { room(run, self.now) },
        })
    }
}

/// The integral over time of the requests that a closed loop had room for: the windows of its ready connections, or the number of callers
/// that share them.
fn room(run: &Run, now: u64) -> u128 {
    match run.filling {
        Filling::Callers(callers) => u128::from(callers) * u128::from(now.saturating_sub(run.start)),
        Filling::Windows | Filling::Batches => run.connected.until(now) * run.window as u128,
    }
}
