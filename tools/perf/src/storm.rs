//! Many shards on a redis-server that stops for ten seconds, longer than requests wait: attempts to connect per second, and how fast the
//! load returns.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use redisbench_testkit::processes::Running;
use redisbench_testkit::servers::RedisServer;

use crate::bench::Bench;
use crate::machine::{COMMIT, COMPILER, Machine, REDIS_SERVER};
use crate::markdown;
use crate::servers::{Kind, Servers};
use crate::stall::{Watch, until};

/// Per shard. Each has one worker.
const CONNECTIONS: u32 = 50;
const RATE: u32 = 50;

const STOP: Duration = Duration::from_secs(10);
/// The load's rate is measured for this long, after as long without.
const BEFORE: Duration = Duration::from_secs(3);
/// The load is observed for this long afterwards.
const AFTER: Duration = Duration::from_secs(6);
/// The time limit for the first request.
const LIMIT: Duration = Duration::from_secs(120);

const LOOK: Duration = Duration::from_millis(50);
/// Over this many seconds a rate is measured.
const WINDOW: f64 = 0.5;

/// The load is back after this many seconds: all workers notice within a second, and the rate is measured afterwards.
const BACK: f64 = 1.0 + WINDOW;

/// Seconds since the beginning, and a count by then.
type Samples = Vec<(f64, u64)>;

/// A server that stopped under a load, and continued.
struct Stopped {
    shards: u32,
    /// Requests per second before.
    rate: f64,
    /// The connections that this machine had begun to open.
    opened: Samples,
    /// The time from the end of the stop until the load was back, in seconds.
    back: Option<f64>,
}

/// Stops a server under `shards` shards. Prints and writes the most attempts per second and the time until the load is back. Returns
/// whether both are within their limits.
pub fn storm(bench: &Bench, shards: u32) -> anyhow::Result<bool> {
    let machine = Machine::look(bench, &[COMMIT, COMPILER, REDIS_SERVER])?;
    let servers = Servers::start(bench, Kind::Redis)?;
    let line = format!(
        "kubectl-redisbench local --plain --target 127.0.0.1:{} --shards {shards} --connections {} --rate {} \
         --warmup 1s --duration 30s",
        servers.port(),
        CONNECTIONS * shards,
        RATE * shards
    );
    let mut command = bench.command(&line, &bench.client_cpu)?;
    let mut run = Running(command.stdout(Stdio::null()).spawn().context("failed to start the shards")?);
    let stopped = stop(servers.redis()?, &mut run, shards)?;
    // It stops its shards. Its verdict on this load does not matter.
    run.0.wait().context("failed to wait for the shards")?;
    let table = stopped.table();
    print!("{table}");
    bench.write(|| format!("{}{HOW}\n{table}", machine.header(bench, "A storm of reconnects", "bench-storm")))?;
    Ok(stopped.is_bounded() && stopped.is_back())
}

const HOW: &str = "\
Each shard has 50 connections and sends 50 GETs per second, all to one redis-server on the same machine. The server is stopped (SIGSTOP) for
10 s, longer than the timeout of requests, and continues. Do the shards' attempts to connect stay within their
[bound](../load.md#redirects-retries-and-timeouts), and does the load return at once?

Attempts are the connections that the whole machine begins to open (`ActiveOpens` of Linux): the most in any second of the stop and the 6 s
after it. The bound adds one connection per shard, from the program that conducts them. The load is back when the server executes
90 % of the rate before the stop in each of two successive half seconds; the time is counted from the end of the stop to the end of the
first. Its limit is 1.5 s: the workers notice within a second, and half a second is the measurement. A figure beyond its limit is bold.
";

impl Stopped {
    fn is_bounded(&self) -> bool {
        peak(&self.opened) <= bound(self.shards)
    }

    fn is_back(&self) -> bool {
        self.back.is_some_and(|seconds| seconds <= BACK)
    }

    fn table(&self) -> String {
        let marked = |text: String, is_met: bool| if is_met { text } else { format!("**{text}**") };
        let back = match self.back {
            Some(seconds) => format!("{seconds:.2} s"),
            None => format!("not within {} s", AFTER.as_secs()),
        };
        let heads =
            ["shards", "connections", "requests/s before", "most attempts/s", "bound", "load back after", "limit"];
        let cells = [
            self.shards.to_string(),
            (CONNECTIONS * self.shards).to_string(),
            format!("{:.0}", self.rate),
            marked(peak(&self.opened).to_string(), self.is_bounded()),
            bound(self.shards).to_string(),
            marked(back, self.is_back()),
            format!("{BACK} s"),
        ];
        markdown::table(heads, [cells])
    }
}

/// The most attempts per second at one server, as docs/load.md states. In addition, the conductor may connect to every shard.
fn bound(shards: u32) -> u64 {
    let scouts = (u64::from(shards) * 5 / 4).max(500);
    5_000 + scouts + u64::from(shards)
}

/// Stops the server under the load of `shards` shards.
fn stop(server: &RedisServer, run: &mut Running, shards: u32) -> anyhow::Result<Stopped> {
    let mut watch = Watch(server.connection());
    let waiting = Instant::now();
    while watch.answered()? == 0 {
        anyhow::ensure!(run.0.try_wait()?.is_none(), "the shards have ended before their load");
        anyhow::ensure!(waiting.elapsed() < LIMIT, "no load within {} s", LIMIT.as_secs());
        until(Instant::now() + LOOK);
    }
    until(Instant::now() + BEFORE);
    let (begin, before) = (Instant::now(), watch.answered()?);
    until(begin + BEFORE);
    let rate = (watch.answered()? - before) as f64 / begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let mut opened = vec![(0.0, active_opens()?)];
    server.pause();
    while begin.elapsed() < STOP {
        until(Instant::now() + LOOK);
        opened.push((begin.elapsed().as_secs_f64(), active_opens()?));
    }
    let resumed = Instant::now();
    server.resume();
    let mut answered = Samples::new();
    while resumed.elapsed() < AFTER {
        let count = watch.answered()?;
        answered.push((resumed.elapsed().as_secs_f64(), count));
        opened.push((begin.elapsed().as_secs_f64(), active_opens()?));
        until(Instant::now() + LOOK);
    }
    Ok(Stopped { shards, rate, opened, back: back(&answered, 0.9 * rate) })
}

/// The number of connections that this machine has begun to open. The server cannot count those that it did not accept.
fn active_opens() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/net/snmp").context("failed to read the kernel's counts")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = lines.next().zip(lines.next()).context("the kernel does not count TCP connections")?;
    let mut fields = names.split_whitespace().zip(values.split_whitespace());
    let (_, count) = fields.find(|(name, _)| *name == "ActiveOpens").context("the kernel counts no ActiveOpens")?;
    count.parse().with_context(|| format!("the kernel counts {count:?} ActiveOpens"))
}

/// The most of any second.
fn peak(samples: &[(f64, u64)]) -> u64 {
    let most = samples.iter().map(|(at, count)| {
        let first = samples.iter().find(|(first, _)| at - first <= 1.0);
        first.map_or(0, |(_, before)| count.saturating_sub(*before))
    });
    most.max().unwrap_or(0)
}

/// The time at which `rate` was reached and kept: the end of the first of two adjacent windows. What connections that are closed now had
/// sent before is executed at once, and is no load.
fn back(samples: &[(f64, u64)], rate: f64) -> Option<f64> {
    let window = |begin: usize| {
        let (from, before) = samples[begin];
        let length = samples[begin..].iter().position(|(at, _)| at - from >= WINDOW)?;
        let (at, count) = samples[begin + length];
        ((count - before) as f64 >= rate * (at - from)).then_some(begin + length)
    };
    let first = (0..samples.len()).find_map(|begin| window(begin).filter(|end| window(*end).is_some()))?;
    Some(samples[first].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 50 ms.
    fn samples(counts: impl IntoIterator<Item = u64>) -> Samples {
        counts.into_iter().enumerate().map(|(index, count)| (index as f64 * 0.05, count)).collect()
    }

    #[test]
    fn the_peak_is_that_of_one_second() {
        // 20 per second, and 100 at once after two seconds.
        let counts = (0..100).map(|step| step + if step > 40 { 100 } else { 0 });
        assert!((119..=120).contains(&peak(&samples(counts))));
        assert_eq!(peak(&[]), 0);
    }

    #[test]
    fn figures_beyond_their_limits_are_bold() {
        let row = |most: u64, back: Option<f64>| {
            let stopped = Stopped { shards: 200, rate: 9_999.6, opened: samples([0, most]), back };
            stopped.table().lines().last().unwrap_or_default().to_owned()
        };
        assert_eq!(row(5_700, Some(1.5)), "| 200 | 10000 | 10000 | 5700 | 5700 | 1.50 s | 1.5 s |");
        assert_eq!(row(5_701, Some(1.51)), "| 200 | 10000 | 10000 | **5701** | 5700 | **1.51 s** | 1.5 s |");
        assert_eq!(row(0, None), "| 200 | 10000 | 10000 | 0 | 5700 | **not within 6 s** | 1.5 s |");
    }

    #[test]
    fn a_burst_is_no_load_that_is_back() {
        let rate = |from: u64| samples((0..120).map(|step: u64| 5_000 * step.min(1) + 50 * step.saturating_sub(from)));
        let at = back(&rate(30), 900.0).unwrap();
        assert!((1.9..=2.05).contains(&at), "back after 1.5 s and a window, not {at}");
        assert_eq!(back(&rate(120), 900.0), None);
    }
}
