//! Requests that were sent late, because of the load generator or the target.

use std::process::{Child, Command};

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::histogram::Kind;
use redisbench_wire::snapshot::Snapshot;

use crate::harness::{MILLISECOND, open_loop, plan};
use crate::machine::{alone, easy, lasting, measuring, ready, until_silent};

pub const STALL: u64 = 300 * MILLISECOND;

/// Stops a process for 0.3 s. The child ends after the process has continued.
pub fn stall(process: u32) -> Child {
    let script = format!("kill -STOP {process}; sleep 0.3; kill -CONT {process}");
    Command::new("sh").args(["-c", &script]).spawn().unwrap()
}

fn p99(snapshot: &Snapshot) -> u64 {
    let lateness = snapshot.latency.lateness.as_ref().unwrap();
    lateness.decode(Kind::Request).unwrap().value_at_quantile(0.99)
}

#[tokio::test]
async fn a_stall_before_a_send_shows_as_lateness_of_our_own() {
    let _machine = alone().await;
    let server = RedisServer::start(&[]);
    let mut plan = lasting(plan(), 2000);
    // Connections always have room, because waiting for room does not count as delay: 1,024 requests take longer to become due than a busy
    // machine leaves them without replies.
    (plan.connections, plan.pipeline) = (32, 32);
    plan.load = open_loop(1000);
    let mut bench = ready(plan, &server).await;
    bench.start(1);
    measuring(&bench).await;
    stall(std::process::id()).wait().unwrap();
    let snapshot = bench.finished(1).await;
    // 15 % of the requests became due during the stall.
    assert!(p99(&snapshot) > STALL / 2, "{}", p99(&snapshot));
    let generator = snapshot.generator;
    assert!(generator.longest_delay_nanoseconds >= STALL * 9 / 10, "{generator:?}");
    assert!(generator.delayed_nanoseconds >= generator.longest_delay_nanoseconds, "{generator:?}");
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_stall_of_the_target_is_not_taken_for_our_own() {
    let _machine = alone().await;
    let server = RedisServer::start(&[]);
    let mut plan = lasting(plan(), 1000);
    plan.load = open_loop(1000);
    let mut bench = ready(plan, &server).await;
    for attempt in 1.. {
        bench.start(attempt);
        measuring(&bench).await;
        stall(server.pid()).wait().unwrap();
        let snapshot = bench.finished(attempt).await;
        // Two requests fill the two connections, and the others wait for room.
        assert!(p99(&snapshot) > STALL / 2, "{}", p99(&snapshot));
        // Another process may take the processor meanwhile, but not in every attempt.
        if snapshot.generator.delayed_nanoseconds < STALL / 4 {
            return;
        }
        assert!(attempt < 20, "{:?}", snapshot.generator);
    }
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_quiet_run_is_punctual() {
    let _machine = alone().await;
    // Far below the effect of a stall, even on a busy machine.
    let punctual =
        |snapshot: &Snapshot| snapshot.generator.delayed_nanoseconds < STALL / 6 && p99(snapshot) < STALL / 10;
    until_silent(easy(), punctual).await;
}
