//! The flags for the target: address, type, credentials and TLS.

use std::env;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use dialoguer::Password;
use serde_json::json;

use super::uri::Uri;
use crate::credentials::Confidential;
use crate::draft::Draft;
use crate::manifest::Problem;

const HOST: &str = "127.0.0.1";
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
/// The environment variable with the password, as for redis-cli.
pub const ENVIRONMENT: &str = "REDISCLI_AUTH";

/// Address, type, credentials and TLS of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Target")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct TargetFlags {
    /// Address of the target; several of a cluster or of sentinels, separated by commas. The default port is 6379, or 26379 for
    /// sentinels
    #[arg(long, value_name = "HOST[:PORT]", value_delimiter = ',')]
    pub target: Vec<String>,
    /// Host of the target [default: 127.0.0.1 if there is a port]
    #[arg(short = 'h', long, value_name = "HOST", conflicts_with = "target")]
    pub host: Option<String>,
    /// Port of the target
    #[arg(short, long, value_name = "PORT", conflicts_with = "target")]
    pub port: Option<u16>,
    /// UNIX socket of the target
    #[arg(short, long, value_name = "PATH", conflicts_with_all = ["target", "host", "port"])]
    pub socket: Option<String>,
    /// URI of the target: redis://[[USER:]PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS. Other users see a password in it
    #[arg(short, long, value_name = "URI", conflicts_with_all = ["target", "host", "port", "socket"])]
    pub uri: Option<Confidential>,
    /// The target is a Redis Cluster
    #[arg(long)]
    pub cluster: bool,
    /// The target is the primary that the sentinels at this address know by NAME
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cluster", "socket"])]
    pub sentinel: Option<String>,
    /// User name; needs a password
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Password. Other users of this machine see it in the list of processes: better use --askpass, or the environment variable
    /// `REDISCLI_AUTH`
    #[arg(short = 'a', long = "pass", value_name = "PASSWORD")]
    pub password: Option<Confidential>,
    /// Ask for the password on the terminal
    #[arg(long, conflicts_with = "password")]
    pub askpass: bool,
    /// Use TLS
    #[arg(long)]
    pub tls: bool,
    /// Certificates of trusted authorities for TLS, as PEM [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Client certificate for TLS, as PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Private key of the client certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Server name for TLS, if it is not the host
    #[arg(long, value_name = "NAME")]
    pub sni: Option<String>,
    /// Accept any certificate; the verdict reports it
    #[arg(long)]
    pub insecure: bool,
}

impl TargetFlags {
    /// Returns whether there is an address.
    pub fn is_aimed(&self) -> bool {
        !self.target.is_empty()
            || self.host.is_some()
            || self.port.is_some()
            || self.socket.is_some()
            || self.uri.is_some()
    }

    /// Adds the target to `draft`. A password becomes a reference to a Secret.
    pub fn apply(&self, draft: &mut Draft) -> Result<(), Problem> {
        let uri = self.parsed_uri()?;
        // Not quoted, because it may have a password.
        if self.target.iter().chain(&self.host).any(|address| address.contains("://")) {
            return Err(Problem::field("--target", "must be HOST or HOST:PORT; give a URI with -u".to_owned()));
        }
        draft.set("targets/0/name", "redis");
        let kind = match (&self.sentinel, self.cluster) {
            (Some(_), _) => "Sentinel",
            (None, true) => "Cluster",
            (None, false) => "Standalone",
        };
        draft.set("targets/0/type", kind);
        draft.set("targets/0/endpoints", self.endpoints(uri.as_ref()));
        draft.set_if("targets/0/sentinel/masterName", self.sentinel.as_deref());
        draft.set_if("targets/0/database", uri.as_ref().and_then(|uri| uri.database));
        self.log_in(uri.as_ref(), draft)?;
        let tls = [self.tls, self.insecure, self.cacert.is_some(), self.cert.is_some(), self.sni.is_some()];
        if tls.contains(&true) || uri.is_some_and(|uri| uri.tls) {
            draft.set("targets/0/tls", json!({}));
        }
        draft.set_if("targets/0/tls/serverName", self.sni.as_deref());
        draft.set_if("targets/0/tls/insecureSkipVerify", self.insecure.then_some(true));
        if let Some(file) = &self.cacert {
            draft.trust(file.clone());
        }
        if let Some((certificate, key)) = self.cert.as_ref().zip(self.key.as_ref()) {
            draft.present(certificate.clone(), key.clone());
        }
        Ok(())
    }

    fn log_in(&self, uri: Option<&Uri>, draft: &mut Draft) -> Result<(), Problem> {
        let user = self.user.as_deref().or(uri.and_then(|uri| uri.user.as_deref()));
        let in_uri = uri.is_some_and(|uri| uri.password.is_some());
        if self.askpass || self.password.is_some() || in_uri || environment().is_some() {
            draft.log_in(user);
        } else if user.is_some() {
            let message = format!("needs a password: add --askpass, or set {ENVIRONMENT}");
            return Err(Problem::field("--user", message));
        }
        Ok(())
    }

    /// The password, if the target needs one. Asks for it if wanted.
    ///
    /// # Errors
    /// If there is no terminal to ask on.
    pub fn password(&self) -> Result<Option<Confidential>, Problem> {
        if self.askpass {
            return ask().map(Some);
        }
        let in_uri = self.parsed_uri()?.and_then(|uri| uri.password);
        Ok(self.password.clone().or(in_uri).or_else(environment))
    }

    /// A warning if the command line has a password.
    pub fn warning(&self) -> Option<String> {
        let in_uri = self.parsed_uri().ok().flatten().is_some_and(|uri| uri.password.is_some());
        let flag = if self.password.is_some() { "-a" } else { "-u" };
        (self.password.is_some() || in_uri).then(|| {
            format!(
                "warning: other users of this machine see the password of {flag} in the list of processes; use --askpass or \
                 {ENVIRONMENT} instead"
            )
        })
    }

    fn parsed_uri(&self) -> Result<Option<Uri>, Problem> {
        let uri = self.uri.as_ref().map(|uri| Uri::parse(uri.reveal())).transpose();
        uri.map_err(|message| Problem::field("-u", message.to_owned()))
    }

    fn endpoints(&self, uri: Option<&Uri>) -> Vec<String> {
        let usual = if self.sentinel.is_some() { SENTINEL_PORT } else { PORT };
        if !self.target.is_empty() {
            return self.target.iter().map(|text| with_port(text, usual)).collect();
        }
        if let Some(path) = &self.socket {
            return vec![format!("unix:{path}")];
        }
        let (host, port) = match uri {
            Some(uri) => (Some(uri.host.as_str()), uri.port),
            None => (self.host.as_deref(), self.port),
        };
        vec![endpoint(host.unwrap_or(HOST), port.unwrap_or(usual))]
    }
}

/// `host:port`, with brackets around an IPv6 address.
fn endpoint(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// `text` as an endpoint, with the port `usual` unless it has one.
fn with_port(text: &str, usual: u16) -> String {
    let has_port = match text.rsplit_once(']') {
        Some((_, behind)) => behind.starts_with(':'),
        None => text.matches(':').count() == 1,
    };
    // A socket's path, as in a manifest.
    if has_port || text.starts_with("unix:") { text.to_owned() } else { endpoint(text, usual) }
}

fn environment() -> Option<Confidential> {
    env::var(ENVIRONMENT).ok().filter(|password| !password.is_empty()).map(Confidential::from)
}

fn ask() -> Result<Confidential, Problem> {
    let problem = |message: String| Problem::field("--askpass", message);
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(problem(format!("needs a terminal: set {ENVIRONMENT} instead")));
    }
    let password = Password::new().with_prompt("Password").report(false).interact();
    password.map(Confidential::from).map_err(|error| problem(format!("failed to read the password: {error}")))
}
