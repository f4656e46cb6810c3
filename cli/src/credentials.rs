//! What the target asks for before it serves.

use std::fmt;

/// A user's name and password. Printed nowhere, `Debug` included.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// None is the server's default user.
    pub username: Option<String>,
    /// Its password.
    pub password: String,
}

impl Credentials {
    /// As a shard reads them: name and content of each file.
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

/// The files of a shard for TLS to the target, or for its sentinels, by name. Printed nowhere, `Debug` included.
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
