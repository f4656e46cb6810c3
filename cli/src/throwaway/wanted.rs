//! What servers a manifest needs.

use std::fmt;

use redisbench_benchmark::api::Validated;
use redisbench_wire::plan::{Tls, Topology, Transport};

use super::{Authority, ThrowawayError};
use crate::credentials::Credentials;

/// Databases of a server that is not told how many.
const DATABASES: u32 = 16;

/// The type of target that the servers form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One server.
    Standalone,
    /// A server with sentinels that watch it.
    Sentinel,
    /// Three primaries.
    Cluster,
}

/// The servers of one target.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub shape: Shape,
    /// Of each primary.
    pub replicas: usize,
    pub databases: u32,
    /// The servers' credentials.
    pub credentials: Option<&'a Credentials>,
    /// How they are spoken to, where that is within TLS.
    pub tls: Option<(&'a Authority, bool)>,
    /// The name by which sentinels know the primary.
    pub master_name: &'a str,
    /// The sentinels' credentials.
    pub sentinel_credentials: Option<&'a Credentials>,
    /// As `tls`, for the sentinels.
    pub sentinel_tls: Option<(&'a Authority, bool)>,
}

impl<'a> Wanted<'a> {
    /// The most replicas of a primary.
    pub const REPLICAS: u32 = 5;

    /// Servers that ask for nothing.
    #[cfg(test)]
    pub fn plain(shape: Shape) -> Self {
        Self {
            shape,
            replicas: 0,
            databases: DATABASES,
            credentials: None,
            tls: None,
            master_name: "",
            sentinel_credentials: None,
            sentinel_tls: None,
        }
    }

    /// What the target of `spec` needs: replicas for WAIT, and where others take over or are read from.
    ///
    /// # Errors
    /// When that is more than one machine should hold.
    pub fn of(
        spec: &'a Validated,
        credentials: Option<&'a Credentials>,
        sentinel_credentials: Option<&'a Credentials>,
        authority: Option<&'a Authority>,
    ) -> Result<Self, ThrowawayError> {
        let target = &spec.target;
        let (shape, least) = match target.topology {
            Topology::Standalone => (Shape::Standalone, 0),
            Topology::Sentinel => (Shape::Sentinel, 1),
            Topology::Cluster => (Shape::Cluster, 1),
        };
        let waited = spec.workload.options.wait.as_ref().map_or(0, |wait| wait.replicas);
        if waited > Self::REPLICAS {
            return Err(ThrowawayError::Replicas(waited));
        }
        let within = |tls: &Tls| authority.map(|authority| (authority, tls.client_certificate));
        let tls = target.tls.as_ref().and_then(within);
        let sentinel_tls = match target.sentinels.as_ref().map(|own| &own.transport) {
            Some(Transport::Plain) => None,
            Some(Transport::Tls(own)) => within(own),
            Some(Transport::SameAsTarget) | None => tls,
        };
        Ok(Self {
            shape,
            replicas: waited.max(least) as usize,
            databases: DATABASES.max(target.database + 1),
            credentials,
            tls,
            master_name: target.master_name.as_deref().unwrap_or_default(),
            sentinel_credentials,
            sentinel_tls,
        })
    }
}

impl fmt::Display for Wanted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.shape, self.replicas) {
            (Shape::Cluster, 1) => formatter.write_str("Redis Cluster of three primaries and three replicas")?,
            (Shape::Cluster, replicas) => {
                write!(formatter, "Redis Cluster of three primaries with {replicas} replicas each")?;
            }
            (_, 0) => formatter.write_str("redis-server")?,
            (_, 1) => formatter.write_str("redis-server with a replica")?,
            (_, replicas) => write!(formatter, "redis-server with {replicas} replicas")?,
        }
        if self.shape == Shape::Sentinel {
            formatter.write_str(", behind three sentinels")?;
        }
        if self.tls.or(self.sentinel_tls).is_some() {
            formatter.write_str(", within TLS by a throwaway authority,")?;
        }
        Ok(())
    }
}
