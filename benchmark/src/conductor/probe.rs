//! Probe after a trial whose limiting factor is unclear: the same load with half of the connections, on all shards at one instant. Its
//! result is evidence for the verdict; a failed probe costs nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use redisbench_wire::plan::TrialPlan;
use redisbench_wire::{AfterRequest, Probe, ProbeState};

use super::broadcast::Broadcast;
use super::clock::nanoseconds;
use super::event::Event;
use super::intervals::{ACKNOWLEDGE_BEFORE, lead, reach_all};
use super::shards::Standing;
use super::trial::{Conductor, Step};
use super::{Call, Ending, Reply};
use crate::measurement::merge::merge;
use crate::verdict;

/// For the last requests to finish, and for the shards to sum up.
const AFTERWARDS: Duration = Duration::from_secs(3);
/// Pause between two rounds of polling for the results.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// A probe on all shards.
pub struct RunProbe {
    request: AfterRequest,
    /// The deadline for all shards' acknowledgements of the order.
    ordered_by: Duration,
    /// Its end, and the deadline for all shards' reports of it.
    end: Duration,
    until: Duration,
    /// The present round of calls: the order, or one for the results.
    asked: Option<Broadcast>,
    ask_at: Duration,
    states: BTreeMap<usize, ProbeState>,
}

impl RunProbe {
    /// Plans a probe if nothing else can identify the limiting factor.
    pub fn begin(conductor: &mut Conductor) -> Option<Self> {
        let start_at = conductor.start_at.filter(|_| conductor.needs_probe())?;
        let plan = &conductor.config.plan;
        let length = Duration::from_nanos(Probe::WARMUP_NANOSECONDS + plan.measurement.probe_nanoseconds);
        let patience = Duration::from_nanos(plan.timeouts.request_nanoseconds) + AFTERWARDS;
        let round_trip = conductor.clock_uncertainty.unwrap_or_default() * 2;
        let from = conductor.now + lead(round_trip, reach_all(conductor.shards.len())) + connecting(plan);
        let request = AfterRequest {
            epoch: conductor.config.epoch,
            attempt: conductor.attempt,
            after_nanoseconds: u64::try_from(nanoseconds(from).saturating_sub(start_at)).unwrap_or(0),
        };
        tracing::info!(attempt = conductor.attempt, "running a probe with half of the connections to find the limit");
        Some(Self {
            request,
            ordered_by: from.saturating_sub(ACKNOWLEDGE_BEFORE),
            end: from + length,
            until: from + length + patience,
            asked: None,
            ask_at: conductor.now,
            states: BTreeMap::new(),
        })
    }

    /// Returns the results, or why there are none.
    pub fn step(&mut self, conductor: &mut Conductor, event: Event) -> Step<Result<Vec<Probe>, String>> {
        if let Some(asked) = &mut self.asked {
            let states = &mut self.states;
            let heard = asked.step(conductor, event, |ask, reply| {
                if let Reply::Probe(state) = reply {
                    states.insert(ask.shard, *state);
                }
                Ok(())
            })?;
            match heard {
                Ok(true) => self.asked = None,
                Ok(false) => return Ok(None),
                Err(why) => return Ok(Some(Err(why))),
            }
            if conductor.now < self.end {
                self.ask_at = self.end;
            } else if self.states.values().all(|state| state.over) {
                return Ok(Some(agreed(self.states.values(), self.request.after_nanoseconds)));
            } else {
                self.ask_at = conductor.now + ASK_AGAIN_AFTER;
            }
        }
        if self.ask_at >= self.until {
            return Ok(Some(Err("it did not finish in time".to_owned())));
        }
        if conductor.now < self.ask_at {
            conductor.out.wake_by(self.ask_at);
            return Ok(None);
        }
        let until = if conductor.now < self.end { self.ordered_by } else { self.until };
        match conductor.asks(&Standing::Finished, |_| Some(Call::Probe(conductor.config.trial, self.request))) {
            Ok(asks) => self.asked = Some(Broadcast::begin(conductor, asks, until)),
            Err(why) => return Ok(Some(Err(why))),
        }
        Ok(None)
    }
}

impl Conductor {
    /// Returns whether the trial can be probed and its verdict needs it.
    fn needs_probe(&mut self) -> bool {
        let can = self.config.plan.measurement.probe_nanoseconds > 0
            && self.shards.iter().all(|shard| shard.standing == Standing::Finished);
        let Some(spec) = self.config.probe.clone().filter(|_| can) else { return false };
        let outcome = self.outcome(Ending::Completed);
        let merged = merge(&self.config.plan, &outcome).ok().flatten();
        let needs = merged.is_some_and(|merged| verdict::needs_probe(&spec, &outcome, &merged));
        for (shard, outcome) in self.shards.iter_mut().zip(outcome.shards) {
            (shard.snapshot, shard.own_latency) = (outcome.snapshot, outcome.own_latency);
        }
        self.parts = outcome.parts;
        needs
    }
}

/// The results of all shards, if all began at the same instant.
fn agreed<'a>(states: impl Iterator<Item = &'a ProbeState>, after_nanoseconds: u64) -> Result<Vec<Probe>, String> {
    let probe = |state: &ProbeState| {
        if state.after_nanoseconds != after_nanoseconds {
            return Err("a shard has a different start instant".to_owned());
        }
        let probe = state.probe.ok_or_else(|| "a shard failed to run it".to_owned())?;
        probe.check().map(|()| probe)
    };
    states.map(probe).collect()
}

/// The time that the shards take to open half of their connections, if their rate is limited.
fn connecting(plan: &TrialPlan) -> Duration {
    let rate = plan.connect_rate.map_or(0, u64::from);
    let millis = (u64::from(plan.connections / 2) * 1_000).checked_div(rate).unwrap_or(0);
    Duration::from_millis(millis)
}
