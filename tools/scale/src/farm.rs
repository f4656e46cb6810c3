//! Plays the containers of the shards' pods: each listens at its pod's address and speaks the real protocol, with a computed load.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use redisbench_benchmark::api::RUN_LABEL;
use redisbench_loadgen::control::driver::Spawn;
use redisbench_loadgen::control::{Credential, Identity, Mounts, ProcessLimits, Settings, run};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::driver;

/// The port of a shard's control API.
const PORT: u16 = 7379;
/// The shard's index, as a label of its pod.
pub const INDEX_LABEL: &str = "batch.kubernetes.io/job-completion-index";

/// The defaults of the load generator.
const LIMITS: ProcessLimits = ProcessLimits { idle: Duration::from_secs(600), leaving: Duration::ZERO };

/// Concurrent reports of exited shards.
const REPORTS: usize = 16;

/// Shards by the UID of their pods.
pub struct Farm {
    client: Client,
    /// Credentials by the name of the run's Secret.
    credentials: HashMap<String, Credential>,
    shards: HashMap<String, CancellationToken>,
    /// Bounds concurrent reports of shards that have exited. Kubelets report theirs over some time too.
    reports: Arc<Semaphore>,
}

impl Farm {
    pub fn new(client: Client) -> Self {
        let reports = Arc::new(Semaphore::new(REPORTS));
        Self { client, credentials: HashMap::new(), shards: HashMap::new(), reports }
    }

    /// Runs a shard for every pod that runs, until its pod is deleted or it exits.
    ///
    /// # Errors
    /// If the watch of pods or a Secret cannot be read, or an address is taken.
    pub async fn run(mut self) -> Result<()> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let config = watcher::Config::default().labels(RUN_LABEL);
        let mut events = watcher(pods, config).default_backoff().boxed();
        while let Some(event) = events.try_next().await.context("failed to watch the pods")? {
            match event {
                Event::Apply(pod) | Event::InitApply(pod) => self.look(&pod).await?,
                Event::Delete(pod) => self.end(&pod),
                Event::Init | Event::InitDone => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, pod: &Pod) {
        if let Some(shard) = self.shards.remove(&pod.uid().unwrap_or_default()) {
            shard.cancel();
        }
    }

    async fn look(&mut self, pod: &Pod) -> Result<()> {
        if pod.metadata.deletion_timestamp.is_some() {
            self.end(pod);
            return Ok(());
        }
        let uid = pod.uid().unwrap_or_default();
        let status = pod.status.clone().unwrap_or_default();
        let address = status.pod_ip.as_deref().and_then(|address| address.parse::<IpAddr>().ok());
        let runs = status.phase.as_deref() == Some("Running");
        let (Some(address), true, false) = (address, runs, self.shards.contains_key(&uid)) else { return Ok(()) };
        let index = pod.labels().get(INDEX_LABEL).and_then(|index| index.parse().ok()).unwrap_or(0);
        let host = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let run_id = pod.labels().get(RUN_LABEL).cloned().unwrap_or_default();
        let identity = Identity { run: run_id, index, incarnation: uid.clone(), host };
        let credential = self.credential(pod).await?;
        let address = SocketAddr::new(address, PORT);
        let listener = TcpListener::bind(address).await.with_context(|| format!("failed to listen on {address}"))?;
        // The target has no secrets.
        let mounts = Mounts { targets: PathBuf::new() };
        let spawn = Spawn::new(driver::spawn);
        let settings = Settings { identity, mounts, data: PathBuf::new(), workers: 1, limits: LIMITS, spawn };
        let terminated = CancellationToken::new();
        self.shards.insert(uid, terminated.clone());
        let (pods, name) = (Api::<Pod>::namespaced(self.client.clone(), &namespace(pod)), pod.name_any());
        let container = status.container_statuses.into_iter().flatten().next();
        let reports = Arc::clone(&self.reports);
        tokio::spawn(async move {
            let exit = run(settings, credential, listener, terminated.cancelled_owned()).await;
            let state = json!({"terminated": {"exitCode": exit.code()}});
            let container = container.map(|container| {
                let mut status = json!(container);
                (status["ready"], status["state"]) = (json!(false), state);
                status
            });
            let phase = if exit.code() == 0 { "Succeeded" } else { "Failed" };
            let patch = json!({"status": {"phase": phase, "containerStatuses": [container]}});
            // Never closed.
            let _turn = reports.acquire().await;
            // Fails if the pod is gone.
            let _ = pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
        });
        Ok(())
    }

    /// The run's credential, from the Secret that the pod mounts.
    async fn credential(&mut self, pod: &Pod) -> Result<Credential> {
        let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let name = volumes.find_map(|volume| volume.secret.as_ref()?.secret_name.clone());
        let name = name.context("a shard's pod mounts no Secret")?;
        if !self.credentials.contains_key(&name) {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace(pod));
            let secret = secrets.get(&name).await.with_context(|| format!("failed to read the Secret {name}"))?;
            let directory = tempfile::tempdir().context("failed to create a directory")?;
            write(directory.path(), &secret)?;
            self.credentials.insert(name.clone(), Credential::read(directory.path())?);
        }
        let Credential { token, tls } = &self.credentials[&name];
        Ok(Credential { token: token.clone(), tls: Arc::clone(tls) })
    }
}

fn namespace(pod: &Pod) -> String {
    pod.namespace().unwrap_or_default()
}

/// Writes the files of a Secret, as a mount does.
fn write(directory: &Path, secret: &Secret) -> Result<()> {
    for (name, bytes) in secret.data.iter().flatten() {
        std::fs::write(directory.join(name), &bytes.0).with_context(|| format!("failed to write {name}"))?;
    }
    Ok(())
}
