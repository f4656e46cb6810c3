//! Credentials and TLS files for the target.

use std::fmt;

/// A user name and password. Never printed, not even by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// None is the server's default user.
    pub username: Option<String>,
    pub password: String,
}

impl Credentials {
    /// As files for a shard: name and content.
    pub fn into_files(self) -> Vec<(&'static str, String)> {
        let username = self.username.map(|username| ("username", username));
        [("password", self.password)].into_iter().chain(username).collect()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials(..)")
    }
}

/// The TLS files of a shard, for the target or for its sentinels. Never printed, not even by `Debug`.
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
