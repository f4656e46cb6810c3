//! Drivers, as a shard drives them: one that keeps the contract, and all that break it.

use std::path::Path;
use std::time::Duration;

use redisbench_clients::contract::{CHECKSUM_EVERY, Sharing};
use redisbench_clients::drivers::{Drivers, Patience};
use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::engine::{EngineConfig, EngineEvent, monotonic_nanoseconds};
use redisbench_testkit::servers::{RedisServer, wait_until};
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::{Bound, Library, Pool, TrialPlan};
use redisbench_wire::snapshot::Stage;
use tokio::sync::mpsc;

use crate::bench::{Bench, SECOND, client, constant, plan};
use crate::scripted::{Script, end, start};

const NAME: &str = "scripted";

fn drivers(directory: &Path, patience: Patience) -> Drivers {
    Drivers::listen(directory, vec![NAME.parse().unwrap()], patience).unwrap()
}

/// The driver that keeps the contract, and 2,000 requests through it.
fn trial(pool: Pool) -> TrialPlan {
    plan(client(Library::Driver { name: NAME.into() }, pool))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_makes_the_calls_of_several_trials() {
    let (server, directory) = (RedisServer::start(&[]), tempfile::tempdir().unwrap());
    // Longer than the bench waits.
    let drivers = drivers(directory.path(), Patience { step: Duration::from_secs(600), ..Patience::default() });
    let driver = start(directory.path().join("scripted.sock"), Script::Good);
    let connecting = |pool| Bench::connecting(trial(pool).of_shard(0), &server, &drivers);
    let mut next = Some(connecting(Pool::Shared));
    for (trials, following) in [(1, Some(Pool::Exclusive)), (2, None)] {
        let mut bench = next.take().unwrap();
        bench.ready().await;
        bench.driver.start(monotonic_nanoseconds() + SECOND / 20, 1).unwrap();
        bench.until(|event| matches!(event, EngineEvent::Finished { aborted: false, .. })).await;
        // It waits until this trial has left the driver.
        next = following.map(connecting);
        bench.driver.disconnect().await.unwrap();
        let snapshot = bench.end().await;
        assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (2_000, 2_000), "{:?}", snapshot.errors);
        assert_eq!((server.calls("get"), snapshot.stage), (trials * 2_000, Stage::Done));
        let usage = snapshot.client.unwrap();
        assert_eq!((usage.version.as_str(), usage.connections, usage.callers), ("scripted 1.0 (Rust)", 4, 8));
        assert!(usage.peak_bytes > 0, "{usage:?}");
    }
    drop(drivers);
    let seen = end(driver);
    let configured: Vec<_> = seen.configured.iter().map(|one| (one.sharing, one.connections, one.callers)).collect();
    assert_eq!(configured, [(Sharing::Shared, 4, 8), (Sharing::Exclusive, 4, 8)]);
    let most = 2 * (2_000_usize.div_ceil(usize::try_from(CHECKSUM_EVERY).unwrap()));
    assert_eq!((seen.calls, seen.checksums), (4_000, most));
}

/// Requests that are due while the server stands still wait for it, whatever the driver's times are.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_loop_counts_from_the_due_time() {
    const DUE: u64 = 250;
    let (server, directory) = (RedisServer::start(&[]), tempfile::tempdir().unwrap());
    let drivers = drivers(directory.path(), Patience::default());
    let driver = start(directory.path().join("scripted.sock"), Script::Good);
    let bound = Bound::Requests { count: 2 * DUE, max_nanoseconds: 60 * SECOND };
    let plan = TrialPlan { load: constant(1_000), bound, ..trial(Pool::Shared) };
    let mut bench = Bench::connecting(plan.of_shard(0), &server, &drivers);
    bench.ready().await;
    server.pause();
    let start = monotonic_nanoseconds() + SECOND / 20;
    bench.driver.start(start, 1).unwrap();
    wait_until("half of the load is due", || monotonic_nanoseconds() > start + 2 * DUE * SECOND / 1_000);
    server.resume();
    let snapshot = bench.finish().await;
    assert_eq!(snapshot.total.succeeded, 2 * DUE, "{:?}", snapshot.errors);
    let slow = |latency: &EncodedHistogram| {
        latency.decode(Kind::Request).unwrap().count_between(DUE * SECOND / 1_000, u64::MAX)
    };
    // The driver calls one after the other, so only one call waits in the library.
    let (response, service) = (slow(&snapshot.latency.response), slow(snapshot.latency.service.as_ref().unwrap()));
    assert!(response + 1 >= DUE && service <= 8, "{response} {service}");
    drop(drivers);
    end(driver);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_breaks_the_contract_ends_the_trial_by_name() {
    let server = RedisServer::start(&[]);
    for (script, what) in [
        (Script::Dies, "it closed its socket with "),
        (Script::Stalls, "it stalls: call "),
        (Script::FromTheFuture, "BadClock: the driver's times of call "),
        (Script::FromThePast, "BadClock: the driver's times of call "),
        (Script::Unknown, "the driver completed call 18446744073709551615, which was never sent"),
        (Script::Twice, " twice"),
        (Script::Unchecked, "the driver gave no checksum of call "),
        (Script::Floods, "it sent a Done without an outcome"),
        (Script::TooLarge, "the driver sent a frame of 1073741824 bytes"),
        (Script::Hello, "it sent Hello without being asked"),
        (Script::Bye, "it sent Bye without being asked"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let soon = Patience { outcome: Duration::from_millis(10), ..Patience::default() };
        let drivers = drivers(directory.path(), if script == Script::Stalls { soon } else { Patience::default() });
        let driver = start(directory.path().join("scripted.sock"), script);
        let mut plan = trial(Pool::Shared);
        if script == Script::Stalls {
            plan.timeouts.request_nanoseconds = SECOND / 10;
        }
        let mut bench = Bench::connecting(plan.of_shard(0), &server, &drivers);
        bench.ready().await;
        bench.driver.start(monotonic_nanoseconds() + SECOND / 20, 1).unwrap();
        let why = bench.failure().await;
        assert!(why.starts_with("client subject: driver scripted: ") && why.contains(what), "{script:?}: {why}");
        bench.driver.abort().unwrap();
        bench.end().await;
        drop(drivers);
        end(driver);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_names_no_driver_of_the_shard_is_refused() {
    let (server, directory) = (RedisServer::start(&[]), tempfile::tempdir().unwrap());
    let drivers = drivers(directory.path(), Patience::default());
    let refused = |plan: TrialPlan| {
        let topology = Topology::of(&[server.address()]);
        let config = EngineConfig::new(plan.of_shard(0), 1, topology);
        redisbench_clients::spawn(config, &drivers, mpsc::channel(64).0).unwrap_err().to_string()
    };
    let unknown = plan(client(Library::Driver { name: "other".into() }, Pool::Shared));
    assert_eq!(refused(unknown), "client subject: this shard was started without driver other; it has scripted");
    let many = TrialPlan { concurrency: Some(10_001), ..trial(Pool::Shared) };
    assert!(refused(many).starts_with("10001 callers in a shard are more than the 10000 of a driver"));
}
