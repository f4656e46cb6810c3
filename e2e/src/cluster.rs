//! The cluster under test, found once per process, with the operator installed.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::runtime::Runtime;

/// The namespace of the operator, which enforces Pod Security `restricted`.
pub const SYSTEM: &str = "redisbench-system";
pub const RELEASE: &str = "redisbench";
/// Selects the operator's pods.
pub const OPERATOR: &str = "app.kubernetes.io/name=redisbench-operator";

#[derive(Debug)]
pub struct Cluster {
    pub kubeconfig: PathBuf,
    programs: Option<PathBuf>,
    pub(crate) images: Images,
    pub(crate) redis_image: String,
    pub(crate) haproxy_image: String,
    /// The only runtime of the process, because a client works only on the runtime on which it was created.
    pub(crate) runtime: Runtime,
}

/// The source of the images of the operator and the load generator.
#[derive(Debug)]
pub(crate) struct Images {
    pub(crate) registry: String,
    pub(crate) tag: String,
}

impl Cluster {
    /// The cluster in `E2E_KUBECONFIG`, or the one that `make test-e2e` started.
    ///
    /// # Panics
    /// If there is neither: a suite that cannot run must fail, not be skipped.
    pub fn get() -> &'static Self {
        static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();
        match CLUSTER.get_or_init(|| Self::find().map_err(|error| format!("{error:#}"))) {
            Ok(cluster) => cluster,
            #[expect(clippy::panic, reason = "the failure of every test")]
            Err(error) => panic!("{error}"),
        }
    }

    fn find() -> Result<Self> {
        let given = env::var_os("E2E_KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
        let (kubeconfig, programs, images) = if let Some(kubeconfig) = given {
            let (Ok(registry), Ok(tag)) = (env::var("E2E_IMAGE_REGISTRY"), env::var("E2E_IMAGE_TAG")) else {
                bail!(
                    "E2E_KUBECONFIG is set without the location of the images: set E2E_IMAGE_REGISTRY, such as \
                     registry.example/redisbench, and E2E_IMAGE_TAG"
                );
            };
            (kubeconfig, None, Images { registry, tag })
        } else {
            let kubeconfig = cache_folder().join("run/admin.conf");
            if !kubeconfig.exists() {
                bail!(
                    "no cluster to test on ({} is absent). `make test-e2e` starts one and runs these tests; \
                     E2E_KUBECONFIG=<file> uses an existing one; `make test-unit` needs none",
                    kubeconfig.display()
                );
            }
            let images = Images { registry: "docker.io/redisbench".to_owned(), tag: "e2e".to_owned() };
            (kubeconfig, Some(cache_folder().join("bin")), images)
        };
        Ok(Self {
            kubeconfig,
            programs,
            images,
            redis_image: env::var("E2E_REDIS_IMAGE").unwrap_or_else(|_| "redis:7.0.15".to_owned()),
            haproxy_image: env::var("E2E_HAPROXY_IMAGE").unwrap_or_else(|_| "haproxy:2.6".to_owned()),
            runtime: tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
        })
    }

    /// The directory of programs, images and logs, and of files that the tests keep.
    pub fn cache(&self) -> PathBuf {
        let folder = cache_folder();
        // It does not exist yet if the tests use another cluster.
        let _ = std::fs::create_dir_all(&folder);
        folder
    }

    /// The path of `kubectl` or `helm`: the cluster's own, or from `PATH`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.as_ref().map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
    }

    pub async fn client(&self) -> Result<Client> {
        Ok(Client::try_from(self.config().await?)?)
    }

    /// A client that returns a refusal at once. The other one repeats calls that are refused for a time, such as evictions.
    pub async fn impatient_client(&self) -> Result<Client> {
        let mut config = self.config().await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    async fn config(&self) -> Result<Config> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
    }
}

fn cache_folder() -> PathBuf {
    env::var_os("E2E_CACHE").map_or_else(|| repository().join("target/e2e-cluster"), PathBuf::from)
}

pub fn repository() -> PathBuf {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_root.parent().unwrap_or(crate_root).to_owned()
}
