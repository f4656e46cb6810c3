//! Installs the operator with Helm.

use anyhow::{Context, Result};

use crate::cluster::{Cluster, Images, OPERATOR, RELEASE, SYSTEM, repository};
use crate::tools::{helm, kubectl, kubectl_with_input};

impl Cluster {
    /// Installs the operator with Helm, once per process.
    pub async fn install(&self) -> Result<()> {
        static INSTALLED: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
        INSTALLED.get_or_try_init(|| self.upgrade(&[])).await.copied()
    }

    /// Installs the operator, or upgrades it to these values, each as in `--set`. All others are the tests' defaults.
    pub async fn upgrade(&self, values: &[&str]) -> Result<()> {
        kubectl_with_input(&["apply", "-f", "-"], &restricted_namespace(SYSTEM).to_string()).await?;
        let chart = repository().join("charts/redisbench-operator");
        let mut arguments: Vec<String> =
            ["upgrade", "--install", RELEASE, &chart.to_string_lossy(), "-n", SYSTEM].map(str::to_owned).to_vec();
        let Images { registry, tag } = &self.images;
        for part in ["operator", "loadgen", "clients"] {
            arguments.push("--set-string".to_owned());
            arguments.push(format!("{part}.image.repository={registry}/{part},{part}.image.tag={tag}"));
        }
        arguments.extend(["--set-string".to_owned(), format!("drivers.go-redis={registry}/go-redis:{tag}")]);
        for value in values {
            arguments.extend(["--set".to_owned(), (*value).to_owned()]);
        }
        arguments.extend(["--wait", "--timeout", "2m"].map(str::to_owned));
        if let Err(error) = helm(&arguments).await {
            let pods = kubectl(&["-n", SYSTEM, "describe", "pods"]).await.unwrap_or_default();
            let logs = kubectl(&["-n", SYSTEM, "logs", "-l", OPERATOR, "--tail=100"]).await.unwrap_or_default();
            return Err(error).context(format!("failed to install the operator; {pods}\n{logs}"));
        }
        Ok(())
    }
}

/// A namespace that enforces the strictest Pod Security profile.
pub fn restricted_namespace(name: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    })
}
