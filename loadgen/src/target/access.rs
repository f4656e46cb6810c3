//! Access to the servers of the target.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redisbench_wire::ShardFailure;
use redisbench_wire::plan::{Sentinels, ShardPlan, Target, Transport};

use super::advice;
use super::client::Client;
use super::credentials::Credentials;
use super::tls::Security;
use super::trouble::Trouble;

/// Mount point of the secrets of all targets.
#[derive(Clone, Debug)]
pub struct Mounts {
    /// Directory of the targets' folders: see [`Target::folder`].
    pub targets: PathBuf,
}

/// Credentials and TLS settings.
#[derive(Clone, Debug, Default)]
pub(super) struct TargetAccess {
    pub(super) credentials: Option<Credentials>,
    pub(super) security: Option<Security>,
    /// The sentinels' own, if they differ.
    sentinels: Option<Box<Self>>,
}

impl TargetAccess {
    /// Reads the files that the plan asks for. They are read at every look, so that a rotated Secret takes effect.
    pub(super) async fn read(plan: &ShardPlan, mounts: &Mounts) -> Result<Self, ShardFailure> {
        let target = &plan.target;
        let folder = mounts.targets.join(target.folder());
        let mut access = Self::default();
        if target.authenticate {
            let credentials = Credentials::read(&folder).await;
            access.credentials =
                Some(credentials.map_err(|problem| advice::unreadable_credentials(&target.name, &problem))?);
        }
        if let Some(tls) = &target.tls {
            let security = Security::read(tls, &folder).await;
            access.security = Some(security.map_err(|problem| advice::insecure(&target.name, &problem))?);
        }
        if let Some(own) = &target.sentinels {
            let read = access.of_sentinels(target, own, &mounts.targets.join(target.sentinel_folder())).await;
            access.sentinels = Some(Box::new(read.map_err(|failure| advice::of_sentinels(target, &failure))?));
        }
        Ok(access)
    }

    /// Sentinels fall back to the servers' credentials and TLS.
    async fn of_sentinels(&self, target: &Target, own: &Sentinels, mount: &Path) -> Result<Self, ShardFailure> {
        let credentials = if own.authenticate {
            let credentials = Credentials::read(mount).await;
            Some(credentials.map_err(|problem| advice::unreadable_credentials(&target.name, &problem))?)
        } else {
            self.credentials.clone()
        };
        let security = match &own.transport {
            Transport::SameAsTarget => self.security.clone(),
            Transport::Plain => None,
            Transport::Tls(tls) => {
                let security = Security::read(tls, mount).await;
                Some(security.map_err(|problem| advice::insecure(&target.name, &problem))?)
            }
        };
        Ok(Self { credentials, security, sentinels: None })
    }

    /// Connects to `endpoint` at its `address` within `limit`, and logs in.
    pub(super) async fn connect(
        &self,
        endpoint: &str,
        address: SocketAddr,
        limit: Duration,
    ) -> Result<Client, Trouble> {
        let mut client = Client::connect(endpoint, address, self.security.as_ref(), limit).await?;
        if let Some(credentials) = &self.credentials {
            client.ask(&credentials.command()).await?;
        }
        Ok(client)
    }

    pub(super) fn for_sentinels(&self) -> &Self {
        self.sentinels.as_deref().unwrap_or(self)
    }
}
