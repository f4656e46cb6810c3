//! `spec.targets`: the Redis under test. The doc comments are the text of `kubectl explain`.

use redisbench_wire::plan::{self, Distribution, Protocol, ReadFrom, TlsVersion, Topology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint;
use super::patterns::{ENDPOINT_PATTERN, HOST_PATTERN, NAME_PATTERN, OBJECT_NAME_PATTERN, SECRET_KEY_PATTERN};
use super::problem::Problem;

/// Redis under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetSpec {
    /// Name of the target in results and metrics: lower-case letters, digits and `-`, at most 32.
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub name: String,
    /// `Standalone` is one server, `Cluster` is Redis Cluster, `Sentinel` is the primary that Redis Sentinel reports, also after a
    /// failover. `Pool` is several servers at once that form no cluster: client-side sharding, active-active sites, proxies of one Redis,
    /// or all pods of a headless Service. The run fails if the target is of another type.
    #[serde(rename = "type")]
    pub kind: Topology,
    /// Addresses of the target, as `host:port`; IPv6 in brackets. Exactly one for type Standalone. Up to 32 for a Cluster: any that replies
    /// reports the other nodes. Up to 32 sentinels for type Sentinel: any that replies reports the primary. Up to 32 for a Pool: all of
    /// them, and of a name with several addresses every address (IPv4, if it has any), are loaded at once. Names are resolved again on
    /// reconnect. `kubectl redisbench local` also accepts `unix:/path` for a Standalone.
    #[schemars(
        length(min = 1, max = 32),
        inner(length(min = 3, max = 262), pattern(ENDPOINT_PATTERN)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub endpoints: Vec<String>,
    /// Settings for type `Cluster`. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterSpec>,
    /// Settings for type `Sentinel`, required for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<SentinelSpec>,
    /// Settings for type `Pool`, required for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolSpec>,
    /// Protocol of the load, `RESP2` or `RESP3`. RESP3 requires Redis 6 or later. Default `RESP2`.
    #[serde(default)]
    pub protocol: Protocol,
    /// Number of the database to select, 0 to 65535. Default 0, the only one in a Cluster.
    #[serde(default)]
    #[schemars(range(min = 0, max = 65535))]
    pub database: u32,
    /// Credentials. Not set by default: no AUTH is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthSpec>,
    /// TLS to every server of the target. `{}` is sufficient for a certificate of a public authority. Not set by default: unencrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
}

/// Settings for Redis Cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Nodes that serve reads. `Primary`: the slot's primary. `Replica`: only its replicas; a slot without an available one is refused
    /// before the load. `PreferReplica`: the primary if no replica is available. An operation is a read if the server flags its command
    /// `readonly`, or without such flags, if it is in a built-in list. All others go to primaries. Default `Primary`.
    #[serde(default)]
    pub read_from: ReadFrom,
    /// Addresses of nodes whose announced ones are unreachable, for example behind NAT or a proxy per node; up to 128. Other nodes are
    /// reached at their announced addresses. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 128),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["announced"])
    )]
    pub address_map: Vec<AddressMappingSpec>,
}

/// Reachable address of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddressMappingSpec {
    /// `host:port` of the node as in `CLUSTER SLOTS` and redirects.
    #[schemars(length(min = 3, max = 262), pattern(ENDPOINT_PATTERN))]
    pub announced: String,
    /// `host:port` to connect to.
    #[schemars(length(min = 3, max = 262), pattern(ENDPOINT_PATTERN))]
    pub reachable: String,
}

/// Settings for several servers at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolSpec {
    /// Distribution of the requests. `ByKey`: the key selects the server, as client-side sharding does: by its hash slot as in Redis
    /// Cluster, of which each server gets an equal range in the order of `endpoints`. All keys of a command must be in one slot. `Even`:
    /// every server gets an equal share of the requests, whatever the key, so all must hold the same data: proxies of one Redis,
    /// active-active sites. Required.
    pub distribution: Distribution,
}

/// Settings for Redis Sentinel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentinelSpec {
    /// Name of the primary at the sentinels, as in `sentinel monitor`: letters, digits, `.`, `-` and `_`.
    #[schemars(length(min = 1, max = 253), pattern(SECRET_KEY_PATTERN))]
    pub master_name: String,
    /// Credentials for the sentinels. Not set by default: the target's `auth` is used for sentinels that require a password, none for
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthSpec>,
    /// Transport to the sentinels. Default: as to the servers.
    #[serde(default)]
    pub transport: TransportSpec,
}

/// Transport to sentinels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransportSpec {
    /// `SameAsTarget` uses the target's `tls`, if set. `Plain` is unencrypted. `TLS` uses `tls` of this transport. Default `SameAsTarget`.
    #[serde(default, rename = "type")]
    pub kind: TransportType,
    /// Settings for type `TLS`, required for it. `{}` is sufficient for a certificate of a public authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSpec>,
}

/// Type of the transport to sentinels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TransportType {
    /// Same as to the servers.
    #[default]
    SameAsTarget,
    /// Unencrypted.
    Plain,
    /// Own TLS settings.
    TLS,
}

/// Credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthSpec {
    /// Secret with the credentials. Shards mount it; the operator never reads it.
    pub secret_ref: SecretRef,
}

/// A reference to a Secret in the benchmark's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Name of the Secret in this namespace.
    #[schemars(length(min = 1, max = 253), pattern(OBJECT_NAME_PATTERN))]
    pub name: String,
    /// Key of the user name. Not set by default: the default user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(SECRET_KEY_PATTERN))]
    pub username_key: Option<String>,
    /// Key of the password. Default `password`.
    #[serde(default = "default_password_key")]
    #[schemars(length(min = 1, max = 253), pattern(SECRET_KEY_PATTERN))]
    pub password_key: String,
}

/// TLS to every server of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsSpec {
    /// Trusted certificate authorities, and no others. Not set by default: those of the shard's system, which are the public ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<AuthoritySecretRef>,
    /// Client certificate (mutual TLS). Not set by default: none, so servers that require one refuse the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate_secret_ref: Option<CertificateSecretRef>,
    /// Server name to request (SNI) and to verify in the server's certificate: a DNS name or an IPv4 address. Not set by default: the host
    /// of the endpoint; in a Cluster, the host that each node announces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(HOST_PATTERN))]
    pub server_name: Option<String>,
    /// Minimum TLS version, `TLS12` or `TLS13`. Default `TLS12`.
    #[serde(default)]
    pub minimum_version: TlsVersion,
    /// Accepts any certificate, which allows anyone in between to read and change the traffic; the verdict reports it. Not with
    /// `caSecretRef`. Default false.
    #[serde(default)]
    pub insecure_skip_verify: bool,
}

/// Secret in the benchmark's namespace with certificates of authorities. Shards mount it; the operator never reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthoritySecretRef {
    /// Name of the Secret in this namespace.
    #[schemars(length(min = 1, max = 253), pattern(OBJECT_NAME_PATTERN))]
    pub name: String,
    /// Key of one or more certificates in PEM. Default `ca.crt`.
    #[serde(default = "default_authority_key")]
    #[schemars(length(min = 1, max = 253), pattern(SECRET_KEY_PATTERN))]
    pub key: String,
}

/// Secret of type `kubernetes.io/tls` in the benchmark's namespace: `tls.crt` holds a certificate and its chain up to the authority,
/// `tls.key` its private key, both in PEM. Shards mount it; the operator never reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSecretRef {
    /// Name of the Secret in this namespace.
    #[schemars(length(min = 1, max = 253), pattern(OBJECT_NAME_PATTERN))]
    pub name: String,
}

/// References to the Secrets for a target. Shards mount them as files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetSecrets {
    /// User name and password.
    pub credentials: Option<SecretRef>,
    /// Certificates of trusted authorities.
    pub authorities: Option<AuthoritySecretRef>,
    /// Client certificate and its private key.
    pub certificate: Option<CertificateSecretRef>,
}

impl TargetSecrets {
    /// Secrets for the servers of a target.
    pub(super) fn of(target: &TargetSpec) -> Self {
        Self::new(target.auth.as_ref(), target.tls.as_ref())
    }

    /// Secrets that the target's sentinels do not share with its servers.
    pub(super) fn of_sentinels(target: &TargetSpec) -> Self {
        let sentinel = target.sentinel.as_ref();
        Self::new(sentinel.and_then(|own| own.auth.as_ref()), sentinel.and_then(|own| own.transport.tls.as_ref()))
    }

    fn new(auth: Option<&AuthSpec>, tls: Option<&TlsSpec>) -> Self {
        Self {
            credentials: auth.map(|auth| auth.secret_ref.clone()),
            authorities: tls.and_then(|tls| tls.ca_secret_ref.clone()),
            certificate: tls.and_then(|tls| tls.client_certificate_secret_ref.clone()),
        }
    }

    /// True if no Secret is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A target whose servers each have a part of the keys, so that all keys of a command must be in one slot.
pub(super) fn keyed(targets: &[TargetSpec]) -> Option<&TargetSpec> {
    targets.iter().find(|target| match target.kind {
        Topology::Cluster => true,
        Topology::Pool => target.pool.is_some_and(|pool| pool.distribution == Distribution::ByKey),
        Topology::Standalone | Topology::Sentinel => false,
    })
}

/// Rejects targets that only a local run can reach; the API server's schema refuses them too.
pub fn of_one_machine(targets: &[TargetSpec]) -> Option<Problem> {
    let endpoints =
        || targets.iter().zip(0..).flat_map(|(target, at)| target.endpoints.iter().map(move |text| (at, text)));
    let (at, file) = endpoints().find(|(_, endpoint)| endpoint::is_file(endpoint))?;
    let message = "a UNIX socket is local to one machine: set host:port, or use `kubectl redisbench local` there";
    Some(Problem::new(format!("spec.targets[{at}].endpoints"), file, message))
}

/// The target of a trial, which is the only one of its spec. The plan of a comparison sets its index.
pub(super) fn check(target: &TargetSpec, problems: &mut Vec<Problem>) -> plan::Target {
    let file = target.endpoints.iter().find(|endpoint| endpoint::is_file(endpoint));
    if let Some(file) = file.filter(|_| target.kind != Topology::Standalone || target.tls.is_some()) {
        let message = "a UNIX socket is only valid for type Standalone without tls: set host:port";
        problems.push(Problem::new("spec.targets[0].endpoints", file, message));
    }
    plan::Target {
        name: target.name.clone(),
        index: 0,
        topology: target.kind,
        endpoints: target.endpoints.clone(),
        address_map: (target.cluster.iter().flat_map(|cluster| &cluster.address_map))
            .map(|mapping| plan::AddressMapping {
                announced: mapping.announced.clone(),
                reachable: mapping.reachable.clone(),
            })
            .collect(),
        read_from: target.cluster.as_ref().map(|cluster| cluster.read_from).unwrap_or_default(),
        distribution: target.pool.map(|pool| pool.distribution).unwrap_or_default(),
        master_name: target.sentinel.as_ref().map(|sentinel| sentinel.master_name.clone()),
        sentinels: target.sentinel.as_ref().and_then(sentinels),
        protocol: target.protocol,
        database: target.database,
        authenticate: target.auth.is_some(),
        tls: target.tls.as_ref().map(tls_to_plan),
    }
}

fn sentinels(sentinel: &SentinelSpec) -> Option<plan::Sentinels> {
    let TransportSpec { kind, tls } = &sentinel.transport;
    let transport = match (kind, tls) {
        (TransportType::TLS, Some(tls)) => plan::Transport::Tls(tls_to_plan(tls)),
        (TransportType::Plain, _) => plan::Transport::Plain,
        // By the rules, type TLS has its member.
        (TransportType::SameAsTarget | TransportType::TLS, _) => plan::Transport::SameAsTarget,
    };
    let own = plan::Sentinels { authenticate: sentinel.auth.is_some(), transport };
    (own.authenticate || own.transport != plan::Transport::SameAsTarget).then_some(own)
}

fn tls_to_plan(tls: &TlsSpec) -> plan::Tls {
    plan::Tls {
        trust: match &tls.ca_secret_ref {
            _ if tls.insecure_skip_verify => plan::Trust::Anyone,
            Some(_) => plan::Trust::Mounted,
            None => plan::Trust::System,
        },
        client_certificate: tls.client_certificate_secret_ref.is_some(),
        server_name: tls.server_name.clone(),
        minimum_version: tls.minimum_version,
    }
}

fn default_authority_key() -> String {
    "ca.crt".into()
}

fn default_password_key() -> String {
    "password".into()
}
