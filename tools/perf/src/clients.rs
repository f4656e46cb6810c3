//! The clients: ours (`redisbench-drive`, which is the bare engine), redis-benchmark, and the floor.

use std::time::Duration;

use anyhow::Context as _;

use crate::bench::Bench;
use crate::servers::{KEYS, Kind, Servers};

/// Bytes of a value.
const VALUE: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Ours,
    RedisBenchmark,
    /// The bare system calls, without TLS.
    Floor,
}

#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The only operation: "get" of a key that exists, or "set" of 100 bytes.
    pub operation: &'static str,
    pub connections: u32,
    /// Requests in flight per connection.
    pub pipeline: u32,
    pub requests: u64,
    /// Requests per second and the pacing grid in microseconds; none is a closed loop. Not for redis-benchmark.
    pub rate: Option<(u64, u64)>,
    pub workers: usize,
    /// The rest is only for ours: bytes of a value, the number of keys, and live snapshots per second of the load and after it, and the
    /// processor of the thread that merges and encodes these.
    pub value_bytes: u32,
    pub keys: u32,
    pub snapshots: u32,
    pub snapshots_at_end: u32,
    pub snapshot_cpu: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Cost {
    /// CPU time of the client per request, in microseconds.
    pub client: f64,
    /// The same of the servers.
    pub server: f64,
    pub requests: u64,
    /// Requests per second, from the process's start to its end.
    pub rate: f64,
    pub output: String,
}

impl Load {
    /// A closed loop of 50 connections.
    pub fn closed(operation: &'static str, pipeline: u32, requests: u64) -> Self {
        Self {
            operation,
            connections: 50,
            pipeline,
            requests,
            rate: None,
            workers: 1,
            value_bytes: VALUE,
            keys: KEYS,
            snapshots: 0,
            snapshots_at_end: 0,
            snapshot_cpu: None,
        }
    }
}

impl Client {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::RedisBenchmark => "redis-benchmark",
            Self::Floor => "floor",
        }
    }

    pub fn line(self, servers: &Servers, load: &Load) -> String {
        let Load { operation, connections, pipeline, requests, rate, workers, .. } = *load;
        let certificate = &servers.certificate;
        let tls = |options: String| if servers.kind == Kind::Tls { options } else { String::new() };
        let rate = rate.map_or_else(String::new, |(rate, grid)| format!(" --rate {rate} --grid {grid}"));
        let ours = format!("--connections {connections} --pipeline {pipeline} --requests {requests}");
        match self {
            Self::Ours => {
                let get = if operation == "get" { 100 } else { 0 };
                let tls = tls(format!(" --tls-ca {certificate}"));
                let options = [
                    ("value-bytes", Some(load.value_bytes), Some(VALUE)),
                    ("keys", Some(load.keys), Some(KEYS)),
                    ("snapshots", Some(load.snapshots), Some(0)),
                    ("snapshots-at-end", Some(load.snapshots_at_end), Some(0)),
                    ("snapshot-cpu", load.snapshot_cpu, None),
                ];
                let others = options.into_iter().filter(|(_, value, default)| value != default);
                let others = others.filter_map(|(name, value, _)| Some(format!(" --{name} {}", value?)));
                let others: String = others.collect();
                let addresses = servers.addresses();
                format!("redisbench-drive {addresses} {ours} --get {get} --workers {workers}{rate}{tls}{others}")
            }
            Self::RedisBenchmark => {
                let tls = tls(format!(" --tls --sni localhost --cacert {certificate}"));
                let (port, load) = (servers.port(), format!("-c {connections} -P {pipeline} -n {requests}"));
                format!("redis-benchmark -h 127.0.0.1 -p {port} {load} -r {KEYS} -d {VALUE} -t {operation} -q{tls}")
            }
            Self::Floor => {
                let keys: String = servers.keys().iter().map(|key| format!(" --key {key}")).collect();
                format!("redisbench-floor {} {ours} --operation {operation}{keys}{rate}", servers.addresses())
            }
        }
    }

    /// Runs it, and measures its cost by the servers' count of requests.
    pub fn cost(self, bench: &Bench, servers: &Servers, load: &Load) -> anyhow::Result<Cost> {
        let line = self.line(servers, load);
        let before = servers.counted()?;
        let ended = bench.run(&line)?;
        let after = servers.counted()?;
        anyhow::ensure!(
            self != Self::Ours || ended.output.contains(", errors 0\n"),
            "requests failed: {}",
            ended.output
        );
        let counted = after.commands - before.commands;
        // A client sends a few commands before the load, and may fill its last pipeline.
        let most = load.requests + u64::from(load.connections * load.pipeline) + 100;
        // The null server also counts pings of idle connections, such as those that wait for ten thousand others.
        let requests = if matches!(servers.kind, Kind::Null(_)) { counted.min(most) } else { counted };
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
}

/// Writes all keys.
pub fn preload(bench: &Bench, servers: &Servers) -> anyhow::Result<()> {
    preload_for(bench, servers, &Load::closed("get", 16, 1000))
}

/// Writes the keys that `load` reads.
pub fn preload_for(bench: &Bench, servers: &Servers, load: &Load) -> anyhow::Result<()> {
    let line = Client::Ours.line(servers, load);
    bench.run(&format!("{line} --preload")).context("failed to write the keys")?;
    Ok(())
}
