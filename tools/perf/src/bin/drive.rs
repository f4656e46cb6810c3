//! Drives servers with the bare engine, for measuring the engine itself:
//! `cargo run --release --bin redisbench-drive -- 127.0.0.1:6379 --connections 50 --pipeline 16`
//!
//! `make bench` reads what it prints.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::engine::{Engine, EngineConfig, EngineEvent, Tls, monotonic_nanoseconds};
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Arrival, Bound, KeyPattern, Keys, Load, Operation, Preload, TrialPlan, Values};
use redisbench_wire::{Detail, plan as wire_plan};

use rustix::thread::{CpuSet, sched_setaffinity};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Interval, interval};

const SECOND: u64 = 1_000_000_000;
/// The longest time that a server may be out of reach.
const PATIENCE: Duration = Duration::from_secs(10);

/// Options of a measurement.
#[derive(Debug, Parser)]
struct Options {
    /// The server; or a cluster's primaries, with even parts of the slots in this order.
    #[arg(required = true)]
    addresses: Vec<SocketAddr>,
    /// Connections.
    #[arg(long, default_value_t = 50)]
    connections: u32,
    /// Requests in flight per connection.
    #[arg(long, default_value_t = 1)]
    pipeline: u32,
    /// Write all keys first.
    #[arg(long)]
    preload: bool,
    /// Requests in all.
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Percentage of GET, the rest being SET.
    #[arg(long, default_value_t = 100)]
    get: u32,
    /// Requests per second; 0 is a closed loop.
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// Pacing grid in microseconds.
    #[arg(long, default_value_t = 0)]
    grid: u64,
    /// TLS, trusting the certificates in this file; the server's must name `localhost`.
    #[arg(long)]
    tls_ca: Option<PathBuf>,
    /// Worker threads.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Bytes of a value that SET writes.
    #[arg(long, default_value_t = 100)]
    value_bytes: u32,
    /// Number of keys.
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// Live snapshots per second of the load.
    #[arg(long, default_value_t = 0)]
    snapshots: u32,
    /// Live snapshots after the load.
    #[arg(long, default_value_t = 0)]
    snapshots_at_end: u32,
    /// Processor of the thread that merges and encodes snapshots, if not those of the workers.
    #[arg(long)]
    snapshot_cpu: Option<usize>,
}

/// Takes live snapshots, each with the seconds since the one before.
#[derive(Debug, Default)]
struct Live {
    timer: Option<Interval>,
    from: u32,
}

impl Live {
    /// Waits until a snapshot is due.
    async fn due(&mut self) {
        match &mut self.timer {
            Some(timer) => _ = timer.tick().await,
            None => std::future::pending().await,
        }
    }

    async fn take(&mut self, engine: &Engine) -> anyhow::Result<()> {
        self.from = engine.snapshot_since(Detail::Live, self.from).await?.timeline.complete;
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let (sender, mut events) = tokio::sync::mpsc::channel(64);
    let mut config = EngineConfig::new(plan(&options), options.workers, Topology::of(&options.addresses));
    config.access.tls = options.tls_ca.as_deref().map(tls).transpose()?;
    let engine = Engine::spawn(config, sender)?;
    if let Some(cpu) = options.snapshot_cpu {
        // Only this thread: the workers have begun.
        let mut cpus = CpuSet::new();
        cpus.set(cpu);
        sched_setaffinity(None, &cpus).with_context(|| format!("failed to move to processor {cpu}"))?;
    }
    engine.connect()?;
    let (mut prepared, mut failing, mut live) = (false, None, Live::default());
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = live.due() => {
                live.take(&engine).await?;
                continue;
            }
        };
        let Some(event) = event else { break };
        match event {
            // Every worker may tell of it.
            EngineEvent::Connected { ready, wanted } if ready == wanted && !std::mem::replace(&mut prepared, true) => {
                engine.preload()?;
            }
            EngineEvent::Preloaded { .. } => {
                engine.start(monotonic_nanoseconds() + SECOND / 10, 1)?;
                live.timer = Duration::from_secs(1).checked_div(options.snapshots).map(interval);
            }
            EngineEvent::Connected { .. } | EngineEvent::PreloadProgress { .. } => failing = None,
            // The engine tries for ever: whoever has it decides how long.
            EngineEvent::ConnectFailed { message, .. } => {
                let since = failing.get_or_insert_with(Instant::now);
                anyhow::ensure!(since.elapsed() < PATIENCE, "no connection for {PATIENCE:?}: {message}");
            }
            EngineEvent::PreloadFailed { message } => anyhow::bail!("the preload failed: {message}"),
            EngineEvent::Finished { .. } => break,
            other => println!("{other:?}"),
        }
    }
    for _ in 0..options.snapshots_at_end {
        live.take(&engine).await?;
    }
    let snapshot = engine.snapshot(Detail::Full).await?;
    drop(engine);
    let latency = snapshot.latency.response.decode(Kind::Request).context("failed to read our own histogram")?;
    let seconds = (snapshot.window.drained_nanoseconds - snapshot.window.start_nanoseconds) as f64 / 1e9;
    let requests = snapshot.total.succeeded as f64;
    println!(
        "{requests} requests in {seconds:.3} s: {:.0}/s, {:.3} us CPU each, p50 {} us, p99 {} us, errors {}",
        requests / seconds,
        snapshot.generator.cpu_nanoseconds as f64 / requests / 1e3,
        latency.value_at_quantile(0.5) / 1000,
        latency.value_at_quantile(0.99) / 1000,
        snapshot.total.errors,
    );
    println!(
        "response time: mean {:.1} us, p50 {} us, p99 {} us, p99.9 {} us, max {} us",
        latency.mean() / 1e3,
        latency.value_at_quantile(0.5) / 1000,
        latency.value_at_quantile(0.99) / 1000,
        latency.value_at_quantile(0.999) / 1000,
        latency.max() / 1000,
    );
    println!("at most {} KiB resident", peak_resident_kib().context("failed to read /proc/self/status")?);
    if let Some(lateness) = &snapshot.latency.lateness {
        let lateness = lateness.decode(Kind::Request).context("failed to read our own histogram")?;
        println!(
            "sent late by: p50 {} us, p99 {} us, p99.99 {} us, longest {} us",
            lateness.value_at_quantile(0.5) / 1000,
            lateness.value_at_quantile(0.99) / 1000,
            lateness.value_at_quantile(0.9999) / 1000,
            lateness.max() / 1000,
        );
    }
    Ok(())
}

fn tls(authorities: &Path) -> anyhow::Result<Tls> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authorities).context("failed to read the authorities")? {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let server_name = Some(ServerName::try_from("localhost")?);
    Ok(Tls { config: Arc::new(config), server_name, parts: Arc::default() })
}

/// The most memory that this process ever had.
fn peak_resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn plan(options: &Options) -> TrialPlan {
    let operations = [
        Operation::of("get", options.get, "GET __key__"),
        Operation::of("set", 100 - options.get.min(100), "SET __key__ __data__"),
    ];
    let load = match options.rate {
        0 => Load::ClosedLoop,
        rate_per_second => Load::OpenLoop {
            rate_per_second,
            stages: Vec::new(),
            arrival: Arrival::Constant,
            pacing_grid_nanoseconds: options.grid * 1000,
            unsent_after_nanoseconds: 10 * SECOND,
        },
    };
    let mut plan = TrialPlan {
        preload: if options.preload { Preload::Always } else { Preload::None },
        load,
        connections: options.connections,
        pipeline: options.pipeline,
        bound: Bound::Requests { count: options.requests, max_nanoseconds: 600 * SECOND },
        ..TrialPlan::basic("")
    };
    plan.target.endpoints = options.addresses.iter().map(ToString::to_string).collect();
    if options.addresses.len() > 1 {
        plan.target.topology = wire_plan::Topology::Cluster;
    }
    plan.workload_mut().operations = operations.into_iter().filter(|operation| operation.weight > 0).collect();
    plan.workload_mut().keys = Keys {
        prefix: "key:".into(),
        start: 0,
        count: options.keys,
        width: 12,
        pattern: KeyPattern::Uniform,
        tags: None,
    };
    plan.workload_mut().values = Values::fixed(options.value_bytes);
    plan
}
