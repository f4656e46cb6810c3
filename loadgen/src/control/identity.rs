//! The shard's identity, and its credential from the run's Secret.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redisbench_wire::RunToken;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};

/// The names in every answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub run: String,
    pub index: u32,
    pub incarnation: String,
    pub host: String,
}

#[derive(Debug)]
pub struct Credential {
    /// The token that a conductor must present.
    pub token: RunToken,
    /// The server's certificate and TLS settings.
    pub tls: Arc<ServerConfig>,
}

/// Why the identity directory is unusable.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("failed to read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to use {}: it is empty", .0.display())]
    EmptyToken(PathBuf),
    #[error("failed to read PEM from {}", path.display())]
    Pem {
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("failed to set up TLS with tls.crt and tls.key")]
    Tls(#[source] rustls::Error),
}

impl Credential {
    /// Reads `token`, `tls.crt` and `tls.key` from `directory`.
    ///
    /// # Errors
    /// Fails if a file is missing, empty or malformed.
    pub fn read(directory: &Path) -> Result<Self, CredentialError> {
        let token_path = directory.join("token");
        let token = RunToken::new(&String::from_utf8_lossy(&read(&token_path)?));
        if token.header() == RunToken::new("").header() {
            return Err(CredentialError::EmptyToken(token_path));
        }
        let path = directory.join("tls.crt");
        let certificates = CertificateDer::pem_slice_iter(&read(&path)?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| CredentialError::Pem { path, source })?;
        let path = directory.join("tls.key");
        let key =
            PrivateKeyDer::from_pem_slice(&read(&path)?).map_err(|source| CredentialError::Pem { path, source })?;
        // Explicit, because a process with two providers in its dependency tree has no default.
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(CredentialError::Tls)?;
        Ok(Self { token, tls: Arc::new(tls) })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CredentialError> {
    std::fs::read(path).map_err(|source| CredentialError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use tempfile::TempDir;

    use super::*;

    /// A credential as the conductor derives it: Ed25519 from a seed, in PKCS#8 version 1, which has no public key.
    fn directory() -> TempDir {
        let mut key =
            vec![0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
        key.extend([7; 32]);
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(key), &PKCS_ED25519).unwrap();
        let certificate = CertificateParams::new(["shard".to_owned()]).unwrap().self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("token", "a-token\n");
        write("tls.crt", &certificate.pem());
        write("tls.key", &key.serialize_pem());
        directory
    }

    #[test]
    fn reads_what_a_conductor_derives() {
        let credential = Credential::read(directory().path()).unwrap();
        assert!(credential.token.matches("Bearer a-token"));
        assert!(!format!("{:?}", credential.token).contains("a-token"));
    }

    #[test]
    fn names_the_file_that_cannot_be_used() {
        let refused = |name: &str, text: Option<&str>| {
            let directory = directory();
            let path = directory.path().join(name);
            match text {
                Some(text) => std::fs::write(path, text).unwrap(),
                None => std::fs::remove_file(path).unwrap(),
            }
            Credential::read(directory.path()).unwrap_err().to_string()
        };
        assert!(refused("token", None).contains("token"));
        assert!(refused("token", Some(" \n")).ends_with("it is empty"));
        assert!(refused("tls.key", Some("no PEM")).contains("failed to read PEM from"));
        assert!(refused("tls.crt", Some("")).contains("tls.crt"));
    }
}
