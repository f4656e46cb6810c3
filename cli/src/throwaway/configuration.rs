//! The configuration of throwaway servers and their sentinels.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::error::ThrowawayError;
use super::quote::quote;
use super::wanted::{Shape, Wanted};
use crate::credentials::Credentials;

/// Sentinels per primary, so that two can agree on a failover.
pub const SENTINELS: usize = 3;
/// The node timeout while a cluster forms: nodes exchange news twice in this time.
const FORMING_TIMEOUT: Duration = Duration::from_secs(1);
/// The node timeout of a formed cluster: a node that is silent for this long has failed.
pub const SERVING_TIMEOUT: Duration = Duration::from_secs(15);
/// High, so that sentinels do not take a busy machine for a dead primary: a throwaway needs no failover.
const WATCHED_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Server {
        /// The port of its primary, if it is a replica.
        follows: Option<u16>,
    },
    Sentinel {
        /// The port of that server.
        primary: u16,
    },
}

#[derive(Clone, Debug)]
pub struct Place {
    pub directory: PathBuf,
    /// Its ports: for plain-text clients, for the cluster bus, and for TLS clients.
    pub ports: [u16; 3],
}

/// Returns the configuration. It may contain a password: a server reads it from a pipe, and a sentinel from a file that only this user can
/// read, because sentinels rewrite their configuration.
///
/// # Errors
/// If the user name is not possible in an ACL.
pub fn configuration(place: &Place, role: Role, wanted: &Wanted<'_>) -> Result<String, ThrowawayError> {
    let [port, bus_port, tls_port] = place.ports;
    let directory = quote(&place.directory.to_string_lossy());
    let addresses: String = (1..=wanted.addresses).map(|address| format!(" 127.0.0.{address}")).collect();
    let mut text = format!("bind{addresses}\nport {port}\ndir {directory}\ndaemonize no\n");
    let is_sentinel = matches!(role, Role::Sentinel { .. });
    let secured = if is_sentinel { wanted.sentinel_tls.or(wanted.tls) } else { wanted.tls };
    if let Some((authority, asks)) = secured {
        text.push_str(&authority.configuration(tls_port, asks));
    }
    if wanted.tls.is_some() {
        text.push_str("tls-replication yes\n");
    }
    let own = if is_sentinel { wanted.sentinel_credentials } else { wanted.credentials };
    if let Some(credentials) = own {
        let user = user_name(credentials)?;
        if user != "default" {
            text.push_str("user default off\n");
        }
        let password = quote(&format!(">{}", credentials.password));
        let _ = writeln!(text, "user {} on {password} ~* &* +@all", quote(user));
    }
    match role {
        Role::Server { follows } => server(&mut text, wanted, bus_port, follows)?,
        Role::Sentinel { primary } => sentinel(&mut text, wanted, primary)?,
    }
    Ok(text)
}

fn server(text: &mut String, wanted: &Wanted<'_>, bus_port: u16, follows: Option<u16>) -> Result<(), ThrowawayError> {
    let _ = write!(
        text,
        "save \"\"\nappendonly no\nlatency-tracking no\ndatabases {}\nrepl-diskless-sync-delay 0\n",
        wanted.databases
    );
    if wanted.shape == Shape::Cluster {
        // A busy machine must not look like a dead primary: a throwaway needs no failover.
        let _ = write!(
            text,
            "cluster-enabled yes\ncluster-port {bus_port}\ncluster-node-timeout {}\ncluster-replica-no-failover yes\n",
            FORMING_TIMEOUT.as_millis()
        );
        if wanted.tls.is_some() {
            text.push_str("tls-cluster yes\n");
        }
    }
    if let Some(primary) = follows {
        let _ = writeln!(text, "replicaof 127.0.0.1 {primary}");
    }
    if let Some(credentials) = wanted.credentials.filter(|_| wanted.replicas > 0) {
        let user = user_name(credentials)?;
        let _ = writeln!(text, "masteruser {}\nmasterauth {}", quote(user), quote(&credentials.password));
    }
    Ok(())
}

fn sentinel(text: &mut String, wanted: &Wanted<'_>, primary: u16) -> Result<(), ThrowawayError> {
    let name = wanted.master_name;
    let quorum = SENTINELS / 2 + 1;
    let _ = write!(
        text,
        "sentinel monitor {name} 127.0.0.1 {primary} {quorum}\nsentinel down-after-milliseconds {name} {}\n",
        WATCHED_TIMEOUT.as_millis()
    );
    if let Some(credentials) = wanted.credentials {
        let (user, password) = (quote(user_name(credentials)?), quote(&credentials.password));
        let _ = write!(text, "sentinel auth-user {name} {user}\nsentinel auth-pass {name} {password}\n");
    }
    if let Some(credentials) = wanted.sentinel_credentials {
        let (user, password) = (quote(user_name(credentials)?), quote(&credentials.password));
        let _ = write!(text, "sentinel sentinel-user {user}\nsentinel sentinel-pass {password}\n");
    }
    Ok(())
}

/// The user name in the ACL.
fn user_name(credentials: &Credentials) -> Result<&str, ThrowawayError> {
    match credentials.username.as_deref() {
        None => Ok("default"),
        Some(name) if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Err(ThrowawayError::UserName(name.to_owned()))
        }
        Some(name) => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Role = Role::Server { follows: None };

    fn place() -> Place {
        Place { directory: "/d".into(), ports: [1, 2, 3] }
    }

    fn with(shape: Shape, credentials: &Credentials) -> Wanted<'_> {
        Wanted { credentials: Some(credentials), replicas: 1, master_name: "main", ..Wanted::plain(shape) }
    }

    fn app() -> Credentials {
        Credentials { username: Some("app".to_owned()), password: "s".to_owned() }
    }

    #[test]
    fn open_server_has_no_users() {
        let text = configuration(&place(), SERVER, &Wanted::plain(Shape::Standalone)).unwrap();
        assert!(text.contains("port 1\n"));
        assert!(!text.contains("user") && !text.contains("tls"));
        assert!(!text.contains("cluster"));
    }

    #[test]
    fn named_user_shuts_the_default_one_out() {
        let text = configuration(&place(), SERVER, &with(Shape::Cluster, &app())).unwrap();
        assert!(text.contains("user default off\nuser \"app\" on \">s\" ~* &* +@all\n"));
        assert!(text.contains("masteruser \"app\"\nmasterauth \"s\"\n"));
        assert!(text.contains("cluster-port 2\n"));
    }

    #[test]
    fn sentinels_ask_the_servers_as_everybody_does_and_each_other_for_what_is_their_own() {
        let (servers, own) = (app(), Credentials { username: None, password: "own".to_owned() });
        let wanted = with(Shape::Sentinel, &servers);
        let wanted = Wanted { sentinel_credentials: Some(&own), ..wanted };
        let text = configuration(&place(), Role::Sentinel { primary: 7 }, &wanted).unwrap();
        assert!(text.contains("sentinel monitor main 127.0.0.1 7 2\n"), "{text}");
        assert!(text.contains("sentinel auth-user main \"app\"\nsentinel auth-pass main \"s\"\n"), "{text}");
        assert!(text.contains("user \"default\" on \">own\" ~* &* +@all\n"), "{text}");
        assert!(text.contains("sentinel sentinel-pass \"own\"\n") && !text.contains("save"), "{text}");
    }

    #[test]
    fn name_with_a_line_break_is_refused() {
        let credentials = Credentials { username: Some("a\nb".to_owned()), password: String::new() };
        let refused = configuration(&place(), SERVER, &with(Shape::Standalone, &credentials));
        assert!(matches!(refused, Err(ThrowawayError::UserName(_))));
    }
}
