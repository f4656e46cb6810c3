//! A shard ends, in every way in which a pod can end, at every critical point.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams};
use kube::{Api, ResourceExt};
use redisbench_e2e::benchmark::{SOON, message, phase, shard_index};
use redisbench_e2e::faults::{Account, CONTROL, Cut, Expected, Link, Process, Server, Signal, take_memory_away};
use redisbench_e2e::json::{count, list, text};
use redisbench_e2e::{Benchmark, Space, redis, run, wait};
use serde_json::{Value, json};

const INVALIDATE: &str =
    "the others continue; the lost shard counts up to its last report, the rest is unknown; Invalid, naming it";
const ABORT: &str = "the others are stopped, the partial result is kept; Failed, naming the lost shard";
const RESTART: &str = "the replacement is armed, and attempt 2 completes";

/// The requests of [`manifest`](redisbench_e2e::benchmark::manifest) in a run of twelve seconds.
const SCHEDULED: u64 = 400 * 12;

/// The way in which a shard ends.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Killed,
    Deleted,
    OutOfMemory,
    Evicted,
}

impl Loss {
    async fn befall(self, space: &Space, pod: &Pod) -> Result<()> {
        let pods: Api<Pod> = space.api();
        match self {
            Self::Killed => Process::of(pod)?.send(Signal::Kill)?,
            Self::Deleted => drop(pods.delete(&pod.name_any(), &DeleteParams::default()).await?),
            Self::OutOfMemory => take_memory_away(&Process::of(pod)?).await?,
            Self::Evicted => drop(pods.evict(&pod.name_any(), &EvictParams::default()).await?),
        }
        Ok(())
    }

    /// The text about it in the verdict.
    fn words(self) -> &'static str {
        match self {
            Self::Killed => "exit code 137",
            Self::Deleted | Self::Evicted => "was deleted",
            Self::OutOfMemory => "OOMKilled",
        }
    }
}

/// The newest pod of a shard.
async fn shard(benchmark: &Benchmark, index: u32) -> Result<Pod> {
    let pods = benchmark.pods().await?.into_iter().filter(|pod| shard_index(pod) == index);
    pods.max_by_key(|pod| pod.creation_timestamp().map(|time| time.0))
        .with_context(|| format!("no pod of shard {index}"))
}

fn lost(object: &Value) -> bool {
    object.pointer("/status/shards/lost").and_then(Value::as_u64) > Some(0)
}

/// A shard is lost during the run, and the others continue.
fn invalidated(loss: Loss, fault: &'static str) {
    run(move |space| async move {
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "lost", &json!({"load": {"duration": "12s"}})).await?;
        benchmark.measuring().await?;
        let mut account = Account::open(&space, &benchmark, fault, INVALIDATE).await?;
        account.fault_ended();
        loss.befall(&space, &shard(&benchmark, 1).await?).await?;
        account.recovers("counted as lost", SOON, lost).await?;
        let expected = Expected { verdicts: &["Invalid"], lost: 1, ..Expected::default() };
        let object = account.close(&expected).await?;
        let reasons = list(&object, "/status/verdict/reasons");
        let named = reasons.iter().find(|reason| reason["reason"] == "ShardLost").context("no ShardLost")?;
        let said = text(named, "/message")?;
        ensure!(said.contains("shard 1") && said.contains(loss.words()), "the verdict is {said:?}");
        let requests = &object["status"]["result"]["requests"];
        ensure!(count(requests, "/scheduled")? == SCHEDULED, "not the whole plan is accounted for: {requests}");
        ensure!(count(requests, "/unknown")? > 0, "a lost shard without an unknown rest: {requests}");
        Ok(())
    });
}

#[test]
fn killed() {
    invalidated(Loss::Killed, "shard killed in mid-run (SIGKILL), onLost Invalidate");
}

#[test]
fn deleted() {
    invalidated(Loss::Deleted, "shard's pod deleted in mid-run, onLost Invalidate");
}

#[test]
fn out_of_memory() {
    invalidated(Loss::OutOfMemory, "shard OOM-killed in mid-run, onLost Invalidate");
}

#[test]
fn evicted() {
    invalidated(Loss::Evicted, "shard evicted in mid-run (eviction API), onLost Invalidate");
}

#[test]
fn killed_and_aborted() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let spec = json!({"load": {"duration": "60s"}, "shards": {"onLost": "Abort"}});
        let benchmark = Benchmark::create(&space, "abort", &spec).await?;
        benchmark.measuring().await?;
        let fault = "shard killed in mid-run (SIGKILL), onLost Abort";
        let mut account = Account::open(&space, &benchmark, fault, ABORT).await?;
        account.fault_ended();
        Loss::Killed.befall(&space, &shard(&benchmark, 1).await?).await?;
        account.recovers("failed", SOON, |object| phase(object) == "Failed").await?;
        let expected = Expected {
            phase: "Failed",
            verdicts: &["Invalid"],
            lost: 1,
            repeat: &["ShardLost"],
            ..Expected::default()
        };
        let object = account.close(&expected).await?;
        let said = message(&object, "Failed");
        ensure!(said.contains("shard 1") && said.contains("exit code 137"), "Failed has {said:?}");
        ensure!(count(&object, "/status/result/requests/succeeded")? > 0, "nothing was kept: {}", object["status"]);
        Ok(())
    });
}

#[test]
fn killed_and_restarted() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        let spec = json!({"load": {"duration": "12s"}, "shards": {"onLost": "Restart"}});
        let benchmark = Benchmark::create(&space, "restart", &spec).await?;
        benchmark.measuring().await?;
        let fault = "shard killed in mid-run (SIGKILL), onLost Restart";
        let mut account = Account::open(&space, &benchmark, fault, RESTART).await?;
        account.fault_ended();
        Loss::Killed.befall(&space, &shard(&benchmark, 1).await?).await?;
        let again = |object: &Value| {
            phase(object) == "Running" && object.pointer("/status/trial/attempt").and_then(Value::as_u64) == Some(2)
        };
        account.recovers("attempt 2", SOON, again).await?;
        let expected = Expected { repeat: &["Started"], server: Server::CountedMore, ..Expected::default() };
        let object = account.close(&expected).await?;
        let requests = &object["status"]["result"]["requests"];
        ensure!(count(requests, "/scheduled")? == SCHEDULED, "not the requests of one attempt: {requests}");
        Ok(())
    });
}

#[test]
fn killed_before_the_start() {
    run(|space| async move {
        redis::standalone(&space, "redis").await?;
        // The preload takes long enough to kill a shard during it.
        let spec = json!({"workload": {"keys": {"count": 1_000_000}, "values": {"size": {"fixed": {"bytes": 8}}}}});
        let benchmark = Benchmark::create(&space, "early", &spec).await?;
        let victim = wait::answer("a process of shard 1", SOON, || async {
            let pod = shard(&benchmark, 1).await?;
            Ok(Process::of(&pod).ok().map(|_| pod))
        })
        .await?;
        let fault = "shard killed before the start (SIGKILL)";
        let promised = "the replacement prepares and is armed; the run starts with it, and nothing is lost";
        let mut account = Account::open(&space, &benchmark, fault, promised).await?;
        account.fault_ended();
        Loss::Killed.befall(&space, &victim).await?;
        account.recovers("running", SOON, |object| phase(object) == "Running").await?;
        let took_part = shard(&benchmark, 1).await?;
        ensure!(took_part.metadata.uid != victim.metadata.uid, "the shard that was killed takes part");
        // The preload of the killed shard is in no count.
        account.close(&Expected { server: Server::CountedMore, ..Expected::default() }).await?;
        Ok(())
    });
}

/// Two shards at the end of their load, one of which is unreachable for its result.
async fn held_in_collecting(space: &Space) -> Result<(Benchmark, Cut)> {
    redis::standalone(space, "redis").await?;
    let benchmark = Benchmark::create(space, "collecting", &json!({"load": {"duration": "8s"}})).await?;
    benchmark.measuring().await?;
    let cut = Cut::make(&shard(&benchmark, 1).await?, Link::Port(CONTROL))?;
    let first_is_in = |object: &Value| {
        phase(object) == "Collecting" && object.pointer("/status/shards/finished").and_then(Value::as_u64) == Some(1)
    };
    benchmark.wait("collecting, with one result", SOON, first_is_in).await?;
    Ok((benchmark, cut))
}

#[test]
fn killed_while_collecting() {
    run(|space| async move {
        let (benchmark, cut) = held_in_collecting(&space).await?;
        let fault = "shard killed while collecting, before its result was fetched";
        let mut account = Account::open(&space, &benchmark, fault, INVALIDATE).await?;
        account.fault_ended();
        Loss::Killed.befall(&space, &shard(&benchmark, 1).await?).await?;
        account.recovers("counted as lost", SOON, lost).await?;
        cut.heal();
        let object = account.close(&Expected { verdicts: &["Invalid"], lost: 1, ..Expected::default() }).await?;
        let scheduled = count(&object, "/status/result/requests/scheduled")?;
        ensure!(scheduled == 400 * 8, "{scheduled} requests are accounted for");
        Ok(())
    });
}

#[test]
fn killed_after_its_result_was_fetched() {
    run(|space| async move {
        let (benchmark, cut) = held_in_collecting(&space).await?;
        let fault = "shard killed while collecting, after its result was fetched, another one unreachable";
        let promised = "its result is safe, its replacement is never armed; nothing is lost";
        let mut account = Account::open(&space, &benchmark, fault, promised).await?;
        let victim = shard(&benchmark, 0).await?;
        Loss::Killed.befall(&space, &victim).await?;
        // Wait for the replacement by Kubernetes, which must not be mistaken for the lost shard.
        let replaced = wait::answer("a replacement", Duration::from_secs(60), || async {
            let pod = shard(&benchmark, 0).await?;
            Ok((pod.metadata.uid != victim.metadata.uid && Process::of(&pod).is_ok()).then_some(()))
        });
        replaced.await?;
        cut.heal();
        account.fault_ended();
        account.recovers("finished", SOON, |object| phase(object) == "Succeeded").await?;
        account.close(&Expected::default()).await?;
        Ok(())
    });
}
