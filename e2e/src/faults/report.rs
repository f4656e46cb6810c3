//! Checks of one benchmark under a fault: opened before the fault, closed after the end.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{DynamicObject, ListParams};
use kube::{Resource, ResourceExt};
use serde_json::Value;

use super::events;
use super::history::History;
use super::ledger::Ledger;
use crate::accounts::{bounds, served};
use crate::benchmark::{Benchmark, check_numbers, condition, phase};
use crate::json::{count, list, text};
use crate::namespace::TestNamespace;
use crate::redis;
use crate::wait;

/// Timeout for deleting the run's objects: its shards have 30 s to exit, and then their Job is deleted.
const CLEARED_WITHIN: Duration = Duration::from_secs(90);
/// The longest time to the end of a short benchmark, with any fault.
const OVER_WITHIN: Duration = Duration::from_secs(150);

/// The expected state after the end.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    pub phase: &'a str,
    /// The allowed verdicts. Empty if nothing was measured.
    pub verdicts: &'a [&'a str],
    /// Reasons that the fault may give for a Degraded verdict in place of a Valid one.
    pub doubts: &'a [&'a str],
    pub lost: u64,
    /// Reasons of events that may occur more than once.
    pub repeat: &'a [&'a str],
    /// True if the server counted more than the result has: an attempt was abandoned after it had sent, or keys were preloaded again.
    pub counted_more: bool,
}

impl Default for Expected<'_> {
    /// Succeeded with all shards, each event once, a matching server count, and a Valid verdict.
    fn default() -> Self {
        Self { phase: "Succeeded", verdicts: &["Valid"], doubts: &[], lost: 0, repeat: &[], counted_more: false }
    }
}

#[derive(Debug)]
pub struct Report {
    namespace: TestNamespace,
    benchmark: Benchmark,
    uid: String,
    run: Option<Value>,
    epoch: u64,
    ledger: Ledger,
    before: Objects,
    history: History,
    ended: Option<Instant>,
    recovered: Vec<String>,
}

impl Report {
    /// Opens the report of an existing benchmark before its fault. `promised` is the expected behaviour.
    pub async fn open(namespace: &TestNamespace, benchmark: &Benchmark, fault: &str, promised: &str) -> Result<Self> {
        let object = benchmark.get().await?;
        let uid = text(&object, "/metadata/uid")?.to_owned();
        Ok(Self {
            history: History::begin(namespace, &benchmark.name, &uid),
            uid,
            run: object.pointer("/status/runId").cloned(),
            epoch: epoch(&object),
            ledger: Ledger {
                fault: fault.to_owned(),
                promised: promised.to_owned(),
                test: namespace.test.clone(),
                recovered: "-".to_owned(),
                ..Ledger::default()
            },
            before: Objects::of(namespace).await?,
            namespace: namespace.clone(),
            benchmark: benchmark.clone(),
            ended: None,
            recovered: Vec::new(),
        })
    }

    /// Marks the end of the fault. The recovery time counts from now.
    pub fn fault_ended(&mut self) {
        self.ended = Some(Instant::now());
    }

    /// Waits until the benchmark has recovered, that is, its object `holds`, and records the recovery time.
    pub async fn recovers(&mut self, what: &str, limit: Duration, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let since = *self.ended.get_or_insert_with(Instant::now);
        let object = self.benchmark.wait(what, limit, holds).await?;
        self.recovered.push(format!("{:.1} s ({what})", since.elapsed().as_secs_f64()));
        self.ledger.recovered = self.recovered.join(", ");
        Ok(object)
    }

    /// Waits until another conductor has taken over, with a higher epoch than when the report was opened.
    pub async fn taken_over(&mut self) -> Result<Value> {
        let before = self.epoch;
        self.recovers("taken over", crate::benchmark::SOON, move |object| epoch(object) > before).await
    }

    /// Waits for the end, checks everything, and saves the row. Returns the finished object.
    pub async fn close(mut self, expected: &Expected<'_>) -> Result<Value> {
        let object = self.benchmark.finished(OVER_WITHIN).await?;
        let busy = self.benchmark.machine.seen().unevenness();
        let checked = self.check(&object, expected, busy.as_deref()).await;
        // Rows of failures are the most important, so they are saved too.
        if let Err(error) = &checked {
            self.ledger.verdict = format!("**{error:#}**").chars().take(400).collect();
        }
        self.ledger.keep()?;
        checked.with_context(|| format!("after the fault `{}`", self.ledger.fault))?;
        Ok(object)
    }

    /// Checks that the benchmark and all its objects are deleted, and that no end was published for a run without one. Saves the row.
    pub async fn close_deleted(mut self) -> Result<()> {
        let namespace = self.namespace.clone();
        let uid = self.uid.clone();
        let gone =
            |object: Option<&DynamicObject>| object.is_none_or(|object| object.metadata.uid.as_ref() != Some(&uid));
        wait::object(namespace.benchmarks(), &self.benchmark.name, "deleted", OVER_WITHIN, gone).await?;
        let cleared = cleared(&self.namespace, |objects| objects.is_clear_of(&uid)).await;
        let since = self.ended.get_or_insert_with(Instant::now).elapsed();
        self.ledger.recovered = format!("{:.1} s (all gone)", since.as_secs_f64());
        let left = Objects::of(&self.namespace).await?;
        "-".clone_into(&mut self.ledger.observed);
        "-".clone_into(&mut self.ledger.verdict);
        self.ledger.left = format!("{} before, {} after", self.before.summary(&uid), left.summary(&uid));
        let told = events::told(&self.namespace, &uid).await?;
        self.ledger.events = shown(&told);
        self.ledger.keep()?;
        let twice: Vec<_> = told.iter().filter(|(_, count)| **count > 1).collect();
        ensure!(twice.is_empty(), "events reported more than once: {twice:?}");
        cleared.with_context(|| format!("after the fault `{}`", self.ledger.fault))
    }

    /// `busy` is why the machine may have delayed the load, if it may.
    async fn check(&mut self, object: &Value, expected: &Expected<'_>, busy: Option<&str>) -> Result<()> {
        let verdict = object["status"]["verdict"]["value"].as_str();
        self.ledger.verdict = format!("{} {}", phase(object), verdict.unwrap_or("without a verdict"));
        if let Some(busy) = busy.filter(|_| verdict == Some("Degraded")) {
            self.ledger.verdict = format!("{} ({busy})", self.ledger.verdict);
        }
        let has_result = object.pointer("/status/result").is_some();
        let observed = if has_result { requests(object)? } else { "nothing measured".to_owned() };
        let counted = served(&redis::calls(&self.namespace, "deployment/redis").await?);
        self.ledger.observed = format!("{observed}; the server counted {counted}");
        if has_result {
            let may = bounds(object)?;
            let agrees = if expected.counted_more { counted >= *may.start() } else { may.contains(&counted) };
            ensure!(agrees, "the server counted {counted} requests, but the benchmark {may:?}");
        }
        check_ending(object, expected, busy)?;
        let same = self.run.as_ref().is_none_or(|run| *run == object["status"]["runId"]);
        ensure!(same, "{:?} has become another run: {}", self.run, object["status"]);
        if has_result {
            check_numbers(object)?;
            check_errors(object)?;
        }
        // The last event is published after the last status, so it is there once the objects are deleted.
        let cleared = self.check_objects(object).await;
        let told = events::told(&self.namespace, &self.uid).await?;
        self.ledger.events = shown(&told);
        events::check(&told, expected.repeat, object)?;
        self.history.check(!expected.repeat.is_empty())?;
        cleared
    }

    /// After the end, only the ConfigMaps in the status may remain.
    async fn check_objects(&mut self, object: &Value) -> Result<()> {
        let artifacts: Vec<String> = list(object, "/status/artifacts")
            .iter()
            .filter_map(|artifact| artifact["configMap"].as_str().map(str::to_owned))
            .collect();
        let uid = self.uid.clone();
        let cleared = cleared(&self.namespace, |objects| objects.holds_only(&uid, &artifacts)).await;
        let left = Objects::of(&self.namespace).await?;
        self.ledger.left = format!("{} before, {} after", self.before.summary(&uid), left.summary(&uid));
        cleared
    }
}

fn epoch(object: &Value) -> u64 {
    object.pointer("/status/conductorEpoch").and_then(Value::as_u64).unwrap_or(0)
}

fn requests(object: &Value) -> Result<String> {
    let part = |name: &str| count(object, &format!("/status/result/requests/{name}"));
    let optional = |name: &str| part(name).unwrap_or(0);
    let mut text = format!(
        "{} = {} + {} + {} + {}",
        part("scheduled")?,
        part("succeeded")?,
        part("errors")?,
        part("unsent")?,
        optional("unknown")
    );
    if optional("inFlight") > 0 {
        text = format!("{text}, and {} in flight", optional("inFlight"));
    }
    let kinds = list(object, "/status/result/errors").iter().filter(|error| error["count"].as_u64() > Some(0));
    let kinds: Vec<String> =
        kinds.map(|error| format!("{} {}", error["kind"].as_str().unwrap_or_default(), error["count"])).collect();
    if !kinds.is_empty() {
        text = format!("{text} ({})", kinds.join(", "));
    }
    Ok(text)
}

/// The errors by kind must sum to all errors, including those of the warm-up.
fn check_errors(object: &Value) -> Result<()> {
    let result = &object["status"]["result"];
    if result.pointer("/truncated/errors").and_then(Value::as_u64) > Some(0) {
        return Ok(());
    }
    let by_kind: u64 = list(result, "/errors").iter().filter_map(|error| error["count"].as_u64()).sum();
    let warmup = result.pointer("/warmup/errors").and_then(Value::as_u64).unwrap_or(0);
    let errors = count(result, "/requests/errors")?;
    ensure!((errors..=errors + warmup).contains(&by_kind), "{errors} errors, but {by_kind} by kind: {result}");
    Ok(())
}

/// Returns whether this reason is a delay that other work on the machine may cause: of the shards, or of requests that were due at the end
/// of the load and had not been sent, while none failed.
fn is_of_the_machine(status: &Value, reason: &Value) -> bool {
    let requests = |name: &str| status["result"]["requests"][name].as_u64().unwrap_or(0);
    match reason["reason"].as_str() {
        // The same as `ReasonKind::is_of_the_generator`.
        Some("GeneratorCPU" | "SendLate" | "ReceiveLate" | "GeneratorDelay") => true,
        Some("Errors") => requests("errors") == 0 && requests("unsent") == requests("unsentAtEnd"),
        _ => false,
    }
}

/// Returns whether a Degraded verdict counts as Valid: the fault explains every reason, or a busy machine does by delays, and possibly by a
/// rate missed because of them. `GeneratorDelay` needs no busy machine: it is judged in microseconds, which three nodes on one machine take
/// from each other.
fn is_excused(status: &Value, expected: &Expected<'_>, is_busy: bool) -> bool {
    let found = || list(status, "/verdict/reasons").iter().filter(|reason| reason["severity"] != "Valid");
    let doubt = |reason: &Value| reason["reason"].as_str().is_some_and(|kind| expected.doubts.contains(&kind));
    let delay = |reason: &Value| reason["reason"] == "GeneratorDelay" || is_busy && is_of_the_machine(status, reason);
    let late = found().any(delay);
    let missed = |reason: &Value| is_busy && late && reason["reason"] == "RateMissed";
    status["verdict"]["value"] == "Degraded"
        && (late || found().any(doubt))
        && found().all(|reason| doubt(reason) || delay(reason) || missed(reason))
}

/// Phase, conditions, verdict and lost shards must be consistent.
fn check_ending(object: &Value, expected: &Expected<'_>, busy: Option<&str>) -> Result<()> {
    let status = &object["status"];
    ensure!(phase(object) == expected.phase, "{} instead of {}: {status}", phase(object), expected.phase);
    let succeeded = phase(object) == "Succeeded";
    let is = |kind: &str| condition(object, kind);
    ensure!(is("Reconciling") == Some("False"), "finished, but still reconciling: {status}");
    ensure!((is("Complete") == Some("True")) == succeeded, "Complete is {:?}: {status}", is("Complete"));
    ensure!((is("Failed") == Some("True")) == (phase(object) == "Failed"), "Failed is {:?}: {status}", is("Failed"));
    let verdict = status["verdict"]["value"].as_str();
    match verdict {
        Some(verdict) => {
            let of_the_fault = if is_excused(status, expected, busy.is_some()) { "Valid" } else { verdict };
            ensure!(
                expected.verdicts.contains(&of_the_fault),
                "the verdict is {verdict}: {}; {}",
                status["verdict"],
                busy.unwrap_or("the machine was not busy")
            );
            let valid = if verdict == "Invalid" { "False" } else { "True" };
            ensure!(is("Valid") == Some(valid), "the verdict is {verdict}, but Valid is {:?}", is("Valid"));
        }
        None => ensure!(expected.verdicts.is_empty(), "no verdict: {status}"),
    }
    let lost = status.pointer("/shards/lost").and_then(Value::as_u64).unwrap_or(0);
    ensure!(lost == expected.lost, "{lost} shards are lost: {}", status["shards"]);
    let named = list(status, "/verdict/reasons").iter().any(|reason| reason["reason"] == "ShardLost");
    ensure!(verdict.is_none() || named == (lost > 0), "{lost} lost shards, but the verdict is {}", status["verdict"]);
    Ok(())
}

/// The objects owned by benchmarks of a namespace: kind, name, and the UID of the owner.
#[derive(Debug, Default)]
struct Objects {
    all: Vec<(&'static str, String, String)>,
}

impl Objects {
    async fn of(namespace: &TestNamespace) -> Result<Self> {
        let mut all = Vec::new();
        all.extend(owned::<Job>(namespace, "Job").await?);
        all.extend(owned::<Secret>(namespace, "Secret").await?);
        all.extend(owned::<ConfigMap>(namespace, "ConfigMap").await?);
        // Pods are owned by their Job, which is owned by the benchmark.
        let of_jobs = ListParams::default().labels("batch.kubernetes.io/job-name");
        for pod in namespace.api::<Pod>().list(&of_jobs).await?.items {
            let job = pod.labels().get("batch.kubernetes.io/job-name").cloned().unwrap_or_default();
            let owner = all.iter().find(|(kind, name, _)| *kind == "Job" && *name == job);
            let owner = owner.map_or_else(|| ORPHAN.to_owned(), |(_, _, owner)| owner.clone());
            all.push(("Pod", pod.name_any(), owner));
        }
        Ok(Self { all })
    }

    fn belonging<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a (&'static str, String, String)> + 'a {
        self.all.iter().filter(move |(_, _, owner)| owner == uid || owner == ORPHAN)
    }

    fn is_clear_of(&self, uid: &str) -> bool {
        self.belonging(uid).next().is_none()
    }

    fn holds_only(&self, uid: &str, artifacts: &[String]) -> bool {
        self.belonging(uid).all(|(kind, name, _)| *kind == "ConfigMap" && artifacts.contains(name))
            && artifacts.iter().all(|name| self.belonging(uid).any(|(_, has, _)| has == name))
    }

    fn summary(&self, uid: &str) -> String {
        let count = |kind: &str| self.belonging(uid).filter(|(of, _, _)| *of == kind).count();
        let counts: Vec<String> = ["Job", "Secret", "ConfigMap", "Pod"]
            .into_iter()
            .filter(|kind| count(kind) > 0)
            .map(|kind| format!("{} {kind}", count(kind)))
            .collect();
        if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
    }
}

/// Stands for the owner of a pod whose Job is deleted.
const ORPHAN: &str = "no Job";

async fn owned<K>(namespace: &TestNamespace, kind: &'static str) -> Result<Vec<(&'static str, String, String)>>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    K::DynamicType: Default,
{
    let all = namespace.api::<K>().list(&ListParams::default()).await?;
    let owner = |object: &K| {
        let owners = object.owner_references();
        owners.iter().find(|owner| owner.kind == "RedisBenchmark").map(|owner| owner.uid.clone())
    };
    Ok(all.items.iter().filter_map(|object| Some((kind, object.name_any(), owner(object)?))).collect())
}

async fn cleared(namespace: &TestNamespace, is_clear: impl Fn(&Objects) -> bool) -> Result<()> {
    wait::answer("cleared away", CLEARED_WITHIN, || async {
        let objects = Objects::of(namespace).await?;
        if is_clear(&objects) { Ok(Some(())) } else { anyhow::bail!("left: {:?}", objects.all) }
    })
    .await
}

fn shown(told: &events::Told) -> String {
    let one = |(reason, count): (&String, &u64)| {
        if *count == 1 { reason.clone() } else { format!("{reason} x{count}") }
    };
    told.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_fault_or_a_busy_machine_excuses_a_degraded_verdict() {
        let expected = Expected { doubts: &["Unreconciled"], ..Expected::default() };
        let excused = |value: &str, reasons: &[&str], is_busy: bool| {
            let reason = |reason: &&str| json!({"reason": reason, "severity": value});
            let reasons: Vec<Value> = reasons.iter().map(reason).collect();
            let requests = json!({"errors": 0, "unsent": 3, "unsentAtEnd": 3});
            let status = json!({"verdict": {"value": value, "reasons": reasons}, "result": {"requests": requests}});
            is_excused(&status, &expected, is_busy)
        };
        assert!(excused("Degraded", &["GeneratorDelay", "RateMissed", "Errors"], true));
        assert!(!excused("Degraded", &["SendLate"], false), "the machine was not busy");
        assert!(excused("Degraded", &["GeneratorDelay"], false), "nodes that share processors");
        assert!(!excused("Degraded", &["RateMissed"], true), "nothing explains it");
        assert!(
            excused("Degraded", &["Unreconciled"], false) && excused("Degraded", &["Unreconciled", "SendLate"], true)
        );
        assert!(!excused("Degraded", &["Unreconciled", "StartSkew"], true));
        assert!(!excused("Invalid", &["Errors"], true) && !excused("Degraded", &[], true));
    }
}
