//! Probe after a trial whose limiting factor is unclear: the same load with half of the connections, on all shards at one instant. Its
//! result is evidence for the verdict; a failed probe costs nothing else.

use std::time::Duration;

use redisbench_wire::plan::TrialPlan;
use redisbench_wire::{Probe, ProbeRequest, ProbeState};
use tokio::time::{Instant, sleep_until};

use super::clock::nanoseconds;
use super::intervals::{ACKNOWLEDGE_BEFORE, lead};
use super::shards::Standing;
use super::trial::{Conductor, Stop};
use super::{Ending, Journal, ShardCalls};
use crate::measurement::merge::merge;
use crate::verdict;

/// For the last requests to finish, and for the shards to sum up.
const AFTERWARDS: Duration = Duration::from_secs(3);
/// Pause between two rounds of polling for the results.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);

impl<C: ShardCalls, J: Journal> Conductor<C, J> {
    /// Runs a probe if nothing else can identify the limiting factor.
    pub async fn look_closer(&mut self) -> Result<(), Stop> {
        let (true, Some(start_at)) = (self.needs_probe(), self.start_at) else { return Ok(()) };
        let plan = &self.config.plan;
        let length = Duration::from_nanos(Probe::WARMUP_NANOSECONDS + plan.measurement.probe_nanoseconds);
        let patience = Duration::from_nanos(plan.timeouts.request_nanoseconds) + AFTERWARDS;
        let round_trip = self.clock_uncertainty.unwrap_or_default() * 2;
        let from = self.clock.now().saturating_add(nanoseconds(lead(round_trip, self.shards.len()) + connecting(plan)));
        let request = ProbeRequest {
            epoch: self.config.epoch,
            attempt: self.attempt,
            after_nanoseconds: u64::try_from(from.saturating_sub(start_at)).unwrap_or(0),
        };
        let instant = self.clock.instant(from);
        tracing::info!(attempt = self.attempt, "running a probe with half of the connections to find the limit");
        match self.probed(request, instant - ACKNOWLEDGE_BEFORE, instant + length, patience).await? {
            Ok(probes) => self.probes = probes,
            Err(why) => tracing::info!(why, "this trial has no probe"),
        }
        Ok(())
    }

    /// Whether the trial can be probed and its verdict needs it.
    fn needs_probe(&mut self) -> bool {
        let can = self.config.plan.measurement.probe_nanoseconds > 0
            && self.shards.iter().all(|shard| shard.standing == Standing::Finished);
        let Some(spec) = self.config.probe.clone().filter(|_| can) else { return false };
        let outcome = self.outcome(Ending::Completed);
        let merged = merge(&self.config.plan, &outcome).ok().flatten();
        let needs = merged.is_some_and(|merged| verdict::needs_probe(&spec, &outcome, &merged));
        for (shard, outcome) in self.shards.iter_mut().zip(outcome.shards) {
            shard.snapshot = outcome.snapshot;
        }
        needs
    }

    /// Orders the probe, which ends at `end`, and polls every shard for its result.
    async fn probed(
        &self,
        request: ProbeRequest,
        ordered: Instant,
        end: Instant,
        patience: Duration,
    ) -> Result<Result<Vec<Probe>, String>, Stop> {
        let ask = |until| {
            self.broadcast(&Standing::Finished, until, move |calls, endpoint, trial| async move {
                calls.probe(&endpoint, trial, &request).await
            })
        };
        if let Err(why) = ask(ordered).await? {
            return Ok(Err(why));
        }
        let until = end + patience;
        let mut asked_again = end;
        loop {
            sleep_until(asked_again).await;
            let states = match ask(until).await? {
                Ok(states) => states,
                Err(why) => return Ok(Err(why)),
            };
            if states.iter().all(|state| state.over) {
                return Ok(agreed(&states, request.after_nanoseconds));
            }
            asked_again = Instant::now() + ASK_AGAIN_AFTER;
            if asked_again >= until {
                return Ok(Err("it did not finish in time".to_owned()));
            }
        }
    }
}

/// The results of all shards, if all began at the same instant.
fn agreed(states: &[ProbeState], after_nanoseconds: u64) -> Result<Vec<Probe>, String> {
    let probe = |state: &ProbeState| {
        if state.after_nanoseconds != after_nanoseconds {
            return Err("a shard has a different start instant".to_owned());
        }
        let probe = state.probe.ok_or_else(|| "a shard failed to run it".to_owned())?;
        probe.check().map(|()| probe)
    };
    states.iter().map(probe).collect()
}

/// How long the shards take to open half of their connections, if their rate is limited.
fn connecting(plan: &TrialPlan) -> Duration {
    let rate = plan.connect_rate.map_or(0, u64::from);
    let millis = (u64::from(plan.connections / 2) * 1_000).checked_div(rate).unwrap_or(0);
    Duration::from_millis(millis)
}
