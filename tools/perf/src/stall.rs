//! Load generators on a redis-server that stalls for half a second: the same stall for each of them, and the exact
//! latencies of callers, from the server's counts in the same run.

mod drain;
mod generators;
mod report;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use redisbench_testkit::servers::RedisServer;

use crate::clients::{Bench, borrowed};
use crate::machine::{self, Machine};
use crate::process::run;
use crate::servers::{Kind, Servers};
use drain::Drain;
use generators::{Generator, Reported};

/// Requests per second, length in seconds, and the time at which the server stops.
const RATE: u64 = 20_000;
const LENGTH: u64 = 10;
const STOP_AT: Duration = Duration::from_secs(4);
const STOP: Duration = Duration::from_millis(500);

const LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(1);
/// After this, a generator does not catch up any more.
const PATIENCE: Duration = Duration::from_secs(4);

/// A generator's run with a stall.
#[derive(Debug)]
struct Told {
    name: &'static str,
    version: String,
    command: String,
    note: &'static str,
    reported: Reported,
    /// The server's count.
    requests: u64,
    /// None if it has no rate.
    drain: Option<Drain>,
}

/// Stops a server under each generator, and prints and writes the generators' reports.
///
/// # Errors
/// If a run fails.
pub fn stall(bench: &Bench, write: Option<&Path>, resp_benchmark: Option<&Path>) -> anyhow::Result<()> {
    let machine = Machine::look(bench, &[machine::COMMIT, machine::COMPILER, machine::REDIS_SERVER])?;
    println!("{machine}");
    let mut all = Vec::new();
    for generator in generators::all(resp_benchmark) {
        let told = told(bench, &generator)?;
        println!("{}", report::line(&told));
        all.push(told);
    }
    if let Some(path) = write {
        std::fs::write(path, report::document(&machine, &all))
            .with_context(|| format!("failed to write {}", path.display()))?;
        println!("written to {}", path.display());
    }
    Ok(())
}

fn told(bench: &Bench, generator: &Generator) -> anyhow::Result<Told> {
    let servers = Servers::start(bench, Kind::Redis, &bench.server())?;
    bench.preload(&servers)?;
    let words = (generator.words)(bench, &servers)?;
    let server = servers.redis()?;
    let mut watch = Watch::new(server)?;
    let before = watch.answered()?;
    let (ended, drain) = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&borrowed(&words), &bench.client(), LIMIT));
        let drain = stopped(server, &mut watch, before, generator.keeps_rate);
        let ended = running.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the run panicked")));
        // A generator's failure is a better error than a stop that was not reached.
        Ok::<_, anyhow::Error>((ended?, drain?))
    })
    .with_context(|| generator.name)?;
    let requests = watch.answered()? - before;
    let reported = (generator.read)(&ended.output)
        .with_context(|| format!("{} printed no readable report: {}", generator.name, ended.output))?;
    let version = run(&borrowed(&(generator.version)(bench)?), "0", LIMIT)?.output;
    Ok(Told {
        name: generator.name,
        version: version.lines().next().unwrap_or_default().to_owned(),
        command: shown(&words),
        note: generator.note,
        reported,
        requests,
        drain,
    })
}

/// Stops the server once, and looks how fast the generator catches up.
fn stopped(server: &RedisServer, watch: &mut Watch, before: u64, keeps_rate: bool) -> anyhow::Result<Option<Drain>> {
    let waiting = Instant::now();
    let begin = loop {
        let answered = watch.answered()? - before;
        let now = Instant::now();
        if answered > 0 {
            break now.checked_sub(Duration::from_secs_f64(answered as f64 / RATE as f64)).unwrap_or(now);
        }
        anyhow::ensure!(waiting.elapsed() < LIMIT, "no load within {} s", LIMIT.as_secs());
        std::thread::park_timeout(LOOK);
    };
    until(begin + STOP_AT);
    let answered = watch.answered()?;
    let stop = Instant::now();
    server.pause();
    until(stop + STOP);
    let resumed = Instant::now();
    server.resume();
    if !keeps_rate {
        return Ok(None);
    }
    let mut drain = Drain { rate: RATE as f64, stopped: (resumed - stop).as_secs_f64(), answered, samples: Vec::new() };
    while resumed.elapsed() < PATIENCE {
        let now = watch.answered()?;
        let since = resumed.elapsed().as_secs_f64();
        drain.samples.push((since, now));
        // All due requests except a hundredth of the backlog.
        if (now - answered) as f64 + 100.0 > (drain.stopped + since) * drain.rate {
            break;
        }
        std::thread::park_timeout(LOOK);
    }
    Ok(Some(drain))
}

fn until(time: Instant) {
    while let Some(left) = time.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

/// Asks the server for its own count, on a connection that stays open.
struct Watch(redis::Connection);

impl Watch {
    fn new(server: &RedisServer) -> anyhow::Result<Self> {
        Ok(Self(server.try_connect(LIMIT).context("failed to connect to redis-server")?))
    }

    /// How many GETs the server has executed.
    fn answered(&mut self) -> anyhow::Result<u64> {
        let text: String =
            redis::cmd("INFO").arg("commandstats").query(&mut self.0).context("failed to get redis-server's counts")?;
        let calls = text.split("cmdstat_get:calls=").nth(1).and_then(|rest| rest.split(',').next());
        Ok(calls.and_then(|calls| calls.parse().ok()).unwrap_or(0))
    }
}

/// A command line as one would type it: without directories, with a port that says nothing of this run.
fn shown(words: &[String]) -> String {
    let word = |(index, word): (usize, &String)| {
        let name = if index == 0 { word.rsplit('/').next().unwrap_or(word) } else { word };
        let after = |flag: &str| index > 0 && words[index - 1] == flag;
        match name {
            _ if after("-p") => "6379".to_owned(),
            name if name.starts_with("127.0.0.1:") => "127.0.0.1:6379".to_owned(),
            name if name.contains(' ') => format!("\"{name}\""),
            name => name.to_owned(),
        }
    };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        let words = ["/x/redis-benchmark", "-p", "1234", "GET a"].map(str::to_owned);
        assert_eq!(shown(&words), "redis-benchmark -p 6379 \"GET a\"");
    }
}
