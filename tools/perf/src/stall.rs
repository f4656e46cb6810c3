//! Load generators on a redis-server that stalls for half a second: the same stall for each of them, and the exact
//! latencies of callers, from the server's counts in the same run.

mod drain;
mod generators;
mod load;
mod report;
mod run;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use redisbench_testkit::servers::{RedisServer, calls};

use crate::bench::Bench;
use crate::clients::preload;
use crate::machine::{COMMIT, COMPILER, Machine, REDIS_SERVER, version};
use crate::servers::{Kind, Servers};
use drain::Drain;
use generators::Generator;
use load::RATE;
use run::Run;

/// The time at which the server stops, and for how long.
const STOP_AT: Duration = Duration::from_secs(4);
const STOP: Duration = Duration::from_millis(500);

const LOOK: Duration = Duration::from_millis(1);
/// The time limit for the first request.
const LIMIT: Duration = Duration::from_secs(120);
/// After this, a generator does not catch up any more.
const PATIENCE: Duration = Duration::from_secs(4);

/// Stops a server under each generator, and prints and writes the generators' reports.
pub fn stall(bench: &Bench, resp_benchmark: Option<&Path>) -> anyhow::Result<()> {
    let machine = Machine::look(bench, &[COMMIT, COMPILER, REDIS_SERVER])?;
    let servers = Servers::start(bench, Kind::Redis)?;
    preload(bench, &servers)?;
    let mut runs = Vec::new();
    let folder = tempfile::tempdir().context("failed to create a directory for manifests")?;
    for generator in generators::all(&servers, resp_benchmark, folder.path())? {
        let name = generator.name;
        let run = run(bench, servers.redis()?, generator).with_context(|| name)?;
        println!("{}", report::line(&run));
        runs.push(run);
    }
    bench.write(|| report::document(&machine, bench, &runs))
}

fn run(bench: &Bench, server: &RedisServer, generator: Generator) -> anyhow::Result<Run> {
    let mut watch = Watch(server.connection());
    let before = watch.answered()?;
    let (ended, drain) = thread::scope(|scope| {
        let running = scope.spawn(|| bench.run(&generator.line));
        let drain = stop(server, &mut watch, before, generator.keeps_rate);
        let ended = running.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the run panicked")));
        // A generator's failure is a better error than a stop that was not reached.
        Ok::<_, anyhow::Error>((ended?, drain?))
    })?;
    let reported = (generator.read)(&ended.output);
    Ok(Run {
        reported: reported.with_context(|| format!("it printed no readable report: {}", ended.output))?,
        version: version(bench, &generator.version)?,
        requests: watch.answered()? - before,
        generator,
        drain,
    })
}

/// Stops the server once, and looks how fast the generator catches up.
fn stop(server: &RedisServer, watch: &mut Watch, before: u64, keeps_rate: bool) -> anyhow::Result<Option<Drain>> {
    let waiting = Instant::now();
    let begin = loop {
        let answered = watch.answered()? - before;
        let now = Instant::now();
        if answered > 0 {
            break now.checked_sub(Duration::from_secs_f64(answered as f64 / RATE as f64)).unwrap_or(now);
        }
        anyhow::ensure!(waiting.elapsed() < LIMIT, "no load within {} s", LIMIT.as_secs());
        thread::park_timeout(LOOK);
    };
    until(begin + STOP_AT);
    let answered = watch.answered()?;
    let stopped = Instant::now();
    server.pause();
    until(stopped + STOP);
    let resumed = Instant::now();
    server.resume();
    if !keeps_rate {
        return Ok(None);
    }
    let stopped = (resumed - stopped).as_secs_f64();
    let mut drain = Drain { rate: RATE as f64, stopped, answered, samples: Vec::new() };
    while resumed.elapsed() < PATIENCE {
        let now = watch.answered()?;
        let since = resumed.elapsed().as_secs_f64();
        drain.samples.push((since, now));
        // All due requests except a hundredth of the backlog.
        if (now - answered) as f64 + 100.0 > (stopped + since) * drain.rate {
            break;
        }
        thread::park_timeout(LOOK);
    }
    Ok(Some(drain))
}

pub fn until(time: Instant) {
    while let Some(left) = time.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        thread::park_timeout(left);
    }
}

/// Asks the server for its own count, on a connection that stays open.
pub struct Watch(pub redis::Connection);

impl Watch {
    /// The number of GETs that the server has executed.
    pub fn answered(&mut self) -> anyhow::Result<u64> {
        let text: String =
            redis::cmd("INFO").arg("commandstats").query(&mut self.0).context("failed to get redis-server's counts")?;
        Ok(calls(&text).get("get").copied().unwrap_or(0))
    }
}
