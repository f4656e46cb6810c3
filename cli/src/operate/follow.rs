//! Follows a benchmark on the cluster to its end.

use std::io::{self, IsTerminal as _, Write as _};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watch_object};
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::RedisBenchmarkStatus;
use redisbench_benchmark::report::conditions::{condition, find};
use serde_json::json;
use tokio::sync::oneshot;

use crate::arguments::Output;
use crate::cluster::answer::{self, Question};
use crate::cluster::{Cluster, FIELD_MANAGER};
use crate::exit::{BAD, USAGE, exit_code};
use crate::interrupt::Interrupts;
use crate::progress::Display;
use crate::render;

/// The display is refreshed at least this often.
const TICK: Duration = Duration::from_millis(500);
/// A restarted API server may refuse for a moment, until it knows all roles.
const REFUSALS: u32 = 3;
/// A running operator has reacted by then.
const OPERATOR_ANSWERS: Duration = Duration::from_secs(15);

/// The outcome of following.
#[derive(Debug)]
pub enum End {
    /// The benchmark has finished.
    Finished(Box<RedisBenchmark>),
    /// The operator refused the spec.
    NotAccepted(String),
    /// The benchmark was deleted.
    Deleted,
    /// The user stopped following.
    Left,
}

/// The effect of the first interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInterrupt {
    /// Asks whether to abort the benchmark. The second one stops following.
    AsksToAbort,
    /// Stops following.
    Leaves,
}

/// Follows the benchmark `name`.
///
/// # Errors
/// If the benchmark cannot be aborted, or the API server refuses to show it. Broken watches are restarted.
pub async fn follow(
    cluster: &Cluster,
    name: &str,
    interrupts: &Interrupts,
    on_interrupt: OnInterrupt,
    mut display: Display,
) -> anyhow::Result<End> {
    let mut changes = pin!(watch_object(cluster.benchmarks(), name).default_backoff());
    let mut tick = tokio::time::interval(TICK);
    let begun = tokio::time::Instant::now();
    let mut benchmark: Option<RedisBenchmark> = None;
    let mut asked = false;
    let mut watching = true;
    let mut refusals = 0;
    let mut wondered = false;
    loop {
        tokio::select! {
            change = changes.next() => match change {
                Some(Ok(Some(present))) => {
                    (watching, refusals) = (true, 0);
                    if let Some(end) = end(&present) {
                        display.clear();
                        return Ok(end);
                    }
                    benchmark = Some(present);
                }
                Some(Ok(None)) if benchmark.is_some() => return Ok(End::Deleted),
                Some(Ok(None)) => {}
                Some(Err(error)) => {
                    if let Some(refusal) = refusal(&error, &cluster.namespace) {
                        refusals += 1;
                        if refusals == REFUSALS {
                            display.clear();
                            anyhow::bail!(refusal);
                        }
                    } else {
                        refusals = 0;
                        if std::mem::take(&mut watching) {
                            let why = answer::brief(&error);
                            display.note(&format!("lost the connection to the cluster, retrying: {why}"));
                        }
                    }
                }
                None => anyhow::bail!("the watch ended"),
            },
            _ = tick.tick() => {}
            () = interrupts.first(), if !asked => {
                asked = true;
                display.clear();
                if on_interrupt == OnInterrupt::Leaves {
                    return Ok(End::Left);
                }
                match wants_abort(interrupts, "abort the benchmark and keep the partial result?").await {
                    Some(true) => {
                        abort(cluster, name).await?;
                        display.note("aborting: waiting for the partial result; press Ctrl-C again to exit");
                    }
                    Some(false) => {}
                    None => return Ok(End::Left),
                }
            }
            () = interrupts.second() => {
                display.clear();
                return Ok(End::Left);
            }
        }
        match &benchmark {
            Some(benchmark) if benchmark.status.is_some() => display.show(benchmark, Timestamp::now()),
            _ if !wondered && begun.elapsed() >= OPERATOR_ANSWERS => {
                wondered = true;
                display.note(
                    "no operator has picked it up yet; check that redisbench-operator runs and watches this namespace",
                );
            }
            _ => {}
        }
    }
}

/// The message about a refusal of the API server that needs a permission or a login; none about other errors.
fn refusal(error: &watcher::Error, namespace: &str) -> Option<String> {
    let (status, verb) = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => (status, "list"),
        watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => (status, "watch"),
        _ => return None,
    };
    let question = Question { what: "follow the benchmark", verb, resource: "redisbenchmarks", namespace };
    matches!(status.code, 401 | 403).then(|| answer::explain(status, question))
}

/// The outcome of following `benchmark`, if it ends.
fn end(benchmark: &RedisBenchmark) -> Option<End> {
    let status: &RedisBenchmarkStatus = benchmark.status.as_ref()?;
    if status.phase.is_terminal() {
        return Some(End::Finished(Box::new(benchmark.clone())));
    }
    let accepted = find(status, condition::ACCEPTED)?;
    // A condition of an earlier generation may no longer apply.
    let present = accepted.observed_generation == benchmark.metadata.generation;
    (accepted.status == "False" && present).then(|| End::NotAccepted(accepted.message.clone()))
}

/// Prints how following `name` ended, and returns the exit code.
///
/// # Errors
/// If standard output cannot be written.
pub fn finish(end: End, cluster: &Cluster, name: &str, output: Output) -> anyhow::Result<u8> {
    match end {
        End::Finished(mut benchmark) => {
            // Hidden like in kubectl, because of its length.
            benchmark.metadata.managed_fields = None;
            render::print(&benchmark, output)?;
            return Ok(exit_code(benchmark.status.as_ref()));
        }
        End::NotAccepted(message) => {
            eprintln!("error: redisbenchmark/{name} is not accepted: {message}");
            return Ok(USAGE);
        }
        End::Deleted => eprintln!("redisbenchmark/{name} was deleted"),
        End::Left => eprintln!(
            "redisbenchmark/{name} continues; follow it with: kubectl redisbench watch -n {} {name}",
            cluster.namespace
        ),
    }
    Ok(BAD)
}

/// Returns whether there is a terminal to ask on.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on a terminal; elsewhere an interrupt means yes. None on a second interrupt.
pub async fn wants_abort(interrupts: &Interrupts, question: &str) -> Option<bool> {
    if !can_ask() {
        return Some(true);
    }
    eprint!("{question} [y/N] ");
    // The prompt reaches the terminal even if this fails.
    let _ = io::stderr().flush();
    let (tell, answer) = oneshot::channel();
    // A separate thread, because the runtime would wait at its end for one that still reads.
    std::thread::spawn(move || {
        let mut line = String::new();
        let yes = io::stdin().read_line(&mut line).is_ok() && matches!(line.trim(), "y" | "Y" | "yes");
        // Nothing receives it once the user has left.
        let _ = tell.send(yes);
    });
    tokio::select! {
        answer = answer => Some(answer.unwrap_or(false)),
        () = interrupts.second() => {
            eprintln!();
            None
        }
    }
}

/// Orders the abort of `name`.
///
/// # Errors
/// If the API server refuses, or cannot be reached.
pub async fn abort(cluster: &Cluster, name: &str) -> anyhow::Result<()> {
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"spec": {"abort": true}}));
    let namespace = &cluster.namespace;
    let question = Question { what: "abort the benchmark", verb: "patch", resource: "redisbenchmarks", namespace };
    let patched = cluster.benchmarks().patch(name, &parameters, &patch).await;
    patched.map(|_| ()).map_err(|error| answer::error(error, question))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn benchmark(status: &serde_json::Value) -> RedisBenchmark {
        serde_json::from_value(json!({
            "apiVersion": "redisbench.dev/v1alpha1",
            "kind": "RedisBenchmark",
            "metadata": {"name": "a", "generation": 2},
            "spec": {
                "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
                "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
                "load": {"type": "ClosedLoop", "duration": "10s"},
            },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_missing_permission_is_named_with_its_verb() {
        let forbidden = |code: u16| {
            let message = "redisbenchmarks is forbidden".to_owned();
            Box::new(kube::core::Status { code, message, ..kube::core::Status::default() })
        };
        let list = watcher::Error::InitialListFailed(kube::Error::Api(forbidden(403)));
        let text = refusal(&list, "perf").unwrap();
        assert!(text.ends_with("kubectl -n perf auth can-i list redisbenchmarks"), "{text}");
        let watch = watcher::Error::WatchStartFailed(kube::Error::Api(forbidden(403)));
        let text = refusal(&watch, "perf").unwrap();
        assert!(text.ends_with("kubectl -n perf auth can-i watch redisbenchmarks"), "{text}");
        assert_eq!(refusal(&watcher::Error::WatchError(forbidden(500)), "perf"), None);
        assert_eq!(refusal(&watcher::Error::NoResourceVersion, "perf"), None);
    }

    #[test]
    fn terminal_phases_end_it() {
        assert!(matches!(end(&benchmark(&json!({"phase": "Aborted"}))), Some(End::Finished(_))));
        assert!(end(&benchmark(&json!({"phase": "Running"}))).is_none());
    }

    #[test]
    fn refusal_counts_for_the_present_generation_only() {
        let refused = |generation: i64| {
            json!({"phase": "Pending", "conditions": [{
                "type": "Accepted", "status": "False", "reason": "InvalidSpec", "message": "spec.load: wrong",
                "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]})
        };
        assert!(end(&benchmark(&refused(1))).is_none());
        assert!(
            matches!(end(&benchmark(&refused(2))), Some(End::NotAccepted(message)) if message == "spec.load: wrong")
        );
    }
}
