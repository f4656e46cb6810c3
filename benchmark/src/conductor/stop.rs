//! Stops a trial early: ends the load of every shard and fetches what was measured.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, FuturesUnordered};
use redisbench_wire::snapshot::{Snapshot, Stage};
use redisbench_wire::{AbortRequest, AbortThen, Detail, RefusalCode, ShardState};
use tokio::time::{Instant, sleep, timeout_at};

use super::shards::{REPLACED, Shard, Standing};
use super::snapshots::replaces;
use super::trial::{CALLS_IN_FLIGHT, Conductor};
use super::{CallError, ConductStage, Ending, Endpoint, Journal, ShardCalls};

/// A shard that has not acknowledged the abort by then must be ended from outside.
const ACKNOWLEDGE_ABORT_WITHIN: Duration = Duration::from_secs(2);

/// For the snapshots of stopped shards, which only wait for requests in flight.
const COLLECT_STOPPED_WITHIN: Duration = Duration::from_secs(10);

const RETRY_AFTER: Duration = Duration::from_millis(100);

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Stops the load of every shard and keeps what was measured. Returns `ending`, or [`Ending::Superseded`] if another conductor has
    /// taken over.
    pub async fn stop(&mut self, ending: Ending) -> Ending {
        let start_was_known = self.start_at_unix_nanoseconds.is_some();
        self.adopt_endpoints();
        if self.abort_all().await {
            return Ending::Superseded;
        }
        if !start_was_known && self.start_at_unix_nanoseconds.is_some() {
            self.lose_who_is_gone();
        }
        self.publish_counts(ConductStage::Collecting);
        self.collect_stopped().await;
        ending
    }

    /// Whether an abort came too late to stop any load.
    pub fn was_over(&self) -> bool {
        let ended = |shard: &Shard| match shard.standing {
            Standing::Finished => shard.snapshot.as_ref().is_some_and(|kept| !kept.aborted),
            Standing::Lost(_) => true,
            _ => false,
        };
        self.shards.iter().all(ended) && self.shards.iter().any(|shard| shard.standing == Standing::Finished)
    }

    /// Shards that appeared since the last check may hold a plan and need the abort, too.
    fn adopt_endpoints(&mut self) {
        let seen = self.seen();
        for (shard, presence) in self.shards.iter_mut().zip(&seen) {
            if shard.standing == Standing::Running {
                shard.observe_after_start(presence);
            } else if !matches!(shard.standing, Standing::Finished | Standing::Failed(_) | Standing::Lost(_)) {
                // A process that has ended needs no abort.
                let _ = shard.observe_before_start(presence);
            }
        }
    }

    /// Sends the abort to every shard that may have load. Returns whether another conductor has taken over.
    async fn abort_all(&mut self) -> bool {
        let until = Instant::now() + ACKNOWLEDGE_ABORT_WITHIN;
        let request = AbortRequest { epoch: self.config.epoch, attempt: None, then: AbortThen::Stop };
        let orders: Vec<_> = self
            .shards
            .iter()
            .enumerate()
            .filter(|(_, shard)| !matches!(shard.standing, Standing::Finished | Standing::Lost(_)))
            .filter_map(|(index, shard)| {
                let endpoint = shard.endpoint.clone()?;
                let (calls, trial) = (Arc::clone(&self.calls), self.trial);
                Some(async move { (index, abort(calls.as_ref(), &endpoint, trial, request, until).await) })
            })
            .collect();
        let mut superseded = false;
        let mut orders = stream::iter(orders).buffer_unordered(CALLS_IN_FLIGHT);
        while let Some((index, answer)) = orders.next().await {
            match answer {
                Acknowledgement::Given(state) => self.note_stopped(index, state.as_ref()),
                Acknowledgement::Missing => self.shards[index].unacknowledged = true,
                Acknowledgement::Superseded => superseded = true,
            }
        }
        superseded
    }

    /// After a takeover with an immediate stop, the answers to the abort are the first sign of which shards had started.
    fn note_stopped(&mut self, index: usize, state: Option<&ShardState>) {
        let shard = &mut self.shards[index];
        if state.is_none() && shard.standing == Standing::Unplanned {
            // The trial belonged to another process than this one.
            (shard.standing, shard.absence) = (Standing::Absent, Some(REPLACED.to_owned()));
        }
        if self.attempt > 0 && state.is_some_and(|state| shard.accepted(state, self.attempt)) {
            shard.standing = Standing::Running;
            let recorded = self.config.resume.filter(|record| record.attempt == self.attempt);
            if let (None, Some(record)) = (self.start_at_unix_nanoseconds, recorded) {
                self.start_at_unix_nanoseconds = Some(record.start_at_unix_nanoseconds);
            }
        }
    }

    /// The trial had started after all: a shard without a process from that time is lost.
    fn lose_who_is_gone(&mut self) {
        for shard in self.shards.iter_mut().filter(|shard| !shard.unacknowledged) {
            if shard.standing == Standing::Absent {
                let why = shard.absence.clone();
                shard.standing = Standing::Lost(why.unwrap_or_else(|| "its process was deleted".to_owned()));
            }
        }
    }

    /// Fetches the full snapshot and all seconds of every shard that had started and has stopped.
    async fn collect_stopped(&mut self) {
        let until = Instant::now() + COLLECT_STOPPED_WITHIN.min(self.config.limits.collect);
        let mut waiting: VecDeque<_> = (0..self.shards.len()).collect();
        let mut fetches = FuturesUnordered::new();
        loop {
            while fetches.len() < CALLS_IN_FLIGHT
                && let Some(index) = waiting.pop_front()
            {
                fetches.extend(self.fetch_stopped(index, until));
            }
            let Some((index, snapshot)) = fetches.next().await else { return };
            let shard = &mut self.shards[index];
            if let Some(snapshot) = snapshot
                && replaces(shard.snapshot.as_ref(), &snapshot, &shard.plan, self.attempt) == Ok(true)
            {
                shard.keep(snapshot);
                if shard.seconds.more() {
                    waiting.push_back(index);
                } else {
                    shard.standing = Standing::Finished;
                }
            }
        }
    }

    /// Polls a shard until it has stopped. None if it had not started or cannot be asked.
    fn fetch_stopped(
        &self,
        index: usize,
        until: Instant,
    ) -> Option<impl Future<Output = (usize, Option<Snapshot>)> + Send + use<C, J>> {
        let shard = &self.shards[index];
        if shard.standing != Standing::Running || shard.unacknowledged {
            return None;
        }
        let endpoint = shard.endpoint.clone()?;
        let (calls, trial, from) = (Arc::clone(&self.calls), self.trial, shard.seconds.next());
        Some(async move {
            let fetch = async {
                loop {
                    match calls.snapshot(&endpoint, trial, Detail::Full, from).await {
                        Ok(snapshot) if snapshot.stage == Stage::Done => return snapshot,
                        _ => sleep(RETRY_AFTER).await,
                    }
                }
            };
            (index, timeout_at(until, fetch).await.ok())
        })
    }
}

enum Acknowledgement {
    /// With the state, unless there was no trial to stop.
    Given(Option<ShardState>),
    Missing,
    Superseded,
}

async fn abort<C: ShardCalls>(
    calls: &C,
    endpoint: &Endpoint,
    trial: u32,
    request: AbortRequest,
    until: Instant,
) -> Acknowledgement {
    loop {
        match timeout_at(until, calls.abort(endpoint, trial, &request)).await {
            Ok(Ok(state)) => return Acknowledgement::Given(Some(state)),
            Ok(Err(error)) if error.is_stale_epoch() => return Acknowledgement::Superseded,
            // A shard in another phase, or without this trial, has no load to stop.
            Ok(Err(CallError::Refused(refusal)))
                if matches!(refusal.code, RefusalCode::WrongPhase | RefusalCode::Unknown) =>
            {
                return Acknowledgement::Given(None);
            }
            Ok(Err(_)) if Instant::now() + RETRY_AFTER < until => sleep(RETRY_AFTER).await,
            Ok(Err(_)) | Err(_) => return Acknowledgement::Missing,
        }
    }
}
