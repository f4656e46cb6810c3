//! Drives one server with the bare engine, for measuring the engine itself:
//! `cargo run --release --example drive -- 127.0.0.1:6379 --connections 50 --pipeline 16`

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser;
use redisbench_loadgen::cluster::{NodeAddress, Topology};
use redisbench_loadgen::engine::{Engine, EngineConfig, EngineEvent, Handshake, Tls, monotonic_nanoseconds};
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{
    Bound, Breakdown, KeyPattern, Keys, Limits, Load, Operation, Part, Preload, ShardPlan, Target, Timeouts, Workload,
};
use redisbench_wire::{Detail, plan as wire_plan};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

const SECOND: u64 = 1_000_000_000;

/// Options of a measurement.
#[derive(Debug, Parser)]
struct Options {
    /// The server.
    address: SocketAddr,
    /// Connections.
    #[arg(long, default_value_t = 50)]
    connections: u32,
    /// Requests in flight per connection.
    #[arg(long, default_value_t = 1)]
    pipeline: u32,
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
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let node = NodeAddress { id: "server".into(), address: options.address, label: options.address.to_string() };
    let (sender, mut events) = tokio::sync::mpsc::channel(64);
    let engine = Engine::spawn(
        EngineConfig {
            plan: Arc::new(plan(&options)),
            workers: options.workers,
            topology: Arc::new(Topology { nodes: vec![node], slots: None }),
            handshake: Handshake::default(),
            tls: options.tls_ca.as_deref().map(tls).transpose()?,
            host: String::new(),
        },
        sender,
    )?;
    engine.connect()?;
    while let Some(event) = events.recv().await {
        match event {
            EngineEvent::Connected { ready, wanted } if ready == wanted => {
                engine.start(monotonic_nanoseconds() + SECOND / 10, 1)?;
            }
            EngineEvent::Connected { .. } => {}
            EngineEvent::Finished { .. } => break,
            other => println!("{other:?}"),
        }
    }
    let snapshot = engine.snapshot(Detail::Full).await?;
    engine.stop();
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
    if let Some(lateness) = &snapshot.latency.lateness {
        let lateness = lateness.decode(Kind::Request).context("failed to read our own histogram")?;
        println!(
            "sent late by: p50 {} us, p99 {} us",
            lateness.value_at_quantile(0.5) / 1000,
            lateness.value_at_quantile(0.99) / 1000
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
    Ok(Tls { config: Arc::new(config), server_name: ServerName::try_from("localhost")? })
}

fn plan(options: &Options) -> ShardPlan {
    let operation = |name: &str, weight, arguments: Vec<Part>| Operation {
        name: name.into(),
        weight,
        arguments: arguments.into_iter().map(|part| vec![part]).collect(),
    };
    let operations = [
        operation("get", options.get, vec![Part::Literal("GET".into()), Part::Key]),
        operation("set", 100 - options.get.min(100), vec![Part::Literal("SET".into()), Part::Key, Part::Data]),
    ];
    let load = match options.rate {
        0 => Load::ClosedLoop,
        rate_per_second => Load::OpenLoop {
            rate_per_second,
            pacing_grid_nanoseconds: options.grid * 1000,
            unsent_after_nanoseconds: 10 * SECOND,
        },
    };
    ShardPlan {
        run: "drive".into(),
        trial: 0,
        shard: 0,
        shards: 1,
        target: Target {
            name: "server".into(),
            topology: wire_plan::Topology::Standalone,
            endpoints: vec![options.address.to_string()],
            database: 0,
            authenticate: false,
        },
        workload: Workload {
            operations: operations.into_iter().filter(|operation| operation.weight > 0).collect(),
            keys: Keys { prefix: "key:".into(), start: 0, count: 100_000, width: 12, pattern: KeyPattern::Uniform },
            value_bytes: 100,
            seed: 1,
        },
        preload: Preload::None,
        load,
        connections: options.connections,
        pipeline: options.pipeline,
        warmup_nanoseconds: 0,
        bound: Bound::Requests { count: options.requests, max_nanoseconds: 600 * SECOND },
        timeouts: Timeouts { connect_nanoseconds: 5 * SECOND, request_nanoseconds: 5 * SECOND },
        breakdown: Breakdown { operation: true, node: true },
        limits: Limits { trial_nanoseconds: 600 * SECOND, armed_nanoseconds: SECOND, finished_nanoseconds: SECOND },
    }
}
