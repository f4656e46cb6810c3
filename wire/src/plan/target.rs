//! The Redis under test, and the ways to it.

use serde::{Deserialize, Serialize};

/// The Redis under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The name in the benchmark's spec.
    pub name: String,
    /// What it must be.
    pub topology: Topology,
    /// `host:port`, at least one. Of a standalone server the first is used; of a cluster or of sentinels, any that
    /// answers.
    pub endpoints: Vec<String>,
    /// Addresses that nodes of a cluster announce, and where they can be reached instead.
    pub address_map: Vec<AddressMapping>,
    /// Who answers reads of a cluster.
    #[serde(default)]
    pub read_from: ReadFrom,
    /// By what name sentinels know the primary; none without sentinels.
    pub master_name: Option<String>,
    /// What sentinels ask for; none if it is what the servers do.
    #[serde(default)]
    pub sentinels: Option<Sentinels>,
    /// The language that the load speaks.
    pub protocol: Protocol,
    /// The database to select; 0 for a cluster.
    pub database: u32,
    /// Whether to authenticate, with the credentials mounted beside the shard. They are never in the plan.
    pub authenticate: bool,
    /// How to speak TLS to every server; none is in the clear.
    pub tls: Option<Tls>,
}

/// What sentinels ask for that is of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sentinels {
    /// Whether to authenticate there, with credentials that are mounted beside the servers'. If not, a sentinel that asks
    /// gets those of the servers.
    pub authenticate: bool,
    /// How to speak to them.
    pub transport: Transport,
}

/// How sentinels are spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// As the servers are.
    #[default]
    SameAsTarget,
    /// In the clear.
    Plain,
    /// Within TLS of their own; what is secret of it is mounted with their credentials.
    Tls(Tls),
}

/// Where a node of a cluster is reached that announces an address which cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressMapping {
    /// `host:port` as the cluster has it.
    pub announced: String,
    /// `host:port` to connect to.
    pub reachable: String,
}

impl Target {
    /// Where to connect to instead of what a cluster announces, if anywhere.
    pub fn reachable(&self, announced: &str) -> Option<&str> {
        let mapping = self.address_map.iter().find(|mapping| mapping.announced == announced)?;
        Some(&mapping.reachable)
    }
}

/// Who answers the reads of a cluster. Writes go to primaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadFrom {
    /// The slot's primary.
    #[default]
    Primary,
    /// A replica, and nobody else.
    Replica,
    /// A replica; the primary where there is none.
    PreferReplica,
}

/// A version of Redis's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// What every server speaks at first.
    Resp2,
    /// From Redis 6 on: agreed on with HELLO.
    Resp3,
}

/// TLS to the target. What is secret of it is mounted beside the shard, and never in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Whose certificates are good.
    pub trust: Trust,
    /// Whether servers are shown a certificate of our own, which is mounted.
    pub client_certificate: bool,
    /// The name that is asked for (SNI), and that a server's certificate must have. None: the host in the server's
    /// own endpoint.
    pub server_name: Option<String>,
    /// The oldest version to agree to.
    pub minimum_version: TlsVersion,
}

/// Whose word is taken for a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// The authorities that the shard's system trusts.
    System,
    /// Those that are mounted, and no others.
    Mounted,
    /// Nobody's: any certificate is good, whoever shows it.
    Anyone,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// 1.2, of 2008.
    Tls12,
    /// 1.3, of 2018.
    Tls13,
}

/// What a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Topology {
    /// One server.
    Standalone,
    /// Redis Cluster.
    Cluster,
    /// The server that sentinels say is the primary, as long as they say so.
    Sentinel,
}
