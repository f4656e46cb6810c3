//! The target's user name and password from the mounted Secret. Read at every look at the target, so that a rotated Secret takes effect.

use std::fmt;
use std::io;
use std::path::Path;

use crate::engine::Login;

#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    username: Option<String>,
    password: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads `username`, which may be absent, and `password` from `directory`. Drops a trailing line break, which tools often add.
    ///
    /// # Errors
    /// Fails with a readable message if a file is missing, unreadable or empty.
    pub async fn read(directory: &Path) -> Result<Self, String> {
        let password = match read(&directory.join("password")).await {
            Ok(password) if password.is_empty() => Err("the password is empty".to_owned()),
            Ok(password) => Ok(password),
            Err(error) => Err(format!("the password could not be read: {}", error.kind())),
        }?;
        let username = match read(&directory.join("username")).await {
            Ok(username) => match String::from_utf8(username) {
                Ok(username) if username.is_empty() => Ok(None),
                Ok(username) => Ok(Some(username)),
                Err(_) => Err("the user name is not UTF-8".to_owned()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("the user name could not be read: {}", error.kind())),
        }?;
        Ok(Self { username, password })
    }

    /// For clients that log in by themselves.
    pub fn login(&self) -> Login {
        Login { username: self.username.clone(), password: self.password.clone() }
    }

    /// The user name for messages.
    pub fn user(&self) -> &str {
        self.username.as_deref().unwrap_or("default")
    }

    /// `AUTH` with these credentials. Never log it.
    pub fn command(&self) -> redis::Cmd {
        let mut command = redis::cmd("AUTH");
        if let Some(username) = &self.username {
            command.arg(username);
        }
        command.arg(&self.password);
        command
    }
}

/// `HELLO 3`, which switches to RESP3, with `credentials` if given. Never log it.
pub fn hello(credentials: Option<&Credentials>) -> redis::Cmd {
    let mut command = redis::cmd("HELLO");
    command.arg(3);
    if let Some(credentials) = credentials {
        command.arg("AUTH").arg(credentials.user()).arg(&credentials.password);
    }
    command
}

async fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = tokio::fs::read(path).await?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        directory
    }

    async fn packed(files: &[(&str, &str)]) -> Result<String, String> {
        let directory = directory(files);
        let credentials = Credentials::read(directory.path()).await?;
        Ok(String::from_utf8(credentials.command().get_packed_command()).unwrap())
    }

    #[tokio::test]
    async fn a_password_alone_or_with_a_user() {
        assert_eq!(packed(&[("password", "a b\n")]).await.unwrap(), "*2\r\n$4\r\nAUTH\r\n$3\r\na b\r\n");
        assert_eq!(
            packed(&[("password", "p\r\n"), ("username", "u\n")]).await.unwrap(),
            "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n"
        );
        assert_eq!(packed(&[("password", "p"), ("username", "")]).await.unwrap(), "*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n");
    }

    #[tokio::test]
    async fn what_is_missing_is_named() {
        assert_eq!(packed(&[]).await.unwrap_err(), "the password could not be read: entity not found");
        assert_eq!(packed(&[("password", "\n")]).await.unwrap_err(), "the password is empty");
    }

    #[tokio::test]
    async fn debug_output_hides_the_password() {
        let directory = directory(&[("password", "geheim"), ("username", "u")]);
        let credentials = Credentials::read(directory.path()).await.unwrap();
        assert_eq!(format!("{credentials:?}"), "Credentials { username: Some(\"u\"), .. }");
    }
}
