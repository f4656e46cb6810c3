//! The credential of a run: a bearer token and a TLS identity. Both are derived from the master key and the run's UID, so a holder of the
//! master key can derive them again without reading anything back.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519, SerialNumber, date_time_ymd};
use redisbench_wire::{CertificateVerifier, RunToken};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sha2::Sha256;

/// The name in every run's certificate. It is never resolved: the certificate itself is pinned.
const DNS_NAME: &str = "shard.redisbench.dev";

/// Ed25519 private key in PKCS#8 version 1: this prefix, then the 32 bytes of the seed.
const PKCS8_ED25519_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Mutual authentication of conductor and shards of one run. Never printed.
#[derive(Clone)]
pub struct RunCredential {
    token: String,
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    private_key_pem: String,
}

#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The certificate could not be made.
    #[error("failed to create the run's certificate")]
    Certificate(#[source] rcgen::Error),
    /// The TLS library refused the settings.
    #[error("failed to set up TLS with the run's certificate")]
    Tls(#[source] rustls::Error),
}

impl RunCredential {
    /// Derives the credential of the run `run_uid` from the master key: the same bytes every time.
    ///
    /// # Errors
    /// If the certificate cannot be made, which has not been seen with any input.
    pub fn derive(master_key: &[u8; 32], run_uid: &str) -> Result<Self, CredentialError> {
        let expand = |purpose: &[u8]| {
            let mut bytes = [0; 32];
            // 32 bytes are far below HKDF's limit of 255 hash lengths.
            Hkdf::<Sha256>::new(Some(run_uid.as_bytes()), master_key)
                .expand(purpose, &mut bytes)
                .unwrap_or_else(|_| unreachable!("constant length"));
            bytes
        };
        let token = URL_SAFE_NO_PAD.encode(expand(b"redisbench v1 bearer token"));
        let mut key = PKCS8_ED25519_PREFIX.to_vec();
        key.extend(expand(b"redisbench v1 tls key"));
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(key), &PKCS_ED25519)
            .map_err(CredentialError::Certificate)?;
        let serial = expand(b"redisbench v1 tls serial");
        let certificate = certificate_params(&serial[..16])
            .and_then(|params| params.self_signed(&key))
            .map_err(CredentialError::Certificate)?;
        Ok(Self {
            token,
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            private_key_pem: key.serialize_pem(),
        })
    }

    /// The bearer token, as stored in the shard's Secret.
    pub fn token_text(&self) -> &str {
        &self.token
    }

    /// The bearer token, for requests.
    pub fn token(&self) -> RunToken {
        RunToken::new(&self.token)
    }

    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The shards' private key in PKCS#8.
    pub fn private_key_pem(&self) -> &str {
        &self.private_key_pem
    }

    /// TLS settings of a client that accepts exactly this run's certificate.
    ///
    /// # Errors
    /// If the TLS library refuses its own defaults, which has not been seen.
    pub fn client_config(&self) -> Result<ClientConfig, CredentialError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // Pods are dialled by address, so the name proves nothing.
        let verifier = CertificateVerifier { pinned: Some(self.certificate.clone()), provider: provider.clone() };
        Ok(ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(CredentialError::Tls)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth())
    }
}

impl fmt::Debug for RunCredential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RunCredential(..)")
    }
}

/// Must not depend on time or randomness: the certificate must be the same in every process.
fn certificate_params(serial: &[u8]) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(vec![DNS_NAME.to_owned()])?;
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
    params.serial_number = Some(SerialNumber::from_slice(serial));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, DNS_NAME);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(master: u8, run: &str) -> [String; 3] {
        let credential = RunCredential::derive(&[master; 32], run).unwrap();
        [credential.token, credential.certificate_pem, credential.private_key_pem]
    }

    #[test]
    fn derived_again_it_is_the_same() {
        assert_eq!(derived(7, "run"), derived(7, "run"));
    }

    #[test]
    fn another_run_or_master_key_has_nothing_in_common() {
        let one = derived(7, "run");
        for other in [derived(7, "another"), derived(8, "run")] {
            for (a, b) in one.iter().zip(other) {
                assert_ne!(*a, b);
            }
        }
    }

    #[test]
    fn token_and_key_differ_within_a_run() {
        let credential = RunCredential::derive(&[1; 32], "run").unwrap();
        assert_eq!(credential.token_text().len(), 43);
        let token = URL_SAFE_NO_PAD.decode(credential.token_text()).unwrap();
        let key = pem_bytes(credential.private_key_pem());
        assert!(!key.windows(32).any(|window| window == token));
    }

    fn pem_bytes(pem: &str) -> Vec<u8> {
        let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    }

    #[test]
    fn debug_hides_everything() {
        assert_eq!(format!("{:?}", RunCredential::derive(&[1; 32], "run").unwrap()), "RunCredential(..)");
    }
}
