//! TLS to the target: settings from the plan and the mounted files, and error messages.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::{CertificateVerifier, plan};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::trouble::Trouble;
use crate::engine::{Tls, TlsParts};

const AUTHORITY: &str = "spec.targets[0].tls.caSecretRef";
const CERTIFICATE: &str = "spec.targets[0].tls.clientCertificateSecretRef";
const SERVER_NAME: &str = "spec.targets[0].tls.serverName";
const MINIMUM_VERSION: &str = "spec.targets[0].tls.minimumVersion";

/// Timeout for detecting the protocol of a port after a failed handshake.
const PROBE: Duration = Duration::from_secs(1);
/// Longer than any server's reply to PING.
const GREETING: usize = 512;

/// TLS settings for every server of the target.
#[derive(Clone, Debug)]
pub struct Security {
    /// The same settings for the engine.
    pub engine: Tls,
    plan: plan::Tls,
}

impl Security {
    /// Reads those of `ca.crt`, `tls.crt` and `tls.key` that the plan asks for from `directory`.
    ///
    /// # Errors
    /// Fails with a message that names the field if a file is missing or malformed.
    pub async fn read(plan: &plan::Tls, directory: &Path) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions: &[_] = match plan.minimum_version {
            plan::TlsVersion::Tls12 => &[&rustls::version::TLS13, &rustls::version::TLS12],
            plan::TlsVersion::Tls13 => &[&rustls::version::TLS13],
        };
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(|error| format!("{MINIMUM_VERSION}: {error}"))?;
        let mut parts = TlsParts { trusts_anyone: plan.trust == plan::Trust::Anyone, ..TlsParts::default() };
        let builder = match plan.trust {
            plan::Trust::Mounted => {
                let pem = read(&directory.join("ca.crt"), AUTHORITY).await?;
                let roots = authorities(&pem)?;
                parts.authorities = Some(pem);
                builder.with_root_certificates(roots)
            }
            plan::Trust::System => builder.with_root_certificates(system_authorities()?),
            plan::Trust::Anyone => {
                let verifier = CertificateVerifier { pinned: None, provider };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        let config = if plan.client_certificate {
            let chain = read(&directory.join("tls.crt"), CERTIFICATE).await?;
            let key = read(&directory.join("tls.key"), CERTIFICATE).await?;
            let certificates = certificates(&chain, &format!("{CERTIFICATE}: its tls.crt"))?;
            let private = PrivateKeyDer::from_pem_slice(&key)
                .map_err(|_| format!("{CERTIFICATE}: its tls.key has no PEM private key"))?;
            parts.identity = Some((chain, key));
            builder
                .with_client_auth_cert(certificates, private)
                .map_err(|error| format!("{CERTIFICATE}: its certificate and key cannot be used: {error}"))?
        } else {
            builder.with_no_client_auth()
        };
        let server_name = plan.server_name.as_deref().map(|name| {
            ServerName::try_from(name.to_owned()).map_err(|_| format!("{SERVER_NAME}: {name:?} is not a host name"))
        });
        let engine = Tls { config: Arc::new(config), server_name: server_name.transpose()?, parts: Arc::new(parts) };
        Ok(Self { engine, plan: plan.clone() })
    }

    /// Performs the TLS handshake with `endpoint` and one exchange after it, because a server reports a rejected client certificate only
    /// after the handshake.
    pub async fn connect(
        &self,
        stream: TcpStream,
        endpoint: &str,
        limit: Duration,
    ) -> Result<TlsStream<TcpStream>, Trouble> {
        let address = stream.peer_addr();
        let name = self.engine.name_of(endpoint).map_err(|error| {
            Trouble::Insecure(format!("{SERVER_NAME} is not set, and the endpoint's host is not valid: {error}"))
        })?;
        let connector = TlsConnector::from(self.engine.config.clone());
        let agreed = async {
            let mut stream = connector.connect(name, stream).await?;
            let greeting = greeting(&mut stream).await?;
            Ok((stream, greeting))
        };
        match timeout(limit, agreed).await {
            Ok(Ok((stream, greeting))) if !greeting.starts_with("-ERR max") => Ok(stream),
            Ok(Ok((_, greeting))) => Err(Trouble::Refused(greeting.trim_start_matches('-').to_owned())),
            Ok(Err(error)) => match explain(&error, &self.plan) {
                Some(explained) => Err(Trouble::Insecure(explained)),
                None => Err(self.no_tls(address, &format!("TLS: {error}")).await),
            },
            Err(_) => {
                let what =
                    format!("TLS: no reply within {} ms; does the server use TLS on this port?", limit.as_millis());
                Err(self.no_tls(address, &what).await)
            }
        }
    }

    /// A port without TLS may be a plain Redis.
    async fn no_tls(&self, address: io::Result<SocketAddr>, what: &str) -> Trouble {
        match address {
            Ok(address) if speaks_redis(address).await => Trouble::Insecure(
                "the server uses plaintext, not TLS, on this port: use its TLS port in \
                 spec.targets[0].endpoints, or remove spec.targets[0].tls"
                    .to_owned(),
            ),
            _ => Trouble::Silent(what.to_owned()),
        }
    }
}

async fn read(path: &Path, field: &str) -> Result<Vec<u8>, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    tokio::fs::read(path).await.map_err(|error| format!("{field}: {name} could not be read: {}", error.kind()))
}

/// The certificates of `what`, which has at least one.
fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!("{what} has no PEM certificate")),
    }
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, &format!("{AUTHORITY}: its ca.crt"))? {
        roots.add(certificate).map_err(|error| format!("{AUTHORITY}: a certificate in it cannot be used: {error}"))?;
    }
    Ok(roots)
}

fn system_authorities() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // Ignore authorities that rustls cannot parse.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(format!("{AUTHORITY} is not set, and the shard's system has no trusted CAs: set it"));
    }
    Ok(roots)
}

/// Sends PING and returns the first line of the reply.
async fn greeting(stream: &mut TlsStream<TcpStream>) -> io::Result<String> {
    // A server that rejects us may have closed already. Its reason can still be read.
    let asked = async {
        stream.write_all(b"*1\r\n$4\r\nPING\r\n").await?;
        stream.flush().await
    };
    let _ = asked.await;
    let mut line = Vec::new();
    while line.len() < GREETING {
        match stream.read_u8().await? {
            b'\n' => break,
            byte => line.push(byte),
        }
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// The problem, its field and the fix. `None` if the server seems not to speak TLS at all.
fn explain(error: &io::Error, plan: &plan::Tls) -> Option<String> {
    let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) else {
        let closed = matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof);
        // The peer closed the connection after a handshake that both understood.
        return (closed && error.to_string().contains("close_notify")).then(|| refused_certificate(plan));
    };
    Some(match error {
        rustls::Error::InvalidMessage(_) => return None,
        rustls::Error::InvalidCertificate(error) => bad_certificate(error, plan),
        rustls::Error::PeerIncompatible(_) | rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            format!(
                "{MINIMUM_VERSION}: the server does not support this TLS version: lower it, or enable it on the \
                 server ({error})"
            )
        }
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::HandshakeFailure
            | AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::DecryptError
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::AccessDenied,
        ) => format!("{} ({error})", refused_certificate(plan)),
        rustls::Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            format!("{SERVER_NAME}: the server does not recognize the name: set it to one that it has ({error})")
        }
        error => format!("spec.targets[0].tls: {error}"),
    })
}

fn refused_certificate(plan: &plan::Tls) -> String {
    if plan.client_certificate {
        format!("{CERTIFICATE}: the server does not accept the certificate: use one of a CA that it trusts")
    } else {
        format!("{CERTIFICATE} is not set, but the server requires a client certificate: set it")
    }
}

fn bad_certificate(error: &CertificateError, plan: &plan::Tls) -> String {
    match error {
        CertificateError::UnknownIssuer if plan.trust == plan::Trust::System => format!(
            "{AUTHORITY} is not set, and the server's certificate is from an unknown issuer: set it to the CA \
             that signed it"
        ),
        CertificateError::UnknownIssuer => {
            format!("{AUTHORITY}: the server's certificate is from an unknown issuer: use the CA that signed it")
        }
        CertificateError::BadSignature => format!(
            "{AUTHORITY}: the server's certificate is from an unknown issuer, with the name of a known CA but \
             another key: use the CA that signed it"
        ),
        CertificateError::NotValidForName => format!("{SERVER_NAME}: the server's certificate is for another name"),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let presented: Vec<String> = presented.iter().take(3).map(|name| plain(name)).collect();
            format!(
                "{SERVER_NAME}: the server's certificate is not for {}: set it to a name in the certificate: {}",
                expected.to_str(),
                if presented.is_empty() { "none".to_owned() } else { presented.join(", ") }
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "spec.targets[0].tls: the server's certificate has expired: renew it at the server".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "spec.targets[0].tls: the server's certificate is not valid yet: renew it, or correct the clocks".to_owned()
        }
        error if error.to_string().contains("CaUsedAsEndEntity") => format!(
            "{AUTHORITY}: the server presents a CA's own certificate (CA:TRUE): configure one that the CA \
             signed"
        ),
        error => format!("{AUTHORITY}: the server's certificate is invalid: {error}"),
    }
}

/// The name in `DnsName("redis")`.
fn plain(name: &str) -> String {
    name.split('"').nth(1).unwrap_or(name).to_owned()
}

/// Returns whether a Redis without TLS answers at the address.
async fn speaks_redis(address: SocketAddr) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"*1\r\n$4\r\nPING\r\n").await?;
        stream.read_u8().await
    };
    matches!(timeout(PROBE, asked).await, Ok(Ok(b'+' | b'-')))
}

/// Returns whether the port speaks TLS, trusted or not.
pub async fn speaks_tls(address: SocketAddr) -> bool {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let Ok(builder) = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()
    else {
        return false;
    };
    let verifier = Arc::new(CertificateVerifier { pinned: None, provider });
    let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    let asked = async {
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::new(config)).connect(ServerName::from(address.ip()), stream).await.map(drop)
    };
    match timeout(PROBE, asked).await {
        Ok(Ok(())) => true,
        // A TLS alert also proves TLS.
        Ok(Err(error)) => error
            .get_ref()
            .and_then(|error| error.downcast_ref::<rustls::Error>())
            .is_some_and(|error| matches!(error, rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_))),
        Err(_) => false,
    }
}
