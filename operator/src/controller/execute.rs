//! Carries out a decision, in an order that makes every step safe to repeat.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource as _;
use kube::runtime::reflector::ObjectRef;
use redisbench_benchmark::api::status::{TrialLine, TrialStatus};
use redisbench_benchmark::api::{RedisBenchmark, RedisBenchmarkStatus};
use redisbench_benchmark::conductor::{ConductorConfig, StartRecord};
use redisbench_benchmark::credential::RunCredential;
use redisbench_benchmark::measurement::judged::ThresholdState;
use redisbench_benchmark::plan::{Plan, Trial};
use redisbench_benchmark::report::conditions::reason;
use redisbench_benchmark::report::{Finished, thresholds};

use super::aggregate::Aggregation;
use super::apply::{self, Applier, ApplyError, events};
use super::context::Context;
use super::decision::{Action, Decision, Notice};
use super::error::ReconcileError;
use super::observed::Observed;
use super::status::{Without, is_urgent, shortened};
use crate::build::{self, JobInput, Run};
use crate::metrics::Setting;
use crate::tasks::{StatusJournal, TaskInput, finish};
use crate::telemetry::chain;

pub(super) struct Executor<'a> {
    pub(super) context: &'a Context,
    pub(super) benchmark: &'a RedisBenchmark,
    pub(super) run: &'a Run,
    pub(super) plan: Option<&'a Plan>,
    pub(super) observed: &'a Observed,
}

impl Executor<'_> {
    /// Carries out `decision`. Returns a pause if writing the status was postponed.
    pub(super) async fn execute(&self, decision: &Decision) -> Result<Option<Duration>, ReconcileError> {
        match self.carry_out(decision).await {
            Err(ReconcileError::Apply(error)) if error.is_namespace_going() => {
                // Kubernetes deletes the pods of a namespace before its Jobs, and a Job keeps finalizers on pods that it may retry. Without
                // this, the namespace would remain as long as the run.
                self.context.shared.tasks.stop_load(&self.run.uid);
                self.act(&Action::DeleteChildren, &[]).await?;
                Ok(None)
            }
            other => other,
        }
    }

    async fn carry_out(&self, decision: &Decision) -> Result<Option<Duration>, ReconcileError> {
        let shared = &self.context.shared;
        self.act_all(&decision.before, &decision.status.trials).await?;
        let old = self.benchmark.status.clone().unwrap_or_default();
        let changed = old != decision.status || self.benchmark.status.is_none();
        let put_off = changed && !is_urgent(&old, &decision.status) && !shared.cache.may_write();
        let mut notices = decision.notices.clone();
        if changed && !put_off {
            // A failed write counts as written, so that changes of numbers do not flood a server in trouble.
            shared.cache.wrote(&self.run.namespace, &self.run.uid);
            match self.write_status(&decision.status, &mut notices).await {
                Ok(_) => {}
                // Deleted meanwhile; the watch reports it.
                Err(error) if error.code() == Some(404) => return Ok(None),
                // Nothing after the end depends on it.
                Err(error) if old.phase.is_terminal() && error.refuses_the_object() => {
                    tracing::warn!(
                        benchmark = self.run.benchmark,
                        error = chain(&error),
                        "a finished status was refused"
                    );
                }
                Err(error) => {
                    // Then earlier refusals of the result were due to the server's state too.
                    if error.is_outage() || error.code().is_some_and(|code| code >= 500) {
                        shared.tasks.get(&self.run.uid).inspect(|conduct| conduct.forgive_artifacts());
                    }
                    return Err(error.into());
                }
            }
        }
        let after = self.act_all(&decision.after, &decision.status.trials).await;
        // Published even if an action failed: the status is written, so these events are not decided again.
        events::publish(&shared.recorder, &self.benchmark.object_ref(&()), &notices).await;
        after?;
        Ok(put_off.then_some(Duration::from_secs(1)))
    }

    /// Writes `status`. If the API server refuses the content of a final status, writes it with fewer details, step by step, and notes that
    /// in it. Otherwise the benchmark would never finish, and its result would be lost when the operator stops.
    async fn write_status(&self, status: &RedisBenchmarkStatus, notices: &mut Vec<Notice>) -> Result<bool, ApplyError> {
        let client = &self.context.shared.client;
        // The cache holds only a part of a status that was final before, and must not replace the whole.
        let becomes_final =
            status.phase.is_terminal() && self.benchmark.status.as_ref().is_none_or(|known| !known.phase.is_terminal());
        let mut written = apply::status(client, self.benchmark, status).await;
        for without in [Without::Lists, Without::Result] {
            let Err(error) = &written else { break };
            if !becomes_final || status.result.is_none() || !error.refuses_the_object() {
                break;
            }
            let (shorter, message) = shortened(status, without, &chain(error));
            written = apply::status(client, self.benchmark, &shorter).await;
            if written.is_ok() {
                notices.push(Notice { warning: true, reason: reason::STATUS_SHORTENED.to_owned(), message });
            }
        }
        written
    }

    /// `lines` are those of finished trials, on which the next trial may depend.
    async fn act_all(&self, actions: &[Action], lines: &[TrialLine]) -> Result<(), ReconcileError> {
        for action in actions {
            self.act(action, lines).await?;
        }
        Ok(())
    }

    async fn act(&self, action: &Action, lines: &[TrialLine]) -> Result<(), ReconcileError> {
        let shared = &self.context.shared;
        let applier = Applier { run: self.run, client: &shared.client };
        let (namespace, uid) = (&self.run.namespace, &self.run.uid);
        let job = self.observed.job.as_ref().map_or("", |job| job.uid.as_str());
        match action {
            Action::WriteArtifacts(finished) => self.write_artifacts(&applier, finished).await?,
            Action::Aggregate { trials, artifacts } => {
                let spec = &self.benchmark.spec;
                Aggregation { context: self.context, spec, applier: &applier }.store(trials, artifacts).await?;
            }
            Action::CreateChildren => {
                shared.cache.set_cleared(namespace, uid, false);
                self.create_children(&applier).await?;
            }
            Action::Conduct { epoch, trial, resume, attempts } => {
                let Some(trial) = self.plan.and_then(|plan| plan.trial(*trial, lines)) else { return Ok(()) };
                self.conduct(*epoch, trial, *resume, *attempts)?;
            }
            Action::StopTask => shared.tasks.stop(uid),
            Action::Abort => {
                if let Some(conduct) = shared.tasks.get(uid) {
                    conduct.abort();
                }
            }
            Action::Release => {
                if let Some(conduct) = shared.tasks.get(uid) {
                    conduct.release();
                }
            }
            Action::DeletePods { incarnations } => {
                applier.delete_pods(&self.context.reads.pods_of(self.run, incarnations)).await?;
            }
            Action::DeleteChildren => {
                applier.delete_children(job).await?;
                shared.cache.set_cleared(namespace, uid, true);
            }
            Action::DeleteBenchmark => applier.delete_benchmark().await?,
        }
        Ok(())
    }

    fn credential(&self) -> Result<RunCredential, ReconcileError> {
        let run = format!("{}/{}", self.run.uid, self.run.id);
        Ok(RunCredential::derive(&self.context.shared.settings.master_key, &run)?)
    }

    async fn create_children(&self, applier: &Applier<'_>) -> Result<(), ReconcileError> {
        // An invalid spec leads to no decision that needs children.
        let Some(plan) = self.plan else { return Ok(()) };
        let settings = &self.context.shared.settings;
        let secret = build::secret(self.run, &self.credential()?);
        let input = JobInput {
            run: self.run,
            plan,
            image: if plan.needs_clients() { &settings.clients_image } else { &settings.image },
            pull_policy: &settings.pull_policy,
            drivers: &settings.drivers,
        };
        let budget = build::disruption_budget(self.run, plan.largest().plan.shards);
        applier.create_children(&secret, &budget, &build::job(&input)).await?;
        Ok(())
    }

    async fn write_artifacts(&self, applier: &Applier<'_>, finished: &Finished) -> Result<(), ReconcileError> {
        let Some(conduct) = self.context.shared.tasks.get(&self.run.uid) else { return Ok(()) };
        let (artifacts, epoch) = (build::artifacts(finished), conduct.epoch);
        // The task keeps the pieces for retries, so only one of them is copied into a ConfigMap at a time.
        for ((name, text), artifact) in finished.pieces.iter().zip(&artifacts) {
            let piece = build::artifact(self.run, epoch, &artifact.config_map, name, text);
            if let Err(error) = applier.write_artifact(epoch, &piece).await {
                if !error.is_outage() {
                    conduct.note_artifacts_refused(chain(&error));
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// The thresholds' standings of the resumed trial, as far as the status has them.
    fn standings(&self, trial: u32, resume: Option<StartRecord>) -> Vec<ThresholdState> {
        let Some(status) = self.benchmark.status.as_ref() else { return Vec::new() };
        let same =
            |known: &TrialStatus| known.index == trial && resume.is_some_and(|record| record.attempt == known.attempt);
        // With several trials, the status has the worst of all trials.
        if !status.trial.as_ref().is_some_and(|known| same(known) && known.of == 1) {
            return Vec::new();
        }
        status.thresholds.iter().map(thresholds::standing).collect()
    }

    fn conduct(
        &self,
        epoch: u64,
        trial: Trial,
        resume: Option<StartRecord>,
        attempts: u32,
    ) -> Result<(), ReconcileError> {
        let shared = &self.context.shared;
        let config = ConductorConfig {
            resume,
            attempts,
            standings: self.standings(trial.index, resume),
            wall_clock: shared.environment.wall_clock.clone(),
            memory: shared.tasks.memory(),
            polled: shared.tasks.polled(),
            ..ConductorConfig::of(&trial, &self.run.id, epoch)
        };
        let (index, of, run) = (trial.index, trial.of, self.run.clone());
        let setting = Setting::of(&trial);
        let wake = self.context.wake.clone();
        let reference = ObjectRef::new(&self.run.benchmark).within(&self.run.namespace);
        shared.tasks.start(TaskInput {
            setting,
            config,
            presence: self.observed.presence.clone(),
            credential: self.credential()?,
            journal: StatusJournal::new(shared.client.clone(), self.run, epoch, index, of),
            finish: Box::new(move |outcome| finish(&run, &trial, outcome)),
            // If the queue is full, the periodic reconciliation is soon enough.
            wake: Arc::new(move || drop(wake.try_send(reference.clone()))),
            run: self.run.clone(),
        })?;
        Ok(())
    }
}
