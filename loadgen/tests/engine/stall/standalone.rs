//! 20,000 requests per second for 10 s over 50 connections, and the server stops for half a second.

use redisbench_loadgen::engine::monotonic_nanoseconds;
use redisbench_testkit::servers::RedisServer;
use redisbench_wire::Detail;
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use redisbench_wire::plan::Bound;
use redisbench_wire::snapshot::Snapshot;

use super::drain::{Drain, Sample};
use super::quiet::{alone, until};
use crate::harness::{Bench, MILLISECOND, SECOND, open_loop, operation, plan, standalone};

const RATE: u64 = 20_000;
const REQUESTS: u64 = 10 * RATE;
const CONNECTIONS: u32 = 50;
const STOP: u64 = 500 * MILLISECOND;

#[derive(Clone, Copy, Debug)]
enum Means {
    /// The process is stopped: the kernel accepts data, but nothing is read.
    Signal,
    /// The server sleeps in a command.
    DebugSleep,
}

/// Retries on a machine that is too busy to sample the drain.
const TRIES: u32 = 3;

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_stopped_process() {
    for pipeline in [1, 16] {
        told_as_it_was(Means::Signal, pipeline).await;
    }
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_sleeping_server() {
    for pipeline in [1, 16] {
        told_as_it_was(Means::DebugSleep, pipeline).await;
    }
}

async fn told_as_it_was(means: Means, pipeline: u32) {
    let _turn = alone().await;
    for _ in 0..TRIES {
        let stalled = stall(means, pipeline).await;
        // Checks only whether the run can be evaluated, independent of its latencies.
        if [2000.0, 200.0].into_iter().all(|count| stalled.drain.is_seen(count)) && stalled.caught_up.is_some() {
            return stalled.check(pipeline);
        }
        println!("the machine is too busy to see the drain: {:?}", stalled.drain);
    }
    panic!("the machine is too busy to see the drain");
}

/// A run with one stop.
struct Stalled {
    drain: Drain,
    /// Right before the stop.
    before: Snapshot,
    /// Once the backlog was gone.
    caught_up: Option<Snapshot>,
    end: Snapshot,
}

async fn stall(means: Means, pipeline: u32) -> Stalled {
    let server = RedisServer::start(&["--enable-debug-command", "local"]);
    let mut plan = plan();
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    plan.load = open_loop(RATE);
    plan.connections = CONNECTIONS;
    plan.pipeline = pipeline;
    // The last requests are due right before the end of the 10 s, and may be sent a little later.
    plan.bound = Bound::Requests { count: REQUESTS, max_nanoseconds: 60 * SECOND };
    // Keep snapshots cheap, because they are taken while the worker catches up.
    (plan.breakdown.operation, plan.breakdown.node) = (false, false);
    let mut bench = Bench::connected(plan, standalone(&server), 1).await;
    let start = monotonic_nanoseconds() + 20 * MILLISECOND;
    bench.engine.start(start, 1).unwrap();
    until(start + 4 * SECOND).await;
    let before = bench.live().await;
    let stop = stop(&server, means).await;
    let mut drain = Drain { start, gap: SECOND / RATE, stop, samples: Vec::new() };
    let mut caught_up = None;
    while caught_up.is_none() && monotonic_nanoseconds() < stop.1 + 4 * SECOND {
        let snapshot = bench.engine.snapshot(Detail::Live).await.unwrap();
        drain.samples.push(Sample { time: snapshot.taken_nanoseconds, answered: snapshot.total.succeeded });
        // Less than 1 % of the backlog.
        caught_up = (snapshot.total.in_flight < 100).then_some(snapshot);
    }
    Stalled { drain, before, caught_up, end: bench.finished(1).await }
}

/// Stops the server. Returns when it stopped and continued.
async fn stop(server: &RedisServer, means: Means) -> (u64, u64) {
    match means {
        Means::Signal => {
            let from = monotonic_nanoseconds();
            server.pause();
            until(from + STOP).await;
            let to = monotonic_nanoseconds();
            server.resume();
            (from, to)
        }
        Means::DebugSleep => {
            let mut connection = server.connection();
            let from = monotonic_nanoseconds();
            redis::cmd("DEBUG").arg("SLEEP").arg(STOP as f64 / SECOND as f64).exec(&mut connection).unwrap();
            // The server's own measurement, because the answer waits for other commands that were read with this one.
            (from, from + 1000 * server.command_statistic("debug", "usec"))
        }
    }
}

impl Stalled {
    fn check(&self, pipeline: u32) {
        let total = self.end.total;
        assert_eq!((total.scheduled, total.succeeded, total.unsent), (REQUESTS, REQUESTS, 0), "{total:?}");
        let response = self.end.latency.response.decode(Kind::Request).unwrap();
        for (quantile, tolerance) in [(0.99, 0.01), (0.999, 0.005)] {
            let count = (1.0 - quantile) * REQUESTS as f64;
            let (expected, found) = (self.drain.exceeded_by(count), response.value_at_quantile(quantile) as f64);
            self.compare(&format!("quantile {quantile}, rho {:.3}", self.drain.rho(count)), expected, found, tolerance);
        }
        self.compare("added mean", self.drain.sum() / REQUESTS as f64, self.added_mean(), 0.03);
        // Only requests in flight at the stop waited for it after they were sent.
        let service = self.end.latency.service.as_ref().unwrap().decode(Kind::Request).unwrap();
        let long = service.count_between(self.drain.length() as u64 / 2, service.high());
        assert!(long <= u64::from(CONNECTIONS * pipeline), "{long} service times above half of the stop");
    }

    fn compare(&self, what: &str, expected: f64, found: f64, tolerance: f64) {
        let off = found / expected - 1.0;
        let line =
            format!("{what}: expected {:.3} ms, found {:.3} ms, {:+.2} %", expected / 1e6, found / 1e6, 100.0 * off);
        println!("{line}");
        assert!(off.abs() <= tolerance, "{line}; {:?}", self.drain);
    }

    /// The increase of the mean of all requests by the stop, compared with the rest of the run.
    fn added_mean(&self) -> f64 {
        let part = |histogram: &EncodedHistogram| {
            let histogram = histogram.decode(Kind::Request).unwrap();
            (histogram.len() as f64, histogram.mean() * histogram.len() as f64)
        };
        let (before, before_sum) = part(&self.before.latency.response);
        let (stopped, stopped_sum) = part(&self.caught_up.as_ref().unwrap().latency.response);
        let (end, end_sum) = part(&self.end.latency.response);
        let usual = (before_sum + end_sum - stopped_sum) / (before + end - stopped);
        (stopped_sum - before_sum - usual * (stopped - before)) / end
    }
}
