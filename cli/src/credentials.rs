//! Credentials and TLS files for the targets.

use std::fmt;

/// A user name and password. Never printed, not even by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// None is the server's default user.
    pub username: Option<String>,
    pub password: String,
}

impl Credentials {
    fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let username = self.username.as_deref().map(|username| ("username", username));
        [("password", self.password.as_str())].into_iter().chain(username)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials(..)")
    }
}

/// TLS files for a shard. Never printed, not even by `Debug`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    /// Name and content.
    pub files: Vec<(&'static str, String)>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Certificates(..)")
    }
}

/// Credentials and TLS files for the servers of a target, or for its sentinels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub credentials: Option<Credentials>,
    pub certificates: Certificates,
}

impl Access {
    /// As files for a shard: name and content.
    pub fn files(&self) -> Vec<(&'static str, &str)> {
        let certificates = self.certificates.files.iter().map(|(name, text)| (*name, text.as_str()));
        self.credentials.iter().flat_map(Credentials::files).chain(certificates).collect()
    }
}

/// Access to a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetAccess {
    pub servers: Access,
    /// Access that the sentinels do not share with the servers.
    pub sentinels: Access,
}

/// A text that is, or may contain, a password. Never printed, not even by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Confidential(String);

impl Confidential {
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Confidential {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Confidential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Confidential(..)")
    }
}
