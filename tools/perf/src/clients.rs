//! The clients: ours (`redisbench-drive`, which is the bare engine), redis-benchmark, and the floor.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use crate::process::{self, Ended};
use crate::servers::{Kind, Servers};

/// Longer than any run on a slow machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Keys, of `key:` and twelve digits in both clients.
const KEYS: u32 = 100_000;

/// Settings of all measurements.
#[derive(Debug)]
pub struct Bench {
    /// Directory of our programs.
    pub programs: PathBuf,
    /// Number of pairs.
    pub pairs: u32,
    /// 1 is the length of a real measurement.
    pub length: f64,
    /// The clients' processor.
    pub client_cpu: usize,
    /// The servers' processor.
    pub server_cpu: usize,
}

/// The operation of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// GET of a key that exists.
    Get,
    /// SET of 100 bytes.
    Set,
}

impl Operation {
    /// The name that both clients accept.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
        }
    }
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The only operation.
    pub operation: Operation,
    /// Total number of connections.
    pub connections: u32,
    /// Requests in flight per connection.
    pub pipeline: u32,
    /// Total number of requests.
    pub requests: u64,
    /// Requests per second and the pacing grid in microseconds; none is a closed loop.
    pub rate: Option<(u64, u64)>,
    /// Our worker threads.
    pub workers: usize,
}

/// The cost of a client.
#[derive(Clone, Debug)]
pub struct Cost {
    /// CPU time of the client per request, in microseconds.
    pub client: f64,
    /// The same of the servers.
    pub server: f64,
    /// Number of requests.
    pub requests: u64,
    /// Requests per second, from the process's start to its end.
    pub rate: f64,
    /// The client's output.
    pub output: String,
}

impl Bench {
    /// `base` requests, scaled by the length of this measurement.
    pub fn requests(&self, base: u64) -> u64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be above 0")]
        let scaled = (base as f64 * self.length) as u64;
        scaled.max(1000)
    }

    /// One of our programs.
    ///
    /// # Errors
    /// If it is not built.
    pub fn program(&self, name: &str) -> anyhow::Result<String> {
        let path = self.programs.join(name);
        anyhow::ensure!(path.is_file(), "{} is not built: run `make bench`, which builds it", path.display());
        Ok(path.to_string_lossy().into_owned())
    }

    /// The clients' processor, in taskset's format.
    pub fn client(&self) -> String {
        self.client_cpu.to_string()
    }

    /// The servers' processor.
    pub fn server(&self) -> String {
        self.server_cpu.to_string()
    }

    /// The command line of our client.
    pub fn drive(&self, servers: &Servers, load: &Load) -> anyhow::Result<Vec<String>> {
        let mut words = vec![self.program("redisbench-drive")?];
        words.extend(servers.addresses());
        let get = if load.operation == Operation::Get { 100 } else { 0 };
        let mut option = |name: &str, value: u64| words.extend([format!("--{name}"), value.to_string()]);
        option("connections", load.connections.into());
        option("pipeline", load.pipeline.into());
        option("requests", load.requests);
        option("get", get);
        option("workers", load.workers as u64);
        if let Some((rate, grid)) = load.rate {
            option("rate", rate);
            option("grid", grid);
        }
        if servers.kind() == Kind::Tls {
            words.extend(["--tls-ca".to_owned(), servers.certificate()]);
        }
        Ok(words)
    }

    /// Runs our client.
    ///
    /// # Errors
    /// If it fails, or a request fails.
    pub fn ours(&self, servers: &Servers, load: &Load, cpus: &str) -> anyhow::Result<Cost> {
        let words = self.drive(servers, load)?;
        let cost = cost(servers, load, || process::run(&borrowed(&words), cpus, LIMIT))?;
        anyhow::ensure!(cost.output.contains(", errors 0\n"), "requests failed: {}", cost.output);
        Ok(cost)
    }

    /// Runs redis-benchmark with the same load.
    ///
    /// # Errors
    /// If it fails.
    pub fn theirs(&self, servers: &Servers, load: &Load) -> anyhow::Result<Cost> {
        let numbers = [load.connections, load.pipeline, KEYS].map(|number| number.to_string());
        let [connections, pipeline, keys] = numbers.each_ref().map(String::as_str);
        let (requests, port) = (load.requests.to_string(), servers.port());
        let certificate = servers.certificate();
        let tls = ["--tls", "--sni", "localhost", "--cacert", &certificate];
        let words = [
            ["redis-benchmark", "-h", "127.0.0.1", "-p", &port, "-c", connections, "-P", pipeline].as_slice(),
            &["-n", &requests, "-r", keys, "-d", "100", "-t", load.operation.name(), "-q"],
            if servers.kind() == Kind::Tls { &tls } else { &[] },
        ]
        .concat();
        cost(servers, load, || process::run(&words, &self.client(), LIMIT))
    }

    /// The command line of the floor.
    pub fn floor_words(&self, servers: &Servers, load: &Load) -> anyhow::Result<Vec<String>> {
        let mut words = vec![self.program("redisbench-floor")?];
        words.extend(servers.addresses());
        for key in servers.keys() {
            words.extend(["--key".to_owned(), key]);
        }
        let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        option("connections", load.connections.to_string());
        option("pipeline", load.pipeline.to_string());
        option("requests", load.requests.to_string());
        option("operation", load.operation.name().to_owned());
        if let Some((rate, grid)) = load.rate {
            option("rate", rate.to_string());
            option("grid", grid.to_string());
        }
        Ok(words)
    }

    /// Runs the bare system calls of the same load.
    ///
    /// # Errors
    /// If they fail.
    pub fn floor(&self, servers: &Servers, load: &Load) -> anyhow::Result<Cost> {
        let words = self.floor_words(servers, load)?;
        cost(servers, load, || process::run(&borrowed(&words), &self.client(), LIMIT))
    }

    /// Writes all keys.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn preload(&self, servers: &Servers) -> anyhow::Result<()> {
        let load = Load { requests: 1000, ..Load::closed(Operation::Get, 16, 0) };
        let mut words = self.drive(servers, &load)?;
        words.push("--preload".into());
        process::run(&borrowed(&words), &self.client(), LIMIT).context("failed to write the keys")?;
        Ok(())
    }
}

impl Load {
    /// A closed loop of 50 connections.
    pub fn closed(operation: Operation, pipeline: u32, requests: u64) -> Self {
        Self { operation, connections: 50, pipeline, requests, rate: None, workers: 1 }
    }
}

/// Borrows words for functions that take `&str`.
pub fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// The cost of `run`, by the servers' count of requests.
fn cost(servers: &Servers, load: &Load, run: impl FnOnce() -> anyhow::Result<Ended>) -> anyhow::Result<Cost> {
    let before = servers.counted()?;
    let ended = run()?;
    let after = servers.counted()?;
    let counted = after.commands - before.commands;
    // A client sends a few commands before the load, and may fill its last pipeline.
    let most = load.requests + u64::from(load.connections * load.pipeline) + 100;
    // The null server also counts pings of idle connections, such as those that wait for ten thousand others.
    let requests = if matches!(servers.kind(), Kind::Null(_)) { counted.min(most) } else { counted };
    anyhow::ensure!(
        (load.requests..=most).contains(&requests),
        "the servers counted {counted} requests, but {} were sent",
        load.requests
    );
    let per_request = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
    Ok(Cost {
        client: per_request(ended.cpu),
        server: per_request(after.cpu.saturating_sub(before.cpu)),
        requests,
        rate: requests as f64 / ended.wall.as_secs_f64(),
        output: ended.output,
    })
}
