//! The operator dies at every critical point.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use redisbench_e2e::benchmark::{SOON, is_finished, phase};
use redisbench_e2e::faults::operator::{self, Successor};
use redisbench_e2e::faults::{Account, CONTROL, Cut, Expected, Lag, Link, Process, Server, Signal};
use redisbench_e2e::json::{count, text};
use redisbench_e2e::{Benchmark, Space, redis, run_alone, wait};
use serde_json::{Value, json};

use crate::stage::{held_collecting, held_preparing, shards, start_recorded};

/// The expected behaviour whenever the operator dies after the start.
const CARRIED_ON: &str = "the shards continue on their own; the next operator takes over, and nothing is lost";

#[test]
fn in_mid_run() {
    run_alone(|space| killed_in_mid_run(space, "container restarted", Successor::SamePod));
}

#[test]
fn in_mid_run_with_its_pod() {
    run_alone(|space| killed_in_mid_run(space, "pod replaced", Successor::OtherPod));
}

async fn killed_in_mid_run(space: Space, how: &str, successor: Successor) -> Result<()> {
    operator::fresh(&space.client).await?;
    redis::standalone(&space, "redis").await?;
    let benchmark = Benchmark::create(&space, "run", &json!({"load": {"duration": "12s"}})).await?;
    benchmark.measuring().await?;
    let fault = format!("operator killed in mid-run, its {how}");
    let mut account = Account::open(&space, &benchmark, &fault, CARRIED_ON).await?;
    operator::kill(&space.client, successor).await?;
    account.fault_ended();
    account.taken_over().await?;
    let object = account.close(&Expected::default()).await?;
    ensure!(count(&object, "/status/result/requests/scheduled")? == 400 * 12, "not all of the run: {object}");
    Ok(())
}

#[test]
fn while_preparing() {
    run_alone(|space| async move {
        operator::fresh(&space.client).await?;
        redis::standalone(&space, "redis").await?;
        let (benchmark, cut) = held_preparing(&space).await?;
        let promised = "the next operator prepares them again, keeps the preload, and starts them";
        let mut account =
            Account::open(&space, &benchmark, "operator killed while preparing, one of two shards armed", promised)
                .await?;
        operator::kill(&space.client, Successor::SamePod).await?;
        cut.heal();
        account.fault_ended();
        account.taken_over().await?;
        account.close(&Expected::default()).await?;
        Ok(())
    });
}

#[test]
fn during_the_preload() {
    run_alone(|space| async move {
        operator::fresh(&space.client).await?;
        redis::standalone(&space, "redis").await?;
        let keys = json!({"workload": {"keys": {"count": 400_000}}});
        let benchmark = Benchmark::create(&space, "run", &keys).await?;
        wait::answer("preloading", SOON, || async {
            let size = redis::cli(&space, "deployment/redis", &["dbsize"]).await?;
            Ok((size.trim() != "0").then_some(()))
        })
        .await?;
        let promised = "the shards preload on their own; the next operator waits for them, and starts them";
        let mut account = Account::open(&space, &benchmark, "operator killed during the preload", promised).await?;
        operator::kill(&space.client, Successor::SamePod).await?;
        let object = benchmark.get().await?;
        ensure!(phase(&object) == "Preparing", "the preload had finished before the kill: {}", object["status"]);
        account.fault_ended();
        account.taken_over().await?;
        account.close(&Expected::default()).await?;
        Ok(())
    });
}

#[test]
fn in_mid_run_while_no_shard_can_be_reached() {
    run_alone(|space| async move {
        operator::fresh(&space.client).await?;
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({"load": {"duration": "30s"}})).await?;
        benchmark.measuring().await?;
        let pods = shards(&benchmark, 2).await?;
        let fault = "operator killed in mid-run, and the links to all shards cut until the next has retried for 10 s";
        let mut account = Account::open(&space, &benchmark, fault, CARRIED_ON).await?;
        let cuts = pods.iter().map(|pod| Cut::make(pod, Link::Port(CONTROL))).collect::<Result<Vec<_>>>()?;
        operator::kill(&space.client, Successor::SamePod).await?;
        account.taken_over().await?;
        let unreachable = |o: &Value| o.pointer("/status/shards/unreachable") == Some(&json!(2));
        benchmark.wait("told as unreachable", SOON, unreachable).await?;
        drop(cuts);
        account.fault_ended();
        let measuring = |o: &Value| is_finished(o) || o.pointer("/status/shards/unreachable") == Some(&json!(0));
        account.recovers("all reachable", SOON, measuring).await?;
        let object = account.close(&Expected::default()).await?;
        ensure!(count(&object, "/status/trial/attempt")? == 1, "another attempt: {}", object["status"]["trial"]);
        Ok(())
    });
}

/// The delay of the start's calls to the held shards, in which the test must observe that the start is recorded.
const LAG: Duration = Duration::from_millis(900);
const SHARDS: usize = 3;

#[test]
fn before_the_first_start_call() {
    run_alone(|space| between_start_calls(space, 0));
}

#[test]
fn after_the_first_start_call() {
    run_alone(|space| between_start_calls(space, 1));
}

#[test]
fn after_the_second_start_call() {
    run_alone(|space| between_start_calls(space, 2));
}

#[test]
fn after_the_last_start_call() {
    run_alone(|space| between_start_calls(space, SHARDS));
}

/// Kills the operator after `reached` of the shards have accepted the start. The call never reaches the others.
async fn between_start_calls(space: Space, reached: usize) -> Result<()> {
    let (benchmark, lags) = nearly_started(&space, reached).await?;
    let promised = if reached == SHARDS {
        "all continue with the attempt that they accepted"
    } else {
        "the attempt is abandoned, all are armed again, and the next attempt starts all of them; no result has the \
         earlier load"
    };
    let fault = format!("operator killed when {reached} of {SHARDS} shards had accepted the start");
    let mut account = Account::open(&space, &benchmark, &fault, promised).await?;
    kill_when_recorded(&space, &benchmark, &lags, reached).await?;
    drop(lags);
    account.fault_ended();
    account.taken_over().await?;
    let attempt = if reached == SHARDS { 1 } else { 2 };
    let runs = |o: &Value| is_finished(o) || phase(o) == "Running" && o["status"]["trial"]["attempt"] == attempt;
    account.recovers("running", SOON, runs).await?;
    let server = if matches!(reached, 1 | 2) { Server::CountedMore } else { Server::Agrees };
    let object = account.close(&Expected { server, repeat: &["Started"], ..Expected::default() }).await?;
    let attempt = if reached == SHARDS { 1 } else { 2 };
    ensure!(
        count(&object, "/status/trial/attempt")? == attempt,
        "not attempt {attempt}: {}",
        object["status"]["trial"]
    );
    Ok(())
}

#[test]
fn after_the_first_start_call_and_the_others_stay_cut_off() {
    run_alone(|space| async move {
        let (benchmark, lags) = nearly_started(&space, 1).await?;
        let promised = "unreachable shards may be running, so the attempt continues; once they report that they never \
                        started, the next attempt starts all";
        let fault = "operator killed when 1 of 3 shards had accepted the start, the others cut off until the end";
        let mut account = Account::open(&space, &benchmark, fault, promised).await?;
        kill_when_recorded(&space, &benchmark, &lags, 1).await?;
        account.taken_over().await?;
        let collecting = |o: &Value| phase(o) == "Collecting" || is_finished(o);
        benchmark.wait("collecting", SOON, collecting).await?;
        drop(lags);
        account.fault_ended();
        let again = |o: &Value| is_finished(o) || phase(o) == "Running" && o["status"]["trial"]["attempt"] == 2;
        account.recovers("running again", SOON, again).await?;
        let repeat = &["Started", "Restarting"];
        account.close(&Expected { server: Server::CountedMore, repeat, ..Expected::default() }).await?;
        Ok(())
    });
}

/// A benchmark that starts as soon as its Redis replies. The call reaches `reached` shards at once, and the others later.
async fn nearly_started(space: &Space, reached: usize) -> Result<(Benchmark, Vec<Lag>)> {
    operator::fresh(&space.client).await?;
    redis::standalone(space, "redis").await?;
    let server = space.api::<Pod>().list(&ListParams::default().labels("app=redis")).await?;
    let server = Process::of(server.items.first().context("no Redis")?)?.stop().await?;
    let spec = json!({
        "load": {"duration": "6s", "connections": 6, "timeouts": {"connect": "60s"}},
        // High, because the delay makes the clocks uncertain.
        "shards": {"count": SHARDS, "maxStartSkew": "3s"},
    });
    let benchmark = Benchmark::create(space, "run", &spec).await?;
    let pods = shards(&benchmark, SHARDS).await?;
    let lags = pods[reached..].iter().map(|pod| Lag::make(pod, CONTROL, LAG)).collect::<Result<Vec<_>>>()?;
    server.go_on();
    Ok((benchmark, lags))
}

/// Kills the operator once the start is recorded, holds the calls in transit, and checks which shards start.
async fn kill_when_recorded(space: &Space, benchmark: &Benchmark, lags: &[Lag], reached: usize) -> Result<()> {
    let victim = Process::of(&operator::leader(&space.client).await?)?;
    let object = start_recorded(benchmark).await?;
    if lags.is_empty() {
        // All have acknowledged, and the start instant has not come.
        benchmark.running().await?;
    } else {
        // The call reaches those without a delay now, and the others only after the whole delay.
        tokio::time::sleep(LAG / 3).await;
    }
    lags.iter().try_for_each(Lag::hold)?;
    victim.send(Signal::Kill)?;
    let start: Timestamp = text(&object, "/status/trial/startAt")?.parse()?;
    // A start after its instant is refused, so from then on no other shard can begin this attempt.
    let wait = Duration::try_from(start.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(wait + Duration::from_millis(300)).await;
    let pods = benchmark.pods().await?;
    let expected: BTreeSet<_> = pods[..reached].iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
    wait::answer("loaded by those shards alone that heard of the start", Duration::from_secs(5), || async {
        let active = active(space).await?;
        ensure!(active == expected, "loaded by {active:?}, not by {expected:?}");
        Ok(Some(()))
    })
    .await
}

/// The addresses that sent requests within the last second.
async fn active(space: &Space) -> Result<BTreeSet<String>> {
    let list = redis::cli(space, "deployment/redis", &["client", "list"]).await?;
    let busy = list.lines().filter(|line| {
        let has = |field: &str| line.split_whitespace().any(|word| word == field);
        has("idle=0") && (has("cmd=get") || has("cmd=set"))
    });
    let address = |line: &str| {
        let field = line.split_whitespace().find_map(|word| word.strip_prefix("addr="))?;
        field.rsplit_once(':').map(|(address, _)| address.to_owned())
    };
    Ok(busy.filter_map(address).collect())
}

#[test]
fn while_collecting() {
    run_alone(|space| async move {
        operator::fresh(&space.client).await?;
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({})).await?;
        let cut = held_collecting(&benchmark).await?;
        let promised = "the shards keep what they measured; the next operator fetches it";
        let mut account = Account::open(&space, &benchmark, "operator killed while collecting", promised).await?;
        operator::kill(&space.client, Successor::SamePod).await?;
        account.fault_ended();
        account.taken_over().await?;
        cut.heal();
        account.close(&Expected::default()).await?;
        Ok(())
    });
}
