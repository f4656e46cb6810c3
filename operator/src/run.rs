//! `redisbench-operator run`: starts and connects all parts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::join_all;
use kube::Config;
use kube::runtime::events::{Recorder, Reporter};
use redisbench_wire::every_interface;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::build::Drivers;
use crate::client;
use crate::controller::watch::Scope;
use crate::controller::{Settings, Shared};
use crate::http::{Exposed, serve};
use crate::leader::{Candidate, Election, News};
use crate::metrics::OperatorMetrics;
use crate::options::RunOptions;
use crate::scrape::Metrics;
use crate::tasks::TaskRegistry;
use crate::telemetry;

/// Port of /metrics, /healthz and /readyz. The chart's Service and probes use it.
const METRICS_PORT: u16 = 8080;
/// The minimum length of the master key, in bytes.
const KEY_BYTES: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("failed to read the master key file {}", .0.display())]
    KeyFile(PathBuf, #[source] std::io::Error),
    #[error("the master key file {} has {length} bytes; it needs at least {KEY_BYTES} random bytes", .file.display())]
    ShortKey { file: PathBuf, length: usize },
    #[error("failed to configure the client for the Kubernetes API server")]
    Client(#[source] Box<kube::Error>),
    #[error("failed to listen on {0} for /metrics")]
    Listen(String, #[source] std::io::Error),
    #[error("failed to start the thread that renews the Lease")]
    LeaseThread(#[source] std::io::Error),
    #[error("failed to listen for signals")]
    Signal(#[source] std::io::Error),
    /// The Lease was lost. Another operator may conduct by now, so this one must exit.
    #[error("stopped leading: {0}")]
    LeaseLost(&'static str),
    /// A part that should run forever has ended.
    #[error("{0} stopped unexpectedly")]
    Ended(&'static str),
}

/// Runs the operator until SIGTERM, SIGINT or the loss of the Lease.
///
/// On exit it stops conducting and leaves the shards as they are: the next leader takes over.
///
/// # Errors
/// If it cannot start, or must not continue.
pub async fn run(options: RunOptions) -> Result<(), RunError> {
    telemetry::start(options.log_format);
    let master_key = master_key(&options.master_key_file)?;
    let identity = options.pod_name.clone().unwrap_or_else(host_name);
    let config = Config::infer().await.map_err(|error| RunError::Client(Box::new(kube::Error::InferConfig(error))))?;
    let client = client::client(config.clone()).map_err(|error| RunError::Client(Box::new(error)))?;

    let scopes: Vec<Scope> = options.scopes().into_iter().map(Scope::new).collect();
    let tasks = TaskRegistry::asking(options.snapshots_per_second);
    let metrics = OperatorMetrics::default();
    let stores = scopes.iter().map(Scope::store).collect();
    let exposed =
        Exposed::new(Metrics::new(metrics.clone(), stores, tasks.clone(), options.metrics_finished_benchmarks));

    let listener = listen(options.metrics_address, METRICS_PORT).await?;
    let address = listener.local_addr().map_or_else(|_| "unknown".to_owned(), |address| address.to_string());
    let http = serve(listener, exposed.clone());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), identity, address, "started");

    let told_to_end = told_to_end()?;
    let (namespace, lease) = (options.namespace.clone(), options.lease_name.clone());
    let (own_identity, own_metrics) = (identity.clone(), metrics.clone());
    let mut election = Election::on_own_thread(move || {
        Ok(Candidate::new(client::client(config)?, &namespace, &lease, &own_identity, own_metrics))
    })
    .map_err(RunError::LeaseThread)?;
    let reporter = Reporter { controller: "redisbench-operator".into(), instance: Some(identity) };
    let shared = Shared::new(
        client.clone(),
        Settings {
            clients_image: options.clients_image.unwrap_or_else(|| options.loadgen_image.clone()),
            image: options.loadgen_image,
            pull_policy: options.loadgen_image_pull_policy,
            drivers: Drivers {
                images: options.driver_images.into_iter().collect(),
                resources: options.driver_resources,
            },
            master_key,
        },
        Recorder::new(client, reporter),
        metrics,
        tasks.clone(),
    );
    let result = tokio::select! {
        () = told_to_end => Ok(()),
        _ = http => Err(RunError::Ended("the metrics server")),
        result = lead(&mut election, &exposed, scopes, shared) => result,
    };
    // Reconciling may stop at any step. Conducting must stop too, before another operator can hold the Lease.
    tasks.stop_all();
    if result.is_ok() {
        election.release().await;
    }
    tracing::info!("ended");
    result
}

/// Waits for the Lease, then reconciles as long as it holds it.
async fn lead(election: &mut Election, exposed: &Exposed, scopes: Vec<Scope>, shared: Shared) -> Result<(), RunError> {
    loop {
        match election.next().await {
            News::Reached => exposed.set_ready(),
            News::Leading => break,
            News::Lost(why) => return Err(RunError::LeaseLost(why)),
        }
    }
    shared.metrics.set_leading(true);
    let controllers = join_all(scopes.into_iter().map(|scope| scope.run(shared.clone())));
    tokio::select! {
        News::Lost(why) = election.next() => Err(RunError::LeaseLost(why)),
        _ = controllers => Err(RunError::Ended("the controller")),
    }
}

/// Listens on `address`, or by default on `port` of every interface.
async fn listen(address: Option<SocketAddr>, port: u16) -> Result<TcpListener, RunError> {
    let addresses = address.map_or_else(|| every_interface(port).to_vec(), |address| vec![address]);
    let tried = || addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    TcpListener::bind(&addresses[..]).await.map_err(|error| RunError::Listen(tried(), error))
}

/// Hashes the key file, of at least [`KEY_BYTES`], to a key of fixed length.
fn master_key(file: &Path) -> Result<Arc<[u8; 32]>, RunError> {
    let bytes = std::fs::read(file).map_err(|error| RunError::KeyFile(file.to_owned(), error))?;
    if bytes.len() < KEY_BYTES {
        return Err(RunError::ShortKey { file: file.to_owned(), length: bytes.len() });
    }
    Ok(Arc::new(Sha256::digest(&bytes).into()))
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => format!("redisbench-operator-{}", uuid::Uuid::new_v4().simple()),
        name => name.to_owned(),
    }
}

fn told_to_end() -> Result<impl Future<Output = ()>, RunError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signal)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::time::Duration;

    use tokio::net::TcpStream;

    use super::*;
    use crate::testing::{FakeServer, Trouble};

    #[tokio::test]
    async fn without_an_address_every_interface_is_listened_on() {
        let listener = listen(None, 0).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        // Machines without IPv6 have no such address to listen on.
        if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.unwrap();
        }
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named() {
        let taken = listen(Some((Ipv4Addr::LOCALHOST, 0).into()), 1).await.unwrap();
        let address = taken.local_addr().unwrap();
        let error = listen(Some(address), 1).await.unwrap_err();
        assert_eq!(error.to_string(), format!("failed to listen on {address} for /metrics"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_cannot_renew_the_lease_ends() {
        for trouble in Trouble::ALL {
            let server = FakeServer::default();
            let client = server.client();
            let shared = Shared::of_test(client.clone());
            let metrics = shared.metrics.clone();
            let candidate = Candidate::new(client, "system", "operator", "a", metrics.clone());
            let (mut election, campaign) = Election::of(move || Ok(candidate));
            tokio::spawn(campaign);
            let exposed = Exposed::new(Metrics::new(metrics, Vec::new(), shared.tasks.clone(), 0));
            let trouble_comes = async {
                tokio::time::sleep(Duration::from_secs(60)).await;
                server.set_trouble(Some(trouble));
                tokio::time::sleep(Duration::from_secs(15)).await;
            };
            let ended = tokio::select! {
                biased;
                ended = lead(&mut election, &exposed, vec![Scope::new(None)], shared) => Some(ended),
                () = trouble_comes => None,
            };
            assert!(matches!(ended, Some(Err(RunError::LeaseLost(_)))), "{trouble:?}: {ended:?}");
        }
    }
}
