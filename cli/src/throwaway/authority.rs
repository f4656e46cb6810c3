//! Certificates for throwaway servers and their clients.

use std::fmt::Write as _;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use redisbench_wire::plan::{Tls, Trust};
use tempfile::TempDir;

use super::error::ThrowawayError;
use super::quote::quote;
use crate::files::write_private;

/// A certificate authority and one certificate that it signed, which servers and clients share. Deleted on drop.
pub struct Authority {
    root: String,
    certificate: String,
    key: String,
    /// The same as files for the servers.
    directory: TempDir,
    folder: PathBuf,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Authority").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Authority {
    /// Creates an authority and a certificate for 127.0.0.1, `localhost` and the names in `tls`.
    ///
    /// # Errors
    /// If a name is not possible in a certificate, or the files cannot be written.
    pub fn new<'a>(tls: impl Iterator<Item = &'a Tls>) -> Result<Self, ThrowawayError> {
        let names = tls.filter_map(|tls| tls.server_name.clone());
        let names: Vec<String> = ["127.0.0.1", "localhost"].map(str::to_owned).into_iter().chain(names).collect();
        let (root, certificate, key) = sign(names).map_err(ThrowawayError::Certificate)?;
        let directory =
            tempfile::Builder::new().prefix("redisbench-tls-").tempdir().map_err(ThrowawayError::Directory)?;
        let folder = directory.path().join("files");
        write_private(&folder, &[("ca.crt", &root), ("tls.crt", &certificate), ("tls.key", &key)])
            .map_err(ThrowawayError::Directory)?;
        Ok(Self { root, certificate, key, directory, folder })
    }

    /// The files that a shard needs for `tls`, by name.
    pub fn files(&self, tls: &Tls) -> Vec<(&'static str, String)> {
        let mut files = Vec::new();
        if tls.trust != Trust::Anyone {
            files.push(("ca.crt", self.root.clone()));
        }
        if tls.client_certificate {
            files.extend([("tls.crt", self.certificate.clone()), ("tls.key", self.key.clone())]);
        }
        files
    }

    /// The configuration of a server for TLS on `port`. Requires client certificates if `asks`.
    pub fn configuration(&self, port: u16, asks: bool) -> String {
        let mut text = format!("tls-port {port}\ntls-auth-clients {}\n", if asks { "yes" } else { "no" });
        for (option, file) in
            [("tls-ca-cert-file", "ca.crt"), ("tls-cert-file", "tls.crt"), ("tls-key-file", "tls.key")]
        {
            let _ = writeln!(text, "{option} {}", quote(&self.folder.join(file).to_string_lossy()));
        }
        text
    }
}

/// A new authority's certificate, and a certificate with its key, signed by it.
fn sign(names: Vec<String>) -> Result<(String, String, String), rcgen::Error> {
    let mut of_authority = CertificateParams::new(Vec::new())?;
    of_authority.distinguished_name.push(DnType::CommonName, "redisbench throwaway authority");
    of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    of_authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let authority = of_authority.self_signed(&authority_key)?;
    let mut of_server = CertificateParams::new(names)?;
    of_server.distinguished_name.push(DnType::CommonName, "redisbench throwaway server");
    of_server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = of_server.signed_by(&key, &Issuer::from_params(&of_authority, &authority_key))?;
    Ok((authority.pem(), certificate.pem(), key.serialize_pem()))
}
