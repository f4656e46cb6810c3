//! The operator dies at two critical points.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use redisbench_e2e::benchmark::{SOON, is_finished, phase};
use redisbench_e2e::faults::{CONTROL, Cut, Expected, Lag, Process, Report, operator};
use redisbench_e2e::json::{count, text};
use redisbench_e2e::{Benchmark, TestNamespace, redis, run_alone, wait};
use redisbench_testkit::processes::SIGKILL;
use serde_json::{Value, json};

/// The delay of the start's calls to the held shards, in which the test must observe that the start is recorded.
const LAG: Duration = Duration::from_millis(1500);
const SHARDS: usize = 3;

/// Only one shard has accepted the start; the calls never reach the others.
#[test]
fn after_the_first_start_call() {
    run_alone(|namespace| async move {
        let (benchmark, lags) = nearly_started(&namespace).await?;
        let promised = "the attempt is given up, all are armed again, and the next attempt starts all of them; the earlier load is in no result";
        let fault = format!("operator killed when 1 of {SHARDS} shards had accepted the start");
        let mut report = Report::open(&namespace, &benchmark, &fault, promised).await?;
        kill_when_recorded(&namespace, &benchmark, &lags).await?;
        drop(lags);
        report.fault_ended();
        report.taken_over().await?;
        let runs = |o: &Value| is_finished(o) || phase(o) == "Running" && o["status"]["trial"]["attempt"] == 2;
        report.recovers("running", SOON, runs).await?;
        let expected = Expected { counted_more: true, repeat: &["Started"], ..Expected::default() };
        let object = report.close(&expected).await?;
        ensure!(count(&object, "/status/trial/attempt")? == 2, "not attempt 2: {}", object["status"]["trial"]);
        Ok(())
    });
}

/// A benchmark that starts as soon as its Redis replies. The call reaches one shard at once, and the others later.
async fn nearly_started(namespace: &TestNamespace) -> Result<(Benchmark, Vec<Lag>)> {
    operator::fresh(&namespace.client).await?;
    redis::standalone(namespace, "redis").await?;
    let server = Process::of(&redis::pod_of(namespace, "redis").await?)?.stop().await?;
    let spec = json!({
        "load": {"duration": "15s", "connections": 6, "timeouts": {"connect": "60s"}},
        // High, because the delay makes the clocks uncertain.
        "shards": {"count": SHARDS, "maxStartSkew": "5s"},
    });
    let benchmark = Benchmark::create(namespace, "run", &spec).await?;
    let pods = shards(&benchmark, SHARDS).await?;
    let lags = pods[1..].iter().map(|pod| Lag::make(pod, CONTROL, LAG)).collect::<Result<Vec<_>>>()?;
    server.go_on();
    Ok((benchmark, lags))
}

/// Waits until all shards' pods are running, and returns them.
async fn shards(benchmark: &Benchmark, number: usize) -> Result<Vec<Pod>> {
    wait::answer("running shards", SOON, || async {
        let pods = benchmark.pods().await?;
        let runs = |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        Ok((pods.iter().filter(runs).count() == number).then_some(pods))
    })
    .await
}

/// Kills the operator once the start is recorded, holds the calls in transit, and checks which shards start.
async fn kill_when_recorded(namespace: &TestNamespace, benchmark: &Benchmark, lags: &[Lag]) -> Result<()> {
    let victim = Process::of(&operator::leader(&namespace.client).await?)?;
    // Its instant may not have come yet.
    let recorded = |o: &Value| o.pointer("/status/trial/startAt").is_some() || is_finished(o);
    let object = benchmark.wait("a start recorded", SOON, recorded).await?;
    // The call reaches the one without a delay now, and the others only after the whole delay.
    tokio::time::sleep(LAG / 3).await; // a part of the injected delay
    lags.iter().try_for_each(Lag::hold)?;
    victim.send(SIGKILL)?;
    let start: Timestamp = text(&object, "/status/trial/startAt")?.parse()?;
    // A start after its instant is refused, so from then on no other shard can begin this attempt.
    let wait = Duration::try_from(start.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(wait + Duration::from_millis(300)).await;
    let pods = benchmark.pods().await?;
    let expected: BTreeSet<_> = pods[..1].iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
    wait::answer("loaded only by the shard that got the start", Duration::from_secs(12), || async {
        let active = active(namespace).await?;
        ensure!(active == expected, "loaded by {active:?}, not by {expected:?}");
        Ok(Some(()))
    })
    .await
}

/// The addresses that sent requests within the last second.
async fn active(namespace: &TestNamespace) -> Result<BTreeSet<String>> {
    let list = redis::cli(namespace, "deployment/redis", &["client", "list"]).await?;
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
    run_alone(|namespace| async move {
        operator::fresh(&namespace.client).await?;
        redis::standalone(&namespace, "redis").await?;
        let benchmark = Benchmark::create(&namespace, "run", &json!({"load": {"duration": "15s"}})).await?;
        benchmark.measuring().await?;
        let promised = "the shards keep what they measured; the next operator fetches it";
        // Before the load ends, because it watches the machine.
        let mut report = Report::open(&namespace, &benchmark, "operator killed while collecting", promised).await?;
        let cut = held_collecting(&benchmark).await?;
        operator::kill(&namespace.client).await?;
        report.fault_ended();
        report.taken_over().await?;
        cut.heal();
        report.close(&Expected::default()).await?;
        Ok(())
    });
}

/// One of two shards has returned its final snapshot; the other's cannot be fetched until the cut heals.
async fn held_collecting(benchmark: &Benchmark) -> Result<Cut> {
    let cut = Cut::make(&shards(benchmark, 2).await?[1], CONTROL)?;
    let collecting = |o: &Value| phase(o) == "Collecting" || is_finished(o);
    let object = benchmark.wait("collecting", SOON, collecting).await?;
    ensure!(!is_finished(&object), "finished without its last snapshot: {}", object["status"]);
    Ok(cut)
}
