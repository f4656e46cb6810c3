//! The servers that a manifest needs.

use std::fmt;

use redisbench_benchmark::api::Validated;
use redisbench_wire::plan::{Distribution, ReadFrom, Tls, Topology, Transport};

use super::authority::Authority;
use super::error::ThrowawayError;
use super::limits::{REPLICAS, SERVERS};
use crate::credentials::{Credentials, TargetAccess};

/// The default number of a server's databases.
const DATABASES: u32 = 16;

/// The type of target that the servers form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Standalone,
    /// A server with sentinels.
    Sentinel,
    /// A cluster of three primaries.
    Cluster,
    /// Servers without a cluster, each with a part of the keys.
    Pool(usize),
}

#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub shape: Shape,
    /// Replicas per primary.
    pub replicas: usize,
    /// The addresses of a standalone server, 127.0.0.1 and those after it: as if behind so many proxies.
    pub addresses: usize,
    pub databases: u32,
    pub credentials: Option<&'a Credentials>,
    /// The authority, and whether servers require client certificates. None for plain text.
    pub tls: Option<(&'a Authority, bool)>,
    /// The name of the primary in the sentinels' configuration.
    pub master_name: &'a str,
    pub sentinel_credentials: Option<&'a Credentials>,
    /// Like `tls`, for the sentinels.
    pub sentinel_tls: Option<(&'a Authority, bool)>,
}

impl<'a> Wanted<'a> {
    /// Servers without credentials and TLS.
    #[cfg(test)]
    pub fn plain(shape: Shape) -> Self {
        Self {
            shape,
            replicas: 0,
            addresses: 1,
            databases: DATABASES,
            credentials: None,
            tls: None,
            master_name: "",
            sentinel_credentials: None,
            sentinel_tls: None,
        }
    }

    /// The servers for the target of `spec`: with replicas for WAIT, Sentinel, and reads from replicas.
    ///
    /// # Errors
    /// If they are more than one machine should run.
    pub fn of(
        spec: &'a Validated,
        access: &'a TargetAccess,
        authority: Option<&'a Authority>,
    ) -> Result<Self, ThrowawayError> {
        let target = &spec.plan.target;
        let count = target.endpoints.len();
        let (shape, least) = match target.topology {
            Topology::Pool if count > SERVERS => {
                return Err(ThrowawayError::Servers { target: target.name.clone(), servers: count });
            }
            Topology::Pool if target.distribution == Distribution::ByKey => (Shape::Pool(count), 0),
            // The servers of an even pool must hold the same data.
            Topology::Standalone | Topology::Pool => (Shape::Standalone, 0),
            Topology::Sentinel => (Shape::Sentinel, 1),
            Topology::Cluster => (Shape::Cluster, u32::from(target.read_from != ReadFrom::Primary)),
        };
        let waited = spec.plan.workload.options.wait.as_ref().map_or(0, |wait| wait.replicas);
        if waited > REPLICAS {
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
            addresses: if shape == Shape::Standalone { count } else { 1 },
            databases: DATABASES.max(target.database + 1),
            credentials: access.servers.credentials.as_ref(),
            tls,
            master_name: target.master_name.as_deref().unwrap_or_default(),
            sentinel_credentials: access.sentinels.credentials.as_ref(),
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
            (Shape::Pool(servers), 0) => write!(formatter, "pool of {servers} redis-servers")?,
            (Shape::Pool(servers), replicas) => {
                write!(formatter, "pool of {servers} redis-servers with {replicas} replicas each")?;
            }
            (_, 0) => formatter.write_str("redis-server")?,
            (_, 1) => formatter.write_str("redis-server with a replica")?,
            (_, replicas) => write!(formatter, "redis-server with {replicas} replicas")?,
        }
        if self.shape == Shape::Sentinel {
            formatter.write_str(", behind three sentinels")?;
        }
        if self.tls.or(self.sentinel_tls).is_some() {
            formatter.write_str(", with TLS from a throwaway CA,")?;
        }
        Ok(())
    }
}
