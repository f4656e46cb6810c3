//! `spec.targets`: the Redis under test. The doc comments are the text of `kubectl explain`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::NAME_PATTERN;

/// `host:port`, the host a name, an IPv4 address or an IPv6 address in brackets.
pub const ENDPOINT_PATTERN: &str = r"^(\[[0-9a-fA-F:.%]+\]|[^\s:\[\]/@]+):[0-9]{1,5}$";
/// Names of Secrets.
pub const OBJECT_NAME_PATTERN: &str = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";
/// Keys within a Secret.
pub const SECRET_KEY_PATTERN: &str = "^[-._a-zA-Z0-9]+$";

/// A Redis under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetSpec {
    /// Names the target in results and metrics: lower-case letters, digits and `-`, at most 32.
    #[schemars(length(min = 1, max = 32), pattern(NAME_PATTERN))]
    pub name: String,
    /// `Standalone` is one server, `Cluster` is Redis Cluster. A target that is something else fails the run.
    #[serde(rename = "type")]
    pub kind: TargetType,
    /// Where it listens, as `host:port`; IPv6 in brackets. One for a Standalone; up to 32 for a Cluster, of which any that
    /// answers tells about the others.
    #[schemars(
        length(min = 1, max = 32),
        inner(length(min = 3, max = 262), pattern(ENDPOINT_PATTERN)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub endpoints: Vec<String>,
    /// The number of the database to select, 0 to 65535. Default 0; a Cluster has only 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 65535))]
    pub database: u32,
    /// How to authenticate. Not set by default: no AUTH is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthSpec>,
}

/// What a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TargetType {
    /// One server.
    Standalone,
    /// Redis Cluster.
    Cluster,
}

/// How to authenticate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthSpec {
    /// The Secret that holds the credentials. Shards mount it; the operator never reads it.
    pub secret_ref: SecretRef,
}

/// A reference to a Secret in the benchmark's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// The Secret's name, in the benchmark's namespace.
    #[schemars(length(min = 1, max = 253), pattern(OBJECT_NAME_PATTERN))]
    pub name: String,
    /// The key that holds the user's name. Not set by default: the password is given for the default user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), pattern(SECRET_KEY_PATTERN))]
    pub username_key: Option<String>,
    /// The key that holds the password. Default `password`.
    #[serde(default = "default_password_key")]
    #[schemars(length(min = 1, max = 253), pattern(SECRET_KEY_PATTERN))]
    pub password_key: String,
}

fn default_password_key() -> String {
    "password".into()
}
