//! The Redis under test, and how to connect to it.

use serde::{Deserialize, Serialize};

/// The Redis under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The name in the benchmark's spec.
    pub name: String,
    /// The place in the benchmark's `spec.targets`, from 0.
    #[serde(default)]
    pub index: u32,
    /// The topology that it must have.
    pub topology: Topology,
    /// `host:port`, at least one. For a standalone server the first is used; for a cluster or sentinels, any that answers; for a pool,
    /// all.
    pub endpoints: Vec<String>,
    /// Where to reach nodes of a cluster that announce another address.
    pub address_map: Vec<AddressMapping>,
    /// Which servers of a cluster get reads.
    #[serde(default)]
    pub read_from: ReadFrom,
    /// The distribution of requests over a pool.
    #[serde(default)]
    pub distribution: Distribution,
    /// The name of the primary in the sentinels' configuration. None without sentinels.
    pub master_name: Option<String>,
    /// Credentials and TLS of the sentinels. None if they are those of the servers.
    #[serde(default)]
    pub sentinels: Option<Sentinels>,
    /// The protocol version of the load.
    pub protocol: Protocol,
    /// The database to select. Always 0 for a cluster.
    pub database: u32,
    /// True if to authenticate with the credentials in [`Target::folder`], which are never in the plan.
    pub authenticate: bool,
    /// TLS settings of every server. None connects in plain text.
    pub tls: Option<Tls>,
}

/// Settings of sentinels that differ from those of the servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sentinels {
    /// True if sentinels have credentials of their own, in [`Target::sentinel_folder`]. If not, a sentinel that requires a password gets
    /// that of the servers.
    pub authenticate: bool,
    /// The transport to sentinels.
    pub transport: Transport,
}

/// The transport to sentinels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// Like the servers.
    #[default]
    SameAsTarget,
    /// Plain text.
    Plain,
    /// TLS settings of their own; the secret parts are mounted with the sentinels' credentials.
    Tls(Tls),
}

/// Maps an unreachable address that a cluster node announces to a reachable one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressMapping {
    /// `host:port` as announced by the cluster.
    pub announced: String,
    /// `host:port` to connect to.
    pub reachable: String,
}

impl Target {
    /// The folder of its secrets in the directory that is mounted into the shard: `username`, `password`, `ca.crt`, `tls.crt` and
    /// `tls.key`, as far as the plan requires them.
    pub fn folder(&self) -> String {
        self.index.to_string()
    }

    /// The same for the sentinels' own secrets.
    pub fn sentinel_folder(&self) -> String {
        format!("{}/sentinel", self.index)
    }

    /// The field of the benchmark's spec that holds it, for messages.
    pub fn field(&self) -> String {
        format!("spec.targets[{}]", self.index)
    }

    /// Returns whether a request's key determines the server that gets it, so that all keys of a command must be in one slot.
    pub fn is_keyed(&self) -> bool {
        match self.topology {
            Topology::Cluster => true,
            Topology::Pool => self.distribution == Distribution::ByKey,
            Topology::Standalone | Topology::Sentinel => false,
        }
    }

    /// The address to connect to instead of the `announced` one, if it is mapped.
    pub fn reachable(&self, announced: &str) -> Option<&str> {
        let mapping = self.address_map.iter().find(|mapping| mapping.announced == announced)?;
        Some(&mapping.reachable)
    }
}

/// Which servers of a cluster get reads. Writes go to primaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReadFrom {
    /// The slot's primary.
    #[default]
    Primary,
    /// A replica only.
    Replica,
    /// A replica, or the primary if there is none.
    PreferReplica,
}

/// The distribution of requests over the servers of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Distribution {
    /// The hash slot of the key selects the server: CRC16 of the key or its hash tag, modulo 16384. Each server has an equal range of
    /// slots.
    #[default]
    ByKey,
    /// Evenly, whatever the key.
    Even,
}

/// A version of Redis's protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Protocol {
    /// The default of every server.
    #[default]
    #[serde(rename = "RESP2")]
    Resp2,
    /// Redis 6 and later, negotiated with HELLO.
    #[serde(rename = "RESP3")]
    Resp3,
}

/// TLS to the target. Secret parts are mounted into the shard and never in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Which certificates to accept.
    pub trust: Trust,
    /// True if to send a client certificate, which is mounted.
    pub client_certificate: bool,
    /// The name for SNI, which must match the server's certificate. None: the host of the server's own endpoint.
    pub server_name: Option<String>,
    /// The oldest TLS version to accept.
    pub minimum_version: TlsVersion,
}

/// Which certificate authorities are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// The authorities of the shard's system.
    System,
    /// Only the mounted authorities.
    Mounted,
    /// Accepts any certificate.
    Anyone,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    #[serde(rename = "TLS12")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "TLS13")]
    Tls13,
}

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Topology {
    /// One server.
    Standalone,
    /// Redis Cluster.
    Cluster,
    /// The server that sentinels report as the primary. Follows failovers.
    Sentinel,
    /// Several servers at once that form no cluster.
    Pool,
}
