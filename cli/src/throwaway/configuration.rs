//! The configuration of a throwaway server, which it reads from its standard input.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::{Shape, ThrowawayError};
use crate::credentials::Credentials;

/// While a cluster forms: nodes ask each other for news twice in this time.
const FORMING_TIMEOUT: Duration = Duration::from_secs(1);
/// Once it has formed: a node that is silent for so long has failed.
pub const SERVING_TIMEOUT: Duration = Duration::from_secs(15);

/// Where a server lives.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its working directory.
    pub directory: PathBuf,
    /// Its ports: for clients, and for the cluster's bus.
    pub ports: [u16; 2],
}

/// Writes the configuration. It may hold the password, so it goes into a pipe and never to a file.
///
/// # Errors
/// When the user's name cannot stand in an access list.
pub fn configuration(place: &Place, shape: Shape, credentials: Option<&Credentials>) -> Result<String, ThrowawayError> {
    let [port, bus_port] = place.ports;
    let directory = quote(&place.directory.to_string_lossy());
    let mut text = format!(
        "bind 127.0.0.1\nport {port}\ndir {directory}\nsave \"\"\nappendonly no\ndaemonize no\nlatency-tracking no\n"
    );
    if shape == Shape::Cluster {
        // A busy machine of few cores must not look like a dead primary: no fail-over in a throwaway.
        let _ = write!(
            text,
            "cluster-enabled yes\ncluster-port {bus_port}\ncluster-node-timeout {}\ncluster-replica-no-failover yes\n\
             repl-diskless-sync-delay 0\n",
            FORMING_TIMEOUT.as_millis()
        );
    }
    if let Some(credentials) = credentials {
        let user = match credentials.username.as_deref() {
            None => "default",
            Some(name) if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) => {
                return Err(ThrowawayError::UserName(name.to_owned()));
            }
            Some(name) => name,
        };
        if user != "default" {
            text.push_str("user default off\n");
        }
        let password = quote(&format!(">{}", credentials.password));
        let _ = writeln!(text, "user {} on {password} ~* &* +@all", quote(user));
        if shape == Shape::Cluster {
            let _ = writeln!(text, "masteruser {}\nmasterauth {}", quote(user), quote(&credentials.password));
        }
    }
    Ok(text)
}

/// Any bytes as one word of redis.conf.
fn quote(word: &str) -> String {
    let escaped: String = word
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        })
        .collect();
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { directory: "/d".into(), ports: [1, 2] }
    }

    #[test]
    fn quotes_every_byte() {
        assert_eq!(quote("a \"b\\\né"), r#""a \"b\\\x0a\xc3\xa9""#);
    }

    #[test]
    fn open_server_has_no_users() {
        let text = configuration(&place(), Shape::Standalone, None).unwrap();
        assert!(text.contains("port 1\n"));
        assert!(!text.contains("user"));
        assert!(!text.contains("cluster"));
    }

    #[test]
    fn named_user_shuts_the_default_one_out() {
        let credentials = Credentials { username: Some("app".to_owned()), password: "s".to_owned() };
        let text = configuration(&place(), Shape::Cluster, Some(&credentials)).unwrap();
        assert!(text.contains("user default off\nuser \"app\" on \">s\" ~* &* +@all\n"));
        assert!(text.contains("masteruser \"app\"\nmasterauth \"s\"\n"));
        assert!(text.contains("cluster-port 2\n"));
    }

    #[test]
    fn name_with_a_line_break_is_refused() {
        let credentials = Credentials { username: Some("a\nb".to_owned()), password: String::new() };
        assert!(matches!(
            configuration(&place(), Shape::Standalone, Some(&credentials)),
            Err(ThrowawayError::UserName(_))
        ));
    }
}
